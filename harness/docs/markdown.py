"""Pieces of a printed page: its head, tables, code, and what a docstring says."""

from __future__ import annotations

import inspect
import textwrap
from collections.abc import Sequence


def page(title: str, source: str, *parts: str) -> str:
    """Join a page's parts below its title and the line that says what it is printed from."""
    return "\n\n".join((f"# {title}", f"Printed by `make docs` from {source}; change it there.", *parts)) + "\n"


def table(head: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """Write a table; a bar stays within its cell."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(str(cell).replace('|', chr(92) + '|') for cell in line)} |" for line in lines)


def code(text: str) -> str:
    """Write text as it stands, but for the margin that its lines share."""
    return f"```text\n{textwrap.dedent(text)}\n```"


def docstring(thing: object) -> str:
    """Give what a thing says of itself."""
    text = inspect.getdoc(thing)
    assert text, f"{thing!r} has no docstring; every public thing has one"
    return text


def first_line(thing: object) -> str:
    """Give the first line of what a thing says of itself."""
    return docstring(thing).splitlines()[0]


def sentence(text: str) -> str:
    """Make a sentence of a phrase."""
    return f"{text[0].upper()}{text[1:].rstrip('.?')}{'?' if text.endswith('?') else '.'}"
