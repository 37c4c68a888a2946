"""
The contents of final logs: what is there twice, what nobody sent, what was altered, what is not complete.

Length:  the plants of one rule in one place, each beside its lawful twin.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from harness.logdir.records import sent_digest
from harness.model import Kind, Source
from tests.checkers.plants.edit import Edit, Line
from tests.checkers.plants.plant import plant

DUPLICATE, PHANTOM, ALTERED, INCOMPLETE = Kind.DUPLICATE, Kind.PHANTOM, Kind.ALTERED, Kind.INCOMPLETE
_AT: Final = 1_700_000_000_000  # a timestamp
# What is found in that run as it is.
_7415A: Final = (Kind.LOST, Kind.NOT_REPLICATED, Kind.UNPROMISED)


def _replicas(edit: Edit) -> Sequence[str]:
    replicas: Sequence[str] = edit.lines[0]["value"]["replicas"]
    return replicas


def _snapshots(edit: Edit) -> list[Line]:
    return [edit.snapshot(node) for node in _replicas(edit)]


def _resends(edit: Edit) -> Edit:
    """Make the client one that may send a record again."""
    return edit.change(edit.lines[0], sends_once=False)


def _outcome(edit: Edit, name: str, type_: str, error: str) -> None:
    """Give every produce of the group another outcome than ok."""
    for line in edit.produces(name):
        if line["type"] == "ok":
            line["type"] = type_
            line["value"].pop("offset")
            line["value"]["error"] = error


def _sent_again(edit: Edit, name: str, outcome: str, error: str) -> None:
    """Let a second client send the group's records, after the first, with an outcome without an offset."""
    last = edit.produces(name)[-1]
    for line in [line for line in edit.produces(name) if line["type"] == "invoke"]:
        asked = edit.again(line, after=last)
        asked["process"] = "client-99"
        last = edit.again(asked, error=error)
        last["type"] = outcome


# --- a value, or a batch, twice ------------------------------------------------------------------------------
@plant("value-twice", "local-kip101-1", DUPLICATE)
def value_twice(edit: Edit) -> None:
    edit.put_everywhere(4)


@plant("value-twice-kafka", "kafka-kip101-2", DUPLICATE, Kind.PERMITTED)
def value_twice_kafka(edit: Edit) -> None:
    edit.put_everywhere(3)


@plant("value-twice-sim", "sim-clean-8", DUPLICATE)
def value_twice_sim(edit: Edit) -> None:
    edit.put_everywhere(2, epoch=10)


@plant("value-sent-twice-lawful", "local-kip101-1")
def value_sent_twice(edit: Edit) -> None:
    """A second client sends m3 too, and gets no answer: both may be in the log."""
    _sent_again(edit, "m3", "info", "no answer")
    edit.put_everywhere(4)


@plant("value-sent-twice-and-refused-once", "local-kip101-1", DUPLICATE)
def value_refused_once(edit: Edit) -> None:
    """A second client sends m3 too, and that surely failed: it may be in the log once."""
    _sent_again(edit, "m3", "fail", "connection refused")
    edit.put_everywhere(4)


@plant("value-twice-by-a-client-that-sends-again-lawful", "kafka-kip101-2", Kind.PERMITTED)
def value_twice_again(edit: Edit) -> None:
    _resends(edit).put_everywhere(3)


@plant("batch-twice", "kafka-kip101-1", DUPLICATE)
def batch_twice(edit: Edit) -> None:
    edit.put_everywhere(0, epoch=5)


@plant("batch-twice-in-another-epoch", "local-kafka-7128", DUPLICATE, Kind.LOST, Kind.NOT_REPLICATED)
def batch_twice_epoch(edit: Edit) -> None:
    """The new leader appends what it had copied already."""
    edit.put_everywhere(0, epoch=5)


@plant("batch-twice-sim", "sim-unpromised", DUPLICATE, Kind.UNPROMISED)
def batch_twice_sim(edit: Edit) -> None:
    edit.put_everywhere(5, epoch=13)


