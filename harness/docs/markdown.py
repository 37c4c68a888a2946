"""Pieces of a printed page: its head, tables, code, and docstrings."""

from __future__ import annotations

import inspect
import textwrap
from collections.abc import Mapping, Sequence
from typing import Final

# What stands around the printed part of a page that is written by hand.
BEGIN: Final = "<!-- Printed by `make docs` from the code, down to the end of this part. -->"
END: Final = "<!-- The end of the printed part. -->"


def page(title: str, source: str, *parts: str) -> str:
    """Return a page: its title, the line that names its source, and its parts."""
    return "\n\n".join((f"# {title}", f"Printed by `make docs` from {source}; change it there.", *parts)) + "\n"


def within(written: str, *parts: str) -> str:
    """Return a page that is written by hand, with these parts in place of what was printed into it before."""
    before, begin, rest = written.partition(BEGIN)
    _, end, after = rest.partition(END)
    assert begin and end, f"the page has no printed part; expected {BEGIN!r}, and then {END!r}"
    return before + "\n\n".join((BEGIN, *parts, END)) + after


def table(head: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """Return a table; a bar within a cell is escaped."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(str(cell).replace('|', chr(92) + '|') for cell in line)} |" for line in lines)


def columns(
    tables: Mapping[str, Mapping[str, tuple[object, str]]], what: Mapping[str, str], level: str
) -> list[str]:
    """
    Return a section for each table of a schema.

    Args:
        tables: table -> column -> its type and what it is; a column whose name ends with `_` may be null.
        what: what each table has.
        level: the marks of the sections' headings.
    """
    return [
        part
        for name, theirs in tables.items()
        for part in (
            f"{level} {name}",
            what[name],
            table(
                ("column", "type", "meaning"),
                [
                    (f"`{column.rstrip('_')}`", f"{kind}{' or null' if column.endswith('_') else ''}", doc)
                    for column, (kind, doc) in theirs.items()
                ],
            ),
        )
    ]


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
