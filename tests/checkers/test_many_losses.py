"""A run that loses thousands of records is judged in time that grows with them, and says it once for each way."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from benchmarks.made.history import Maker, Shape
from benchmarks.made.plants import Plant
from checkers.judge import check_in_process
from harness.model import Anomaly, Kind, Op, PartOps
from tests.checkers.story import Story
from tests.tables.stored import all_ops


def _reported(count: int) -> list[Op]:
    """Return scenario 1 under hw: A truncates to its high watermark, leads, and all of m2 is gone from both."""
    records = {name: tuple(f"{name}-{number}" for number in range(count)) for name in ("m1", "m2")}
    story = Story(records, "hw").started("A", "B", "C").elected("B", 0).leads("B", 0, 0).follows("A", "B", 0, 0)
    for name, base in (("m1", 0), ("m2", count)):
        story.sends(name)
        for offset in range(base, base + count):
            story.append("B", offset, offset + 1, 0, "leader").append("A", offset, offset + 1, 0, "follower")
            story.passes("B", offset + 1)
        story.acked(name, base)
    story.fault("kill", "A").fault("restart", "A").started("A").recovered("A", 2 * count)
    story.follows("A", "B", 0, 2 * count).cut("A", 2 * count, count, "high-watermark")
    story.fault("kill", "B").elected("A", 1, isr="A").leads("A", 1, count, isr="A")
    story.fault("restart", "B").started("B").recovered("B", 2 * count).follows("B", "A", 1, 2 * count)
    story.cut("B", 2 * count, count, "out-of-range", epoch=1).healed()
    log = [(-1, records["m1"])]
    return story.log("A", log).log("B", log).read(*records["m1"]).done().ops


def _silent(count: int, folder: Path) -> Sequence[Op]:
    """Return a run of brokers that emit no events, in which every second record is gone from all replicas."""
    plants = tuple(Plant(name="lost", number=number) for number in range(0, 2 * count, 2))
    Maker(Shape(sends=2 * count, stretch=count, elections=1, plants=plants)).make(folder / str(count))
    return all_ops(folder / str(count))


def _calls(judge: Callable[[], list[Anomaly]]) -> tuple[int, list[Anomaly]]:
    """Return how many functions were called, and what was found."""
    called = 0

    def count(_frame: Any, event: str, _argument: Any) -> None:
        nonlocal called
        called += event == "call"

    sys.setprofile(count)
    try:
        found = judge()
    finally:
        sys.setprofile(None)
    return called, found


@pytest.mark.slow
@pytest.mark.parametrize("reported", [True, False])
def test_four_times_the_losses_take_four_times_the_calls(reported: bool, tmp_path: Path) -> None:
    few, many = ([*(_reported(count) if reported else _silent(count, tmp_path))] for count in (200, 800))
    before, _ = _calls(lambda: check_in_process(PartOps(few)))
    after, found = _calls(lambda: check_in_process(PartOps(many)))
    assert after < 5 * before
    lost = [each for each in found if each.kind is Kind.LOST]
    assert 800 == len({offset for each in lost for first, end in each.ranges for offset in range(first, end)})
    assert len(lost) <= 2