@plant("batch-twice-by-a-client-that-sends-again-lawful", "local-kafka-7415a", *_7415A)
def batch_twice_again(edit: Edit) -> None:
    _resends(edit).put_everywhere(4)


@plant("batch-twice-at-one-offset", "local-kip101-2", DUPLICATE, Kind.DISORDER, Kind.PERMITTED)
def batch_at_one_offset(edit: Edit) -> None:
    """No client makes a broker append at an offset that it has, not even one that sends again."""
    _resends(edit)
    for node in _replicas(edit):
        edit.put_batch(node, edit.batch_at(node, 4))


@plant("value-twice-in-one-batch", "sim-clean", DUPLICATE)
def value_twice_in_batch(edit: Edit) -> None:
    _twice_in_batch(edit, 3)


@plant("value-twice-in-one-batch-though-sent-again", "kafka-kip101-1", DUPLICATE)
def value_twice_in_batch_again(edit: Edit) -> None:
    """A client that sends again sends a batch again; it puts no record into one batch twice."""
    _twice_in_batch(_resends(edit), 5)


def _twice_in_batch(edit: Edit, offset: int) -> None:
    """Make the last batch one that has its record twice."""
    for node in _replicas(edit):
        batch = edit.batch_at(node, offset)
        record = batch["value"]["records"][0]
        edit.drop_batch(node, offset)
        edit.put_batch(node, batch, last=offset + 1, records=[record, [offset + 1, *record[1:]]])


@plant("value-at-another-offset-of-a-replica", "local-kip101-2", DUPLICATE, Kind.DIVERGED, Kind.PERMITTED)
def value_elsewhere(edit: Edit) -> None:
    edit.rewrite("A", 4, "m3.0")


@plant("marker-twice-lawful", "kafka-kip101-1")
def marker_twice(edit: Edit) -> None:
    """Two transactions end: both markers are the broker's own records."""
    for _ in range(2):
        end = edit.snapshot("A")["value"]["log_end_offset"]
        edit.put_everywhere(5, (end, "c0ffee00c0ffee00", "commit marker"), control=True)


# --- what nobody sent ----------------------------------------------------------------------------------------
def _extra(edit: Edit, offset: int, text: str | None, digest: str = "c0ffee00c0ffee00") -> None:
    """Append a batch of one record with that text to every log."""
    end = edit.snapshot(_replicas(edit)[0])["value"]["log_end_offset"]
    edit.put_everywhere(offset, (end, sent_digest(text) if text else digest, text))


@plant("value-never-sent", "local-kip101-1", PHANTOM)
def never_sent(edit: Edit) -> None:
    _extra(edit, 4, "m9.0")


@plant("value-never-sent-sim", "sim-clean-8", PHANTOM)
def never_sent_sim(edit: Edit) -> None:
    _extra(edit, 9, "m1.2")


@plant("value-never-sent-and-no-text", "kafka-kip101-1", PHANTOM)
def never_sent_bytes(edit: Edit) -> None:
    _extra(edit, 5, "hex:ff00")


@plant("value-that-is-null", "kafka-kip101-2", PHANTOM, Kind.PERMITTED)
def null_value(edit: Edit) -> None:
    """No client sends a record without a value."""
    _extra(edit, 4, None)


@plant("value-of-the-schedule-that-was-not-sent", "sim-clean", PHANTOM)
def not_sent_yet(edit: Edit) -> None:
    """The schedule names last2, and the run ended before it was sent."""
    _extra(edit, 3, "last2.0")


@plant("marker-that-is-none", "kafka-kip101-1", PHANTOM)
def no_marker(edit: Edit) -> None:
    end = edit.snapshot("A")["value"]["log_end_offset"]
    edit.put_everywhere(5, (end, sent_digest("m9.0"), "m9.0"), control=True)


