"""
Offsets at which two replicas' final logs hold different records.

Only content counts: two histories can share one epoch, and `hw` has no epochs. A replica that only ends earlier
has not diverged; it is behind. A replica that exited instead of following with a longer log (KAFKA-3924), and was
not restarted, has not diverged either: `exited` reports it. No promise permits divergence that stays: not one in
memory, nor that of a quorum. And while a cluster is upgraded from a version without
epochs, a follower may keep what its leader has lost (checkers/facts/window.py).
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from typing import Final

from checkers.definition import Definition
from checkers.facts.copies import copies_of
from checkers.facts.quorum import Promised, befell, is_quorum
from checkers.facts.rot import flipped_at
from checkers.facts.sent import sent_values
from checkers.facts.view import FinalLog, at, epochs_text, final_logs, key_of, offsets_text
from checkers.facts.window import is_forked
from checkers.rules.circumstances import led_since
from checkers.rules.exited import gone
from harness.model import Anomaly, Kind, Op, ranges_of

KINDS: Final = (
    Definition(
        kind=Kind.DIVERGED,
        formula="log(n)[o] and log(m)[o] are there, at or above both logs' starts, and differ in content; n "
        "and m did not exit by themselves; and neither had fallen back to its high watermark, as nodes without "
        "epochs do within an upgrade, when it had another record at o than its leader; and, where a quorum "
        "commits, no fault flipped a byte of either record at o",
        words="Two replicas hold different records at one offset.",
        evidence="log: batch (digests over timestamp, key, value and headers)",
        unchecked="A log that could not be read.",
        source="KIP-101, Scenario 2; KAFKA-6361",
    ),
)


def diverged(ops: Sequence[Op]) -> list[Anomaly]:
    """
    Find the offsets that two replicas both hold, with different content.

    Args:
        ops: the ops of one partition and the global ones.

    Returns:
        One anomaly for each pair of nodes and maximal range of offsets. Its epoch is set if both sides have the
        same single epoch in the whole range.

    Source:  KIP-101, Scenario 2; KAFKA-6361.
    """
    topic, partition = key_of(ops)
    found: list[Anomaly] = []
    absent, quorum = gone(ops), is_quorum(ops)
    logs = [log for node, log in final_logs(ops).items() if node not in absent]
    for left, right in combinations(logs, 2):
        both = left.records.keys() & right.records.keys()
        # What retention or DeleteRecords removed may still be in a segment; it is no longer part of the log.
        start = max(left.start, right.start)
        unlike = [
            offset
            for offset in both
            if offset >= start
            and left.records[offset].digest != right.records[offset].digest
            and not is_forked(ops, None, offset)
            and not (quorum and any(flipped_at(ops, log.node, offset) for log in (left, right)))
        ]
        for first, end in ranges_of(unlike):
            ours, theirs = (_epochs(log, first, end) for log in (left, right))
            shared = ours[0] if len({*ours, *theirs}) == 1 and ours[0] >= 0 else None
            found.append(
                Anomaly(
                    kind=Kind.DIVERGED,
                    topic=topic,
                    partition=partition,
                    ranges=((first, end),),
                    nodes=(left.node, right.node),
                    epoch=shared,
                    sentence=_sentence(left, right, first, end) + _steps(ops, left, right, first) + ".",
                    proof=_proof((left, right), first, end),
                )
            )
    return found


def _epochs(log: FinalLog, first: int, end: int) -> list[int]:
    return [log.records[offset].epoch for offset in range(first, end)]


def _sentence(left: FinalLog, right: FinalLog, first: int, end: int) -> str:
    sides = " and ".join(
        f"{log.node} holds {log.records[first].value!r} {epochs_text(_epochs(log, first, end))}"
        for log in (left, right)
    )
    start = "" if end == first + 1 else f" (at offset {first})"
    return f"{left.node} and {right.node} differ at {offsets_text([(first, end)])}: {sides}{start}"


def _steps(ops: Sequence[Op], left: FinalLog, right: FinalLog, offset: int) -> str:
    """Return, of each record that was acknowledged, what happened since to the node that has another there."""
    quorum, found = is_quorum(ops), ""
    if not quorum and copies_of(ops).reported:
        return found  # the chain of cuts tells it, record by record
    for log, other in ((left, right), (right, left)):
        value = log.records[offset].value
        sent = sent_values(ops).get(value)
        ok = sent.acked.get(offset) if sent is not None else None
        if sent is None or ok is None:
            continue
        promised = Promised(offset=offset, asked=sent.asked(ok), told=ok.index)
        step = befell(ops, promised, other.node) if quorum else led_since(ops, ok, other.node)
        found += f"; {value!r} was acknowledged at {at(ok)}, and {other.node} {step}"
    return found


def _proof(logs: Sequence[FinalLog], first: int, end: int) -> tuple[int, ...]:
    return tuple(sorted({log.records[offset].index for log in logs for offset in range(first, end)}))
