"""What consumers are shown against what clients were told, and high watermarks that they are told."""

from __future__ import annotations

from typing import Final

from harness.model import Kind, Source
from tests.checkers.plants.changes import BROKER, Change, acked, last_read, numbered, outcome, replicas_of, resends
from tests.checkers.plants.edit import Edit, Line
from tests.checkers.plants.plant import plant
from tests.checkers.plants.polls import all_at_end, at_end, final, shown
from tests.checkers.polling import poll

HIGH_WATERMARK: Final = Kind.WRONG_HIGH_WATERMARK


# --- what was sent -------------------------------------------------------------------------------------------
def _twice(edit: Edit) -> None:
    """A consumer is shown the record before the last one in place of the last one, too."""
    records = final(edit)
    at_end(edit, [*records[:-1], [records[-1][0], records[-2][1]]])


def _never_sent(edit: Edit) -> None:
    """A consumer is shown a record that no client sent in place of the last one."""
    records = final(edit)
    at_end(edit, [*records[:-1], [records[-1][0], "m9.9"]])


def _failed(type_: str) -> Change:
    """Return a change in which m2 has another outcome than ok, and the leader shows it."""

    def change(edit: Edit) -> None:
        outcome(edit, "m2", type_, "refused")
        shown("m2", "A", 3, position=1)(edit)

    return change


def _failed_last(type_: str) -> Change:
    """Return a change in which a second client sends one more record, which is shown in place of the last one."""

    def change(edit: Edit) -> None:
        last = edit.find(Source.CLIENT, "produce", type="ok", nth=-1)
        asked = edit.find(Source.CLIENT, "produce", type="invoke", value=last["value"]["value"])
        invoke = edit.again(asked, after=last, value="m9.9", digest="")
        answer = edit.again(invoke, error="refused")
        invoke["process"] = answer["process"] = "client-99"
        answer["type"] = type_
        records = final(edit)
        shown = [*records[:-1], [records[-1][0], "m9.9"]] if type_ == "fail" else records
        at_end(edit, shown)

    return change


def _twice_numbered(edit: Edit) -> None:
    _twice(numbered(resends(edit)))


def _unsaid(edit: Edit, *values: str) -> None:
    """Let the produces of these values have no answer: they may have been appended."""
    for line in edit.all(Source.CLIENT, "produce", type="ok"):
        if line["value"]["value"] in values:
            line["type"], line["value"]["error"] = "info", "no answer"
            del line["value"]["offset"]


def _lost_and_there(offset: int) -> Change:
    """
    Return a change in which the first of m2 is also at another offset, as an idempotent client sent it again.

    A consumer is shown m2; then the power takes it, and its leader is replaced.
    """

    def change(edit: Edit) -> None:
        numbered(resends(edit))
        read = last_read(edit)["value"]
        _unsaid(edit, "m2.0", "m2.1", read["records"][offset][1])
        shown("m2", "A", 3, position=1)(edit)
        read["records"][offset][1] = "m2.0"
        for node in replicas_of(edit):
            edit.rewrite(node, offset, "m2.0")

    return change


def _lost_twice(edit: Edit) -> None:
    """An idempotent client's record is shown at two offsets, and lost with the power at both."""
    numbered(resends(edit))
    poll(edit, acked(edit, "m2"), "A", [[1, "m2.0"], [2, "m2.0"]], 3)


