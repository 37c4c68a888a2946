"""
The controller: one broker elects leaders, writes them to ZooKeeper, then commands the brokers.

    children (watched) -> registrations and assignments -> leaderAndISR -> decide -> write -> command
`office` decides which broker is the controller.
The controller reads ZooKeeper before every decision, so that it never overwrites a leader's own ISR change;
every write checks /controller_epoch, so that a deposed controller cannot write (KAFKA-6082).
Source:  Kafka Replication Design V3, A, B and D; KIP-101, returning leaders; KIP-380.
Length:  one story, from a reading to its decisions, their writes and what these announce, read from top to bottom.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace

from targets.broker.core import commands, election
from targets.broker.core.fences import is_same_topic
from targets.broker.core.messages import NO_TOPIC_ID, LeaderAndIsr, TopicPartition
from targets.broker.core.state import Core
from targets.broker.core.zookeeper import (
    BROKER_IDS,
    BROKER_TOPICS,
    CONTROLLER_EPOCH,
    ELECTIONS,
    PartitionState,
    ZkCheck,
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
    decode_assignment,
    decode_elections,
    decode_state,
    encode_state,
    leader_and_isr_path,
    partition_path,
    topic_id_path,
    topic_path,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class AwaitNames:
    """First read: live brokers and topics. `office` is the controller epoch that started it."""

    office: int


@dataclass(frozen=True, slots=True, kw_only=True)
class AwaitNodes:
    """Second read: each registration, each assignment."""

    office: int
    brokers: tuple[int, ...]
    topics: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class AwaitStates:
    """Third read: each leaderAndISR."""

    office: int
    live: tuple[tuple[int, int], ...]
    assignments: tuple[tuple[TopicPartition, tuple[int, ...]], ...]
    topics: tuple[tuple[str, int, int], ...]  # each with its id, and the version of the node with its assignment


@dataclass(frozen=True, slots=True, kw_only=True)
class AwaitElectionsRemoval:
    """The operator's election node is being removed; its elections go ahead whatever the result."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Changes:
    """
    What a reading found new about the brokers: some decisions have no other cause, and the next finds it no more.

    Attributes:
        returned: the brokers whose registration appeared (all of them, to a new controller).
        gone: the last registration, (broker, czxid), of those that left or bounced; () where czxids do not count.
    """

    returned: frozenset[int] = frozenset()
    gone: tuple[tuple[int, int], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class AwaitStateWrite:
    """
    A decision about one partition was sent to ZooKeeper.

    Attributes:
        changes: what its reading found new, to be handled again if the decision is not written.
        saw: the brokers registered at the decision: (broker, czxid).
    """

    tp: TopicPartition
    state: PartitionState
    replicas: tuple[int, ...]
    unclean: bool
    changes: Changes = Changes()
    saw: tuple[tuple[int, int], ...] = ()


# --- a reading ---------------------------------------------------------------------------------------
def read(core: Core) -> None:
    """Read ZooKeeper from the top, now or after the current reading (V3 A.1, B, D.3)."""
    controller = core.state.controller
    if not controller.active:
        return
    if controller.reading:
        controller.read_again = True
        return
    controller.reading, controller.read_again = True, False
    continuation = AwaitNames(office=controller.epoch)
    core.ask(
        continuation,
        ZkChildren(path=BROKER_IDS, watch=True),
        ZkChildren(path=BROKER_TOPICS, watch=True),
        ZkExists(path=ELECTIONS, watch=True),
    )


def _left_office(core: Core, office: int) -> bool:
    """Return True if the reading outlived its office; it must decide nothing, as no epoch would be checked."""
    return not core.state.controller.active or core.state.controller.epoch != office


def on_names(core: Core, continuation: AwaitNames, brokers: ZkResult, topics: ZkResult) -> None:
    """Read registrations and assignments next."""
    if _left_office(core, continuation.office):
        return
    if not isinstance(brokers, ZkNames) or not isinstance(topics, ZkNames):
        _read_failed(core)
        return
    after = AwaitNodes(
        office=continuation.office, brokers=tuple(int(name) for name in brokers.names), topics=topics.names
    )
    gets = [ZkGet(path=broker_path(broker)) for broker in after.brokers]
    gets += [ZkGet(path=topic_path(topic)) for topic in after.topics]
    core.ask(after, *gets)


def on_nodes(core: Core, continuation: AwaitNodes, results: tuple[ZkResult, ...]) -> None:
    """Read the leaderAndISR of every partition next."""
    if _left_office(core, continuation.office):
        return
    if any(result is ZkError.LOST for result in results):
        _read_failed(core)
        return
    count = len(continuation.brokers)
    pairs = zip(continuation.brokers, results[:count], strict=True)
    live = tuple((broker, node.czxid) for broker, node in pairs if isinstance(node, ZkNode))
    assignments: list[tuple[TopicPartition, tuple[int, ...]]] = []
    topics: list[tuple[str, int, int]] = []
    for topic, node in zip(continuation.topics, results[count:], strict=True):
        if isinstance(node, ZkNode):
            topics.append((topic, node.czxid if core.rules.topic_identity else NO_TOPIC_ID, node.version))
            for partition, replicas in sorted(decode_assignment(node.data).items()):
                assignments.append((TopicPartition(topic, partition), replicas))
    after = AwaitStates(
        office=continuation.office, live=live, assignments=tuple(assignments), topics=tuple(topics)
    )
    states = (ZkGet(path=leader_and_isr_path(tp)) for tp, _ in assignments)
    core.ask(after, ZkGet(path=ELECTIONS), *states)


def on_states(core: Core, continuation: AwaitStates, results: tuple[ZkResult, ...]) -> None:
    """Decide (V3 A.3, B, D.4 to D.6): inform, write what must change, stop deleted replicas."""
    if _left_office(core, continuation.office):
        return
    if any(result is ZkError.LOST for result in results):
        _read_failed(core)
        return
    controller = core.state.controller
    live = _live(core, dict(continuation.live))
    changes, unhandled = _changes(core, live), controller.unhandled
    returned = changes.returned
    assignments = dict(continuation.assignments)
    wanted, *nodes = results
    pairs = zip(continuation.assignments, nodes, strict=True)
    topic_ids = {topic: topic_id for topic, topic_id, _ in continuation.topics}
    topic_versions = {topic: version for topic, _, version in continuation.topics}
    found = {tp: decode_state(node) for (tp, _), node in pairs if isinstance(node, ZkNode)}
    states = {tp: state for tp, state in found.items() if is_same_topic(state.topic_id, topic_ids[tp.topic])}
    first = not controller.in_office
    controller.live, controller.unhandled, controller.in_office = live, {}, True
    commands.forget_dead(core)
    _stop_deleted(core, assignments, topic_ids)
    commands.stop_missed(core, returned, assignments)
    if returned:
        commands.inform(core, returned, assignments, states, is_init=first)
    asked = _take_elections(core, wanted)
    for tp, replicas in assignments.items():
        state = states.get(tp)
        _announce_if_written(core, tp, state)
        mine = replace(changes, returned=returned | (unhandled.get(tp, returned) & live.keys()))
        decision = _decision(core, replicas, state, mine.returned)
        # A state of an older topic: its first write came as late as this topic was created. It is replaced.
        under = topic_versions[tp.topic], found[tp].zk_version if tp in found else None
        if state is not None and tp in asked:  # only once: it also serves every other reason for a new epoch
            decision = election.asked_for(state, live, asked[tp]) or decision
        if decision is not None:
            _write(core, tp, replicas, state, decision, under=under, changes=mine, saw=continuation.live)
    _send_writes(core)


def _stop_deleted(
    core: Core, assignments: dict[TopicPartition, tuple[int, ...]], topic_ids: dict[str, int]
) -> None:
    """Stop the replicas of topics that are gone since the last reading, also if their names are there again."""
    controller = core.state.controller
    before, ids_before = controller.assignments, controller.topic_ids
    gone = {
        tp: replicas
        for tp, replicas in before.items()
        if tp not in assignments or topic_ids[tp.topic] != ids_before[tp.topic]
    }
    controller.assignments, controller.topic_ids = assignments, topic_ids
    commands.stop_replicas(core, gone, ids_before)


def _live(core: Core, registered: dict[int, int]) -> dict[int, int]:
    """
    Return the live brokers; one that bounced since the last reading counts as gone until the next one.

    Source:  KIP-380: a larger czxid of the same id is a failure, then a start-up (KAFKA-1120).
    """
    known = core.state.controller.live
    bounced = {
        b for b, czxid in registered.items() if core.rules.fence_broker_epoch and known.get(b, czxid) != czxid
    }
    core.state.controller.read_again |= bool(bounced)
    return {broker: czxid for broker, czxid in registered.items() if broker not in bounced}


def _changes(core: Core, live: dict[int, int]) -> Changes:
    """Return what differs from the last reading."""
    known = core.state.controller.live
    gone = [each for each in known.items() if each[0] not in live and core.rules.fence_broker_epoch]
    return Changes(returned=frozenset(live.keys() - known.keys()), gone=tuple(gone))


def _handle_again(core: Core, tp: TopicPartition, changes: Changes) -> None:
    """
    Make the next reading find these changes once more, also if a broker that left or bounced is back by then.

    A broker that returned stays known, so that a bounce of it shows. Only about this partition its return is
    decided again: new epochs of all others might make a write fail once more, and so on without end.
    """
    core.state.controller.live |= dict(changes.gone)
    core.state.controller.unhandled[tp] = changes.returned


def _take_elections(core: Core, wanted: ZkResult) -> dict[TopicPartition, int]:
    """Accept an operator's elections once: the node is removed, as Kafka does for preferred election."""
    if not isinstance(wanted, ZkNode):
        return {}
    check = ZkCheck(path=CONTROLLER_EPOCH, version=core.state.controller.epoch_version)
    core.ask(AwaitElectionsRemoval(), ZkMulti(ops=(check, ZkDelete(path=ELECTIONS, version=wanted.version))))
    return decode_elections(wanted.data)


def _read_failed(core: Core) -> None:
    core.state.controller.reading = False
    core.after_ms(("controller-read",), core.config.controller_backoff_ms)


def _decision(
    core: Core, replicas: tuple[int, ...], state: PartitionState | None, returned: Collection[int]
) -> election.Decision | None:
    live, unclean = core.state.controller.live, core.config.unclean_election
    if state is None:
        return election.init_leader(replicas, live)
    return election.decide(state, replicas, live, returned, core.rules, unclean_election=unclean)


def _write(
    core: Core,
    tp: TopicPartition,
    replicas: tuple[int, ...],
    old: PartitionState | None,
    decision: election.Decision,
    *,
    under: tuple[int, int | None],
    changes: Changes,
    saw: tuple[tuple[int, int], ...],
) -> None:
    """
    Write a decision under the versions that were read; ZooKeeper first, then the brokers (V3, 6).

    Args:
        old: the state that the decision changes, None if this topic has none.
        under: the versions that were read, of the topic and of its state, None if there is none.
    """
    topic_version, version = under
    controller = core.state.controller
    topic_id = controller.topic_ids[tp.topic] if old is None else old.topic_id
    new = PartitionState(
        leader=decision.leader,
        leader_epoch=decision.leader_epoch,
        isr=decision.isr,
        controller_epoch=controller.epoch,
        zk_version=0 if version is None else version + 1,
        topic_id=topic_id,
    )
    check = ZkCheck(path=CONTROLLER_EPOCH, version=controller.epoch_version)
    path, data = leader_and_isr_path(tp), encode_state(new)
    continuation = AwaitStateWrite(
        tp=tp, state=new, replicas=replicas, unclean=decision.unclean, changes=changes, saw=saw
    )
    ops: list[ZkCreate | ZkSet | ZkDelete | ZkCheck] = [check]
    if version is None:
        # A topic that is being deleted in several writes has another assignment by then: none of it begins again.
        ops.append(ZkCheck(path=topic_path(tp.topic), version=topic_version))
        ops += [ZkCreate(path=partition_path(tp)), ZkCreate(path=path, data=data)]
    else:
        ops.append(ZkSet(path=path, data=data, version=version))
    if topic_id != NO_TOPIC_ID:
        guard = topic_id_path(tp, topic_id)
        ops.append(ZkCreate(path=guard) if old is None else ZkCheck(path=guard, version=0))
    controller.writes.append((continuation, ZkMulti(ops=tuple(ops))))


def _send_writes(core: Core) -> None:
    """
    Send the decisions of a reading, some at a time, so that others are served meanwhile; then the reading is over.

    A decision that waits here is never forgotten: the next reading begins when all are sent.
    """
    controller = core.state.controller
    while controller.writes and controller.writing < core.config.together.writes_max:
        continuation, write = controller.writes.popleft()
        controller.writing += 1
        core.ask(continuation, write)
    if controller.reading and not controller.writes:
        controller.reading = False
        if controller.read_again:
            read(core)


def on_wrote(core: Core, continuation: AwaitStateWrite, result: ZkResult) -> None:
    """Command the brokers once the decision is written; read again if another write came first."""
    controller = core.state.controller
    if not controller.active or controller.epoch != continuation.state.controller_epoch:
        return
    controller.writing = max(0, controller.writing - 1)  # it may be of the same epoch, held before
    if controller.writes:
        _send_writes(core)
    if not isinstance(result, ZkDone):
        # The leader changed the ISR meanwhile, the write is indeterminate, or this controller is deposed.
        # Reading again shows which; a deposed controller fails its epoch check from now on.
        _handle_again(core, continuation.tp, continuation.changes)
        if result is ZkError.LOST:
            controller.uncertain[continuation.tp] = continuation
        core.after_ms(("controller-read",), core.config.controller_backoff_ms if result is ZkError.LOST else 1)
        return
    _announce(core, continuation)


def _announce_if_written(core: Core, tp: TopicPartition, found: PartitionState | None) -> None:
    """Send the command of a write that succeeded but lost its answer; nothing else would send it."""
    tried = core.state.controller.uncertain.pop(tp, None)
    if not isinstance(tried, AwaitStateWrite) or found is None:
        return
    # Do not compare the ISR: the new leader may have read this state at its start and changed the ISR since.
    # Nor the id: an older release's leader leaves it out, and a state of another topic is not found here.
    # What a later controller decided alike is for that one to announce.
    same = (tried.state.leader, tried.state.leader_epoch) == (found.leader, found.leader_epoch)
    if same and found.controller_epoch <= tried.state.controller_epoch:
        _announce(core, replace(tried, state=found))


def _announce(core: Core, continuation: AwaitStateWrite) -> None:
    state = continuation.state
    told = {
        "leader": state.leader,
        "epoch": state.leader_epoch,
        "isr": list(state.isr),
        "unclean": continuation.unclean,
    }
    saw = [list(registration) for registration in continuation.saw]
    core.observe(
        "elected", {"topic": continuation.tp.topic, "partition": continuation.tp.partition, **told, "saw": saw}
    )
    command = LeaderAndIsr(
        tp=continuation.tp,
        leader=state.leader,
        leader_epoch=state.leader_epoch,
        isr=state.isr,
        zk_version=state.zk_version,
        replicas=continuation.replicas,
        topic_id=state.topic_id,
    )
    commands.send_state(core, command)
