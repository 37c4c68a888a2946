"""
What a controller's reading takes of ZooKeeper, and what is known after it; `controller` goes from step to step.

    names -> nodes -> the states that may matter and may have changed
Source:  Kafka Replication Design V3, A.1, B and D.3.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from targets.broker.core import readable
from targets.broker.core.assignments import Assignment, Move
from targets.broker.core.controller_state import partition_id
from targets.broker.core.decided import Seen
from targets.broker.core.fences import in_office, is_same_topic, topic_id_of
from targets.broker.core.messages import TopicPartition
from targets.broker.core.state import Core
from targets.broker.core.wishes import Wishes, decode_wishes
from targets.broker.core.zookeeper import (
    ELECTIONS,
    EPOCH_MAX,
    ZkDelete,
    ZkMulti,
    ZkNames,
    ZkNode,
    ZkResult,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class AwaitNames:
    """First read: live brokers and topics. `office` is the controller epoch that started it."""

    office: int


@dataclass(frozen=True, slots=True, kw_only=True)
class AwaitNodes:
    """Second read: each registration, each assignment, and an operator's elections."""

    office: int
    brokers: tuple[int, ...]
    topics: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class AwaitStates:
    """
    Third read: leaderAndISR, of those partitions whose state may matter now and may have changed.

    Attributes:
        topics: each with the czxid and the version of the node with its assignment.
        unreadable: the topics whose node holds something else.
        moves: the reassignments that are not over.
        ids: of the partitions that have one of their own; once: of topics, how many partitions they had before.
        made: the marks of topics that have one.
        asked: an operator's elections, with the version of their node.
        read: the partitions whose states are being read.
        refused: those whose state could not be written; what is below their paths is being read, too.
        others_wait: whether more partitions are new than one reading takes.
    """

    office: int
    live: tuple[tuple[int, int], ...]
    assignments: tuple[tuple[TopicPartition, tuple[int, ...]], ...]
    topics: tuple[tuple[str, int, int], ...]
    unreadable: tuple[str, ...] = ()
    moves: tuple[tuple[TopicPartition, Move], ...] = ()
    ids: tuple[tuple[TopicPartition, int], ...] = ()
    once: tuple[tuple[str, int], ...] = ()
    made: tuple[tuple[str, str], ...] = ()
    asked: ZkNode | None = None
    read: tuple[TopicPartition, ...] = ()
    refused: tuple[TopicPartition, ...] = ()
    others_wait: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class AwaitElectionsRemoval:
    """The operator's election node is being removed; its elections go ahead whatever the result."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AwaitWishesTaken:
    """
    What an operator wants to be moved or removed is being noted with its topics; then all is read again.

    Attributes:
        marked: the topics that it is about and that have a mark, each with its node's czxid.
    """

    office: int
    marked: tuple[tuple[str, int, str], ...] = ()


def left_office(core: Core, office: int) -> bool:
    """Return True if what was asked outlived its office; it must decide nothing, as no epoch would be checked."""
    return not core.state.controller.active or core.state.controller.epoch != office


def to_read(
    core: Core,
    registered: dict[int, int],
    assignments: Mapping[TopicPartition, tuple[int, ...]],
    topics: Mapping[str, tuple[int, int]],
    doubted: Collection[TopicPartition],
) -> tuple[tuple[TopicPartition, ...], bool]:
    """
    Return the partitions whose states are to be read, and whether others wait for the next reading.

    Only its leader changes a state behind the controller's back, and only its ISR. So of a broker that is gone
    those are read to whose ISR it may have come since; a decision about the others is written under the version
    that is known, and refused if there is another (V3 A, 3.3: "go back to 1.1"). A move waits for such a change.

    Args:
        doubted: the partitions that are moved, or of which an operator wants an election.
    """
    controller = core.state.controller
    known = controller.live
    returned = {broker for broker, czxid in registered.items() if known.get(broker) != czxid}
    gone = known.keys() - registered.keys()
    doubtful = controller.unhandled.keys() | controller.uncertain.keys() | controller.refused | {*doubted}
    same = {topic for topic, node in topics.items() if controller.topics.get(topic) == node}

    def is_read(tp: TopicPartition, replicas: tuple[int, ...]) -> bool:
        if tp.topic not in same or tp in doubtful or not returned.isdisjoint(replicas):
            return True
        if gone.isdisjoint(replicas):
            return False
        state = controller.states.get(tp)
        return state is None or not gone.isdisjoint(set(replicas) - set(state.isr))

    if not controller.in_office:
        return tuple(assignments), False
    new = [tp for tp in assignments if tp not in controller.seen and tp not in doubtful]
    first, others_wait = next_slice(core, new, {topic: czxid for topic, (czxid, _) in topics.items()})
    is_first = dict.fromkeys(new, False) | dict.fromkeys(first, True)
    of = assignments.items()
    read = tuple(tp for tp, replicas in of if (is_first[tp] if tp in is_first else is_read(tp, replicas)))
    return read, others_wait


def next_slice(
    core: Core, new: Sequence[TopicPartition], topics: Mapping[str, int]
) -> tuple[Sequence[TopicPartition], bool]:
    """
    Return which partitions that are not known yet have their turn, and whether others wait for theirs.

    What a reading finds new it writes before the next one begins, and a topic may have thousands of partitions: so
    each topic has its turn, the oldest first, with one partition after another. What could not be read has its
    turn again once all others have had theirs.

    Args:
        topics: the czxids of their nodes.
    """
    controller, most = core.state.controller, core.config.together.firsts_max
    if len(new) <= most and not controller.tried_to_see:
        return new, False
    waiting = [tp for tp in new if tp not in controller.tried_to_see]
    turns: Counter[str] = Counter()
    order: list[tuple[int, int, TopicPartition]] = []
    for tp in waiting:
        order.append((turns[tp.topic], topics[tp.topic], tp))
        turns[tp.topic] += 1
    first = [tp for _, _, tp in sorted(order)[:most]]
    others_wait = len(waiting) > most
    controller.tried_to_see = controller.tried_to_see | {*first} if others_wait else set()
    return first, others_wait


def leave_for_later(core: Core, continuation: AwaitStates) -> bool:
    """Know no more of what a new controller finds not begun than one reading takes; return True if others wait."""
    controller = core.state.controller
    new = [tp for tp, _ in continuation.assignments if tp in controller.seen and tp not in controller.states]
    first, others_wait = next_slice(core, new, {topic: czxid for topic, czxid, _ in continuation.topics})
    for tp in {*new} - {*first} if others_wait else ():
        del controller.seen[tp]
    return others_wait


def noting(office: int, topics: Iterable[tuple[str, ZkNode | None, Assignment]]) -> AwaitWishesTaken:
    """Return what awaits the write of what an operator wants of these topics."""
    marked = tuple((topic, node.czxid, has.made) for topic, node, has in topics if node is not None and has.made)
    return AwaitWishesTaken(office=office, marked=marked)


def take_elections(core: Core, wanted: ZkNode | None) -> Wishes:
    """
    Accept an operator's elections, and which brokers leave, once.

    The node is removed, as Kafka does for preferred election.
    """
    if wanted is None:
        return Wishes()
    removal = ZkDelete(path=ELECTIONS, version=wanted.version)
    core.ask(AwaitElectionsRemoval(), ZkMulti(ops=(in_office(core), removal)))
    return decode_wishes(wanted.data)


def note_read(core: Core, continuation: AwaitStates, results: tuple[ZkResult, ...]) -> None:
    """
    Know what was read, and no more of what is gone; what cannot be read is known neither as there nor as missing.

    A state of an older topic is no state of this one, whose first write came as late as it was created: it is
    written over.
    """
    controller = core.state.controller
    controller.topics = {topic: (czxid, version) for topic, czxid, version in continuation.topics}
    controller.moves, controller.once, own = (
        dict(continuation.moves),
        dict(continuation.once),
        dict(continuation.ids),
    )
    controller.made = dict(continuation.made)
    count = len(continuation.read)
    below = {
        tp: found.names
        for tp, found in zip(continuation.refused, results[count:], strict=True)
        if isinstance(found, ZkNames)
    }
    assigned = {tp for tp, _ in continuation.assignments}
    for tp in [*continuation.read, *(tp for tp in controller.seen if tp not in assigned)]:
        controller.seen.pop(tp, None)
        controller.states.pop(tp, None)
    controller.refused &= assigned
    for tp, node in zip(continuation.read, results, strict=False):
        czxid, topic_version = controller.topics[tp.topic]
        if not isinstance(node, ZkNode):
            controller.seen[tp] = Seen(topic_version=topic_version, below=below.get(tp))
            continue
        state = readable.read_state(core, tp, node)
        if state is None:
            continue
        controller.seen[tp] = Seen(topic_version=topic_version, version=node.version, below=below.get(tp))
        if core.state.controller_epoch < state.controller_epoch <= EPOCH_MAX:
            core.state.controller_epoch = state.controller_epoch
        if is_same_topic(state.topic_id, partition_id(topic_id_of(core, czxid), own.get(tp))):
            controller.states[tp] = state
