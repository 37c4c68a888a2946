"""What consumers are shown while things break: records that are gone, uncommitted, skipped or shown again."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from harness.model import Kind, Source
from tests.checkers.plants.changes import (
    BROKER,
    Change,
    acked,
    each_of,
    last_read,
    leader_of,
    outcome,
    resends,
    with_acks,
)
from tests.checkers.plants.edit import Edit, Line
from tests.checkers.plants.plant import plant
from tests.checkers.polling import poll, poll_refused

READ_LOST, DIRTY = Kind.READ_LOST, Kind.READ_UNCOMMITTED
SKIP, BACK, DIFFER = Kind.POLL_SKIP, Kind.NONMONOTONIC_POLL, Kind.INCONSISTENT_OFFSETS
HIGH_WATERMARK: Final = Kind.WRONG_HIGH_WATERMARK
# What is found in local-kip101-1-hw as it is.
_HW: Final = (Kind.LOST, Kind.NOT_REPLICATED)


def _final(edit: Edit) -> list[list[Any]]:
    """Return the records of the leader's final log."""
    batches = edit.batches(leader_of(edit))
    return [[offset, value] for batch in batches for offset, _, value in batch["value"]["records"]]


def _at_end(edit: Edit, records: Sequence[Sequence[Any]] | None = None, **value: Any) -> Line:
    """Insert a poll of the last leader after the last read; of all records of its log, if none are given."""
    everything = _final(edit)
    shown = everything if records is None else records
    high = value.pop("high_watermark", len(everything))
    return poll(edit, value.pop("after", last_read(edit)), leader_of(edit), shown, high, **value)


def _all_at_end(edit: Edit) -> None:
    """A consumer is shown the leader's log."""
    _at_end(edit)


# --- records that were read and are gone ---------------------------------------------------------------------
def _unsaid(name: str) -> Change:
    """Return a change in which the produces of a group have no answer: they may have been appended."""
    return lambda edit: outcome(edit, name, "info", "no answer")


def _shown(name: str, node: str, high_watermark: int, *, position: int) -> Change:
    """Return a change in which a consumer is shown a group of records after the last answer to their produces."""

    def change(edit: Edit) -> None:
        answers = [line for line in edit.produces(name) if line["type"] != "invoke"]
        records = [[position + at, line["value"]["value"]] for at, line in enumerate(answers)]
        poll(edit, answers[-1], node, records, high_watermark)

    return change


def _kept_alive(edit: Edit) -> None:
    """Let nobody lose power: the process of each node ends, and keeps what it wrote."""
    for line in edit.all(Source.NEMESIS, "power-loss"):
        line["f"], line["value"]["effect"] = "kill", "down"


LOST = [
    # Nobody was told of m2, and the leader showed it; then its members are killed, and no power is lost.
    plant("read-and-gone-kafka", "kafka-kip101-2", READ_LOST, DIFFER)(
        each_of(_unsaid("m2"), _shown("m2", "A", 3, position=1), _kept_alive)
    ),
    plant("read-and-gone-kafka-lawful", "kafka-kip101-2", Kind.PERMITTED)(
        each_of(_unsaid("m2"), _shown("m2", "A", 3, position=1))
    ),
    plant("read-and-gone-with-acks-1-kafka", "kafka-kip101-2", Kind.UNPROMISED, READ_LOST, DIFFER)(
        each_of(lambda edit: with_acks(edit, "m2", 1), _shown("m2", "A", 3, position=1), _kept_alive)
    ),
    plant("read-and-gone-with-acks-1-kafka-lawful", "kafka-kip101-2", Kind.UNPROMISED, Kind.PERMITTED)(
        each_of(lambda edit: with_acks(edit, "m2", 1), _shown("m2", "A", 3, position=1))
    ),
]


def _in_place_of(offset: int, value: str) -> Change:
    """Return a change in which a consumer is shown another sent record in place of one."""

    def change(edit: Edit) -> None:
        resends(edit)
        records = _final(edit)
        records[offset] = [offset, value]
        _at_end(edit, records)

    return change