def _alter(edit: Edit, offset: int, text: str) -> None:
    """Change the text at the offset in every log and in what the client reads."""
    for node in _replicas(edit):
        edit.rewrite(node, offset, text)
    for line in edit.all(Source.CLIENT, "read", type="ok"):
        line["value"]["records"][offset][1] = text


@plant("text-altered-on-all", "local-kip101-1", PHANTOM, Kind.LOST)
def text_altered(edit: Edit) -> None:
    """m2 was acknowledged at offset 3, where all replicas have another text."""
    _alter(edit, 3, "m2.O")


@plant("text-altered-on-all-kafka", "kafka-kip101-1", PHANTOM, Kind.LOST)
def text_altered_kafka(edit: Edit) -> None:
    _alter(edit, 1, "m1.I")


@plant("text-altered-of-a-record-without-an-answer", "local-kip101-1", PHANTOM)
def text_altered_unanswered(edit: Edit) -> None:
    _outcome(edit, "m3", "info", "no answer")
    _alter(edit, 4, "m3.O")


@plant("value-without-an-answer-lawful", "local-kip101-1")
def unanswered(edit: Edit) -> None:
    _outcome(edit, "m3", "info", "no answer")


@plant("value-without-an-answer-sim-lawful", "sim-last-standing", Kind.LAST_STANDING)
def unanswered_sim(edit: Edit) -> None:
    """m2 was never answered, and is in the log."""
    _extra(edit, 0, "m2.0")


@plant("value-that-surely-failed", "local-kip101-1", PHANTOM)
def surely_failed(edit: Edit) -> None:
    _outcome(edit, "m3", "fail", "connection refused")


@plant("value-that-surely-failed-kafka", "kafka-kip101-1", PHANTOM)
def surely_failed_kafka(edit: Edit) -> None:
    _outcome(edit, "m3", "fail", "NOT_LEADER_OR_FOLLOWER")


@plant("value-that-surely-failed-sim", "sim-returned-unseen", PHANTOM, Kind.RETURNED)
def surely_failed_sim(edit: Edit) -> None:
    _extra(edit, 0, "m2.0")


@plant("value-that-failed-and-was-sent-again-lawful", "local-kip101-1")
def failed_and_sent_again(edit: Edit) -> None:
    _sent_again(edit, "m3", "fail", "connection refused")


# --- altered -------------------------------------------------------------------------------------------------
@plant("timestamp-altered-on-all", "local-kip101-1", ALTERED)
def timestamp_altered(edit: Edit) -> None:
    edit.redigest(3, sent_digest("m2.0", _AT))


@plant("timestamp-altered-on-all-kafka", "kafka-kip101-1", ALTERED)
def timestamp_altered_kafka(edit: Edit) -> None:
    edit.redigest(4, sent_digest("m2.0", _AT))


@plant("record-altered-on-all-sim", "sim-clean-8", ALTERED)
def altered_sim(edit: Edit) -> None:
    edit.tell_digests().redigest(4, "c0ffee00c0ffee00")


@plant("record-altered-on-all-by-resending-client", "kafka-kip101-2", ALTERED, Kind.PERMITTED)
def altered_resending(edit: Edit) -> None:
    """The client told what it sent, so it does not matter which client it was."""
    _resends(edit).tell_digests().redigest(2, "c0ffee00c0ffee00")


@plant("record-altered-on-one", "local-kip101-2", ALTERED, Kind.DIVERGED, Kind.PERMITTED)
def altered_on_one(edit: Edit) -> None:
    edit.redigest(3, "c0ffee00c0ffee00", "B")


@plant("record-altered-in-the-middle-of-a-batch", "local-kafka-7415a", ALTERED, *_7415A)
def altered_in_batch(edit: Edit) -> None:
    edit.redigest(2, "c0ffee00c0ffee00")


@plant("record-with-a-timestamp-of-its-client-lawful", "local-kip101-1")
def own_timestamp(edit: Edit) -> None:
    _resends(edit).redigest(3, sent_digest("m2.0", _AT)).tell_digests()


