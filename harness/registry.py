"""Looks up plug-ins by name in a table, a dict literal in their package's `__init__`."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from difflib import get_close_matches
from importlib import import_module
from typing import Any, TypeVar

from harness.model import UsageError

T = TypeVar("T")


def pick(kind: str, table: Mapping[str, T], name: str) -> T:
    """
    Return the table's entry of that name.

    Raises:
        UsageError: the table has no such name; the message has all names, and the nearest one.
    """
    if name in table:
        return table[name]
    raise UsageError(
        f"unknown {kind} {name!r}: expected one of {', '.join(sorted(table))}.{nearest(name, table, end='')}"
    )


def nearest(name: str, choices: Collection[str], *, end: str = ".") -> str:
    """Return `end` and a sentence with the choice that was probably meant; "" if none is similar."""
    near = get_close_matches(name, choices, n=1)
    return f"{end} Did you mean '{near[0]}'?" if near else ""


def load(kind: str, table: Mapping[str, str], name: str, attribute: str) -> Any:
    """Import the module that the table names, and return an attribute of it: for plug-ins imported on demand."""
    return getattr(import_module(pick(kind, table, name)), attribute)
