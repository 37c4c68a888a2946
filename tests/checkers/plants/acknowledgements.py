"""Acknowledgements that promised what was not so when they were given."""

from __future__ import annotations

from harness.model import Kind, Source
from tests.checkers.plants.changes import (
    BROKER,
    Change,
    acked,
    each_of,
    last_read,
    outcome,
    replicas_of,
    set_up,
    with_acks,
)
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
    edit.event(passed, "B", "isr", isr=[edit.node_id("B")], version=1, epoch=0)


@plant("ack-without-a-commit", "local-kip101-1", Kind.FALSE_ACK, Kind.WRONG_HIGH_WATERMARK)
def ack_without_commit(edit: Edit) -> None:
    edit.drop(edit.find(Source.BROKER, "high-watermark", "A", to=5))


@plant("ack-without-an-append", "local-kip101-2", Kind.FALSE_ACK, Kind.LOST, Kind.PERMITTED)
def ack_without_append(edit: Edit) -> None:
    """m2 is acknowledged at offsets that no leader wrote."""
    for line in edit.produces("m2"):
        if line["type"] == "ok":
            line["value"]["offset"] += 40


# --- min ISR, though nothing is lost so far ----------------------------------------------------------------------
MIN_ISR = [
    # Epoch 1 of sim-clean-8 acknowledges m2 with an ISR of A and B, and so does that of sim-clean.
    plant("ack-below-min-isr-of-three", "sim-clean-8", Kind.FALSE_ACK)(set_up(min_isr=3)),
    plant("ack-below-min-isr-of-three-lawful", "sim-clean-8")(set_up(min_isr=2)),
    plant("ack-below-min-isr-sim", "sim-clean", Kind.FALSE_ACK)(set_up(min_isr=3)),
    plant("ack-below-min-isr-sim-lawful", "sim-clean")(set_up(min_isr=2)),
    plant("ack-below-min-isr-lawful", "local-kip101-2", Kind.PERMITTED)(set_up(min_isr=1)),
]


# --- a member that never had it ----------------------------------------------------------------------------------
def _never_copied(node: str) -> Change:
    """Return a change in which a member never copies the last record that was sent."""

    def change(edit: Edit) -> None:
        end = edit.snapshot(node)["value"]["log_end_offset"]
        edit.drop(*edit.all(BROKER, "append", node, end=end), *edit.all(BROKER, "high-watermark", node, to=end))
        for fetch in edit.all(Source.FABRIC, "fetch", offset=end):
            if fetch["value"]["link"][0] == node:
                edit.drop(fetch)
        edit.drop_batch(node, end - 1)
        edit.snapshot(node)["value"]["high_watermark"] = end - 1

    return change


def _copied_at_last(node: str, base: int) -> Change:
    """Return a change in which a member copies a record as late as it may: just before it fetches what follows."""

    def change(edit: Edit) -> None:
        append = edit.find(BROKER, "append", node, base=base)
        fetches = edit.all(Source.FABRIC, "fetch", offset=append["value"]["end"])
        fetch = next(line for line in fetches if line["value"]["link"][0] == node)
        edit.move(append, after=edit.lines[edit.at(fetch) - 1])

    return change


NEVER_COPIED = [
    plant("ack-that-a-member-never-copied", "sim-clean-8", Kind.FALSE_ACK, Kind.WRONG_HIGH_WATERMARK, Kind.STUCK)(
        _never_copied("C")
    ),
    plant("ack-that-a-member-never-copied-lawful", "sim-clean-8")(_copied_at_last("C", 9)),
    plant(
        "ack-that-a-member-never-copied-sim", "sim-clean", Kind.FALSE_ACK, Kind.WRONG_HIGH_WATERMARK, Kind.STUCK
    )(_never_copied("A")),
]


# --- acks=1, committed everywhere, and gone without an election --------------------------------------------------
def _gone(edit: Edit) -> None:
    """Let the last record, now of acks=1, be gone from every log and from the last read."""
    last = edit.find(Source.CLIENT, "produce", type="ok", nth=-1)["value"]
    with_acks(edit, last["name"], 1)
    for node in replicas_of(edit):
        edit.drop_batch(node, last["offset"])
        mark = edit.snapshot(node)["value"]
        mark["high_watermark"] = min(mark["high_watermark"], last["offset"])
    read = last_read(edit)["value"]
    read |= {"records": read["records"][:-1], "high_watermark": last["offset"]}