@plant("record-in-format-0-lawful", "kafka-kip101-1")
def format_0(edit: Edit) -> None:
    """The client sent a timestamp, which message format 0 does not keep."""
    edit.redigest(4, sent_digest("m2.0", _AT)).tell_digests().redigest(4, sent_digest("m2.0"))
    for node in _replicas(edit):
        edit.change(edit.batch_at(node, 4), magic=0, epoch=-1)


@plant("record-sent-twice-with-two-timestamps-lawful", "local-kip101-1")
def two_timestamps(edit: Edit) -> None:
    _resends(edit).tell_digests()
    _sent_again(edit, "m3", "info", "no answer")
    again = edit.find(Source.CLIENT, "produce", "client-99", "invoke")
    edit.change(again, digest=sent_digest("m3.0", _AT))
    edit.put_everywhere(4, (5, sent_digest("m3.0", _AT), "m3.0"))


@plant("record-of-an-unknown-client-lawful", "kafka-kip101-2", Kind.PERMITTED)
def unknown_digest(edit: Edit) -> None:
    """An older history of a client that sets a timestamp does not tell which."""
    _resends(edit).redigest(2, sent_digest("m3.1", _AT))


@plant("bytes-altered-on-one", "local-kip101-1", ALTERED)
def bytes_altered(edit: Edit) -> None:
    edit.change(edit.batch_at("A", 0), crc=1)


@plant("bytes-altered-on-one-kafka", "kafka-kip101-1", ALTERED)
def codec_altered(edit: Edit) -> None:
    edit.change(edit.batch_at("B", 5), codec="gzip")


@plant("bytes-altered-on-one-sim", "sim-clean-8", ALTERED)
def bytes_altered_sim(edit: Edit) -> None:
    edit.change(edit.batch_at("C", 2), crc=1)


@plant("bytes-of-another-format-lawful", "kafka-kip101-1")
def bytes_converted(edit: Edit) -> None:
    """A replica of an older message format converts what it copies."""
    edit.change(edit.batch_at("A", 4), magic=1, crc=1, epoch=-1)


# --- not complete --------------------------------------------------------------------------------------------
def _without(edit: Edit, offset: int) -> None:
    """Remove one record from its batch on every replica; the batch claims its offset still."""
    for node in _replicas(edit):
        batch = edit.batch_at(node, offset)
        records = [record for record in batch["value"]["records"] if record[0] != offset]
        edit.change(batch, records=records)


@plant("record-missing-in-a-batch", "kafka-kip101-1", INCOMPLETE, Kind.LOST)
def missing_in_batch(edit: Edit) -> None:
    _without(edit, 2)


@plant("record-missing-at-a-batchs-end", "sim-unpromised", INCOMPLETE, Kind.UNPROMISED, Kind.WRONG_READ)
def missing_at_end(edit: Edit) -> None:
    """m5 was sent with acks=1, and its last record is not there."""
    _outcome(edit, "m5", "info", "no answer")
    _without(edit, 7)


@plant("records-missing-in-a-batch-of-none", "local-kip101-1", INCOMPLETE, Kind.WRONG_READ)
def batch_of_none(edit: Edit) -> None:
    _outcome(edit, "m3", "info", "no answer")
    _without(edit, 4)


@plant("batch-that-claims-too-many", "sim-clean", INCOMPLETE)
def claims_too_many(edit: Edit) -> None:
    """The last batch claims a million records, and the logs end where they would end."""
    for node in _replicas(edit):
        edit.change(edit.batch_at(node, 3), last=1_000_003)
        edit.change(edit.snapshot(node), log_end_offset=1_000_004)


@plant("record-beyond-its-batch", "local-kip101-1", INCOMPLETE, Kind.DISORDER, Kind.WRONG_READ)
def beyond_batch(edit: Edit) -> None:
    _outcome(edit, "m3", "info", "no answer")
    for node in _replicas(edit):
        edit.batch_at(node, 4)["value"]["records"][0][0] = 9


