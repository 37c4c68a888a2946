"""A broker's reaction to the controller's commands and to its own start (Kafka Replication Design V3, C and E)."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace

from targets.broker.core import deletions, fetches, follower, leader, topic_configs
from targets.broker.core.epochs import EpochCache, recovered_cache
from targets.broker.core.events import Answer, Caller
from targets.broker.core.fences import is_same_topic
from targets.broker.core.log_port import LogPort, Recovery
from targets.broker.core.messages import (
    NO_TOPIC_ID,
    ErrorCode,
    LeaderAndIsr,
    LeaderAndIsrRequest,
    LeaderAndIsrResponse,
    StopReplica,
    StopReplicaRequest,
    StopReplicaResponse,
    TopicPartition,
)
from targets.broker.core.rules import ReturningLeader
from targets.broker.core.sequences import Sequences
from targets.broker.core.state import Core, Phase, Replica, Role
from targets.broker.core.zookeeper import PartitionState

# A command without a broker epoch: its controller does not tell registrations apart.
UNKNOWN = -1


def open_replica(core: Core, log: LogPort, recovery: Recovery) -> None:
    """Open a replica from a recovered log: rebuild epochs (KIP-101, Unclean Shutdown), bound the HW by the log."""
    epochs = EpochCache(core.rules)
    if core.rules.epochs:
        epochs = recovered_cache(
            core.rules,
            recovery.file_epochs,
            recovery.batch_epochs,
            log.start_offset,
            log.end_offset,
            batch_ends=recovery.batch_ends,
        )
    high_watermark = max(log.start_offset, min(recovery.high_watermark, log.end_offset))
    replica = Replica(
        tp=log.tp,
        log=log,
        epochs=epochs,
        high_watermark=high_watermark,
        sequences=replace(recovery.sequences, producers_max=core.config.limits.producers_max),
        topic_id=log.topic_id if core.rules.topic_identity else NO_TOPIC_ID,
        flush_asked=log.end_offset,
    )
    core.state.replicas[log.tp] = replica
    core.observe_replica(
        "recovered",
        replica,
        log_end_offset=log.end_offset,
        clean=recovery.clean,
        cut_bytes=recovery.cut_bytes,
        reason=recovery.reason,
        epochs=[list(entry) for entry in epochs.entries],
        high_watermark=high_watermark,
    )
    if log.topic_id != replica.topic_id:
        _adopt(replica, NO_TOPIC_ID)
    # In a protocol without epochs the cache must stay empty (KAFKA-7897): it would not grow with the log, and a
    # later upgrade would believe it. Where it is empty the log is read anew. Whether the topic's message format
    # has epochs is known once its settings are read, before this broker registers (topic_configs).
    if tuple(epochs.entries) != tuple(recovery.file_epochs):
        leader.write_epochs(core, replica)


def start_replica(core: Core, tp: TopicPartition, topic_id: int) -> Replica:
    """
    V3 startReplica: create the partition's directory unless it exists; delete that of an older topic first.

    Args:
        topic_id: not older than that of the replica here.
    """
    topic_id = topic_id if core.rules.topic_identity else NO_TOPIC_ID
    found = core.state.replicas.get(tp)
    if found is not None and NO_TOPIC_ID < found.topic_id < topic_id:
        stop_replica(core, tp)  # its topic was deleted, and nobody has told this broker
        found = None
    if found is not None:
        if topic_id != NO_TOPIC_ID == found.topic_id:
            _adopt(found, topic_id)
        return found
    log = core.disk.create(tp, topic_id)
    core.state.checkpointed.pop(tp, None)  # the disk has removed it from the checkpoint
    replica = core.state.replicas[tp] = Replica(
        tp=tp,
        log=log,
        epochs=EpochCache(core.rules),
        high_watermark=log.start_offset,
        sequences=Sequences(producers_max=core.config.limits.producers_max),
        topic_id=topic_id,
        generation=core.state.generations_over,
        first_generation=core.state.generations_over,
    )
    if tp.topic in core.state.topic_configs:
        topic_configs.apply(core, replica)
    return replica


def _adopt(replica: Replica, topic_id: int) -> None:
    """
    Write down which topic a replica belongs to; NO_TOPIC_ID: to whatever topic has its name.

    An id must be right or missing, as a log of an older topic is deleted. So it goes where topics are known by
    their names alone, to this broker or to whom it obeys: it may then have the log of the next topic of that name.
    Source:  KIP-516; Kafka's Log from 2.8 on deletes partition.metadata under an older version ("to avoid ID
             conflicts upon re-upgrade").
    """
    replica.topic_id = topic_id
    replica.log.adopt(topic_id)


def _is_of_older_topic(core: Core, tp: TopicPartition, topic_id: int) -> bool:
    """Return True if this id is older than that of the replica here: ids rise with every creation."""
    replica = core.state.replicas.get(tp)
    return replica is not None and NO_TOPIC_ID < topic_id < replica.topic_id


def _has_replica_of(core: Core, tp: TopicPartition, topic_id: int) -> bool:
    """Return True if the replica here is of the topic with this id, as far as it says."""
    replica = core.state.replicas.get(tp)
    return replica is not None and is_same_topic(replica.topic_id, topic_id)


def stop_replica(core: Core, tp: TopicPartition) -> None:
    """V3 stopReplica: stop the fetcher, stop the checkpoint, delete the directory."""
    replica = core.state.replicas.pop(tp, None)
    if replica is None:
        return
    core.state.generations_over = max(core.state.generations_over, replica.generation + 1)
    replica.log.delete()
    core.observe_replica("stopped", replica)
    fetches.wake(core, tp)
    leader.complete_produces(core, tp)
    deletions.complete(core, tp)


def on_broker_startup(
    core: Core,
    assigned: Mapping[TopicPartition, tuple[int, ...]],
    states: Mapping[TopicPartition, PartitionState],
    fresh: Collection[TopicPartition],
    topic_ids: Mapping[TopicPartition, int],
    *,
    unreadable: Collection[str] = (),
) -> None:
    """
    V3 E: start each replica assigned here as ZooKeeper says, and delete replicas that are no longer assigned.

    A partition that a controller's command named meanwhile stays: its topic may be younger than the reading.
    Where topics have ids, one without a state gets no new replica: until a controller has seen the topic, no one
    would say that it is deleted. Nor does one whose deletion was commanded meanwhile: no one would say it again.

    Args:
        fresh: the partitions whose state was written after this broker registered. An epoch that it leads
            there is already a new one; no newer epoch will follow.
        topic_ids: of the partitions assigned, as read.
        unreadable: topics whose assignment could not be read; their replicas stay until a controller names them.
    """
    me = core.config.broker_id
    for tp, replicas in sorted(assigned.items()):
        if me not in replicas or _is_of_older_topic(core, tp, topic_ids[tp]) or _is_gone(core, tp, topic_ids[tp]):
            continue
        state = states.get(tp)
        if state is None and core.rules.topic_identity and not _has_replica_of(core, tp, topic_ids[tp]):
            continue  # not initialised yet
        replica = start_replica(core, tp, topic_ids[tp])
        replica.replicas = replicas
        fetches.stir(core, tp)
        if state is None or state.leader_epoch <= replica.leader_epoch:
            continue  # not initialised yet, or the controller's command came first
        awaits = core.rules.returning_leader is ReturningLeader.AWAITS
        if state.leader == me and awaits and (tp not in fresh or core.rules.fence_broker_epoch):
            # KIP-101, returning leaders: its old epoch is over; it leads only in a newer one.
            # KIP-380: a state written since may still be meant for the previous incarnation; a command addressed
            # to this one settles that, and may name the same epoch. Whom one has told already awaits none.
            told = replica.leader_epoch >= 0
            if tp not in fresh:
                replica.leader_epoch = state.leader_epoch
            if not told:
                core.observe_replica("awaiting", replica, epoch=state.leader_epoch)
            continue
        _apply(core, replica, _command(tp, state, replicas), resumed=tp not in fresh)
    unassigned = [tp for tp, replica in core.state.replicas.items() if not replica.replicas]
    for tp in [tp for tp in unassigned if tp.topic not in unreadable]:
        stop_replica(core, tp)
    core.state.stopped.clear()


def _is_gone(core: Core, tp: TopicPartition, topic_id: int) -> bool:
    """Return True if a command since the start-up reading began deleted it; a younger topic's comes later."""
    if not core.rules.topic_identity or tp in core.state.replicas:
        return False
    stopped = core.state.stopped.get(tp)
    return core.state.told_all or (stopped is not None and not NO_TOPIC_ID < stopped < topic_id)