def _as_it_stands(edit: Edit) -> None:
    """A consumer is shown the leader's log, of clients that send again."""
    resends(edit)
    _at_end(edit)


LOST += [
    plant("read-another-than-the-log-has", "local-kip101-1", READ_LOST, DIFFER)(_in_place_of(3, "m1.0")),
    plant("read-another-than-the-log-has-lawful", "local-kip101-1")(_as_it_stands),
    plant("read-another-than-the-log-has-sim", "sim-clean-8", READ_LOST, DIFFER)(_in_place_of(2, "m1.0")),
    plant("read-another-than-the-log-has-sim-lawful", "sim-clean-8")(_as_it_stands),
]


# --- records that were not committed -------------------------------------------------------------------------
def _polled(after: Change, node: str, records: Sequence[Sequence[Any]], high_watermark: int) -> Change:
    """Return a change in which a consumer polls a node after a line; `after` finds the line."""
    return lambda edit: poll(edit, after(edit), node, records, high_watermark)


def _mark(node: str, to: int) -> Change:
    return lambda edit: edit.find(BROKER, "high-watermark", node, to=to)


def _written(node: str, base: int, role: str) -> Change:
    return lambda edit: edit.find(BROKER, "append", node, base=base, role=role)


def _of(name: str) -> Change:
    return lambda edit: acked(edit, name)


def _mark_too_early(edit: Edit) -> None:
    """The high watermark passes m1 before any follower has it, and a consumer is shown m1 then."""
    line = edit.find(BROKER, "high-watermark", to=2)
    edit.move(line, after=edit.find(BROKER, "append", line["process"], role="leader"))
    poll(edit, line, line["process"], [[0, "m1.0"], [1, "m1.1"]], 2)


def _mark_in_time(edit: Edit) -> None:
    line = edit.find(BROKER, "high-watermark", to=2)
    poll(edit, line, line["process"], [[0, "m1.0"], [1, "m1.1"]], 2)


M1: Final = [[0, "m1.0"], [1, "m1.1"], [2, "m1.2"]]
UNCOMMITTED = [
    plant("read-above-its-own-mark-kafka", "kafka-kip101-1", DIRTY)(_polled(_of("m1"), "B", M1, 2)),
    plant("read-above-its-own-mark-kafka-lawful", "kafka-kip101-1")(_polled(_of("m1"), "B", M1, 3)),
    plant("read-above-the-leaders-mark", "sim-clean-8", DIRTY, HIGH_WATERMARK)(
        _polled(_written("A", 2, "leader"), "A", [[2, "m2.0"]], 3)
    ),
    plant("read-above-the-leaders-mark-lawful", "sim-clean-8")(_polled(_mark("A", 3), "A", [[2, "m2.0"]], 3)),
    plant("read-what-was-never-committed", "sim-unpromised", DIRTY, HIGH_WATERMARK, Kind.UNPROMISED)(
        _polled(_of("m8"), "B", [[9, "m7.0"], [10, "m8.0"]], 11)
    ),
    plant("read-what-was-never-committed-lawful", "sim-unpromised", Kind.UNPROMISED)(
        _polled(_of("m8"), "B", [[9, "m7.0"]], 10)
    ),
    plant("read-from-a-follower", "sim-unpromised", DIRTY, Kind.UNPROMISED)(
        _polled(_written("C", 10, "follower"), "C", [[10, "m9.0"]], 11)
    ),
    plant("read-from-a-follower-lawful", "sim-unpromised", Kind.UNPROMISED)(
        _polled(_mark("C", 11), "C", [[10, "m9.0"]], 11)
    ),
    plant("read-before-a-member-copied-it", "sim-clean-8", DIRTY, HIGH_WATERMARK)(_mark_too_early),
    plant("read-before-a-member-copied-it-lawful", "sim-clean-8")(_mark_in_time),
]


