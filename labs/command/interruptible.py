"""What Ctrl-C says where a command has nothing of its own to say."""

import sys

import typer
from typer.core import TyperGroup


class Interruptible(TyperGroup):
    """A group of commands that says in a line that one was interrupted, and ends with exit code 130."""

    def invoke(self, ctx):
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:
            print("interrupted: what was under way has been ended", file=sys.stderr)
            raise typer.Exit(130) from None
