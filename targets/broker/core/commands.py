"""
The controller's commands to brokers: one queue for each broker, one command in flight, in order.

The controller also commands itself over the network, as Apache Kafka does: a decision reaches its own
replicas as late as any other's.
Source:  Kafka Replication Design V3, A.4, C and "Potential optimizations" 1 (command queue).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from targets.broker.core.messages import (
    NO_TOPIC_ID,
    ErrorCode,
    LeaderAndIsr,
    LeaderAndIsrRequest,
    LeaderAndIsrResponse,
    Response,
    StopReplica,
    StopReplicaRequest,
    StopReplicaResponse,
    TopicPartition,
)
from targets.broker.core.rules import ReturningLeader
from targets.broker.core.state import Channel, Core
from targets.broker.core.zookeeper import PartitionState

CONTROLLER_CHANNEL = "controller"
ACK_TIMEOUT_MS = 30_000
# A broker that answers nothing keeps its commands; with more than this it counts as dead.
QUEUE_COMMANDS_MAX = 1_000
# Replicas that a broker which is not registered is to stop, as far as the controller remembers.
UNSTOPPED_MAX = 10_000


@dataclass(frozen=True, slots=True, kw_only=True)
class AwaitCommandAck:
    """A command is in flight to this broker."""

    broker: int
    controller_epoch: int


def send_state(core: Core, command: LeaderAndIsr) -> None:
    """Send a partition's new state to all its live replicas (V3 A.4)."""
    for broker in command.replicas:
        if broker in core.state.controller.live:
            _enqueue(core, broker, _leader_and_isr(core, broker, (command,), is_init=False))


def inform(
    core: Core,
    brokers: Collection[int],
    assignments: Mapping[TopicPartition, tuple[int, ...]],
    states: Mapping[TopicPartition, PartitionState],
    *,
    is_init: bool,
) -> None:
    """
    Send brokers the ZooKeeper state of all their partitions, before any decision (V3 D.4).

    With is_init, sent by a controller that takes office, brokers delete every replica that it does not name. So
    it also names partitions without a leader yet, with epoch -1, which changes nothing. Likewise it
    names partitions that the broker leads and waits for a new epoch of (KIP-101): with the old epoch, a new
    process would lead for a moment.
    A broker that was not registered then is sent it once it is, as topics may have been deleted under an earlier
    controller. Where topics have no ids it is not: its own start-up reading may have found a newer one.
    """
    awaits = core.rules.returning_leader is ReturningLeader.AWAITS
    told_all = core.state.controller.told_all
    for broker in sorted(brokers):
        init = is_init or (core.rules.topic_identity and broker not in told_all)
        if init:
            told_all.add(broker)
        known = {tp: state for tp, state in states.items() if not (awaits and state.leader == broker)}
        mine = tuple(
            _command(tp, replicas, known.get(tp), _topic_id(core, tp, states.get(tp)))
            for tp, replicas in sorted(assignments.items())
            if broker in replicas and (init or tp in known)
        )
        if mine or init:
            _enqueue(core, broker, _leader_and_isr(core, broker, mine, is_init=init))


def stop_replicas(
    core: Core, gone: Mapping[TopicPartition, tuple[int, ...]], topic_ids: Mapping[str, int]
) -> None:
    """
    Command the brokers of deleted partitions to delete them too (V3 B, on_topic_change 2).

    Many go in several commands: a broker serves others between two of them. An id keeps a late copy of a command
    from the next topic of that name; the epoch says that any is over (KIP-570).
    A broker that is not registered is told when it is again: its process may live on, and reads nothing then.
    """
    for broker in sorted({broker for replicas in gone.values() for broker in replicas}):
        mine = {tp: topic_ids[tp.topic] for tp, replicas in gone.items() if broker in replicas}
        if broker in core.state.controller.live:
            _stop(core, broker, mine)
        else:
            _note_unstopped(core, broker, mine)


def _stop(core: Core, broker: int, gone: Mapping[TopicPartition, int]) -> None:
    """Command a broker to delete these replicas, each of the topic with this id."""
    partitions = tuple(StopReplica(tp=tp, topic_id=topic_id) for tp, topic_id in sorted(gone.items()))
    most = core.config.together.stops_max
    for first in range(0, len(partitions), most):
        request = StopReplicaRequest(
            controller_id=core.config.broker_id,
            controller_epoch=core.state.controller.epoch,
            ack_timeout_ms=ACK_TIMEOUT_MS,
            partitions=partitions[first : first + most],
            broker_epoch=_broker_epoch(core, broker),
        )
        _enqueue(core, broker, request)


def _note_unstopped(core: Core, broker: int, missed: Mapping[TopicPartition, int]) -> None:
    """Note what a broker is to stop once it registers again; of too many the oldest are dropped."""
    noted = core.state.controller.unstopped.setdefault(broker, {})
    for tp, topic_id in missed.items():
        noted.pop(tp, None)
        noted[tp] = topic_id
    for tp in list(noted)[: max(0, len(noted) - UNSTOPPED_MAX)]:
        del noted[tp]
        core.observe("command-dropped", {"broker": broker, "queued": UNSTOPPED_MAX})


