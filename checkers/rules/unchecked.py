"""
A run is valid only with evidence: what was not done, not read or not finished makes it unknown.

Silence proves nothing. A run in which no produce was acknowledged has lost nothing, and shows nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from checkers.facts.view import FinalLog, final_leader, final_logs, key_of, setup_of
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
from harness.model import Anomaly, Kind, Op, OpType, Source, events_of


def unchecked(ops: Sequence[Op]) -> list[Anomaly]:
    """
    Find what keeps a run from being judged: UNREADABLE for a replica's log, UNCHECKED for all else.

    Shapes:  ops of one partition and the global ones. Returns one anomaly for every lack; [] when the other
             checkers' silence may be believed.
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
        for kind, nodes, text, proof in (*_logs(ops), *_course(ops), *_clients(ops))
    ]


_Lack = tuple[Kind, tuple[str, ...], str, tuple[int, ...]]


def _logs(ops: Sequence[Op]) -> Iterator[_Lack]:
    logs = final_logs(ops)
    lasts = {
        op.process: op for op in ops if op.source is Source.LOG and isinstance(op.event, Snapshot | SnapshotFailed)
    }
    setup = setup_of(ops)
    for node in sorted({*(setup.replicas if setup else ()), *lasts}):
        last = lasts.get(node)
        if last is None:
            yield Kind.UNREADABLE, (node,), f"{node}'s log was not read at the end", ()
        elif isinstance(last.event, SnapshotFailed):
            why = list(last.event.problems) or "no reason given"
            yield Kind.UNREADABLE, (node,), f"{node}'s log could not be read: {why}", (last.index,)
        else:
            yield from _one_log(logs[node])


def _one_log(log: FinalLog) -> Iterator[_Lack]:
    if log.snapshot.problems:
        text = f"{log.node}'s log has problems: {'; '.join(log.snapshot.problems)}"
        yield Kind.UNREADABLE, (log.node,), text, (log.index,)
    if log.snapshot.batches != len(log.batches):
        text = (
            f"{log.node}'s log was to have {log.snapshot.batches} batches; {len(log.batches)} are in the history"
        )
        yield Kind.UNREADABLE, (log.node,), text, (log.index,)


def _course(ops: Sequence[Op]) -> Iterator[_Lack]:
    explained = {op.process for op, _ in exits(ops)}
    for op in ops:
        if op.source not in (Source.RUNNER, Source.NEMESIS):
            continue
        match op.event:
            case Healed(unhealed=None | ()):
                continue
            case Healed(unhealed=faults, missing=missing):
                why = f"still in force at the end: {', '.join(faults or ())}; {missing}"
            case _ if op.type is not OpType.FAIL:
                continue
            case Exited(node=node) if node in explained:
                continue  # it said why: that is a finding of its own
            case Step(text=text, error=error):
                why = f"step {text!r} failed: {error}"
            case Exited(error=error) | LineUnreadable(error=error) | Injection(error=error):
                why = f"{op.source.value} {op.f!r} failed: {error}"
            case _:
                why = f"{op.source.value} {op.f!r} failed"
        yield Kind.UNCHECKED, (), why, (op.index,)
    said = {type(op.event) for op in ops if op.source is Source.RUNNER}
    for kind, text in (
        (Setup, "the history has no set-up"),
        (Healed, "the faults were not healed before the end"),
        (Done, "the history has no end: the run was cut short"),
    ):
        if kind not in said:
            yield Kind.UNCHECKED, (), text, ()
    if final_leader(ops) is None:
        yield Kind.UNCHECKED, (), "nobody told who leads at the end", ()


def _clients(ops: Sequence[Op]) -> Iterator[_Lack]:
    told = {(type(op.event), op.type) for op in ops if op.source in (Source.CLIENT, Source.RUNNER)}
    if (Produce, OpType.OK) not in told:
        yield Kind.UNCHECKED, (), "no produce was acknowledged, so nothing could be lost", ()
    # Of a partition that nobody leads nothing can be read: that it hangs is what there is to say.
    if (Read, OpType.OK) not in told and (Healed, OpType.FAIL) not in told and not _read_all_it_may(ops):
        yield Kind.UNCHECKED, (), "no final read through the client succeeded", ()


def _read_all_it_may(ops: Sequence[Op]) -> bool:
    """
    Whether the last read came to a batch of the leader's log in whose middle the high watermark stands.

    A broker of Apache Kafka gives whole batches below the high watermark, and such a one is not: where a replica
    is stuck within it, a client comes to its beginning and no further.
    """
    failed = [read for op, read in events_of(ops, Read) if op.type is OpType.FAIL]
    leader = final_leader(ops)
    log = final_logs(ops).get(leader.node or "") if leader else None
    if not failed or log is None:
        return False
    position, high_watermark = failed[-1].position, failed[-1].high_watermark
    if position is None or high_watermark is None:
        return False
    return any(batch.base == position < high_watermark <= batch.last for _, batch in log.batches)
