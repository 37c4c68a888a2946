"""
A broker's life in ZooKeeper: paths, registration, start-up reading, the end of a session.

A broker that starts while its own old registration still exists replaces it in one multi of delete and
create: a watcher that only counts registrations cannot see that it was away (KAFKA-1120).
Source:  Kafka Replication Design V3, Paths and E (on_broker_startup).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from targets.broker.core import neighbours, office, permanent_paths, readable, replicas, topic_configs
from targets.broker.core.controller_state import partition_id
from targets.broker.core.events import Exit
from targets.broker.core.fences import is_same_topic, topic_id_of
from targets.broker.core.messages import TopicPartition
from targets.broker.core.state import Core
from targets.broker.core.zookeeper import (
    BROKER_IDS,
    BROKER_TOPICS,
    CONTROLLER_EPOCH,
    PartitionState,
    ZkChildren,
    ZkCreate,
    ZkDelete,
    ZkDone,
    ZkError,
    ZkExists,
    ZkGet,
    ZkMulti,
    ZkNames,
    ZkNode,
    ZkResult,
    ZkSet,
    broker_path,
    encode_registration,
    leader_and_isr_path,
    topic_path,
)

# The timers that end with a session.
_OF_A_SESSION: Final = ("register", "registration", "neighbours", "startup", "paths", "configs", "office")


@dataclass(frozen=True, slots=True, kw_only=True)
class AwaitRegistrationRead:
    """The registration under this id is being read, to see whose it is."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AwaitRegistrationWrite:
    """
    The registration is being written; then it is read and watched, and the others are looked at once more.

    Attributes:
        others: the other brokers whose registrations were read before.
    """

    taken_over: bool
    others: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class AwaitRegistrationWatched:
    """The registration is being read again, under a watch: somebody may have written, or deleted, it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AwaitRegistrationMended:
    """The registration is being written again, as somebody wrote something else there."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AwaitTopicNames:
    """Start-up reading, first read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AwaitAssignments:
    """Start-up reading, second read."""

    topics: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class AwaitPartitionStates:
    """Start-up reading, third read."""

    assigned: tuple[tuple[TopicPartition, tuple[int, ...]], ...]
    ids: tuple[tuple[TopicPartition, int], ...]
    unreadable: tuple[str, ...] = ()  # the topics whose node holds something else


def on_session(core: Core, session: int) -> None:
    """Start again in a new session; without a session, drop everything that came from ZooKeeper."""
    core.state.session = session
    core.state.registered, core.state.registration = False, 0
    for key in [key for key in core.state.timers if key[0] in _OF_A_SESSION]:
        core.state.timers.drop(key)
    office.resign(core)
    permanent_paths.create(core)


def on_paths(core: Core, results: tuple[ZkResult, ...]) -> None:
    """Register once it is known what topics have of their own; their names were read last."""
    if ZkError.LOST in results:
        core.after_ms(("paths",), core.config.register_backoff_ms)
    elif topic_configs.on_names(core, results[-1], starting=True):
        register(core)


def register(core: Core) -> None:
    """
    Read the registration before writing it: the old one may still exist.

    The controller's epoch is read too, before any command is obeyed: what a deposed controller still sends, as an
    INIT that deletes replicas, must not find a broker that knows no newer one.
    """
    if core.state.session and not core.state.registered:
        path = broker_path(core.config.broker_id)
        core.ask(
            AwaitRegistrationRead(),
            ZkGet(path=CONTROLLER_EPOCH),
            ZkChildren(path=BROKER_IDS),
            ZkGet(path=path),
        )


def on_registration_read(core: Core, epoch: ZkResult, names: ZkResult, found: ZkResult) -> None:
    """Look whether another broker has this one's address before it registers; exit if another node has this id."""
    if found is ZkError.NO_NODE:
        _look_at_others(core, names, None)
        return
    if not isinstance(found, ZkNode):
        core.after_ms(("register",), core.config.register_backoff_ms)
        return
    if found.owner == core.state.session:
        _registered(core, epoch, found, taken_over=False)  # the write whose answer was lost had happened
        watch_registration(core)
        neighbours.look(core)
        _begin(core)
        return
    there = readable.read_registration(core, core.config.broker_id, found)
    other = None if there is None else there.node
    if other == core.config.registration.node:
        _look_at_others(core, names, found)
    else:
        core.effects.append(
            Exit(
                reason=f"broker id {core.config.broker_id}: registered by node {other!r}, expected no node or "
                f"{core.config.registration.node!r}; change the id of one of the two"
            )
        )


