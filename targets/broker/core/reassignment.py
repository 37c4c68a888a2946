"""
Reassignment: a partition is moved to other replicas in two steps, each one write of its topic and its state.

    waiting -> begun: replicas = origin + target -> over: replicas = target, as soon as all of it is in the ISR
What is wanted stands in the topic's node, so that the next controller goes on from there. Each step writes the
assignment and a new leader epoch in one multi: no broker ever knows one without the other.
V3 writes the new ISR, tells the leader, stops the old replicas, and writes the assignment last: a controller that
dies in between leaves an assignment to replicas that are gone. It also waits until the old replicas are in the
ISR, which a dead one never is; here, as in Kafka, the new ones alone must be.
Source:  Kafka Replication Design V3, F (Reassignment Agent); KIP-455; Kafka's onPartitionReassignment.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace

from targets.broker.core import made
from targets.broker.core.assignments import (
    Assignment,
    Move,
    encode_topic,
)
from targets.broker.core.controller_state import Controller
from targets.broker.core.decided import Decided
from targets.broker.core.election import Decision
from targets.broker.core.fences import in_office
from targets.broker.core.messages import ErrorCode, TopicPartition, WantedReplicas
from targets.broker.core.placement import shown
from targets.broker.core.state import Core
from targets.broker.core.wishes import decode_wishes, take_out
from targets.broker.core.zookeeper import (
    PartitionState,
    ZkCheck,
    ZkDelete,
    ZkMulti,
    ZkNode,
    ZkSet,
    topic_path,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """
    The next step of a move.

    Attributes:
        replicas: of the partition, once the step is written.
        is_last: whether the move is over then.
        decision: the state that is written with it, always of a new leader epoch.
    """

    replicas: tuple[int, ...]
    is_last: bool
    decision: Decision


def is_begun(move: Move, replicas: Collection[int]) -> bool:
    """Return True if the new replicas are already assigned: the move waits for the ISR alone."""
    return set(move.target) <= set(replicas)


def note(
    wanted: WantedReplicas, has: Assignment, moves: dict[int, Move], live: Collection[int] | None = None
) -> tuple[ErrorCode, str]:
    """
    Note what is wanted of a partition in place of what was, or return what is wrong with it.

    Args:
        live: the brokers that it may be moved to; None for any, which it then waits for.
    """
    partition, target = wanted.tp.partition, wanted.replicas
    now, move = has.replicas.get(partition), has.moves.get(partition)
    if now is None:
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"{wanted.tp}: no such partition; expected one that is there"
    if target is None:
        if move is None:
            text = f"{wanted.tp} is not being moved; there is nothing to cancel"
            return ErrorCode.NO_REASSIGNMENT_IN_PROGRESS, text
        target = move.origin
    elif not target or len(set(target)) != len(target) or not (live is None or set(target) <= set(live)):
        there = "" if live is None else f" of {shown(sorted(live))}"
        text = f"{wanted.tp} to {shown(target)}: expected distinct live brokers{there}"
        return ErrorCode.INVALID_REPLICA_ASSIGNMENT, text
    if move is None and target != now:
        moves[partition] = Move(origin=now, target=target)
    elif (
        move is not None and target == move.origin == now
    ):  # else an earlier move has added replicas that are to go
        del moves[partition]
    elif move is not None:
        moves[partition] = Move(origin=move.origin, target=target)
    return ErrorCode.NONE, ""


def taking(core: Core, asked: ZkNode, topics: Iterable[tuple[str, ZkNode, Assignment]]) -> ZkMulti:
    """
    Return the write that takes what an operator wants out of its node, and notes it with the topics.

    What cannot be done is left out, as nobody waits for an answer, also of a topic without its mark; a broker that
    is dead may come back.
    """
    wishes, there = decode_wishes(asked.data), {topic: (node, has) for topic, node, has in topics}
    ops: list[ZkCheck | ZkDelete | ZkSet] = [
        in_office(core),
        take_out(asked, wishes.removals),
    ]
    for topic in dict.fromkeys(tp.topic for tp in wishes.moves if tp.topic in there):
        node, has = there[topic]
        moves = dict(has.moves)
        for tp, replicas in wishes.moves.items():
            if tp.topic == topic:
                note(WantedReplicas(tp=tp, replicas=replicas), has, moves)
        if moves != has.moves and not made.is_missing(core, topic, has.made):
            ops += made.rewriting(core, topic, node, replace(has, moves=moves))
    return ZkMulti(ops=tuple(ops))


def begun(
    moves: Mapping[TopicPartition, Move], assignments: Mapping[TopicPartition, tuple[int, ...]]
) -> set[TopicPartition]:
    """Return the partitions that wait for an ISR, which their leaders change unseen."""
    return {tp for tp, move in moves.items() if is_begun(move, assignments.get(tp, ()))}


def next_step(
    move: Move, replicas: tuple[int, ...], state: PartitionState, live: Collection[int], *, may_begin: bool
) -> Step | None:
    """
    Return the step that is due, None while the move waits.

    A cancelled move ends with any replica of before that is in sync: the others need not be alive for it.

    Args:
        live: the registered brokers; the partition's leader is one of them.
        may_begin: whether fewer are begun than may be at once.
    """
    if not is_begun(move, replicas):
        if not may_begin:
            return None
        united = (*replicas, *(broker for broker in move.target if broker not in replicas))
        decision = Decision(leader=state.leader, leader_epoch=state.leader_epoch + 1, isr=state.isr)
        return Step(replicas=united, is_last=False, decision=decision)
    synced = tuple(broker for broker in move.target if broker in state.isr and broker in live)
    is_cancelled = set(move.origin) == set(move.target)
    if not synced or (len(synced) < len(move.target) and not is_cancelled):
        return None
    # Leadership moves only now: every replica of the new set has what is committed (V3 F, 3.2).
    leader = state.leader if state.leader in synced else synced[0]
    decision = Decision(leader=leader, leader_epoch=state.leader_epoch + 1, isr=synced)
    return Step(replicas=move.target, is_last=True, decision=decision)


class Moving:
    """
    The moves during one reading's decisions: how many more may begin, and the topics' nodes.

    Each step changes one node, under the version that the step before it writes.
    """

    def __init__(self, core: Core, assignments: dict[TopicPartition, tuple[int, ...]]) -> None:
        controller = core.state.controller
        self._controller = controller
        self._assignments = assignments
        self._changed: dict[str, tuple[int, Assignment]] = {}
        self._slots = core.config.reassignments_max - len(begun(controller.moves, assignments))

    def step_of(self, tp: TopicPartition, state: PartitionState | None) -> Step | None:
        """Return the step that is due for a partition about which nothing else is decided."""
        controller = self._controller
        move = controller.moves.get(tp)
        if move is None or state is None or state.leader not in controller.live:
            return None
        step = next_step(move, self._assignments[tp], state, controller.live, may_begin=self._slots > 0)
        self._slots -= step is not None and not step.is_last
        return step

    def write(self, decided: Decided, step: Step) -> Decided:
        """Return the decision with the write of its topic's node."""
        tp = decided.tp
        version, there = self._changed.get(tp.topic) or self._read(tp.topic)
        after = replace(there, replicas={**there.replicas, tp.partition: step.replicas}, moves=dict(there.moves))
        if step.is_last:
            del after.moves[tp.partition]
        self._changed[tp.topic] = (version + 1, after)
        node = ZkSet(path=topic_path(tp.topic), data=encode_topic(after), version=version)
        return replace(
            decided,
            replicas=step.replicas,
            removed=tuple(broker for broker in self._assignments[tp] if broker not in step.replicas),
            ops=(*decided.ops, node),
            moved=True,
            move=None if step.is_last else self._controller.moves[tp],
        )

    def _read(self, topic: str) -> tuple[int, Assignment]:
        controller = self._controller
        replicas = {tp.partition: of for tp, of in self._assignments.items() if tp.topic == topic}
        moves = {tp.partition: move for tp, move in controller.moves.items() if tp.topic == topic}
        ids = {tp.partition: own for tp, own in controller.partition_ids.items() if tp.topic == topic}
        once, mark = controller.once.get(topic, 0), controller.made.get(topic, "")
        has = Assignment(replicas=replicas, moves=moves, ids=ids, once=once, made=mark)
        return controller.topics[topic][1], has


def know(controller: Controller, decided: Decided) -> None:
    """Know a step that was written as if it had been read."""
    tp = decided.tp
    if not decided.moved or tp.topic not in controller.topics:
        return
    czxid, version = controller.topics[tp.topic]
    controller.topics[tp.topic] = (czxid, version + 1)
    controller.assignments[tp] = decided.replicas
    if decided.move is None:
        controller.moves.pop(tp, None)
    else:
        controller.moves[tp] = decided.move


def wake(core: Core, *, soon: bool = False) -> None:
    """
    Look again after a while, as long as anything is being moved.

    Source:  V3 F: the agent "wakes up if notified or a certain amount of time has passed".
    """
    if core.state.controller.moves:
        core.after_ms(("reassignment",), 1 if soon else core.config.reassignment_check_ms)
