"""Values of final logs that are there twice, or that nobody sent."""

from __future__ import annotations

from typing import Any, Final

from harness.logs.record import sent_digest
from harness.model import Kind, Source
from tests.checkers.plants.changes import (
    Change,
    each_of,
    numbered,
    outcome,
    place,
    replicas_of,
    resends,
    sent_again,
)
from tests.checkers.plants.edit import Edit
from tests.checkers.plants.plant import plant

DUPLICATE, PHANTOM = Kind.DUPLICATE, Kind.PHANTOM
# What is found in local-kafka-7415a as it is.
_7415A: Final = (Kind.LOST, Kind.NOT_REPLICATED, Kind.UNPROMISED)


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
    sent_again(edit, "m3", "info", "no answer")
    edit.put_everywhere(4)


@plant("value-sent-twice-and-refused-once", "local-kip101-1", DUPLICATE)
def value_refused_once(edit: Edit) -> None:
    """A second client sends m3 too, and that surely failed: it may be in the log once."""
    sent_again(edit, "m3", "fail", "connection refused")
    edit.put_everywhere(4)


@plant("value-twice-by-a-client-that-sends-again-lawful", "kafka-kip101-2", Kind.PERMITTED)
def value_twice_again(edit: Edit) -> None:
    resends(edit).put_everywhere(3)


@plant("value-twice-by-an-idempotent-client-that-sends-again", "kafka-kip101-2", DUPLICATE, Kind.PERMITTED)
def value_twice_idempotent(edit: Edit) -> None:
    numbered(resends(edit)).put_everywhere(3)


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
    resends(edit).put_everywhere(4)


@plant("batch-twice-at-one-offset", "local-kip101-2", DUPLICATE, Kind.DISORDER, Kind.PERMITTED)
def batch_at_one_offset(edit: Edit) -> None:
    """No client makes a broker append at an offset that it has, not even one that sends again."""
    resends(edit)
    for node in replicas_of(edit):
        edit.put_batch(node, edit.batch_at(node, 4))


@plant("value-twice-in-one-batch", "sim-clean", DUPLICATE)
def value_twice_in_batch(edit: Edit) -> None:
    _twice_in_batch(edit, 3)


@plant("value-twice-in-one-batch-though-sent-again", "kafka-kip101-1", DUPLICATE)
def value_twice_in_batch_again(edit: Edit) -> None:
    """A client that sends again sends a batch again; it puts no record into one batch twice."""
    _twice_in_batch(resends(edit), 5)


def _twice_in_batch(edit: Edit, offset: int) -> None:
    """Make the last batch one that has its record twice."""
    for node in replicas_of(edit):
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
    end = edit.snapshot(replicas_of(edit)[0])["value"]["log_end_offset"]
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
    for node in replicas_of(edit):
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
    outcome(edit, "m3", "info", "no answer")
    _alter(edit, 4, "m3.O")


@plant("value-without-an-answer-lawful", "local-kip101-1")
def unanswered(edit: Edit) -> None:
    outcome(edit, "m3", "info", "no answer")


@plant("value-without-an-answer-sim-lawful", "sim-last-standing", Kind.LAST_STANDING)
def unanswered_sim(edit: Edit) -> None:
    """m2 was never answered, and is in the log."""
    _extra(edit, 0, "m2.0")


@plant("value-that-surely-failed", "local-kip101-1", PHANTOM)
def surely_failed(edit: Edit) -> None:
    outcome(edit, "m3", "fail", "connection refused")


@plant("value-that-surely-failed-kafka", "kafka-kip101-1", PHANTOM)
def surely_failed_kafka(edit: Edit) -> None:
    outcome(edit, "m3", "fail", "NOT_LEADER_OR_FOLLOWER")


@plant("value-that-surely-failed-sim", "sim-returned-unseen", PHANTOM, Kind.RETURNED)
def surely_failed_sim(edit: Edit) -> None:
    _extra(edit, 0, "m2.0")


@plant("value-that-failed-and-was-sent-again-lawful", "local-kip101-1")
def failed_and_sent_again(edit: Edit) -> None:
    sent_again(edit, "m3", "fail", "connection refused")


# --- more, and lawful twins --------------------------------------------------------------------------------------
def _asked(edit: Edit, text: str, type_: str = "info") -> None:
    """Let a second client have sent that text, after all others, with no answer or with another outcome."""
    last = edit.find(Source.CLIENT, "produce", type="ok", nth=-1)
    keys = {"name": text, "acks": -1, "codec": "none", "value": text}
    asked = edit.insert(last, Source.CLIENT, "produce", "client-99", "invoke", **place(edit), **keys)
    edit.insert(
        asked, Source.CLIENT, "produce", "client-99", type_, **place(edit), **keys, error="no answer in time"
    )


def _extra_and_asked(offset: int, text: str) -> Change:
    """Return a change that appends a text to every log, which a client sent without an answer."""
    return each_of(lambda edit: _asked(edit, text), lambda edit: _extra(edit, offset, text))


def _again(offset: int, **value: Any) -> Change:
    """Return a change in which a client that sends again has sent the batch at that offset twice."""
    return lambda edit: resends(edit).put_everywhere(offset, **value)


def _no_answer(edit: Edit) -> None:
    """Let the produce of m2, which surely failed, have no answer: then it may be in the log."""
    for line in edit.produces("m2"):
        if line["type"] == "fail":
            line["type"], line["value"]["error"] = "info", "no answer in time"
    _extra(edit, 0, "m2.0")


TWINS = [
    plant("value-twice-sim-lawful", "sim-clean-8")(_again(2, epoch=10)),
    plant("batch-twice-lawful", "kafka-kip101-1")(_again(0, epoch=5)),
    plant("batch-twice-sim-lawful", "sim-unpromised", Kind.UNPROMISED)(_again(5, epoch=13)),
    plant("batch-twice-local", "local-kip101-1", Kind.DUPLICATE)(lambda edit: edit.put_everywhere(0, epoch=1)),
    plant("batch-twice-local-lawful", "local-kip101-1")(_again(0, epoch=1)),
    plant("value-never-sent-lawful", "local-kip101-1")(_extra_and_asked(4, "m9.0")),
    plant("value-never-sent-sim-lawful", "sim-clean-8")(_extra_and_asked(9, "m1.2")),
    plant("value-never-sent-and-no-text-lawful", "kafka-kip101-1")(_extra_and_asked(5, "hex:ff00")),
    plant("value-that-surely-failed-kafka-lawful", "kafka-kip101-1")(
        lambda edit: outcome(edit, "m3", "info", "no answer")
    ),
    plant("value-that-surely-failed-lawful", "local-kip101-1")(
        lambda edit: outcome(edit, "m3", "info", "no answer")
    ),
    plant("value-that-surely-failed-sim-lawful", "sim-returned-unseen", Kind.RETURNED)(_no_answer),
]
