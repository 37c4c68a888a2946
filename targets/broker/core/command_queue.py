"""
The controller's queue for each broker: of each partition the newest command alone, one request in flight.

A broker that answers nothing costs no more memory than it has partitions, however long; nothing is lost, and what
is decided in one step, or while a request is in flight, goes in one request.
Source:  Kafka Replication Design V3, "Potential optimizations" 1: "we can have a command queue", "we can put
         multiple commands in one RPC request" (A.4).
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from itertools import islice

from targets.broker.core.controller_state import Channel
from targets.broker.core.fences import is_older
from targets.broker.core.messages import (
    EPOCH_DURING_DELETE,
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
from targets.broker.core.state import Core
from targets.broker.core.zookeeper import INT_MAX

CONTROLLER_CHANNEL = "controller"
ACK_TIMEOUT_MS = 30_000
# Replicas that one broker is to delete, as far as the controller remembers each of them.
UNSTOPPED_MAX = 10_000


@dataclass(frozen=True, slots=True, kw_only=True)
class AwaitCommandAck:
    """A command is in flight to this broker."""

    broker: int
    controller_epoch: int


# --- what is to be told ------------------------------------------------------------------------------
def tell(core: Core, broker: int, command: LeaderAndIsr) -> None:
    """Tell a broker the newest state of a partition, in place of an older one."""
    states = _channel(core, broker).states
    states[command.tp] = _newer(states.get(command.tp), command)


def _newer(known: LeaderAndIsr | None, command: LeaderAndIsr) -> LeaderAndIsr:
    """
    Return the newer of two states.

    What a reading found can be older than a decision that was on its way to ZooKeeper when it was read.
    """
    if known is None:
        return command
    return known if is_older(_state_age(command), _state_age(known)) else command


def _state_age(command: LeaderAndIsr) -> tuple[int, int]:
    return command.topic_id, command.leader_epoch


def tell_all(core: Core, broker: int, commands: Collection[LeaderAndIsr]) -> None:
    """Tell a broker all its partitions: it deletes every other replica (INIT)."""
    channel = _channel(core, broker)
    channel.states = {command.tp: _newer(channel.states.get(command.tp), command) for command in commands}
    channel.is_init = True


def stop(core: Core, broker: int, gone: Collection[StopReplica]) -> None:
    """Tell a broker to delete these replicas; what it was to be told of them before is void."""
    if not gone:
        return
    channel = _channel(core, broker)
    for asked in gone:
        command = channel.states.get(asked.tp)
        if command is not None and _is_over(command, asked):
            del channel.states[asked.tp]
    _note(core, broker, channel.stops, gone)


def _is_over(command: LeaderAndIsr, asked: StopReplica) -> bool:
    """Return True if a state is older than the deletion: of an older topic, or an epoch before it."""
    return not is_older(_age(asked), _state_age(command))


def note_unstopped(core: Core, broker: int, missed: Collection[StopReplica]) -> None:
    """Note what a broker is to delete once it registers again."""
    _note(core, broker, core.state.controller.unstopped.setdefault(broker, {}), missed)


def _note(
    core: Core, broker: int, noted: dict[TopicPartition, StopReplica], gone: Collection[StopReplica]
) -> None:
    """
    Note replicas to delete; of too many none, but that the broker is to be told all that it has.

    What a broker missed is noted once it is back: the reading that finds it may have found a newer deletion.
    Where topics have no ids it is not, as its own reading may have found a younger topic: the oldest are dropped.
    """
    for asked in gone:
        known = noted.pop(asked.tp, asked)  # the newest are noted last, and dropped last
        noted[asked.tp] = known if is_older(_age(asked), _age(known)) else asked
    over = len(noted) - UNSTOPPED_MAX
    if over <= 0:
        return
    controller = core.state.controller
    if core.rules.topic_identity:
        noted.clear()
        controller.owed_init.add(broker)
        if broker in controller.live:
            core.after_ms(("controller-read",), 1)
        return
    for tp in list(islice(noted, over)):
        del noted[tp]
        core.observe("command-dropped", {"broker": broker, "queued": UNSTOPPED_MAX})


def _age(asked: StopReplica) -> tuple[int, int]:
    """Return a deletion's topic, and the last epoch that is over with it: all are when the topic is deleted."""
    is_over = asked.leader_epoch == EPOCH_DURING_DELETE
    return asked.topic_id, INT_MAX if is_over else asked.leader_epoch


def forget_dead(core: Core) -> None:
    """Drop the queues of brokers that are no longer registered, but note what they were to delete."""
    controller = core.state.controller
    for broker, channel in controller.channels.items():
        if broker not in controller.live:
            _put_back(channel)
            _note_unheard(core, broker, channel.stops.values(), is_init=channel.is_init)
            core.state.timers.drop(("command", broker))
    controller.channels = {
        broker: channel for broker, channel in controller.channels.items() if broker in controller.live
    }