@plant("end-beyond-the-batches", "local-kip101-1", INCOMPLETE)
def end_beyond(edit: Edit) -> None:
    for line in _snapshots(edit):
        line["value"]["log_end_offset"] += 2


@plant("end-beyond-the-batches-kafka", "kafka-kip101-2", INCOMPLETE, Kind.PERMITTED)
def end_beyond_kafka(edit: Edit) -> None:
    for line in _snapshots(edit):
        line["value"]["log_end_offset"] += 1


@plant("end-of-an-empty-log", "sim-clean", INCOMPLETE, Kind.LOST)
def end_of_empty(edit: Edit) -> None:
    """Every batch is gone, and the logs claim their end still."""
    for node in _replicas(edit):
        end = edit.snapshot(node)["value"]["log_end_offset"]
        edit.drop_batch(node, 0, cut=True)
        edit.change(edit.snapshot(node), log_end_offset=end)


@plant("end-below-the-batches", "sim-clean-8", INCOMPLETE, Kind.WRONG_HIGH_WATERMARK)
def end_below(edit: Edit) -> None:
    for line in _snapshots(edit):
        line["value"]["log_end_offset"] -= 1


@plant("start-beyond-the-end", "local-kip101-1", INCOMPLETE)
def start_beyond(edit: Edit) -> None:
    for line in _snapshots(edit):
        line["value"] |= {"log_start_offset": 9}


@plant("checkpointed-mark-beyond-the-end", "local-kip101-1", INCOMPLETE)
def mark_beyond(edit: Edit) -> None:
    edit.snapshot("A")["value"]["high_watermark"] = 7


@plant("checkpointed-mark-beyond-the-end-kafka", "kafka-kip101-1", INCOMPLETE)
def mark_beyond_kafka(edit: Edit) -> None:
    edit.snapshot("B")["value"]["high_watermark"] = 9


@plant("checkpointed-mark-beyond-the-end-sim", "sim-clean", INCOMPLETE)
def mark_beyond_sim(edit: Edit) -> None:
    edit.snapshot("C")["value"]["high_watermark"] = 5


@plant("checkpointed-mark-from-before-a-cut-lawful", "local-kip101-1")
def mark_before_cut(edit: Edit) -> None:
    """A's log was longer before it was cut, and the checkpoint of its high watermark is older than the cut."""
    cut = edit.find(Source.BROKER, "truncate", "A", nth=1)
    edit.event(cut, "A", "append", base=4, end=7, epoch=0, role="follower")
    again = edit.find(Source.BROKER, "append", "A", base=4, end=7)
    back = edit.again(cut, after=again, **{"from": 7})
    assert back["value"]["end"] == 4
    edit.snapshot("A")["value"]["high_watermark"] = 7


@plant("checkpointed-mark-at-the-end-lawful", "local-kip101-1")
def mark_at_end(edit: Edit) -> None:
    for line in _snapshots(edit):
        line["value"]["high_watermark"] = line["value"]["log_end_offset"]


@plant("batch-before-its-segment", "local-kip101-2", INCOMPLETE, Kind.PERMITTED)
def before_segment(edit: Edit) -> None:
    for node in _replicas(edit):
        edit.change(edit.batch_at(node, 2), segment="00000000000000000003.log")


@plant("segment-of-its-own-lawful", "local-kip101-2", Kind.PERMITTED)
def own_segment(edit: Edit) -> None:
    for node in _replicas(edit):
        for offset in (3, 4):
            edit.change(edit.batch_at(node, offset), segment="00000000000000000003.log")


@plant("start-inside-a-batch-lawful", "local-kip101-1-hw", Kind.LOST, Kind.NOT_REPLICATED)
def start_inside(edit: Edit) -> None:
    """DeleteRecords moved the log's start; the segment keeps the records below it."""
    for line in _snapshots(edit):
        line["value"]["log_start_offset"] = 2