def _command(tp: TopicPartition, state: PartitionState, replicas: tuple[int, ...]) -> LeaderAndIsr:
    return LeaderAndIsr(
        tp=tp,
        leader=state.leader,
        leader_epoch=state.leader_epoch,
        isr=state.isr,
        zk_version=state.zk_version,
        replicas=replicas,
        topic_id=state.topic_id,
    )


def on_leader_and_isr(core: Core, request: LeaderAndIsrRequest) -> LeaderAndIsrResponse:
    """V3 on_LeaderAndISRCommand: act only on an epoch newer than the replica's own, or on a newer topic."""
    refusal = _refusal(core, request)
    if refusal is not ErrorCode.NONE:
        return LeaderAndIsrResponse(error=refusal, errors=())
    core.state.controller_epoch = request.controller_epoch
    errors: list[tuple[TopicPartition, ErrorCode]] = []
    for command in request.partitions:
        errors.append((command.tp, _on_command(core, command)))
    if request.is_init:
        core.state.told_all = True
        _delete_all_but(core, {command.tp for command in request.partitions})
    return LeaderAndIsrResponse(error=ErrorCode.NONE, errors=tuple(errors))


def _refusal(core: Core, request: LeaderAndIsrRequest | StopReplicaRequest) -> ErrorCode:
    """
    Refuse a deposed controller, and a command to another registration than this broker's own (KIP-380).

    One to a later registration is not for this process either, which knows its own: another one has replaced it.
    Source:  Kafka 2.2, KafkaApis.isBrokerEpochStale: a larger epoch than the broker's own is an illegal state;
             from KAFKA-9839 on it is obeyed, as the controller may know a registration before its broker does.
             Here the broker waits until it knows it, too.
    """
    if request.controller_epoch < core.state.controller_epoch:
        return ErrorCode.STALE_CONTROLLER_EPOCH
    if core.rules.fence_broker_epoch and request.broker_epoch not in (UNKNOWN, core.state.registration):
        return ErrorCode.STALE_BROKER_EPOCH
    return ErrorCode.NONE


