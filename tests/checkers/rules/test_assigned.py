"""A node that a partition was moved to may be in its ISR and lead it; one that never had it may not."""

from __future__ import annotations

from checkers.rules.epochs import epochs
from checkers.rules.isr import isr
from harness.model import Kind, OpType, Source
from tests.checkers.golden import RECORDS
from tests.checkers.story import TOPIC, Story


def begun(*, moved: bool) -> Story:
    """Return a history in which C is elected, with it in the ISR, of a partition that A and B had at first."""
    story = Story(RECORDS, "kip380").elected("A", 0)
    if moved:
        story.add(Source.METADATA, "metadata", OpType.INFO, "assigned", **TOPIC, replicas=["A", "B", "C"])
    story.elected("A", 0, isr="ABC", version=1)
    return story.elected("C", 1, isr="ABC", version=2)


def test_node_that_the_partition_was_moved_to_is_no_stranger() -> None:
    assert [] == [*isr(begun(moved=True).ops), *epochs(begun(moved=True).ops)]


def test_node_that_never_had_the_partition_is_named() -> None:
    story = begun(moved=False)
    strangers = [found for found in isr(story.ops) if "no replica of the partition" in found.sentence]
    assert {Kind.WRONG_ISR} == {found.kind for found in strangers} and ("C",) == strangers[0].nodes
    assert any(
        "C leads epoch 1" in found.sentence and "is no replica" in found.sentence for found in epochs(story.ops)
    )