def _never_there(edit: Edit) -> None:
    """The same, but no leader ever appended the record: its produce got no answer, and had no effect."""
    _gone(edit)
    last = edit.find(Source.CLIENT, "produce", type="ok", nth=-1)["value"]
    offset = last["offset"]
    outcome(edit, last["name"], "info", "no answer")
    for copied in edit.all(BROKER, "append", end=offset + 1, role="follower"):
        if copied["value"]["base"] < offset:
            copied["value"]["end"] = offset
            for fetch in edit.all(Source.FABRIC, "fetch", offset=offset + 1):
                fetch["value"]["offset"] -= fetch["value"]["link"][0] == copied["process"]
    edit.drop(
        *edit.all(BROKER, "append", base=offset),
        *edit.all(BROKER, "high-watermark", to=offset + 1),
        *edit.all(Source.FABRIC, "fetch", offset=offset + 1),
        *edit.all(Source.FABRIC, "fetched", offset=offset + 1),
    )


def _uncommitted(edit: Edit) -> None:
    """Let no high watermark have passed the last record: only its leader and the followers had it."""
    offset = edit.find(Source.CLIENT, "produce", type="ok", nth=-1)["value"]["offset"]
    edit.drop(*edit.all(BROKER, "high-watermark", to=offset + 1))


GONE = [
    plant("gone-without-an-election", "local-kip101-1", Kind.COMMITTED_LOST, Kind.WRONG_HIGH_WATERMARK)(_gone),
    plant("gone-without-an-election-lawful", "local-kip101-1")(_never_there),
    plant(
        "gone-without-an-election-2",
        "local-kip101-2",
        Kind.COMMITTED_LOST,
        Kind.WRONG_HIGH_WATERMARK,
        Kind.PERMITTED,
    )(_gone),
    plant("gone-without-an-election-2-lawful", "local-kip101-2", Kind.PERMITTED)(_never_there),
    plant("gone-without-an-election-sim", "sim-clean", Kind.COMMITTED_LOST, Kind.WRONG_HIGH_WATERMARK)(_gone),
    plant("gone-without-an-election-sim-lawful", "sim-clean")(_never_there),
    plant("gone-without-an-election-8", "sim-clean-8", Kind.COMMITTED_LOST, Kind.WRONG_HIGH_WATERMARK)(_gone),
    plant("gone-without-an-election-8-lawful", "sim-clean-8")(_never_there),
    plant("gone-without-an-election-kafka", "kafka-kip101-1", Kind.COMMITTED_LOST)(_gone),
    plant("gone-without-an-election-kafka-lawful", "kafka-kip101-1")(_never_there),
    plant("gone-though-its-leader-led-on", "sim-clean", Kind.COMMITTED_LOST)(each_of(_gone, _uncommitted)),
    plant("gone-though-its-leader-led-on-lawful", "sim-clean")(_never_there),
]


# --- an offset that is another record's --------------------------------------------------------------------------
def _elsewhere(name: str, by: int, acks: int = 1) -> Change:
    """Return a change in which a group is acknowledged at other offsets than those where the logs hold it."""

    def change(edit: Edit) -> None:
        with_acks(edit, name, acks)
        for line in edit.produces(name):
            if line["type"] == "ok":
                line["value"]["offset"] += by

    return change


OFFSETS = [
    plant("ack-at-another-offset", "sim-clean-8", Kind.COMMITTED_LOST, Kind.FALSE_ACK)(_elsewhere("m3", 1)),
    plant("ack-at-another-offset-lawful", "sim-clean-8")(_elsewhere("m3", 0)),
    plant("ack-at-another-offset-local", "local-kip101-1", Kind.FALSE_ACK, Kind.UNPROMISED)(_elsewhere("m3", -1)),
    plant("ack-at-another-offset-local-lawful", "local-kip101-1")(_elsewhere("m3", 0)),
    plant("ack-at-another-offset-kafka", "kafka-kip101-2", Kind.FALSE_ACK, Kind.PERMITTED, Kind.UNPROMISED)(
        _elsewhere("m1", 9)
    ),
    plant("ack-at-another-offset-kafka-lawful", "kafka-kip101-2", Kind.PERMITTED)(_elsewhere("m1", 0)),
    plant("ack-at-another-offset-of-all", "kafka-kip101-1", Kind.FALSE_ACK, Kind.LOST, Kind.NOT_REPLICATED)(
        _elsewhere("m2", 1, acks=-1)
    ),
    plant("ack-at-another-offset-of-all-lawful", "kafka-kip101-1")(_elsewhere("m2", 0, acks=-1)),
]
