"""
Where a log was compacted, it holds one record of each key, and what it removed does not come back.

Nor does what a tombstone deleted: a log that had both holds the older record no longer than the tombstone.

That compaction removes nothing else is left to the rules about promises, and to `holes` and `batches`: they accept
no other gap than one that compaction may have made.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from checkers.definition import Definition
from checkers.facts.cleaned import compacted_before
from checkers.facts.compacted import newest_tombstones
from checkers.facts.deleted import ended_since
from checkers.facts.moments import anomaly, margin_ns
from checkers.facts.tombstones import promised_to_ns
from checkers.facts.view import FinalLog, at, final_logs
from harness.events import Append, LogCleaned, Snapshot
from harness.keys import key_of
from harness.model import Anomaly, Kind, Op, events_of

KINDS: Final = (
    Definition(
        kind=Kind.NOT_COMPACTED,
        formula="last cleaned(n, upto): two records of one key below upto in the final log of n, and since then n "
        "was not told to delete the replica, cut nothing below upto, and kept its disk",
        words="A log holds two records of one key where its broker had left one: compaction left the older one, "
        "or it came back.",
        evidence="broker: cleaned, truncate, stopped; log: snapshot, batch; nemesis",
        unchecked="Without broker events nobody says what was compacted.",
        source="Kafka, LogCleaner: the log contains at least the latest value of each key; KAFKA-6264",
    ),
    Definition(
        kind=Kind.RESURRECTED,
        formula="a final log of n with a record of key k at o, and none at t > o, which is the newest committed "
        "record of k, a tombstone; n had appended t, or what is behind it, before a delay could be over that "
        "began with t's first cleaning anywhere, and since then was not told to delete the replica, cut nothing "
        "up to t, and kept its disk",
        words="A log holds a record that a tombstone deleted, and the tombstone is gone from it: whoever reads it "
        "sees the key alive again.",
        evidence="broker: append, cleaned, truncate, stopped; log: snapshot, batch; nemesis",
        unchecked="A replica that copied the log when the tombstone's delay was over: it may never have had it, "
        "as after it was away for longer (docs/protocol.md).",
        source="Kafka, delete.retention.ms; KIP-534",
    ),
)


def compacted(ops: Sequence[Op]) -> list[Anomaly]:
    """
    Find final logs that hold an older record of a key where they were compacted.

    Args:
        ops: the ops of one partition and the global ones.

    Returns:
        One anomaly for each such log and kind, with all its older records.

    Source:  Kafka, LogCleaner; KAFKA-6264 (replaced files that a start brings back).
    """
    return [*_left(ops), *_resurrected(ops)]


def _resurrected(ops: Sequence[Op]) -> Iterator[Anomaly]:
    deleted = newest_tombstones(ops) if compacted_before(ops) else {}
    for node, log in sorted(final_logs(ops).items()) if deleted else ():
        back: list[tuple[int, int]] = []
        for offset, record in sorted(log.records.items()):
            tombstone = deleted.get(key_of(record.value) or "", -1)
            gone = log.start <= offset < tombstone < log.end and tombstone not in log.records
            if gone and _passed(ops, node, tombstone) is not None:
                back.append((offset, tombstone))
        if not back:
            continue
        offset, tombstone = back[0]
        text = (
            f"the final log of {node} holds {log.records[offset].value!r} at {offset}, which the tombstone at "
            f"{tombstone} deleted, and not the tombstone any more"
        )
        proof = [log.index, *(_passed(ops, node, there) or log.index for _, there in back)]
        ranges = tuple((each, each + 1) for each, _ in back)
        yield anomaly(ops, Kind.RESURRECTED, text, proof, [node], None, ranges)


def _passed(ops: Sequence[Op], node: str, offset: int) -> int | None:
    """
    Return the index of an op from which on a node's log always reached past the tombstone there; None: none.

    It had to get the tombstone then: no replica may have been without it so early.
    """
    over_ns, last = promised_to_ns(ops, offset), None
    for op, append in events_of(ops, Append):
        if op.process == node and offset < append.end:
            wrote = append.role == "leader" and append.base <= offset
            if wrote or over_ns is None or op.time_ns + margin_ns(ops) < over_ns:
                last = op.index
            elif append.base <= offset:
                last = None  # it got the place of the tombstone anew
    return last if last is not None and not ended_since(ops, node, last, offset + 1) else None


def _left(ops: Sequence[Op]) -> Iterator[Anomaly]:
    logs, margin = final_logs(ops), margin_ns(ops)
    read_at = {op.process: op.time_ns for op, _ in events_of(ops, Snapshot)}
    last: dict[str, tuple[Op, LogCleaned]] = {}
    for op, event in events_of(ops, LogCleaned):
        if op.process in logs and op.time_ns + margin < read_at[op.process]:
            last[op.process] = op, event
    for node, (op, event) in sorted(last.items()):
        older = _older(logs[node], event.upto)
        if not older or ended_since(ops, node, op.index, event.upto):
            continue
        offset, newer = older[0]
        value = logs[node].records[offset].value
        text = (
            f"the final log of {node}, compacted up to {event.upto} at {at(op)}, holds {value!r} at {offset}, and "
        )
        text += f"{logs[node].records[newer].value!r} of the same key at {newer}"
        ranges = tuple((each, each + 1) for each, _ in older)
        yield anomaly(ops, Kind.NOT_COMPACTED, text, [op.index, logs[node].index], [node], None, ranges)


def _older(log: FinalLog, upto: int) -> list[tuple[int, int]]:
    """Return the offsets of records that have a newer one of their key below `upto`, each with that one's."""
    newest: dict[str, int] = {}
    found: list[tuple[int, int]] = []
    for offset, record in sorted(log.records.items(), reverse=True):
        key = key_of(record.value) if log.start <= offset < upto else None
        if key is not None and key in newest:
            found.append((offset, newest[key]))
        elif key is not None:
            newest[key] = offset
    return found[::-1]