def _look_at_others(core: Core, names: ZkResult, old: ZkNode | None) -> None:
    others = neighbours.others_of(core, names)
    if others:
        neighbours.read(core, neighbours.AwaitNeighbours(brokers=others, is_before=True, old=old))
    else:
        _write(core, old, others)


def on_neighbours_read(
    core: Core, continuation: neighbours.AwaitNeighbours, results: tuple[ZkResult, ...]
) -> None:
    """Register, or stay registered, unless another broker has this one's address."""
    found = dict(zip(continuation.brokers, results, strict=True))
    if not continuation.is_before:
        neighbours.on_read(core, found)
    elif ZkError.LOST in results:
        core.after_ms(("register",), core.config.register_backoff_ms)
    elif not neighbours.is_refused(core, found.items()):
        _write(core, continuation.old, continuation.brokers)


def _write(core: Core, old: ZkNode | None, others: tuple[int, ...]) -> None:
    """Write the registration, in place of this node's own old one."""
    path = broker_path(core.config.broker_id)
    create = ZkCreate(path=path, data=encode_registration(core.config.registration), ephemeral=True)
    ops = (create,) if old is None else (ZkDelete(path=path, version=old.version), create)
    core.ask(
        AwaitRegistrationWrite(taken_over=old is not None, others=others),
        ZkMulti(ops=ops),
        ZkExists(path=path, watch=True),
        ZkChildren(path=BROKER_IDS),
        *neighbours.gets(others),
        ZkGet(path=CONTROLLER_EPOCH),
        # Read the registration back in the same pipeline: commands may come at once, and name its czxid.
        ZkGet(path=path),
    )


def on_registration_written(
    core: Core, continuation: AwaitRegistrationWrite, results: tuple[ZkResult, ...]
) -> None:
    """Continue once registered; otherwise read the registration again."""
    written, watched, names, *others, epoch, own = results
    if isinstance(written, ZkDone) and isinstance(own, ZkNode):
        _registered(core, epoch, own, taken_over=continuation.taken_over)
        found = dict(zip(continuation.others, others, strict=True))
        on_registration_watched(core, ZkError.LOST if watched is ZkError.LOST else own)
        if core.state.registered and neighbours.on_look(core, names, found):
            _begin(core)
    elif ZkError.LOST in results:
        core.after_ms(("register",), core.config.register_backoff_ms)
    elif written is ZkError.NO_NODE:  # the one that was read is gone, or the path above it
        permanent_paths.create(core)
    else:
        register(core)


def _registered(core: Core, epoch: ZkResult, own: ZkNode, *, taken_over: bool) -> None:
    number = readable.read_epoch(core, epoch) if isinstance(epoch, ZkNode) else None
    core.state.controller_epoch = max(core.state.controller_epoch, number or 0)
    core.state.controller_known = True
    core.state.registered, core.state.registration = True, own.czxid
    core.observe("member", {"taken_over": taken_over, "incarnation": own.czxid})


def _begin(core: Core) -> None:
    """Obey what was commanded before this broker knew its registration; then read what it has to know."""
    replicas.take_early(core)
    if core.state.started:
        office.run_for_office(core)
    else:
        core.ask(AwaitTopicNames(), ZkChildren(path=BROKER_TOPICS))


