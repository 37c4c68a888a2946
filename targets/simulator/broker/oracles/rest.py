"""
A world at rest: once all is healed and nobody has anything left to do, every broker agrees with ZooKeeper and with
its disk, and nothing is left over.

This is judged once, at the end of a run that was healed: what is wrong here is what a broker forgot to do.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Final

from targets.broker.core.assignments import decode_assignment
from targets.broker.core.controller_state import Channel
from targets.broker.core.events import Caller
from targets.broker.core.messages import TopicPartition
from targets.broker.core.state import AwaitRest, Replica, Role, State
from targets.broker.core.state_writes import AwaitStateWrites
from targets.broker.core.timers import TimerKey
from targets.broker.core.zookeeper import CONTROLLER, PartitionState, leader_and_isr_path, topic_path
from targets.simulator.broker.coordination import state_in
from targets.simulator.broker.node import Node
from targets.simulator.broker.world import World
from targets.simulator.engine.clock import NS_PER_MS

# Timers are exact in virtual time.
SLACK_NS: Final = NS_PER_MS


def left_over(
    world: World, tps: Collection[TopicPartition], open_calls: Mapping[str, Collection[Caller]]
) -> Iterator[tuple[str, TopicPartition | None, str]]:
    """
    Yield (node, partition, text) for all that is not at rest; the partition is None if it is about none.

    Args:
        open_calls: by node, the callers that still wait for an answer.
    """
    states = {tp: _state(world, tp) for tp in tps}
    for name, node in world.nodes.items():
        if node.broker is None:
            continue
        state = node.broker.state
        for text in (*_office(world, name, state), *_waits(state, open_calls[name]), *_timers(node, state)):
            yield name, None, f"{name} {text}"
        for text in _strays(world, node, state):
            yield name, None, f"{name} {text}"
        for tp, text in _moves(state, states):
            yield name, tp, f"{name} {text}"
        for tp, there in states.items():
            replica = state.replicas.get(tp)
            if replica is not None and there is not None:
                for text in (*_replica(node, replica, there), *_start(world, replica, there)):
                    yield name, tp, f"{name} {text}"


def _start(world: World, replica: Replica, there: PartitionState) -> Iterator[str]:
    """Yield it if a log starts below its leader's: each answer to a fetch says where that starts (KIP-107)."""
    leader = world.name_of(there.leader)
    log = None if leader is None else world.nodes[leader].disk.logs.get(replica.tp)
    if log is not None and replica.log.start_offset < log.start_offset <= replica.high_watermark:
        mine = replica.log.start_offset
        yield f"has a log of {replica.tp} that starts at {mine}, and its leader's starts at {log.start_offset}"


def _moves(
    state: State, states: Mapping[TopicPartition, PartitionState | None]
) -> Iterator[tuple[TopicPartition, str]]:
    """Yield the moves that a controller has not ended, though all that they wait for has happened (V3 F, 3.2)."""
    controller = state.controller
    for tp, move in controller.moves.items() if controller.active else ():
        there = states.get(tp)
        if there is not None and set(move.target) <= set(there.isr) & controller.live.keys():
            yield tp, f"has not ended the move of {tp} to {list(move.target)}, all of which are in the ISR"


def _state(world: World, tp: TopicPartition) -> PartitionState | None:
    node = world.zookeeper.tree.nodes.get(leader_and_isr_path(tp))
    return None if node is None else state_in(node)


def _strays(world: World, node: Node, state: State) -> Iterator[str]:
    """Yield each replica that ZooKeeper does not assign to the broker; without topic ids some stay (KIP-516)."""
    if not world.tells_topics_apart:
        return
    for tp in sorted(state.replicas):
        topic = world.zookeeper.tree.nodes.get(topic_path(tp.topic))
        assigned = {} if topic is None else decode_assignment(topic.data)
        if node.config.broker_id not in assigned.get(tp.partition, ()):
            yield f"has a replica of {tp}, which ZooKeeper does not assign to it"


def _office(world: World, name: str, state: State) -> Iterator[str]:
    session = world.zookeeper.sessions.get(world.zookeeper.session_of(CONTROLLER))
    holder = "nobody" if session is None else session.owner
    controller = state.controller
    if controller.active != (holder == name):
        text = "takes itself for the controller" if controller.active else "does not know that it is controller"
        yield f"{text}, and {holder} holds the office"
    if not controller.active:
        return
    # Of what an administrator asked for last, something may be under way to ZooKeeper or to a broker, or wait for
    # its back-off; what waits for nothing is left over.
    under_way = _decisions_under_way(state)
    left = len(controller.writes) + sum(map(len, controller.split))
    if controller.writing > under_way or (left and not under_way):
        yield f"waits for {controller.writing} decisions, of which {under_way} are under way, and has {left} left"
    if late := sorted(b for b, c in controller.channels.items() if _is_owed(c) and not _is_sent(state, b, c)):
        yield f"has commands left for {', '.join(map(str, late))}"


def _decisions_under_way(state: State) -> int:
    asked = (each.continuation if isinstance(each, AwaitRest) else each for each in state.pending.values())
    mine = (each for each in asked if isinstance(each, AwaitStateWrites) and each.office == state.controller.epoch)
    return sum(len(each.decisions) for each in mine)


def _is_owed(channel: Channel) -> bool:
    return channel.sent is not None or not channel.is_empty


def _is_sent(state: State, broker: int, channel: Channel) -> bool:
    """Return True if a command is in flight to a broker, or will be sent again."""
    return channel.tag in state.pending or ("command", broker) in state.timers


def _waits(state: State, callers: Collection[Caller]) -> Iterator[str]:
    for what, waits in (("fetch", state.fetches), ("produce", state.produces)):
        for waiting in waits.requests.values():
            if waiting.caller not in callers:
                yield f"lets a {what} wait whose caller is gone"
                return


def _timers(node: Node, state: State) -> Iterator[str]:
    now_ns = node.clock.now_ns
    overdue: list[TimerKey] = [key for key, at_ns in state.timers.times() if at_ns < now_ns - SLACK_NS]
    if overdue:
        yield f"has let the time of {overdue[0]} pass"


def _replica(node: Node, replica: Replica, there: PartitionState) -> Iterator[str]:
    about = f"of {replica.tp}"
    leads = there.leader == node.config.broker_id
    if (replica.role is Role.LEADER) != leads or replica.leader_epoch != there.leader_epoch:
        yield f"is {replica.role.value} {about} in epoch {replica.leader_epoch}, and ZooKeeper has {there}"
        return
    if leads and (set(replica.isr) != set(there.isr) or replica.isr_asked is not None or replica.isr_blocked):
        yield f"has the ISR {replica.isr} {about}, asked for {replica.isr_asked}, and ZooKeeper has {there.isr}"
    if replica.high_watermark != replica.log.end_offset:
        end = replica.log.end_offset
        yield f"has the high watermark {replica.high_watermark} {about}, whose log ends at {end}"
    written = node.disk.high_watermarks.get(replica.tp, 0)
    if written != replica.high_watermark:
        yield f"has checkpointed {written} {about}, and its high watermark is {replica.high_watermark}"
