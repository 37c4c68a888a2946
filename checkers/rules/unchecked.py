"""
A run is valid only with evidence: a step that failed, a log that was not read, or a missing end makes it unknown.

Silence proves nothing. A run without an acknowledged produce loses nothing, and shows nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from checkers.definition import Definition
from checkers.facts.abridged import number_of
from checkers.facts.nowhere import nowhere
from checkers.facts.rot import ranges_rotten
from checkers.facts.view import FinalLog, at, final_leader, final_logs, key_of, leaders_log, other_stores, setup_of
from checkers.rules.corrupt import unexplained
from checkers.rules.exited import exits
from harness.events import (
    Done,
    Exited,
    Healed,
    Injection,
    LineUnreadable,
    Produce,
    Read,
    Setup,
    Snapshot,
    SnapshotFailed,
    Step,
)
from harness.events.codec import key_of_kind
from harness.model import Anomaly, Kind, Op, OpType, Source, events_of

KINDS: Final = (
    Definition(
        kind=Kind.UNREADABLE,
        formula="replica n without a snapshot, or with a failed one, or with problems, or with fewer batches than "
        "its snapshot says; where a quorum commits, not if all members were looked at and none has a file of it",
        words="A replica's log, or part of it, could not be read at the end.",
        evidence="setup; log: snapshot, batch",
        unchecked="It is the finding itself.",
        source="Jepsen: a run without evidence is unknown",
    ),
    Definition(
        kind=Kind.UNCHECKED,
        formula="a step, a fault or a heal failed; or no set-up, healed or done; or no ok(produce); or no last "
        "read that succeeded; or no known final leader; or a rule raised, or a source that it needs is missing",
        words="A check was not possible: a source is missing, a step failed, or the rule crashed.",
        evidence="runner; nemesis; client: produce, read; metadata: state",
        unchecked="It is the finding itself.",
        source="Jepsen: a run without evidence is unknown",
    ),
)


def unchecked(ops: Sequence[Op]) -> list[Anomaly]:
    """
    Find the evidence that a run lacks: UNREADABLE for a replica's log, UNCHECKED for all else.

    Args:
        ops: the ops of one partition and the global ones.

    Returns:
        One anomaly for each piece of missing evidence; [] if the other checkers' silence can be trusted.
    """
    topic, partition = key_of(ops)
    return [
        Anomaly(
            kind=kind,
            topic=topic,
            partition=partition,
            nodes=nodes,
            sentence=f"{text[0].upper()}{text[1:]}.",
            proof=proof,
        )
        for kind, nodes, text, proof in (*_logs(ops), *_steps_and_faults(ops), *_clients(ops))
    ]


_, _SNAPSHOT = key_of_kind(Snapshot)
_, _HEALED = key_of_kind(Healed)

_Lack = tuple[Kind, tuple[str, ...], str, tuple[int, ...]]


def _logs(ops: Sequence[Op]) -> Iterator[_Lack]:
    if nowhere(ops) is not None:
        return  # `lost` says what became of it
    logs = final_logs(ops)
    lasts = {op.process: op for op in ops if op.source is Source.LOG and op.f == _SNAPSHOT}
    setup = setup_of(ops)
    for node in sorted({*(setup.replicas if setup else ()), *lasts}):
        last = lasts.get(node)
        if last is None:
            yield Kind.UNREADABLE, (node,), f"{node}'s log was not read at the end", ()
        elif isinstance(last.event, SnapshotFailed):
            why = list(last.event.problems) or "no reason given"
            yield Kind.UNREADABLE, (node,), f"{node}'s log could not be read: {why}", (last.index,)
        else:
            yield from _one_log(ops, logs[node])


def _one_log(ops: Sequence[Op], log: FinalLog) -> Iterator[_Lack]:
    if problems := unexplained(ops, log):
        text = f"{log.node}'s log has problems: {'; '.join(problems)}"
        yield Kind.UNREADABLE, (log.node,), text, (log.index,)
    there = sum(number_of(batch) for _, batch in log.batches)
    there += sum(len(batches) for batches in other_stores(ops).get(log.node, {}).values())
    if log.snapshot.batches != there:
        text = f"{log.node}'s log has {log.snapshot.batches} batches; the history has {there} of them"
        yield Kind.UNREADABLE, (log.node,), text, (log.index,)


def _steps_and_faults(ops: Sequence[Op]) -> Iterator[_Lack]:
    explained = {op.process for op, _ in exits(ops)}
    for op in ops:
        # Most ops are lawful, and need not be decoded: only a failure, or the word that all is healed, says more.
        if op.source not in (Source.RUNNER, Source.NEMESIS) or (op.type is not OpType.FAIL and op.f != _HEALED):
            continue
        match op.event:
            case Healed(unhealed=None | ()):
                continue
            case Healed(unhealed=faults, missing=missing):
                why = f"still in force at the end: {', '.join(faults or ())}; {missing}"
            case _ if op.type is not OpType.FAIL:
                continue
            case Exited(node=node) if node in explained:
                continue  # `exited` reports it
            case Step(text=text, error=error):
                why = f"step {text!r} failed: {error}"
            case Exited(error=error) | LineUnreadable(error=error) | Injection(error=error):
                why = f"{op.source.value} {op.f!r} failed: {error}"
            case _:
                why = f"{op.source.value} {op.f!r} failed"
        yield Kind.UNCHECKED, (), why, (op.index,)
    said = {op.f for op in ops if op.source is Source.RUNNER}
    for kind, text in (
        (Setup, "the history has no set-up"),
        (Healed, "the faults were not healed before the end"),
        (Done, "the history has no end: the run was cut short"),
    ):
        if key_of_kind(kind)[1] not in said:
            yield Kind.UNCHECKED, (), text, ()
    if final_leader(ops) is None:
        yield Kind.UNCHECKED, (), "the history does not say which node leads at the end", ()


def _clients(ops: Sequence[Op]) -> Iterator[_Lack]:
    if not any(op.type is OpType.OK for op, _ in events_of(ops, Produce)):
        yield Kind.UNCHECKED, (), "no produce was acknowledged, so nothing could be lost", ()
    # A leaderless partition cannot be read; `stuck` already reports it.
    if any(op.type is OpType.FAIL for op, _ in events_of(ops, Healed)) or _read_all_it_may(ops):
        return
    reads = [op for op, _ in events_of(ops, Read) if op.type is not OpType.INVOKE]
    if not any(op.type is OpType.OK for op in reads):
        yield Kind.UNCHECKED, (), "no final read through the client succeeded", ()
    elif reads[-1].type is not OpType.OK:
        text = f"the last read through the client failed at {at(reads[-1])}"
        yield Kind.UNCHECKED, (), text, (reads[-1].index,)


def _read_all_it_may(ops: Sequence[Op]) -> bool:
    """
    Return True if the last read reached a batch of the leader's log that the high watermark divides.

    Apache Kafka returns only batches that are wholly below the high watermark. If a replica is stuck inside a
    batch, a client reads up to the batch's first offset and no further. Nor does it read a batch that a fault has
    damaged on the leader's disk.
    """
    failed = [read for op, read in events_of(ops, Read) if op.type is OpType.FAIL]
    log = leaders_log(ops)
    if not failed or log is None:
        return False
    # A position is not known of a read that failed at once.
    if any(failed[-1].error.endswith(f"CORRUPT_MESSAGE at {first}") for first, _ in ranges_rotten(ops, log.node)):
        return True
    position, high_watermark = failed[-1].position, failed[-1].high_watermark
    if position is None or high_watermark is None:
        return False
    return any(batch.base == position < high_watermark <= batch.last for _, batch in log.batches)
