"""A wait for a whole cluster moves a partition back that a refused request has moved all the same."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any, cast

import pytest

from harness.model import PreconditionError
from harness.scenario.relief import await_relieved
from harness.workload.plan import Place


class Room:
    """A cluster of one partition that is away, and an operator who grants a request after so many refusals."""

    def __init__(self, refusals: int) -> None:
        self.refusals, self.asked, self.home = refusals, list[Sequence[str]](), False
        self.operator = self
        self.partitions = (
            SimpleNamespace(
                place=Place("log", 0), replicas=("A", "B", "C"), successor=lambda: "", truth=lambda: None
            ),
        )

    def strayed(self, topic: str, partition: int) -> bool:
        assert ("log", 0) == (topic, partition)
        return not self.home

    def move(self, topic: str, partition: int, names: Sequence[str]) -> str:
        self.asked.append(names)
        if len(self.asked) <= self.refusals:
            raise PreconditionError("refused")
        self.home = True
        return "moved"

    def await_(self, condition: Callable[[], bool], lacking: Callable[[], str], _: float) -> None:
        if not condition():
            raise PreconditionError(lacking())

    def wait(self) -> None:
        await_relieved(cast(Any, self), cast(Any, None), lambda: self.home, lambda: "it is away", 1.0)


@pytest.mark.parametrize("refusals", [0, 4])
def test_partition_that_strayed_is_moved_back_to_its_replicas(refusals: int) -> None:
    room = Room(refusals)
    room.wait()
    assert [("A", "B", "C")] * (refusals + 1) == room.asked


def test_partition_that_nobody_moves_back_ends_the_wait_and_not_the_harness() -> None:
    room = Room(refusals=99)
    with pytest.raises(PreconditionError, match="it is away"):
        room.wait()
    assert 5 == len(room.asked)