def _note_unheard(core: Core, broker: int, stops: Collection[StopReplica], *, is_init: bool) -> None:
    """Note what a command would have deleted on a broker that did not obey it: it is told once it is back."""
    if stops:
        note_unstopped(core, broker, stops)
    if is_init:
        core.state.controller.told_all.discard(broker)


def _channel(core: Core, broker: int) -> Channel:
    """Return a broker's queue, from which this step sends when it ends."""
    channels = core.state.controller.channels
    if broker not in channels:
        # What was decided for one registration is never told to a later one (KIP-380).
        epoch = core.state.controller.live[broker] if core.rules.fence_broker_epoch else -1
        channels[broker] = Channel(broker_epoch=epoch)
    core.to_tell[broker] = None
    return channels[broker]


# --- sending -----------------------------------------------------------------------------------------
def send_next(core: Core) -> None:
    """Send the next request to each broker that there is something new to tell, unless one is in flight."""
    for broker in core.to_tell:
        pump(core, broker)
    core.to_tell.clear()


def pump(core: Core, broker: int) -> None:
    """Send the next request to a broker, unless one is in flight or waits for its back-off."""
    channel = core.state.controller.channels.get(broker)
    if channel is None or channel.tag is not None or channel.is_empty or _rests(core, broker):
        return
    channel.sent = _next_stop(core, channel) if channel.stops else _next_states(core, channel)
    continuation = AwaitCommandAck(broker=broker, controller_epoch=core.state.controller.epoch)
    channel.tag = core.send(broker, CONTROLLER_CHANNEL, channel.sent, continuation)


def _rests(core: Core, broker: int) -> bool:
    return ("command", broker) in core.state.timers


def _next_stop(core: Core, channel: Channel) -> StopReplicaRequest:
    taken = tuple(islice(channel.stops.values(), core.config.together.stops_max))
    for asked in taken:
        del channel.stops[asked.tp]
    return StopReplicaRequest(
        controller_id=core.config.broker_id,
        controller_epoch=core.state.controller.epoch,
        ack_timeout_ms=ACK_TIMEOUT_MS,
        partitions=taken,
        broker_epoch=channel.broker_epoch,
    )


def _next_states(core: Core, channel: Channel) -> LeaderAndIsrRequest:
    most = len(channel.states) if channel.is_init else core.config.together.states_max
    taken = tuple(islice(channel.states.values(), most))
    for command in taken:
        del channel.states[command.tp]
    is_init, channel.is_init = channel.is_init, False
    return LeaderAndIsrRequest(
        controller_id=core.config.broker_id,
        controller_epoch=core.state.controller.epoch,
        ack_timeout_ms=ACK_TIMEOUT_MS,
        is_init=is_init,
        partitions=taken,
        broker_epoch=channel.broker_epoch,
    )


def _put_back(channel: Channel) -> None:
    """Put what was not answered before all else, but nothing that is older than what is there."""
    sent, channel.sent, channel.tag = channel.sent, None, None
    if isinstance(sent, StopReplicaRequest):
        channel.stops = {asked.tp: asked for asked in sent.partitions} | channel.stops
    elif sent is not None:
        again = {
            command.tp: command
            for command in sent.partitions
            if (asked := channel.stops.get(command.tp)) is None or not _is_over(command, asked)
        }
        channel.states = again | {tp: _newer(again.get(tp), state) for tp, state in channel.states.items()}
        channel.is_init |= sent.is_init


def on_commanded(core: Core, continuation: AwaitCommandAck, tag: int, response: Response | None) -> None:
    """Send the next request, or this one again after a back-off while the broker is registered."""
    controller = core.state.controller
    channel = controller.channels.get(continuation.broker)
    if channel is None or channel.tag != tag or controller.epoch != continuation.controller_epoch:
        return
    if response is None:
        _put_back(channel)
        core.after_ms(("command", continuation.broker), core.config.controller_backoff_ms)
        return
    sent, channel.sent, channel.tag = channel.sent, None, None
    if _is_stale(response) and sent is not None:
        _note_refused(core, continuation.broker, sent)
    pump(core, continuation.broker)


def _note_refused(core: Core, broker: int, sent: LeaderAndIsrRequest | StopReplicaRequest) -> None:
    if isinstance(sent, StopReplicaRequest):
        _note_unheard(core, broker, sent.partitions, is_init=False)
    else:
        _note_unheard(core, broker, (), is_init=sent.is_init)


def _is_stale(response: Response) -> bool:
    """Return True if a broker refused what was meant for an earlier registration; its next is not read yet."""
    if not isinstance(response, LeaderAndIsrResponse | StopReplicaResponse):
        return False
    return response.error is ErrorCode.STALE_BROKER_EPOCH
