"""
A topic that is deleted and created again under its name takes nothing of its predecessor, and keeps its own.

So does a partition that an operator removes from its topic, and adds again.

Only what clients were answered, the metadata and the final logs count. A create or a delete without an answer
leaves several possibilities, and all of them are lawful (checkers/facts/generations.py). Requests name topics,
not ids: a produce may reach a broker that was not told yet of the new topic, and its record then goes with the
old one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from checkers.definition import Definition
from checkers.facts.generations import Newest, newest_generation
from checkers.facts.view import (
    FinalLog,
    at,
    changed_rules,
    final_leader,
    final_logs,
    is_removed,
    key_of,
    run_setup_of,
)
from checkers.rules import diverged
from harness.effect import LOSSY, nature_of
from harness.events import Healed, Injection, Produce
from harness.model import Anomaly, Kind, Op, OpType, events_of, ranges_of

_ACKS_ALL: Final = -1
# The rule by which a topic is not taken for one of the same name.
IDENTITY: Final = "topic_identity"
_NAMED_MAX: Final = 3

KINDS: Final = (
    Definition(
        kind=Kind.OLD_GENERATION,
        formula="after healed: r in log(n), and ok(produce r) before invoke(d), ok(d), d deletes the topic; or "
        "log(n) is there, and the topic certainly is not; or the same of a partition that is removed and "
        "added again",
        words="A replica of a topic that was deleted, or of a partition that was removed, is still there, or its "
        "records are in the one that came under its name.",
        evidence="client: create-topic, delete-topic, remove-partitions, add-partitions, produce; "
        "log: snapshot, batch; runner: healed",
        unchecked="A create or a delete without an answer: what it leaves open is lawful. The records of a "
        "partition that is removed, if clients send records again: the first try may be late.",
        source='KIP-516, Motivation; Kafka Replication Design V3, discussion 5: "do we need partition version id"',
    ),
    Definition(
        kind=Kind.WRONG_TOPIC,
        formula="ok(create) of a topic that is there, or of one that is not: ok(delete) or a refusal that says "
        "so; or the same of a partition that is added and removed",
        words="A topic or a partition is not as a broker answered: what it said was created or deleted was not.",
        evidence="client: create-topic, delete-topic, remove-partitions, add-partitions; runner: setup "
        "(traits, removed)",
        unchecked="A create or a delete without an answer: what it leaves open is lawful. Where deletes take "
        "effect later, all but the create of a topic that certainly was there.",
        source="Apache Kafka, CreateTopics and DeleteTopics",
    ),
    Definition(
        kind=Kind.LOST,
        formula="after healed, of a topic that clients delete, or a partition that is removed: r, s sent after "
        "its last delete, ok(produce r, acks=all) before invoke(produce s), r in log(leader), ok(produce s, "
        "acks=all, o), log(leader)[o] /= s, and no fault since invoke(produce s) may end copies",
        words="A record of the newest generation was acknowledged and is gone. A record before it is there, so "
        "that brokers knew the new topic.",
        evidence="client: produce, create-topic, delete-topic, remove-partitions, add-partitions; log: batch; "
        "metadata: state; nemesis",
        unchecked="A create or a delete without an answer, unclean election, or a fault that may end copies.",
        source="Kafka's acks; KIP-516, Motivation",
    ),
    Definition(
        kind=Kind.DIVERGED,
        formula="after healed, of a topic that clients delete, or a partition that is removed: "
        "log(n)[o] and log(m)[o] differ in content",
        words="Two replicas of the newest generation hold different records at one offset.",
        evidence="log: batch",
        unchecked="A log that could not be read.",
        source="KIP-101, Scenario 2; KIP-516, Motivation",
    ),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Acked:
    """A record that was acknowledged, with the indexes of its two ops."""

    sent: Produce
    invoked: int
    op: Op


def generations(ops: Sequence[Op]) -> list[Anomaly]:
    """
    Find what a topic took of its predecessor of the same name, and what it lost of its own.

    Args:
        ops: the ops of one partition of a topic that clients delete and create again, or of one that an operator
            removes and adds again, and the global ones.

    Returns:
        Nothing of final logs if the cluster did not become whole: a broker may not have been told yet.

    Source:  KIP-516, Motivation; Kafka Replication Design V3, discussion 5.
    """
    newest = newest_generation(ops)
    if newest.contradicted is not None:
        return [_contradiction(ops, newest)]
    if not any(op.type is OpType.OK for op, _ in events_of(ops, Healed)):
        return []
    if IDENTITY in changed_rules(ops):
        return []  # a broker that knew topics by their names alone took, kept and cut what was another one's
    logs, acked = final_logs(ops), _acked(ops)
    return [*_old(ops, newest, logs, acked), *diverged.diverged(ops), *_lost(ops, newest, logs, acked)]


def _contradiction(ops: Sequence[Op], newest: Newest) -> Anomaly:
    topic, partition = key_of(ops)
    ask = newest.contradicted
    assert ask is not None, "the caller has looked"
    op = next(op for op in ops if op.index == ask.done)
    said = "was acknowledged" if op.type is OpType.OK else f"was refused with {ask.error}"
    what = f"{op.f.partition('-')[0]} of {_what(ops)}"
    text = f"The {what} {said} at {at(op)}, which contradicts the answers before it."
    proof = tuple(index for index in newest.proof if index <= ask.done)
    return Anomaly(kind=Kind.WRONG_TOPIC, topic=topic, partition=partition, sentence=text, proof=proof)


def _acked(ops: Sequence[Op]) -> list[_Acked]:
    invoked: dict[str, int] = {}
    found: list[_Acked] = []
    for op, sent in events_of(ops, Produce):
        if op.type is OpType.INVOKE:
            invoked[sent.value] = op.index
        elif op.type is OpType.OK and sent.acks != 0 and sent.value in invoked:
            found.append(_Acked(sent=sent, invoked=invoked[sent.value], op=op))
    return found


def _old(
    ops: Sequence[Op], newest: Newest, logs: Mapping[str, FinalLog], acked: Sequence[_Acked]
) -> Iterator[Anomaly]:
    """Yield a replica that must not be there, and one that holds records of an earlier generation."""
    topic, partition = key_of(ops)
    old = {each.sent.value: each for each in acked if each.op.index < newest.old_before}
    if _may_be_late(ops):
        old = {}
    for node, log in logs.items():
        held = [record for record in log.records.values() if record.value in old]
        if newest.may_be_there and not held:
            continue
        if newest.may_be_there:
            names = ", ".join(record.value for record in held[:_NAMED_MAX])
            first = old[held[0].value].op
            text = f"{node} holds {names} in {topic}-{partition}, acknowledged from {at(first)} on, before the "
            text += f"{_it(ops, 'topic was deleted', 'partition was removed')} and came again."
            proof = {first.index, *(record.index for record in held)}
        else:
            text = f"{node} has a log of {topic}-{partition}, and the "
            text += f"{_it(ops, 'topic was deleted', 'partition was removed')}, and not made again since."
            proof = {log.index}
        yield Anomaly(
            kind=Kind.OLD_GENERATION,
            topic=topic,
            partition=partition,
            nodes=(node,),
            ranges=ranges_of(record.offset for record in held),
            sentence=text,
            proof=tuple(sorted({*newest.proof[-3:], *proof})),
        )


def _lost(
    ops: Sequence[Op], newest: Newest, logs: Mapping[str, FinalLog], acked: Sequence[_Acked]
) -> Iterator[Anomaly]:
    """Yield acknowledged records of the newest generation that its leader lacks."""
    setup, leader = run_setup_of(ops), final_leader(ops)
    log = logs.get(leader.node or "") if leader is not None else None
    if not newest.is_there or setup is None or setup.unclean or log is None or leader is None:
        return
    new = [each for each in acked if each.sent.acks == _ACKS_ALL and each.invoked > newest.new_after]
    kept = [each.op.index for each in new if _is_held(log, each.sent)]
    lossy = max((op.index for op, _ in events_of(ops, Injection) if _may_end_copies(op)), default=-1)
    lost = [
        each
        for each in new
        if not _is_held(log, each.sent) and each.invoked > max(lossy, min(kept, default=each.invoked))
    ]
    if lost:
        topic, partition = key_of(ops)
        names = ", ".join(each.sent.value for each in lost[:_NAMED_MAX])
        text = f"{names} of {topic}-{partition}, acknowledged with acks=all from {at(lost[0].op)} on, after it "
        yield Anomaly(
            kind=Kind.LOST,
            topic=topic,
            partition=partition,
            nodes=(log.node,),
            ranges=ranges_of(each.sent.offset for each in lost if each.sent.offset is not None),
            sentence=f"{text}was created again, is not in the log of its leader {log.node}.",
            proof=tuple(sorted({leader.index, log.index, *(each.op.index for each in lost)})),
        )


def _it(ops: Sequence[Op], topic: str, partition: str) -> str:
    """Return what is said of a topic that comes and goes, or of a partition that does."""
    setup = run_setup_of(ops)
    return partition if setup is not None and is_removed(setup, *key_of(ops)) else topic


def _what(ops: Sequence[Op]) -> str:
    topic, partition = key_of(ops)
    return _it(ops, f"topic {topic}", f"partition {topic}-{partition}")


def _may_be_late(ops: Sequence[Op]) -> bool:
    """
    Return True if what was sent first may be appended after what was sent again was acknowledged.

    Who creates and deletes topics sends once (docs/workloads.md); to a partition that is removed others write too.
    """
    setup = run_setup_of(ops)
    return setup is not None and is_removed(setup, *key_of(ops)) and not setup.sends_once


def _is_held(log: FinalLog, sent: Produce) -> bool:
    record = log.records.get(-1 if sent.offset is None else sent.offset)
    return record is not None and record.value == sent.value


def _may_end_copies(op: Op) -> bool:
    return op.type is not OpType.INVOKE and nature_of(op).effect in LOSSY
