"""Acknowledgements that promised what was not so when they were given."""

from __future__ import annotations

from harness.model import Kind, Source
from tests.checkers.plants.changes import acked
from tests.checkers.plants.edit import Edit, Line
from tests.checkers.plants.plant import plant


# --- acknowledgements --------------------------------------------------------------------------------------------
def _late(edit: Edit, node: str, base: int, until: Line) -> None:
    """Move a follower's copy, and the fetch that shows it, behind a line."""
    append = edit.find(Source.BROKER, "append", node, base=base)
    fetch = next(
        line
        for line in edit.all(Source.FABRIC, "fetch", offset=append["value"]["end"])
        if line["value"]["link"][0] == node
    )
    edit.move(append, after=until).move(fetch, after=append)


@plant("ack-before-a-member-copied", "local-kip101-1", Kind.FALSE_ACK)
def ack_before_copy(edit: Edit) -> None:
    _late(edit, "A", 3, acked(edit, "m2"))


@plant("ack-before-a-member-copied-sim", "sim-last-standing", Kind.FALSE_ACK, Kind.LOST, Kind.WRONG_HIGH_WATERMARK)
def ack_before_copy_sim(edit: Edit) -> None:
    """C copies m1 after the acknowledgement: it was false, so nothing excuses the loss."""
    _late(edit, "C", 0, acked(edit, "m1"))


@plant("ack-whose-copy-is-told-late-lawful", "local-kip101-1")
def ack_told_late(edit: Edit) -> None:
    """The event of A's append is late, and its fetch shows that A had it."""
    edit.move(edit.find(Source.BROKER, "append", "A", base=3), after=acked(edit, "m2"))


@plant("ack-below-min-isr", "local-kip101-2", Kind.FALSE_ACK, Kind.PERMITTED)
def ack_below_min_isr(edit: Edit) -> None:
    """m3 is acknowledged by an ISR of B alone."""
    edit.change(edit.lines[0], min_isr=2)


@plant("ack-at-min-isr-lawful", "local-kip101-1")
def ack_at_min_isr(edit: Edit) -> None:
    edit.change(edit.lines[0], min_isr=2)


@plant("ack-by-an-isr-in-the-leaders-mind", "local-kip101-1", Kind.FALSE_ACK, Kind.WRONG_ISR)
def ack_by_imagined_isr(edit: Edit) -> None:
    """B shrinks the ISR to itself in its own mind, and acknowledges m2, which A copies later."""
    _late(edit, "A", 3, acked(edit, "m2"))
    passed = edit.find(Source.BROKER, "high-watermark", "B", to=3)
    edit.event(passed, "B", "isr", isr=[edit.node_id("B")], zk_version=1, epoch=0)


@plant("ack-without-a-commit", "local-kip101-1", Kind.FALSE_ACK, Kind.WRONG_HIGH_WATERMARK)
def ack_without_commit(edit: Edit) -> None:
    edit.drop(edit.find(Source.BROKER, "high-watermark", "A", to=5))


@plant("ack-without-an-append", "local-kip101-2", Kind.FALSE_ACK, Kind.LOST, Kind.PERMITTED)
def ack_without_append(edit: Edit) -> None:
    """m2 is acknowledged at offsets that no leader wrote."""
    for line in edit.produces("m2"):
        if line["type"] == "ok":
            line["value"]["offset"] += 40