def _on_command(core: Core, command: LeaderAndIsr) -> ErrorCode:
    if core.config.broker_id not in command.replicas:
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    if _is_of_older_topic(core, command.tp, command.topic_id):
        return ErrorCode.INCONSISTENT_TOPIC_ID
    replica = start_replica(core, command.tp, command.topic_id)
    replica.replicas = command.replicas
    fetches.stir(core, command.tp)
    if command.leader_epoch <= replica.leader_epoch:
        # As Kafka: a broker acts on a command only if its epoch is larger (V3, optimizations 1).
        same = command.leader_epoch == replica.leader_epoch
        return ErrorCode.NONE if same else ErrorCode.STALE_CONTROLLER_EPOCH
    _apply(core, replica, command)
    return ErrorCode.NONE


def _apply(core: Core, replica: Replica, command: LeaderAndIsr, *, resumed: bool = False) -> None:
    was_leader = replica.role is Role.LEADER
    if command.topic_id == NO_TOPIC_ID != replica.topic_id:
        _adopt(replica, NO_TOPIC_ID)
    if command.leader == core.config.broker_id:
        leader.become_leader(core, replica, command, resumed=resumed)
        deletions.complete(core, replica.tp)
        return
    if command.leader == -1:
        _no_leader(replica, command)
    elif _follows_already(core, replica, command):
        follower.keep_following(core, replica, command)
    else:
        follower.become_follower(core, replica, command)
    if was_leader:
        fetches.wake(core, replica.tp)
        leader.complete_produces(core, replica.tp)
        deletions.complete(core, replica.tp)