def stop_missed(
    core: Core, returned: Collection[int], assignments: Mapping[TopicPartition, tuple[int, ...]]
) -> None:
    """
    Command brokers that registered again to delete the replicas whose topics were deleted meanwhile.

    Without ids, a replica of the next topic of that name cannot be told from that of the last; it stays.
    Source:  Kafka's TopicDeletionManager ends a deletion only when every replica has confirmed it.
    """
    for broker in sorted(returned):
        missed = core.state.controller.unstopped.pop(broker, {})
        gone = {
            tp: topic_id
            for tp, topic_id in missed.items()
            if topic_id != NO_TOPIC_ID or broker not in assignments.get(tp, ())
        }
        _stop(core, broker, gone)


def forget_dead(core: Core) -> None:
    """Drop the queues of brokers that are no longer registered, but note what they were to stop or to delete."""
    controller = core.state.controller
    for broker, channel in controller.channels.items():
        if broker not in controller.live:
            for request in channel.queue:
                _note_unheard(core, broker, request)
    controller.channels = {
        broker: channel for broker, channel in controller.channels.items() if broker in controller.live
    }


def _note_unheard(core: Core, broker: int, request: LeaderAndIsrRequest | StopReplicaRequest) -> None:
    """Note what a command would have deleted on a broker that did not obey it: it is told once it is back."""
    if isinstance(request, StopReplicaRequest):
        _note_unstopped(core, broker, {asked.tp: asked.topic_id for asked in request.partitions})
    elif request.is_init:
        core.state.controller.told_all.discard(broker)


def _topic_id(core: Core, tp: TopicPartition, state: PartitionState | None) -> int:
    """Return the id of a partition's topic: of its state, which an older release may have written without one."""
    return core.state.controller.topic_ids[tp.topic] if state is None else state.topic_id


def _command(
    tp: TopicPartition, replicas: tuple[int, ...], state: PartitionState | None, topic_id: int
) -> LeaderAndIsr:
    return LeaderAndIsr(
        tp=tp,
        leader=-1 if state is None else state.leader,
        leader_epoch=-1 if state is None else state.leader_epoch,
        isr=() if state is None else state.isr,
        zk_version=-1 if state is None else state.zk_version,
        replicas=replicas,
        topic_id=topic_id,
    )


def _leader_and_isr(
    core: Core, broker: int, partitions: tuple[LeaderAndIsr, ...], *, is_init: bool
) -> LeaderAndIsrRequest:
    return LeaderAndIsrRequest(
        controller_id=core.config.broker_id,
        controller_epoch=core.state.controller.epoch,
        ack_timeout_ms=ACK_TIMEOUT_MS,
        is_init=is_init,
        partitions=partitions,
        broker_epoch=_broker_epoch(core, broker),
    )


def _broker_epoch(core: Core, broker: int) -> int:
    """Return the registration that a command is addressed to, where brokers check it (KIP-380)."""
    return core.state.controller.live[broker] if core.rules.fence_broker_epoch else -1


def _enqueue(core: Core, broker: int, request: LeaderAndIsrRequest | StopReplicaRequest) -> None:
    channel = core.state.controller.channels.setdefault(broker, Channel())
    if len(channel.queue) >= QUEUE_COMMANDS_MAX:
        core.observe("command-dropped", {"broker": broker, "queued": len(channel.queue)})
        return
    channel.queue.append(request)
    pump(core, broker)


def pump(core: Core, broker: int) -> None:
    """Send the next command to a broker unless one is in flight."""
    channel = core.state.controller.channels.get(broker)
    if channel is not None and channel.queue and channel.tag is None:
        continuation = AwaitCommandAck(broker=broker, controller_epoch=core.state.controller.epoch)
        channel.tag = core.send(broker, CONTROLLER_CHANNEL, channel.queue[0], continuation)


def on_commanded(core: Core, continuation: AwaitCommandAck, tag: int, response: Response | None) -> None:
    """Send the next command, or this one again after a back-off while the broker is registered."""
    controller = core.state.controller
    channel = controller.channels.get(continuation.broker)
    if channel is None or channel.tag != tag or controller.epoch != continuation.controller_epoch:
        return
    channel.tag = None
    if response is None:
        core.after_ms(("command", continuation.broker), core.config.controller_backoff_ms)
        return
    request = channel.queue.pop(0)
    if _is_stale(response):
        _note_unheard(core, continuation.broker, request)
    pump(core, continuation.broker)


def _is_stale(response: Response) -> bool:
    """Return True if a broker refused what was meant for an earlier registration; its next is not read yet."""
    if not isinstance(response, LeaderAndIsrResponse | StopReplicaResponse):
        return False
    return response.error is ErrorCode.STALE_BROKER_EPOCH
