"""One look-up for every table of plug-ins: a dict literal in the package's `__init__`, and `pick`."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from difflib import get_close_matches
from importlib import import_module
from typing import Any, TypeVar

from harness.model import UsageError

T = TypeVar("T")


def pick(kind: str, table: Mapping[str, T], name: str) -> T:
    """
    Give the table's entry of that name, or say which names there are and which one was probably meant.

    Raises:  UsageError when the table has no such name.
    """
    if name in table:
        return table[name]
    raise UsageError(
        f"unknown {kind} {name!r}: expected one of {', '.join(sorted(table))}.{nearest(name, table, end='')}"
    )


def nearest(name: str, choices: Collection[str], *, end: str = ".") -> str:
    """Return `end` and the choice that was probably meant, as a sentence to append; "" when none is near."""
    near = get_close_matches(name, choices, n=1)
    return f"{end} Did you mean '{near[0]}'?" if near else ""


def load(kind: str, table: Mapping[str, str], name: str, attribute: str) -> Any:
    """Give an attribute of the module that the table names: for plug-ins that must not be imported sooner."""
    return getattr(import_module(pick(kind, table, name)), attribute)