def _follows_already(core: Core, replica: Replica, command: LeaderAndIsr) -> bool:
    same = replica.role is Role.FOLLOWER and replica.leader == command.leader
    return same and replica.phase is not Phase.FENCED and not core.rules.truncate_when_leader_unchanged


def _no_leader(replica: Replica, command: LeaderAndIsr) -> None:
    replica.generation += 1
    replica.role = Role.NONE
    replica.leader = -1
    replica.leader_epoch = command.leader_epoch
    replica.isr = command.isr
    replica.zk_version = command.zk_version


def _delete_all_but(core: Core, kept: Collection[TopicPartition]) -> None:
    """V3 C, 3: a command with INIT names every replica assigned here; delete the others."""
    for tp in [tp for tp in core.state.replicas if tp not in kept]:
        stop_replica(core, tp)


def on_command(core: Core, caller: Caller, request: LeaderAndIsrRequest | StopReplicaRequest) -> None:
    """
    Act on a command and answer it; each waits until this process has registered, and has read who is controller.

    A deposed controller's INIT would delete replicas that the next one has created. And a command with a broker
    epoch may be addressed to the previous incarnation, with another log: only the registration shows it (KIP-380).
    Source:  Kafka's KafkaServer registers before it starts to process requests.
    """
    addressed = core.rules.fence_broker_epoch and request.broker_epoch != UNKNOWN
    unknown = addressed and not core.state.registration
    if not core.state.controller_known or unknown or _waits_for_start(core, request):
        core.state.early.append((caller, request))
        return
    if addressed and request.broker_epoch > core.state.registration and core.state.registered:
        # Somebody has replaced its registration, of which no watch tells: it registers again.
        core.state.registered = False
        core.after_ms(("register",), 0)
    if isinstance(request, LeaderAndIsrRequest):
        core.effects.append(Answer(to=caller, response=on_leader_and_isr(core, request)))
    else:
        core.effects.append(Answer(to=caller, response=on_stop_replica(core, request)))


def _waits_for_start(core: Core, request: LeaderAndIsrRequest | StopReplicaRequest) -> bool:
    """Return True if this broker's own reading must come first: only then an epoch tells a late copy (KIP-570)."""
    if core.state.started or isinstance(request, LeaderAndIsrRequest):
        return False
    return any(asked.leader_epoch >= 0 for asked in request.partitions)


def take_early(core: Core) -> None:
    """Act on the commands that came before this broker knew its registration, or had read ZooKeeper."""
    early, core.state.early = core.state.early, []
    for caller, request in early:
        on_command(core, caller, request)


def on_stop_replica(core: Core, request: StopReplicaRequest) -> StopReplicaResponse:
    """V3 on_StopReplicaCommand."""
    refusal = _refusal(core, request)
    if refusal is not ErrorCode.NONE:
        return StopReplicaResponse(error=refusal, errors=())
    core.state.controller_epoch = request.controller_epoch
    errors = tuple((asked.tp, _stop(core, asked)) for asked in request.partitions)
    return StopReplicaResponse(error=ErrorCode.NONE, errors=errors)


def _stop(core: Core, asked: StopReplica) -> ErrorCode:
    """
    Stop a replica, unless the command is an older topic's or an older epoch's: a late copy (KIP-570).

    A newer topic's epochs say nothing of this one, which is gone: its own deletion is told no more.
    """
    replica = core.state.replicas.get(asked.tp)
    if _is_of_older_topic(core, asked.tp, asked.topic_id):
        return ErrorCode.INCONSISTENT_TOPIC_ID
    same = replica is not None and is_same_topic(replica.topic_id, asked.topic_id)
    if replica is not None and same and 0 <= asked.leader_epoch < replica.leader_epoch:
        return ErrorCode.FENCED_LEADER_EPOCH
    stop_replica(core, asked.tp)
    if not core.state.started:
        core.state.stopped[asked.tp] = asked.topic_id
    return ErrorCode.NONE
