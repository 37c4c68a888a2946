"""What compaction may have removed, where a record at one offset has taken the place of another."""

from __future__ import annotations

from dataclasses import replace

import pytest

from checkers.facts.cleaned import compacted_before
from checkers.facts.compacted import may_be_gap
from harness.model import PartOps
from tests.checkers.story import TOPIC, Story


def gaps(*again: tuple[int, int], cleaned: int = 4) -> list[bool]:
    """Return at which of the first four offsets there may be a gap; m1, at 1, is the only record of its key."""
    story = Story({"m1": ["k0/m1.0"]}).started("A", "B").elected("A", 0).leads("A", 0, 0)
    story.append("A", 0, 4, 0, "leader").sends("m1").acked("m1", 1)
    for base, end in again:
        story.append("A", base, end, 1, "leader")
    story.broker("A", "cleaned", **TOPIC, upto=cleaned, size=100)
    return [may_be_gap(PartOps(story.ops), offset) for offset in range(4)]


@pytest.mark.parametrize(
    ("again", "cleaned", "expected"),
    [
        ((), 4, [True, False, True, True]),
        (((1, 2),), 4, [True, True, True, True]),  # what came to 1 since may have a newer record of its key
        (((2, 4),), 4, [True, False, True, True]),
        (((1, 2),), 1, [True, False, False, False]),
    ],
)
def test_only_record_of_its_key_stays_unless_another_took_its_place(
    again: tuple[tuple[int, int], ...], cleaned: int, expected: list[bool]
) -> None:
    assert expected == gaps(*again, cleaned=cleaned)


@pytest.mark.parametrize(("clean", "expected"), [(False, 3), (True, 2)])
def test_cleaner_that_dies_before_it_says_what_it_did_has_gone_no_further_than_to_the_high_watermark(
    clean: bool, expected: int
) -> None:
    """The next process finds the cleaned files under their names; seed 100876 of the simulator."""
    story = Story({"m1": ["k0/m1.0"]}).started("A", "B").elected("A", 0).leads("A", 0, 0)
    story.append("A", 0, 4, 0, "leader").passes("A", 2).broker("A", "cleaned", **TOPIC, upto=2, size=100)
    story.passes("A", 3).passes("B", 4).started("A").recovered("A", 4)
    last = story.ops[-1]
    story.ops[-1] = replace(last, value={**last.value, "clean": clean})
    assert expected == compacted_before(PartOps(story.ops))


def test_crash_where_nothing_was_compacted_says_nothing() -> None:
    story = Story({"m1": ["k0/m1.0"]}).started("A", "B").elected("A", 0).leads("A", 0, 0)
    story.append("A", 0, 4, 0, "leader").passes("A", 3).started("A").recovered("A", 4)
    assert 0 == compacted_before(PartOps(story.ops))
