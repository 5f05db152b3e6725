"""The gaps between the statements of a function: places where a kill can come, and where a line can be planted."""

import ast

KILL = "__import__('os').kill(__import__('os').getpid(), 9)"   # SIGKILL: no `finally` and no `except` sees it


def statements(text, function):
    """The statements of a function's body in a module's text, in order, each as ast; without the docstring. Raises LookupError."""
    for node in ast.parse(text).body:
        if isinstance(node, ast.FunctionDef) and node.name == function:
            return node.body[1:] if ast.get_docstring(node) else node.body
    raise LookupError(f"there is no `def {function}` in this text")


def planted(text, function, line, gaps=None):
    """The module's text with `line` in these gaps of a function, or in all of them. Gap 0 is before its first statement."""
    lines = text.splitlines()
    for gap, statement in reversed(list(enumerate(statements(text, function)))):
        if gaps is None or gap in gaps:
            lines.insert(statement.lineno - 1, " " * statement.col_offset + line)
    return "\n".join(lines) + "\n"
