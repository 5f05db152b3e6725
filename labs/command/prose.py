"""Sentences on a terminal: wrapped between words, not wider than one can read."""

import textwrap

from rich.text import Text

WIDTH = 100  # columns


def say(console, text, style="", indent=0):
    """Print text in lines of at most WIDTH columns or the terminal's, with what is in `backticks` in colour."""
    spaces = " " * indent
    lines = textwrap.fill(text, min(console.width, WIDTH), initial_indent=spaces, subsequent_indent=spaces, break_on_hyphens=False)
    words = Text(lines, style)
    words.highlight_regex("`[^`]+`", "cyan")
    console.print(words, soft_wrap=True)