CONTENTS = [
    plant("polled-twice", "local-kip101-1", Kind.DUPLICATE)(_twice),
    plant("polled-twice-by-an-idempotent-client", "local-kip101-1", Kind.DUPLICATE)(_twice_numbered),
    plant("polled-twice-lawful", "local-kip101-1")(all_at_end),
    # The leader that appended it again had lost it; or it was there already as it was appended again, and lost.
    plant("polled-lost-and-sent-again-lawful", "local-kip101-2", Kind.PERMITTED)(_lost_and_there(4)),
    plant("polled-sent-again-and-lost", "local-kip101-2", Kind.DUPLICATE, Kind.PERMITTED)(_lost_and_there(0)),
    plant("polled-twice-and-lost", "local-kip101-2", Kind.DUPLICATE, Kind.PERMITTED)(_lost_twice),
    plant("polled-twice-kafka", "kafka-kip101-2", Kind.DUPLICATE, Kind.PERMITTED)(_twice),
    plant("polled-twice-kafka-lawful", "kafka-kip101-2", Kind.PERMITTED)(all_at_end),
    plant("polled-twice-sim", "sim-clean-8", Kind.DUPLICATE)(_twice),
    plant("polled-twice-sim-lawful", "sim-clean-8")(all_at_end),
    plant("polled-and-never-sent", "local-kip101-1", Kind.PHANTOM)(_never_sent),
    plant("polled-and-never-sent-lawful", "local-kip101-1")(all_at_end),
    plant("polled-and-never-sent-kafka", "kafka-kip101-1", Kind.PHANTOM)(_never_sent),
    plant("polled-and-never-sent-kafka-lawful", "kafka-kip101-1")(all_at_end),
    plant("polled-and-never-sent-sim", "sim-clean", Kind.PHANTOM)(_never_sent),
    plant("polled-and-never-sent-sim-lawful", "sim-clean")(all_at_end),
    plant("polled-though-it-failed-kafka", "kafka-kip101-2", Kind.PHANTOM)(_failed("fail")),
    plant("polled-though-it-failed-kafka-lawful", "kafka-kip101-2", Kind.PERMITTED)(_failed("info")),
    plant("polled-though-it-failed", "local-kip101-1", Kind.PHANTOM)(_failed_last("fail")),
    plant("polled-though-it-failed-lawful", "local-kip101-1")(_failed_last("info")),
    plant("polled-though-it-failed-sim", "sim-clean-8", Kind.PHANTOM)(_failed_last("fail")),
    plant("polled-though-it-failed-sim-lawful", "sim-clean-8")(_failed_last("info")),
]


# --- what was acknowledged, and in which order ---------------------------------------------------------------
def _lost_m(name: str, node: str, *, swapped: bool) -> Change:
    """Return a change in which what is lost later is shown at its offsets, or each at the other's."""

    def change(edit: Edit) -> None:
        answers = [line["value"] for line in edit.produces(name) if line["type"] == "ok"]
        values = [each["value"] for each in answers]
        offsets = [each["offset"] for each in answers]
        shown = zip(offsets, reversed(values) if swapped else values, strict=True)
        poll(edit, acked(edit, name), node, [list(each) for each in shown], offsets[-1] + 1)

    return change


def _answered_in_turn(edit: Edit, name: str, *, backwards: bool) -> None:
    first, second = [line for line in edit.produces(name) if line["type"] == "ok"][:2]
    if backwards:
        edit.move(first, after=second)


def _later(edit: Edit, after: Line, ms: int = 1_000) -> None:
    """Let all that comes after a line happen so much later."""
    for line in edit.lines[edit.at(after) + 1 :]:
        line["time_ns"] += ms * 1_000_000


def _in_turn(name: str, node: str, *, backwards: bool) -> Change:
    """Return a change in which two records, lost later, are shown in order, and were answered so or not."""

    def change(edit: Edit) -> None:
        _answered_in_turn(edit, name, backwards=backwards)
        answers = sorted(
            (line["value"]["offset"], line["value"]["value"])
            for line in edit.produces(name)
            if line["type"] == "ok"
        )
        last = [line for line in edit.produces(name) if line["type"] == "ok"][-1]
        _later(edit, poll(edit, last, node, answers, answers[-1][0] + 1))

    return change


_RETURNED, _STANDING = Kind.RETURNED, Kind.LAST_STANDING
ELSEWHERE = [
    plant("polled-elsewhere-than-acknowledged", "local-kip101-2", Kind.FALSE_ACK, Kind.PERMITTED)(
        _lost_m("m2", "A", swapped=True)
    ),
    plant("polled-elsewhere-than-acknowledged-lawful", "local-kip101-2", Kind.PERMITTED)(
        _lost_m("m2", "A", swapped=False)
    ),
    plant("polled-elsewhere-than-acknowledged-kafka", "kafka-kip101-2", Kind.FALSE_ACK, Kind.PERMITTED)(
        _lost_m("m2", "A", swapped=True)
    ),
    plant("polled-elsewhere-than-acknowledged-kafka-lawful", "kafka-kip101-2", Kind.PERMITTED)(
        _lost_m("m2", "A", swapped=False)
    ),
    plant("polled-elsewhere-than-acknowledged-sim", "sim-returned-unseen", Kind.FALSE_ACK, _RETURNED)(
        _lost_m("m1", "A", swapped=True)
    ),
    plant("polled-elsewhere-than-acknowledged-sim-lawful", "sim-returned-unseen", _RETURNED)(
        _lost_m("m1", "A", swapped=False)
    ),
]
ORDER = [
    plant("polled-in-another-order-sim", "sim-returned-unseen", Kind.REORDERED, _RETURNED)(
        _in_turn("m1", "A", backwards=True)
    ),
    plant("polled-in-another-order-sim-lawful", "sim-returned-unseen", _RETURNED)(
        _in_turn("m1", "A", backwards=False)
    ),
    plant("polled-in-another-order-sim-2", "sim-last-standing", Kind.REORDERED, _STANDING)(
        _in_turn("m1", "A", backwards=True)
    ),
    plant("polled-in-another-order-sim-2-lawful", "sim-last-standing", _STANDING)(
        _in_turn("m1", "A", backwards=False)
    ),
    plant("polled-in-another-order-kafka", "kafka-kip101-2", Kind.REORDERED, Kind.PERMITTED)(
        _in_turn("m2", "A", backwards=True)
    ),
    plant("polled-in-another-order-kafka-lawful", "kafka-kip101-2", Kind.PERMITTED)(
        _in_turn("m2", "A", backwards=False)
    ),
]


