"""
Every golden history and every plant, by name, and what the rules find in a plant.

Each is made when a test first asks for it, and once: all tests that read them together take seconds less, and no
import of a test makes them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from typing import Final

from checkers.judge import check_in_process
from harness.model import Anomaly, Op
from tests.checkers.golden import STORIES, ops_of
from tests.checkers.plants.table import PLANTS


class _Histories(Mapping[str, Sequence[Op]]):
    """The stories first, then the plants; tuples, since all tests share them."""

    def __getitem__(self, name: str) -> Sequence[Op]:
        return _ops(name)

    def __contains__(self, name: object) -> bool:
        return name in STORIES or name in PLANTS

    def __iter__(self) -> Iterator[str]:
        yield from STORIES
        yield from PLANTS

    def __len__(self) -> int:
        return len(STORIES) + len(PLANTS)


HISTORIES: Final = _Histories()


@cache
def _ops(name: str) -> Sequence[Op]:
    if name not in HISTORIES:
        raise KeyError(name)
    return tuple(ops_of(name) if name in STORIES else PLANTS[name].ops)


@cache
def found_in(plant: str) -> Sequence[Anomaly]:
    """Return what all rules find in a plant."""
    return check_in_process(_ops(plant))
