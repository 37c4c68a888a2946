"""
The controller: one broker elects leaders, writes them to ZooKeeper, then commands the brokers.

    children (watched) -> registrations and assignments -> leaderAndISR -> decide -> write -> command
`office` decides which broker is the controller.
A reading takes what may have changed; every write names the version that it changes, so that the controller never
overwrites a leader's own ISR change. `reading` keeps what was read, `reassignment` moves partitions, and
`state_writes` writes the decisions.
Source:  Kafka Replication Design V3, A, B and D; KIP-101, returning leaders; KIP-380.
Length:  one story, from a reading to its decisions, their writes and what these announce, read from top to bottom.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from targets.broker.core import (
    bounces,
    command_queue,
    commands,
    election,
    elections,
    made,
    marking,
    permanent_paths,
    readable,
    reassignment,
    removal,
    state_writes,
)
from targets.broker.core.assignments import Move
from targets.broker.core.controller_state import Controller, partition_id
from targets.broker.core.decided import Changes, Decided, Seen, Write
from targets.broker.core.fences import topic_id_of
from targets.broker.core.messages import NO_TOPIC_ID, TopicPartition
from targets.broker.core.reading import (
    AwaitNames,
    AwaitNodes,
    AwaitStates,
    AwaitWishesTaken,
    leave_for_later,
    left_office,
    note_read,
    noting,
    take_elections,
    to_read,
)
from targets.broker.core.state import Core
from targets.broker.core.state_writes import AwaitStateWrites
from targets.broker.core.zookeeper import (
    ADMIN,
    BROKER_IDS,
    BROKER_TOPICS,
    ELECTIONS,
    PartitionState,
    ZkCheck,
    ZkChildren,
    ZkCreate,
    ZkDone,
    ZkError,
    ZkExists,
    ZkGet,
    ZkNames,
    ZkNode,
    ZkResult,
    ZkSet,
    broker_path,
    encode_state,
    leader_and_isr_path,
    partition_path,
    topic_id_path,
    topic_path,
)


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
        ZkExists(path=ADMIN, watch=True),
    )


def on_names(core: Core, continuation: AwaitNames, results: tuple[ZkResult, ...]) -> None:
    """Read registrations and assignments next."""
    if left_office(core, continuation.office):
        return
    brokers, topics, _, admin = results
    if ZkError.NO_NODE in (brokers, topics, admin):  # somebody has deleted one of them
        permanent_paths.create(core)
    if not isinstance(brokers, ZkNames) or not isinstance(topics, ZkNames):
        _read_failed(core)
        return
    after = AwaitNodes(
        office=continuation.office,
        brokers=readable.broker_ids(core, brokers.names),
        topics=readable.topic_names(core, topics.names),
    )
    gets = [ZkGet(path=broker_path(broker)) for broker in after.brokers]
    gets += [ZkGet(path=topic_path(topic)) for topic in after.topics]
    core.ask(after, *gets, ZkGet(path=ELECTIONS))


def on_nodes(core: Core, continuation: AwaitNodes, results: tuple[ZkResult, ...]) -> None:
    """Read leaderAndISR next, where it matters; below those that could not be written, what is there."""
    if left_office(core, continuation.office):
        return
    if any(result is ZkError.LOST for result in results):
        _read_failed(core)
        return
    count = len(continuation.brokers)
    live = readable.read_live(core, continuation.brokers, results[:count])
    assignments: dict[TopicPartition, tuple[int, ...]] = {}
    topics: list[tuple[str, int, int]] = []
    moves: dict[TopicPartition, Move] = {}
    ids: dict[TopicPartition, int] = {}
    there, unreadable = readable.read_topics(core, continuation.topics, results[count:-1])
    for topic, node, assigned in there:
        topics.append((topic, node.czxid, node.version))
        for partition, replicas in sorted(assigned.replicas.items()):
            assignments[TopicPartition(topic, partition)] = replicas
        moves |= {TopicPartition(topic, partition): move for partition, move in assigned.moves.items()}
        ids |= {TopicPartition(topic, partition): own for partition, own in assigned.ids.items()}
    marking.mark(core, there)
    asked = results[-1] if isinstance(results[-1], ZkNode) else None
    wishes = readable.read_wishes(core, asked)
    if asked is not None and wishes.moves:
        named = {tp.topic for tp in wishes.moves}
        about = noting(continuation.office, (each for each in there if each[0] in named))
        core.ask(about, reassignment.taking(core, asked, there))
        return
    if asked is not None and wishes.removals:
        removal.begin(core, continuation.office, asked, there)
        return
    doubted = elections.doubted(core, assignments) | reassignment.begun(moves, assignments)
    doubted |= wishes.elections.keys()
    doubted |= {tp for tp, replicas in assignments.items() if not wishes.leaving.isdisjoint(replicas)}
    versions = {topic: (czxid, version) for topic, czxid, version in topics}
    read, others_wait = to_read(core, dict(live), assignments, versions, doubted)
    after = AwaitStates(
        office=continuation.office,
        live=live,
        assignments=tuple(assignments.items()),
        topics=tuple(topics),
        unreadable=unreadable,
        moves=tuple(moves.items()),
        ids=tuple(ids.items()),
        once=tuple((topic, assigned.once) for topic, _, assigned in there if assigned.once),
        made=tuple((topic, assigned.made) for topic, _, assigned in there if assigned.made),
        asked=asked,
        read=read,
        refused=tuple(tp for tp in read if tp in core.state.controller.refused),
        others_wait=others_wait,
    )
    states = (ZkGet(path=leader_and_isr_path(tp)) for tp in read)
    below = (ZkChildren(path=partition_path(tp)) for tp in after.refused)
    core.ask(after, *states, *below)


def on_below(core: Core, continuation: removal.AwaitBelow, results: tuple[ZkResult, ...]) -> None:
    """Remove the partitions that an operator wants to be removed."""
    if left_office(core, continuation.office):
        return
    if any(result is ZkError.LOST for result in results):
        _read_failed(core)
    else:
        of = (continuation.topic, continuation.node, continuation.has)
        core.ask(noting(continuation.office, [of]), removal.taking(core, continuation, results))


def on_wishes_taken(core: Core, continuation: AwaitWishesTaken, result: ZkResult) -> None:
    """Read again what is noted now; after a while if it could not be, as others write there too."""
    if left_office(core, continuation.office):
        return
    if isinstance(result, ZkDone):
        core.state.controller.reading = False
        read(core)
        return
    if result is ZkError.NO_NODE:
        for each in continuation.marked:
            made.look(core, *each)
    _read_failed(core)


def on_states(core: Core, continuation: AwaitStates, results: tuple[ZkResult, ...]) -> bool:
    """
    Decide (V3 A.3, B, D.4 to D.6): inform, write what must change, stop deleted replicas.

    Returns:
        False if nothing was read: an answer was lost, or outlived the office that asked.
    """
    if left_office(core, continuation.office):
        return False
    if any(result is ZkError.LOST for result in results):
        _read_failed(core)
        return False
    controller = core.state.controller
    note_read(core, continuation, results)
    registered = dict(continuation.live)
    failing = bounces.failing(controller, registered)
    live = bounces.live(core, registered, failing)
    changes, unhandled = bounces.changes(core, live), controller.unhandled
    returned = changes.returned
    assignments = dict(continuation.assignments)
    seen, states = controller.seen, controller.states
    first = not controller.in_office
    controller.read_again |= leave_for_later(core, continuation) if first else continuation.others_wait
    controller.live, controller.unhandled, controller.in_office = live, {}, True
    if continuation.others_wait and (changes.returned or changes.gone):
        for tp in (tp for tp in assignments if tp not in seen):  # their turn comes when this is no news any more
            bounces.note_unhandled(core, tp, changes, lost=False)
    command_queue.forget_dead(core)
    topic_ids = {topic: topic_id_of(core, czxid) for topic, czxid, _ in continuation.topics}
    _stop_deleted(core, assignments, topic_ids, dict(continuation.ids), continuation.unreadable)
    commands.stop_missed(core, returned, assignments)
    told = returned | (controller.owed_init & live.keys())
    commands.inform(core, told, assignments, states, is_init=first, is_whole=not continuation.unreadable)
    wishes, fresh = take_elections(core, continuation.asked), set(continuation.read)
    preferred, unclean = elections.take(core, assignments)
    wanted = {**controller.wanted, **wishes.elections}
    controller.wanted = {}
    moving = reassignment.Moving(core, assignments)
    for tp, replicas in assignments.items():
        if tp not in seen:
            continue  # it cannot be read, and is not written over
        state = states.get(tp)
        if state is None and marking.is_awaited(core, tp.topic):
            continue
        state_writes.announce_if_written(core, tp, state)
        mine = bounces.changes_about(changes, unhandled.get(tp), live)
        may_be_unclean = tp in unclean or core.config_of(tp.topic).unclean_election
        decision = _decision(core, replicas, state, mine, failing, unclean=may_be_unclean)
        if state is not None and tp in wanted and (choice := election.asked_for(state, live, wanted[tp])):
            decision, controller.wanted[tp] = choice, wanted[tp]  # also serves every other reason for a new epoch
        if state is not None and tp in preferred:
            decision = election.asked_for(state, live, preferred[tp]) or decision
        if state is not None and wishes.leaving:
            decision = election.without(state, replicas, live, wishes.leaving) or decision
        step = moving.step_of(tp, state) if decision is None else None
        decision = decision or (None if step is None else step.decision)
        if decision is None:
            continue
        decided = _decided(core, tp, replicas, state, decision, seen=seen[tp])
        decided = decided if step is None else moving.write(decided, step)
        controller.writes.append(replace(decided, changes=mine, saw=continuation.live, fresh=tp in fresh))
    _send_writes(core)
    reassignment.wake(core)
    return True


def _stop_deleted(
    core: Core,
    assignments: dict[TopicPartition, tuple[int, ...]],
    topic_ids: dict[str, int],
    own_ids: dict[TopicPartition, int],
    unreadable: Collection[str],
) -> None:
    """
    Stop the replicas of topics and partitions that are gone since the last reading, also if they are there again.

    A topic that cannot be read stays as it was.
    """
    controller = core.state.controller
    before, topics_before, own_before = controller.assignments, controller.topic_ids, controller.partition_ids
    kept = {tp: replicas for tp, replicas in before.items() if tp.topic in unreadable} if unreadable else {}

    def is_another(tp: TopicPartition) -> bool:
        id_, own_changed = topic_ids[tp.topic], own_ids.get(tp) != own_before.get(tp)
        return id_ != topics_before[tp.topic] or (own_changed and id_ != NO_TOPIC_ID)

    gone = {
        tp: _maybe_assigned(controller, tp, replicas)
        for tp, replicas in before.items()
        if tp not in kept and (tp not in assignments or is_another(tp))
    }
    controller.assignments = assignments | kept
    controller.topic_ids = topic_ids | {tp.topic: topics_before[tp.topic] for tp in kept}
    controller.partition_ids = own_ids | {tp: own_before[tp] for tp in kept if tp in own_before}
    ids_before = {tp: partition_id(topics_before[tp.topic], own_before.get(tp)) for tp in gone}
    commands.stop_replicas(core, gone, ids_before)


def _maybe_assigned(controller: Controller, tp: TopicPartition, replicas: tuple[int, ...]) -> tuple[int, ...]:
    """Return a partition's replicas as known, and those of a write whose answer was lost."""
    tried = controller.uncertain.get(tp)
    return replicas if tried is None else tuple(dict.fromkeys((*replicas, *tried.replicas)))