# --- high watermarks that consumers were told ----------------------------------------------------------------
def _told(first: int, second: int) -> Change:
    """Return a change in which two consumers, one after the other, are told so much less than the log's end."""

    def change(edit: Edit) -> None:
        end = len(final(edit))
        told = at_end(edit, [], high_watermark=end - first)
        at_end(edit, [], after=told, process="client-51", high_watermark=end - second)

    return change


def _twice_in_one_reign(second: int) -> Change:
    """Return a change in which a leader that reported 4 when it began tells consumers 4 and then another."""

    def change(edit: Edit) -> None:
        led = edit.find(BROKER, "leader", "A", epoch=5)
        poll(edit, poll(edit, led, "A", [], 4), "A", [], second, process="client-51")

    return change


def _beyond(edit: Edit) -> None:
    """A consumer is told a high watermark beyond the leader's log."""
    at_end(edit, [], high_watermark=len(final(edit)) + 1)


TOLD = [
    plant("polled-mark-falls", "local-kip101-1", HIGH_WATERMARK)(_told(0, 1)),
    plant("polled-mark-falls-lawful", "local-kip101-1")(_told(0, 0)),
    plant("polled-mark-falls-kafka", "kafka-kip101-1", HIGH_WATERMARK)(_told(0, 2)),
    plant("polled-mark-falls-kafka-lawful", "kafka-kip101-1")(_told(2, 0)),
    plant("polled-mark-falls-sim", "sim-clean-8", HIGH_WATERMARK)(_twice_in_one_reign(3)),
    plant("polled-mark-falls-sim-lawful", "sim-clean-8")(_twice_in_one_reign(4)),
    plant("polled-mark-beyond-the-log", "local-kip101-1", HIGH_WATERMARK)(_beyond),
    plant("polled-mark-beyond-the-log-lawful", "local-kip101-1")(_told(0, 0)),
    plant("polled-mark-beyond-the-log-kafka", "kafka-kip101-1", HIGH_WATERMARK)(_beyond),
    plant("polled-mark-beyond-the-log-kafka-lawful", "kafka-kip101-1")(_told(1, 0)),
    plant("polled-mark-beyond-the-log-sim", "sim-clean", HIGH_WATERMARK)(_beyond),
    plant("polled-mark-beyond-the-log-sim-lawful", "sim-clean")(_told(0, 0)),
]


# --- polls that do not fit -----------------------------------------------------------------------------------
def _unasked(edit: Edit) -> None:
    """A poll is answered that nobody asked for."""
    at_end(edit)
    edit.drop(edit.find(Source.CLIENT, "poll", type="invoke"))


def _of_nobody(edit: Edit) -> None:
    """A poll is of a node that the run does not have."""
    poll(edit, last_read(edit), "Z", [], 0)


def _of_another_poll(edit: Edit) -> None:
    """A poll's answer is about a position that was assigned, and its invoke is not."""
    edit.change(at_end(edit), sought=True)


def _without_a_mark(edit: Edit) -> None:
    """A poll is answered without a high watermark."""
    del at_end(edit)["value"]["high_watermark"]


UNFIT = [
    plant("whole-poll-answers-another", "sim-clean-8", Kind.UNCHECKED)(_of_another_poll),
    plant("whole-poll-without-a-high-watermark", "local-kip101-1", Kind.UNCHECKED)(_without_a_mark),
    plant("whole-poll-without-invoke", "local-kip101-1", Kind.UNCHECKED)(_unasked),
    plant("whole-poll-of-a-strange-node", "kafka-kip101-1", Kind.UNCHECKED)(_of_nobody),
]
