"""
After healing, a follower's log is its leader's: no longer than it, and with the same epochs for the same records.

A truncation by epochs compares epochs alone, so records that two replicas stamp differently can be cut from one of
them although both hold the same.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations
from typing import Final

from checkers.definition import Definition
from checkers.facts.acked import acked_records
from checkers.facts.copies import copies_of
from checkers.facts.moments import anomaly, never_stood, states_of_epoch
from checkers.facts.outages import outages
from checkers.facts.replica_log import Replay
from checkers.facts.view import FinalLog, at, final_logs, key_of, leaders_log, noun, offsets_text
from checkers.rules.exited import gone
from harness.events import WITH_EPOCHS, Append, Healed, Produce
from harness.model import Anomaly, Kind, Op, OpType, events_of, ranges_of

KINDS: Final = (
    Definition(
        kind=Kind.LONGER,
        formula="after healed: log(n).end > log(final leader).end, and n is up and did not exit by itself",
        words="A follower's log ends above its leader's after healing, so it did not truncate what its leader "
        "lacks.",
        evidence="runner: healed; metadata: state; log: snapshot",
        unchecked="A cluster that did not heal, or whose leader is not known: then nothing is found.",
        source="KIP-101, Scenario 2; KAFKA-3924",
    ),
    Definition(
        kind=Kind.EPOCHS_DIFFER,
        formula="log(n)[o] = log(m)[o] in a format with epochs, epoch(n, o) != epoch(m, o); or "
        "append(w, f) that wrote log(n)[o] as leader, epoch(n, o) != f, and no append at o in epoch(n, o); "
        "or ok(produce r, o), and no state had epoch(n, o), if brokers report no appends",
        words="Two replicas hold the same record in batches of different leader epochs, or in another epoch than "
        "its leader appended it in, or in one that the metadata never had.",
        evidence="log: batch, of message format 2; broker: append; metadata: state; client: produce",
        unchecked="A record whose append no leader reported: only replicas are compared.",
        source="KIP-101, step 3: the leader stamps each message set, and followers copy it",
    ),
)


def replicas(ops: Sequence[Op]) -> list[Anomaly]:
    """
    Find followers that are longer than their leader after healing, and records with two epochs.

    Args:
        ops: the ops of one partition and the global ones.

    Returns:
        LONGER anomalies by node, then one EPOCHS_DIFFER anomaly for each pair of nodes and range of offsets, and
        for each batch whose epoch is not that of its append, or that the metadata never had.

    Source:  KIP-101, Scenario 2 and step 3.
    """
    return [*_longer(ops), *_stamped(ops), *_restamped(ops), *_unheard(ops)]


def _longer(ops: Sequence[Op]) -> Iterator[Anomaly]:
    healed = [op for op, _ in events_of(ops, Healed)]
    logs, leading = final_logs(ops), leaders_log(ops)
    if leading is None or not healed or any(op.type is not OpType.OK for op in healed):
        return
    topic, partition = key_of(ops)
    away = {outage.node for outage in outages(ops) if outage.back is None} | gone(ops)
    for node, log in logs.items():
        lawful = node in away or leading.node in away or _in_flight(ops, leading, log)
        if log.end > leading.end and not lawful:
            span = (leading.end, log.end)
            ends = f"above {leading.end}, where the log of its leader {leading.node} ends"
            yield Anomaly(
                kind=Kind.LONGER,
                topic=topic,
                partition=partition,
                ranges=(span,),
                nodes=(node,),
                sentence=f"{node} ends at {log.end} after healing, {ends}: it kept {offsets_text([span])}.",
                proof=tuple(sorted((healed[-1].index, log.index, leading.index))),
            )


def _in_flight(ops: Sequence[Op], leading: FinalLog, log: FinalLog) -> bool:
    """Return True if the leader may have appended what the follower has more after its own log was read."""
    if log.index < leading.index:
        return False
    late = [op for op, append in events_of(ops, Append) if append.end > leading.end and op.index > leading.index]
    if any(True for _ in events_of(ops, Append)) and not any(op.process == leading.node for op in late):
        return False
    sent = {record.value for _, record in events_of(ops, Produce)}
    acked = {record.value for op, record in events_of(ops, Produce) if op.type is OpType.OK}
    more = [record.value for offset, record in log.records.items() if offset >= leading.end]
    return bool(more) and all(value in sent and value not in acked for value in more)


def _stamped(ops: Sequence[Op]) -> Iterator[Anomaly]:
    topic, partition = key_of(ops)
    for left, right in combinations(final_logs(ops).values(), 2):
        epochs, others = _epochs(left), _epochs(right)
        if epochs == others:
            continue
        unlike = [
            offset
            for offset in left.records.keys() & right.records.keys()
            if offset >= max(left.start, right.start)
            and left.records[offset].digest == right.records[offset].digest
            and offset in epochs
            and offset in others
            and epochs[offset] != others[offset]
        ]
        for first, end in ranges_of(unlike):
            yield Anomaly(
                kind=Kind.EPOCHS_DIFFER,
                topic=topic,
                partition=partition,
                ranges=((first, end),),
                nodes=(left.node, right.node),
                sentence=f"{left.node} and {right.node} hold the same at {offsets_text([(first, end)])}, "
                f"{left.node} in epoch {epochs[first]} and {right.node} in epoch {others[first]}.",
                proof=tuple(sorted({log.records[o].index for log in (left, right) for o in range(first, end)})),
            )


def _epochs(log: FinalLog) -> dict[int, int]:
    """Return the epoch of each record that is stored in a format with epochs."""
    return {
        offset: batch.epoch
        for _, batch in log.batches
        if batch.magic >= WITH_EPOCHS
        for offset, _, _ in batch.records
    }


def _restamped(ops: Sequence[Op]) -> Iterator[Anomaly]:
    """Yield batches in another epoch than that in which their leader, or anyone at their offset, appended them."""
    appends = {op.index: append for op, append in events_of(ops, Append)}
    # A leader that was killed may not have reported its append; a follower that copied it has.
    begun = {(each.base, each.epoch) for each in appends.values()}
    odd = [
        (node, index, batch)
        for node, log in final_logs(ops).items()
        for index, batch in log.batches
        if batch.magic >= WITH_EPOCHS and batch.base >= log.start and (batch.base, batch.epoch) not in begun
        if not any(each.base <= batch.base < each.end and each.epoch == batch.epoch for each in appends.values())
    ]
    if not appends or not odd:
        return  # brokers report no appends, or every epoch is that of an append
    held = Replay(copies_of(ops).in_order)
    held.to(ops[-1].index)
    for node, index, batch in odd:
        origin = held.logs[node].at(batch.base) if node in held.logs else None
        if origin is None or origin not in appends:
            continue
        span = (batch.base, max(batch.last, batch.base) + 1)
        text = f"{node} holds {offsets_text([span])} in epoch {batch.epoch}; its leader appended it in epoch "
        text += str(appends[origin].epoch)
        yield anomaly(ops, Kind.EPOCHS_DIFFER, text, (origin, index), [node], None, (span,))


def _unheard(ops: Sequence[Op]) -> Iterator[Anomaly]:
    """Yield batches of acknowledged records in an epoch that never was, if brokers report no appends."""
    if any(True for _ in events_of(ops, Append)):
        return  # an append tells its epoch itself
    had = states_of_epoch(ops)
    acked = {record.offset: record.ok for record in acked_records(ops)}
    for node, log in final_logs(ops).items():
        for index, batch in log.batches:
            if batch.epoch < 0 or batch.epoch in had or batch.magic < WITH_EPOCHS or batch.base < log.start:
                continue
            told = acked.get(batch.base)
            proof = never_stood(ops, batch.epoch, told) if told is not None else ()
            if told is not None and proof:
                span = (batch.base, max(batch.last, batch.base) + 1)
                text = (
                    f"{node} holds {offsets_text([span])} in epoch {batch.epoch}, which {noun(ops)} never had; it "
                )
                text += f"was acknowledged at {at(told)}"
                yield anomaly(ops, Kind.EPOCHS_DIFFER, text, (*proof, told.index, index), [node], None, (span,))