def watch_registration(core: Core) -> None:
    """Have this broker hear if somebody deletes its registration, or writes it: nothing else would say so."""
    if core.state.registered:
        path = broker_path(core.config.broker_id)
        core.ask(AwaitRegistrationWatched(), ZkExists(path=path, watch=True), ZkGet(path=path))


def on_registration_watched(core: Core, found: ZkResult) -> None:
    """Register again if the registration is gone, or no more this session's; write it again if it says another."""
    path = broker_path(core.config.broker_id)
    data = encode_registration(core.config.registration)
    if found is ZkError.LOST:
        core.after_ms(("registration",), core.config.register_backoff_ms)
    elif not isinstance(found, ZkNode) or found.owner != core.state.session:
        readable.name_node(
            core, path, core.state.registration, "deleted by somebody else; this broker registers again"
        )
        core.state.registered = False
        register(core)
    elif found.data != data:
        readable.name_node(
            core, path, found.mzxid, f"{found.data[:80]!r}: expected what this broker wrote; it does again"
        )
        core.ask(AwaitRegistrationMended(), ZkMulti(ops=(ZkSet(path=path, data=data, version=found.version),)))


def on_topics_listed(core: Core, result: ZkResult) -> None:
    """V3 E.1: read the assignment of all topics."""
    if isinstance(result, ZkNames):
        topics = readable.topic_names(core, result.names)
        core.ask(AwaitAssignments(topics=topics), *(ZkGet(path=topic_path(topic)) for topic in topics))
    else:
        core.after_ms(("startup",), core.config.register_backoff_ms)


def on_topics_read(core: Core, continuation: AwaitAssignments, results: tuple[ZkResult, ...]) -> None:
    """V3 E.2: read leader and ISR of each partition assigned to this broker."""
    if any(result is ZkError.LOST for result in results):
        core.after_ms(("startup",), core.config.register_backoff_ms)
        return
    mine: list[tuple[TopicPartition, tuple[int, ...]]] = []
    ids: list[tuple[TopicPartition, int]] = []
    there, unreadable = readable.read_topics(core, continuation.topics, results)
    for topic, node, found in there:
        for partition, assigned in sorted(found.replicas.items()):
            if core.config.broker_id in assigned:
                tp = TopicPartition(topic, partition)
                mine.append((tp, assigned))
                ids.append((tp, partition_id(topic_id_of(core, node.czxid), found.ids.get(partition))))
    after = AwaitPartitionStates(assigned=tuple(mine), ids=tuple(ids), unreadable=unreadable)
    core.ask(after, *(ZkGet(path=leader_and_isr_path(tp)) for tp, _ in mine))


def on_states_read(core: Core, continuation: AwaitPartitionStates, results: tuple[ZkResult, ...]) -> None:
    """V3 E.3 and E.4; only then may this broker become controller, so that it knows its replicas."""
    if any(result is ZkError.LOST for result in results):
        core.after_ms(("startup",), core.config.register_backoff_ms)
        return
    ids = dict(continuation.ids)
    nodes = zip(continuation.assigned, results, strict=True)
    read = {tp: node for (tp, _), node in nodes if isinstance(node, ZkNode)}
    states: dict[TopicPartition, PartitionState] = {}
    for tp, node in read.items():
        state = readable.read_state(core, tp, node)
        # Of what was written for an older topic of that name, nothing holds.
        if state is not None and is_same_topic(state.topic_id, ids[tp]):
            states[tp] = state
    replicas.on_broker_startup(
        core,
        dict(continuation.assigned),
        states,
        # The controller may have written before this reading: what it wrote since registration is a new epoch.
        {tp for tp, node in read.items() if node.mzxid > core.state.registration},
        ids,
        unreadable=continuation.unreadable,
    )
    core.state.started = True
    core.observe("ready", {})
    if core.state.early:
        core.after_ms(("early",), 0)
    office.run_for_office(core)


def read_topics_again(core: Core) -> None:
    """Restart the start-up reading after a lost connection."""
    if core.state.registered and not core.state.started:
        core.ask(AwaitTopicNames(), ZkChildren(path=BROKER_TOPICS))
