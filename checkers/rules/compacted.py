"""
Where a log was compacted, it holds one record of each key, and what it removed does not come back.

That compaction removes nothing else is left to the rules about promises, and to `holes` and `batches`: they accept
no other gap than one that compaction may have made.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from checkers.definition import Definition
from checkers.facts.deleted import ended_since
from checkers.facts.moments import anomaly, margin_ns
from checkers.facts.view import FinalLog, at, final_logs
from harness.events import LogCleaned, Snapshot
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
)


def compacted(ops: Sequence[Op]) -> list[Anomaly]:
    """
    Find final logs that hold an older record of a key where they were compacted.

    Args:
        ops: the ops of one partition and the global ones.

    Returns:
        One anomaly for each such log, with all its older records.

    Source:  Kafka, LogCleaner; KAFKA-6264 (replaced files that a start brings back).
    """
    return list(_left(ops))


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
