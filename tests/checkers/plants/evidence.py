"""Histories that lack evidence, each beside the nearest one that has it."""

from __future__ import annotations

from harness.model import Kind, Source
from tests.checkers.plants.changes import Change, resends
from tests.checkers.plants.edit import Edit
from tests.checkers.plants.plant import plant


def _half(edit: Edit) -> None:
    """Drop every second ok of a record."""
    edit.drop(*edit.all(Source.CLIENT, "produce", type="ok")[::2])


def _half_unanswered(edit: Edit) -> None:
    """Let every second record have no answer: the client says so."""
    for ok in edit.all(Source.CLIENT, "produce", type="ok")[::2]:
        ok["type"] = "info"
        del ok["value"]["offset"]
        edit.change(ok, error="no answer in time")


def _asked_earlier(source: Source, f: str) -> Change:
    """Return a change that moves the first invoke of that sort before the line that comes before it."""

    def change(edit: Edit) -> None:
        line = edit.find(source, f, type="invoke")
        edit.move(line, after=edit.lines[edit.at(line) - 2])

    return change


def _unknown(source: Source, f: str) -> Change:
    """Return a change that gives an event of that sort a key that nobody knows."""
    return lambda edit: edit.change(edit.find(source, f), discarded=2)


def _digests(edit: Edit) -> None:
    """Let every produce tell its digest, a key that may be absent."""
    resends(edit).tell_digests()


def _fails_at_last(edit: Edit) -> None:
    """Read once more, and fail."""
    ok = edit.find(Source.CLIENT, "read", type="ok")
    invoke = edit.again(edit.find(Source.CLIENT, "read", type="invoke"), after=ok)
    edit.again(invoke, error="no leader")["type"] = "fail"


def _fails_before(edit: Edit) -> None:
    """Read once before, fail, and then succeed."""
    invoke = edit.again(edit.find(Source.CLIENT, "read", type="invoke"), after=edit.find(Source.RUNNER, "healed"))
    edit.again(invoke, error="no leader")["type"] = "fail"


def _unreadable(edit: Edit) -> None:
    """Let the collector fail to read a line."""
    edit.insert(edit.lines[5], Source.RUNNER, "unreadable", "collector", "fail", error="'{x': expected")


def _noted(edit: Edit) -> None:
    """Let the runner note that a node's own log files could not be kept: they prove nothing."""
    edit.insert(
        edit.find(Source.RUNNER, "done"), Source.RUNNER, "note", "runner", before=True, node="A", text="no log"
    )


def _acks(group: str = "", acks: int = 1) -> Change:
    """Return a change in which only one group asked for an acknowledgement; the others have acks=0."""

    def change(edit: Edit) -> None:
        for line in edit.all(Source.CLIENT, "produce"):
            edit.change(line, acks=acks if line["value"]["name"] == group else 0)

    return change


HALF = [
    plant("whole-half-of-the-oks-gone-kafka", "kafka-kip101-1", Kind.UNCHECKED)(_half),
    plant("whole-half-of-the-oks-gone-kafka-lawful", "kafka-kip101-1")(_half_unanswered),
    plant("whole-half-of-the-oks-gone-sim", "sim-clean-8", Kind.UNCHECKED)(_half),
    plant("whole-half-of-the-oks-gone-sim-lawful", "sim-clean-8")(_half_unanswered),
]
INVOKES = [
    plant("whole-ok-without-invoke-lawful", "sim-clean")(_asked_earlier(Source.CLIENT, "produce")),
    plant("whole-read-without-invoke-lawful", "kafka-kip101-1")(_asked_earlier(Source.CLIENT, "read")),
    plant("whole-fault-without-invoke-lawful", "local-kip101-1")(_asked_earlier(Source.NEMESIS, "kill")),
]
KEYS = [
    plant("whole-unknown-event-lawful", "local-kip101-1")(_digests),
    plant("whole-unknown-key-lawful", "sim-clean")(_digests),
    plant("whole-unknown-key-kafka", "kafka-kip101-1", Kind.UNCHECKED)(_unknown(Source.METADATA, "state")),
    plant("whole-unknown-key-kafka-lawful", "kafka-kip101-1")(_digests),
]
LAST_READS = [
    plant("whole-last-read-failed-lawful", "local-kip101-1")(_fails_before),
    plant("whole-last-read-failed-kafka", "kafka-kip101-1", Kind.UNCHECKED)(_fails_at_last),
    plant("whole-last-read-failed-kafka-lawful", "kafka-kip101-1")(_fails_before),
    plant("whole-last-read-failed-sim", "sim-clean-8", Kind.UNCHECKED)(_fails_at_last),
    plant("whole-last-read-failed-sim-lawful", "sim-clean-8")(_fails_before),
]
LINES = [
    plant("whole-unreadable-line-lawful", "local-kip101-1")(_noted),
    plant("whole-unreadable-line-kafka", "kafka-kip101-1", Kind.UNCHECKED)(_unreadable),
    plant("whole-unreadable-line-kafka-lawful", "kafka-kip101-1")(_noted),
    plant("whole-unreadable-line-sim", "sim-clean-8", Kind.UNCHECKED)(_unreadable),
    plant("whole-unreadable-line-sim-lawful", "sim-clean-8")(_noted),
]
ACKS = [
    plant("whole-acks-0-alone-lawful", "sim-clean")(_acks("m2", -1)),
    plant("whole-acks-0-alone-local", "local-kip101-1", Kind.UNCHECKED)(_acks()),
    plant("whole-acks-0-alone-local-lawful", "local-kip101-1")(_acks("m3")),
    plant("whole-acks-0-alone-kafka", "kafka-kip101-1", Kind.UNCHECKED)(_acks()),
    plant("whole-acks-0-alone-kafka-lawful", "kafka-kip101-1")(_acks("m3")),
]