# --- consumers that skip, or go back -------------------------------------------------------------------------
def _without_second(edit: Edit) -> None:
    """A poll's records lack the second."""
    records = _final(edit)
    _at_end(edit, [records[0], *records[2:]])


def _beginning_late(edit: Edit) -> None:
    """The first record that comes is not at the position that was asked for."""
    _at_end(edit, _final(edit)[1:], position=0)


def _jumping(*, sought: bool) -> Change:
    """Return a change in which the second poll begins one record later than the first one ended."""

    def change(edit: Edit) -> None:
        records = _final(edit)
        first = _at_end(edit, records[:1])
        _at_end(edit, records[2:], after=first, sought=sought)

    return change


SKIPS = [
    plant("poll-skips", "local-kip101-1", SKIP)(_without_second),
    plant("poll-skips-lawful", "local-kip101-1")(_all_at_end),
    plant("poll-skips-kafka", "kafka-kip101-1", SKIP)(_beginning_late),
    plant("poll-skips-kafka-lawful", "kafka-kip101-1")(_all_at_end),
    plant("poll-skips-sim", "sim-clean", SKIP)(_jumping(sought=False)),
    plant("poll-skips-sim-lawful", "sim-clean")(_jumping(sought=True)),
]


def _again(*, sought: bool) -> Change:
    """Return a change in which the second poll begins at the last record of the first one."""

    def change(edit: Edit) -> None:
        records = _final(edit)
        _at_end(edit, records[-1:], after=_at_end(edit, records), sought=sought)

    return change


def _fallen(edit: Edit) -> None:
    """A poll's records do not rise."""
    records = _final(edit)
    _at_end(edit, [records[1], records[0], *records[2:]], position=0)


def _uncut(edit: Edit) -> None:
    """A poll's records begin below its position, as the batch that holds it does."""
    _at_end(edit, _final(edit), position=1, sought=True)


BACKWARDS = [
    plant("poll-goes-back", "local-kip101-1", BACK)(_again(sought=False)),
    plant("poll-goes-back-lawful", "local-kip101-1")(_again(sought=True)),
    plant("poll-goes-back-kafka", "kafka-kip101-1", BACK)(_uncut),
    plant("poll-goes-back-kafka-lawful", "kafka-kip101-1")(_all_at_end),
    plant("poll-goes-back-sim", "sim-clean", BACK)(_fallen),
    plant("poll-goes-back-sim-lawful", "sim-clean")(_all_at_end),
]


def _refused(edit: Edit) -> None:
    """A poll fails, and the consumer reads on where it was."""
    records = _final(edit)
    first = _at_end(edit, records[:1])
    _at_end(edit, records[1:], after=poll_refused(edit, first, leader_of(edit), 1))


REFUSED = plant("poll-refused-and-read-on-lawful", "kafka-kip101-1")(_refused)


# --- readers that differ -------------------------------------------------------------------------------------
def _two_readers(name: str, node: str, position: int) -> Change:
    """Return a change in which one consumer is shown what is lost, and another what stands there in the end."""

    def change(edit: Edit) -> None:
        records = [
            [line["value"]["offset"], line["value"]["value"]]
            for line in edit.produces(name)
            if line["type"] == "ok"
        ]
        high = position + len(records)
        poll(edit, acked(edit, name), node, records, high)
        _at_end(edit, process="client-51")

    return change


DIFFERENT = [
    plant("readers-differ-kafka", "kafka-kip101-2", DIFFER, Kind.LOST)(
        each_of(_two_readers("m2", "A", 1), _kept_alive)
    ),
    plant("readers-differ-kafka-lawful", "kafka-kip101-2", Kind.PERMITTED)(_two_readers("m2", "A", 1)),
    plant("readers-differ", "local-kip101-2", DIFFER, READ_LOST, Kind.PERMITTED)(_in_place_of(3, "m3.0")),
    plant("readers-differ-lawful", "local-kip101-2", Kind.PERMITTED)(_two_readers("m2", "A", 1)),
    plant("readers-differ-sim", "sim-last-standing", DIFFER, READ_LOST, Kind.LAST_STANDING)(
        _in_place_of(0, "m1.1")
    ),
    plant("readers-differ-sim-lawful", "sim-last-standing", Kind.LAST_STANDING)(_two_readers("m1", "A", 0)),
]


