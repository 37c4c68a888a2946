"""
A run is valid only with evidence: what was not done, not read or not finished makes it unknown.

Silence proves nothing. A run in which no produce was acknowledged has lost nothing, and shows nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from checkers.exited import is_exit
from checkers.view import FinalLog, final_leader, final_logs, key_of, setup_of
from harness.model import Anomaly, Kind, Op, OpType, Source


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
    failed = {op.process: op for op in ops if (op.source, op.f) == (Source.LOG, "snapshot")}
    for node in sorted({*map(str, setup_of(ops).get("replicas") or ()), *failed}):
        last = failed.get(node)
        if last is None:
            yield Kind.UNREADABLE, (node,), f"{node}'s log was not read at the end", ()
        elif last.type is not OpType.OK:
            why = last.value.get("error") or last.value.get("problems") or "no reason given"
            yield Kind.UNREADABLE, (node,), f"{node}'s log could not be read: {why}", (last.index,)
        else:
            yield from _one_log(logs[node])


def _one_log(log: FinalLog) -> Iterator[_Lack]:
    if log.problems:
        text = f"{log.node}'s log has problems: {'; '.join(log.problems)}"
        yield Kind.UNREADABLE, (log.node,), text, (log.index,)
    if log.promised != len(log.batches):
        text = f"{log.node}'s log was to have {log.promised} batches; {len(log.batches)} are in the history"
        yield Kind.UNREADABLE, (log.node,), text, (log.index,)


def _course(ops: Sequence[Op]) -> Iterator[_Lack]:
    explained = {op.process for op in ops if is_exit(op)}
    for op in ops:
        if op.f == "exited" and op.value.get("node") in explained:
            continue  # it said why: that is a finding of its own
        if op.source in (Source.RUNNER, Source.NEMESIS) and op.type is OpType.FAIL and op.f != "healed":
            what = f"step {op.value.get('text')!r}" if op.f == "step" else f"{op.source.value} {op.f!r}"
            yield Kind.UNCHECKED, (), f"{what} failed: {op.value.get('error')}", (op.index,)
        if op.f == "healed" and op.value.get("unhealed"):
            faults = ", ".join(map(str, op.value["unhealed"]))
            yield Kind.UNCHECKED, (), f"still in force at the end: {faults}; {op.value['missing']}", (op.index,)
    said = {op.f for op in ops if op.source is Source.RUNNER}
    for f, text in (
        ("setup", "the history has no set-up"),
        ("healed", "the faults were not healed before the end"),
        ("done", "the history has no end: the run was cut short"),
    ):
        if f not in said:
            yield Kind.UNCHECKED, (), text, ()
    if final_leader(ops) is None:
        yield Kind.UNCHECKED, (), "nobody told who leads at the end", ()


def _clients(ops: Sequence[Op]) -> Iterator[_Lack]:
    told = {(op.f, op.type) for op in ops if op.source in (Source.CLIENT, Source.RUNNER)}
    if ("produce", OpType.OK) not in told:
        yield Kind.UNCHECKED, (), "no produce was acknowledged, so nothing could be lost", ()
    # Of a partition that nobody leads nothing can be read: that it hangs is what there is to say.
    if ("read", OpType.OK) not in told and ("healed", OpType.FAIL) not in told and not _read_all_it_may(ops):
        yield Kind.UNCHECKED, (), "no final read through the client succeeded", ()


def _read_all_it_may(ops: Sequence[Op]) -> bool:
    """
    Whether the last read came to a batch of the leader's log in whose middle the high watermark stands.

    A broker of Apache Kafka gives whole batches below the high watermark, and such a one is not: where a replica
    is stuck within it, a client comes to its beginning and no further.
    """
    read = next((op for op in reversed(ops) if op.f == "read" and op.type is OpType.FAIL), None)
    leader = final_leader(ops)
    log = final_logs(ops).get(leader.node or "") if leader else None
    if read is None or log is None or "position" not in read.value:
        return False
    position, high_watermark = int(read.value["position"]), int(read.value["high_watermark"])
    return any(batch.base == position < high_watermark <= batch.last for batch in log.batches)
