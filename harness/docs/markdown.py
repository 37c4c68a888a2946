"""Pieces of a printed page: its head, tables, code, and docstrings."""

from __future__ import annotations

import inspect
import textwrap
from collections.abc import Sequence


def page(title: str, source: str, *parts: str) -> str:
    """Return a page: its title, the line that names its source, and its parts."""
    return "\n\n".join((f"# {title}", f"Printed by `make docs` from {source}; change it there.", *parts)) + "\n"


def table(head: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """Return a table; a bar within a cell is escaped."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(str(cell).replace('|', chr(92) + '|') for cell in line)} |" for line in lines)


def code(text: str) -> str:
    """Return the text as a code block, without the common margin of its lines."""
    return f"```text\n{textwrap.dedent(text)}\n```"


def docstring(thing: object) -> str:
    """Return the docstring of a thing, which must have one."""
    text = inspect.getdoc(thing)
    assert text, f"{thing!r} has no docstring; every public thing has one"
    return text


def first_line(thing: object) -> str:
    """Return the first line of the docstring of a thing."""
    return docstring(thing).splitlines()[0]


def sentence(text: str) -> str:
    """Return a phrase as a sentence: with a capital letter and a full stop."""
    return f"{text[0].upper()}{text[1:].rstrip('.?')}{'?' if text.endswith('?') else '.'}"