# --- what was sent -------------------------------------------------------------------------------------------
def _twice(edit: Edit) -> None:
    """A consumer is shown the record before the last one in place of the last one, too."""
    records = _final(edit)
    _at_end(edit, [*records[:-1], [records[-1][0], records[-2][1]]])


def _never_sent(edit: Edit) -> None:
    """A consumer is shown a record that no client sent in place of the last one."""
    records = _final(edit)
    _at_end(edit, [*records[:-1], [records[-1][0], "m9.9"]])


def _failed(type_: str) -> Change:
    """Return a change in which m2 has another outcome than ok, and the leader shows it."""

    def change(edit: Edit) -> None:
        outcome(edit, "m2", type_, "refused")
        _shown("m2", "A", 3, position=1)(edit)

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
        records = _final(edit)
        shown = [*records[:-1], [records[-1][0], "m9.9"]] if type_ == "fail" else records
        _at_end(edit, shown)

    return change


CONTENTS = [
    plant("polled-twice", "local-kip101-1", Kind.DUPLICATE)(_twice),
    plant("polled-twice-lawful", "local-kip101-1")(_all_at_end),
    plant("polled-twice-kafka", "kafka-kip101-2", Kind.DUPLICATE, Kind.PERMITTED)(_twice),
    plant("polled-twice-kafka-lawful", "kafka-kip101-2", Kind.PERMITTED)(_all_at_end),
    plant("polled-twice-sim", "sim-clean-8", Kind.DUPLICATE)(_twice),
    plant("polled-twice-sim-lawful", "sim-clean-8")(_all_at_end),
    plant("polled-and-never-sent", "local-kip101-1", Kind.PHANTOM)(_never_sent),
    plant("polled-and-never-sent-lawful", "local-kip101-1")(_all_at_end),
    plant("polled-and-never-sent-kafka", "kafka-kip101-1", Kind.PHANTOM)(_never_sent),
    plant("polled-and-never-sent-kafka-lawful", "kafka-kip101-1")(_all_at_end),
    plant("polled-and-never-sent-sim", "sim-clean", Kind.PHANTOM)(_never_sent),
    plant("polled-and-never-sent-sim-lawful", "sim-clean")(_all_at_end),
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
        end = len(_final(edit))
        told = _at_end(edit, [], high_watermark=end - first)
        _at_end(edit, [], after=told, process="client-51", high_watermark=end - second)

    return change


def _twice_in_one_reign(second: int) -> Change:
    """Return a change in which a leader that reported 4 when it began tells consumers 4 and then another."""

    def change(edit: Edit) -> None:
        led = edit.find(BROKER, "leader", "A", epoch=5)
        poll(edit, poll(edit, led, "A", [], 4), "A", [], second, process="client-51")

    return change


def _beyond(edit: Edit) -> None:
    """A consumer is told a high watermark beyond the leader's log."""
    _at_end(edit, [], high_watermark=len(_final(edit)) + 1)


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
    _at_end(edit)
    edit.drop(edit.find(Source.CLIENT, "poll", type="invoke"))


def _of_nobody(edit: Edit) -> None:
    """A poll is of a node that the run does not have."""
    poll(edit, last_read(edit), "Z", [], 0)


UNFIT = [
    plant("whole-poll-without-invoke", "local-kip101-1", Kind.UNCHECKED)(_unasked),
    plant("whole-poll-of-a-strange-node", "kafka-kip101-1", Kind.UNCHECKED)(_of_nobody),
]