def _read_failed(core: Core) -> None:
    core.state.controller.reading = False
    core.state.controller.tried_to_see.clear()
    core.after_ms(("controller-read",), core.config.controller_backoff_ms)


def _decision(
    core: Core,
    replicas: tuple[int, ...],
    state: PartitionState | None,
    changes: Changes,
    failing: dict[int, int],
    *,
    unclean: bool,
) -> election.Decision | None:
    """
    Return what is to be decided about a partition after these changes, None if nothing is.

    Who fails in other partitions stays in the ISR of this one, but leads nowhere.
    """
    live = core.state.controller.live
    if state is None:
        return election.init_leader(replicas, live)

    def decide(alive: Collection[int]) -> election.Decision | None:
        return election.decide(state, replicas, alive, changes.returned, core.rules, unclean_election=unclean)

    decision = decide(bounces.alive(live, failing, changes))
    return decide(live) if decision is not None and decision.leader in failing else decision


def _decided(
    core: Core,
    tp: TopicPartition,
    replicas: tuple[int, ...],
    old: PartitionState | None,
    decision: election.Decision,
    *,
    seen: Seen,
) -> Decided:
    """
    Return a decision with what writes it under the versions that are known (V3, 6: ZooKeeper, then the brokers).

    A state that a release without ids wrote gets its topic's id (KIP-516; Kafka, KafkaController.processTopicIds).
    Where a leader of such a release has left it out, the node beside the state is there: its creation is refused,
    and what is below the path is read.

    Args:
        old: the state that the decision changes, None if this topic has none.
        seen: what is known of where the decision is to be written.
    """
    controller = core.state.controller
    topic_id = controller.id_of(tp) if old is None or old.topic_id == NO_TOPIC_ID else old.topic_id
    new = PartitionState(
        leader=decision.leader,
        leader_epoch=decision.leader_epoch,
        isr=decision.isr,
        controller_epoch=controller.epoch,
        zk_version=0 if seen.version is None else seen.version + 1,
        topic_id=topic_id,
    )
    path, data = leader_and_isr_path(tp), encode_state(new)
    guard = topic_id_path(tp, topic_id)
    known = old is not None and old.topic_id == topic_id
    there = known or guard.rpartition("/")[2] in (seen.below or ())
    # The versions of the next topic of this name begin at 0, too.
    ops: list[Write] = [] if there else [*made.checks(core, tp.topic, controller.made.get(tp.topic, ""))]
    if seen.version is None:
        # A topic that is being deleted in several writes has another assignment by then: none of it begins again.
        ops.append(ZkCheck(path=topic_path(tp.topic), version=seen.topic_version))
        if seen.below is None:
            ops.append(ZkCreate(path=partition_path(tp)))
        ops.append(ZkCreate(path=path, data=data))
    else:
        ops.append(ZkSet(path=path, data=data, version=seen.version))
    if topic_id != NO_TOPIC_ID:
        ops.append(ZkCheck(path=guard, version=0) if there else ZkCreate(path=guard))
    return Decided(tp=tp, state=new, replicas=replicas, unclean=decision.unclean, ops=tuple(ops))


def _send_writes(core: Core) -> None:
    """
    Send the decisions of a reading; once all are answered, the reading is over.

    What a refused multi leaves is written again: a reading that came before could have found its topic deleted.
    """
    state_writes.send(core)
    controller = core.state.controller
    if controller.reading and state_writes.is_over(controller):
        controller.reading = False
        if core.state.elections:
            elections.complete(core)
        if controller.read_again:
            read(core)


def on_wrote(core: Core, continuation: AwaitStateWrites, result: ZkResult) -> None:
    """Take note of what was written, and send what waits."""
    state_writes.on_wrote(core, continuation, result)
    if not left_office(core, continuation.office):
        _send_writes(core)
