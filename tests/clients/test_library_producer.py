"""A producer that stands on a library: it waits before it goes on after a batch that certainly nobody took."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

import pytest

from harness.clients import library
from harness.clients.library import LibraryProducer, Record, Report
from harness.clients.outcome import Outcome
from harness.events import Event
from harness.model import OpType
from harness.workload.plan import Place, ProducerPlan
from harness.workload.script import Send

PLAN = ProducerPlan(name="p1", places=(Place("log", 0),), every_ms=(7, 7), within_ms=50)
SENDS = 4


class Leaves:
    """An event that notes for how long it was waited for, and is set after some batches."""

    def __init__(self, sender: Sends) -> None:
        self.sender, self.waits = sender, list[float]()

    def wait(self, seconds: float) -> bool:
        self.waits.append(seconds)
        return self.sender.count >= SENDS


class Sends:
    """A sender of which all records come to one outcome, or to none."""

    def __init__(self, ends: OpType | None) -> None:
        self.ends, self.count, self.closed = ends, 0, False

    def send(self, records: Sequence[Record], send: Send, report: Report) -> None:
        self.count += 1
        for record in records if self.ends else ():
            report(record.value, Outcome(type=cast(OpType, self.ends), base=5 if self.ends is OpType.OK else None))

    def close(self) -> None:
        self.closed = True


class Told:
    """A history that keeps what it is told."""

    def __init__(self) -> None:
        self.types: list[OpType] = []

    def record(self, process: str, type_: OpType, event: Event) -> None:
        self.types.append(type_)


@pytest.mark.parametrize(
    ("ends", "recorded", "waits"),
    [
        (OpType.OK, OpType.OK, 0),
        (OpType.INFO, OpType.INFO, 0),
        (OpType.FAIL, OpType.FAIL, SENDS),
        (None, OpType.INFO, 0),
    ],
)
def test_producer_waits_only_after_a_batch_of_which_nothing_is_written(
    ends: OpType | None, recorded: OpType, waits: int
) -> None:
    told, sender = Told(), Sends(ends)
    leaves = Leaves(sender)
    producer = LibraryProducer(
        PLAN, 1, process="client-1", history=told, sender=sender, digest=lambda value, time_ms: ""
    )
    producer.run(leaves)  # type: ignore[arg-type]
    assert sender.closed
    assert {OpType.INVOKE, recorded} == {*told.types}
    pause = library._REFUSED_S
    assert waits == leaves.waits.count(pause)
    assert SENDS <= len([each for each in leaves.waits if each != pause])
