"""A plant: one thing changed in a real run, and the kinds of anomalies that every executor must find."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from harness.model import Kind, Op
from tests.checkers.plants.edit import Edit


@dataclass(frozen=True, slots=True, kw_only=True)
class Plant:
    """
    One golden history.

    Attributes:
        name: AREA-WHAT; the lawful twin of a violation has the same name and ends in `-lawful`.
        run: the file in tests/checkers/runs that is changed.
        edit: makes the change.
        kinds: the kinds that are found in the changed run, no more and no less.
    """

    name: str
    run: str
    edit: Callable[[Edit], Any]
    kinds: frozenset[Kind]

    @property
    def ops(self) -> list[Op]:
        """The changed history."""
        edit = Edit(self.run)
        self.edit(edit)
        return edit.ops


def plant(name: str, run: str, *kinds: Kind) -> Callable[[Callable[[Edit], Any]], Plant]:
    """Return a decorator that makes a function that changes a run a plant."""
    return lambda edit: Plant(name=name, run=run, edit=edit, kinds=frozenset(kinds))


def plants_of(namespace: dict[str, Any]) -> dict[str, Plant]:
    """Return the plants of a module, and of its lists, by name."""
    listed = [plant for each in namespace.values() if isinstance(each, list) for plant in each]
    found = [each for each in (*namespace.values(), *listed) if isinstance(each, Plant)]
    assert len({each.name for each in found}) == len(found), "two plants of one name"
    return {each.name: each for each in found}
