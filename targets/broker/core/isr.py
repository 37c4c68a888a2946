"""
The ISR: the leader counts fetches, shrinks and expands the ISR by a conditional write to ZooKeeper.

Source:  Kafka Replication Design V3, G (maybe_change_ISR). V3 lets a replica in that lags a little
(MIN_BYTES_LAG); here Kafka's rule applies: it must have reached the high watermark. Lag is time alone.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from targets.broker.core import readable
from targets.broker.core.fences import is_same_topic
from targets.broker.core.messages import NO_TOPIC_ID, TopicPartition
from targets.broker.core.state import NS_PER_MS, Core, Replica, Role
from targets.broker.core.zookeeper import (
    PartitionState,
    ZkCheck,
    ZkError,
    ZkGet,
    ZkMulti,
    ZkNode,
    ZkResult,
    ZkSet,
    ZkSync,
    encode_state,
    leader_and_isr_path,
    topic_id_path,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class AwaitIsrWrite:
    """A conditional write of a new ISR is in flight."""

    tp: TopicPartition
    generation: int
    isr: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class AwaitIsrRead:
    """
    The connection was lost during a write; ZooKeeper is being read to see whether it happened.

    Attributes:
        refused: the write was refused; what is read is whether the state is still the one that this leader knows.
    """

    tp: TopicPartition
    generation: int
    isr: tuple[int, ...]
    refused: bool = False


def note_fetch(core: Core, replica: Replica, follower: int, offset: int, start: int) -> bool:
    """
    Record a follower's log end and start, and note when it is caught up (Kafka's two cases).

    Returns:
        True if its log end is another than before.
    """
    progress = replica.progress[follower]
    progress.start = start
    moved = progress.end != offset
    if offset >= replica.log.end_offset:
        progress.caught_up_ns = max(progress.caught_up_ns, core.now_ns)
    elif offset >= progress.leader_end_at_last_fetch:
        progress.caught_up_ns = max(progress.caught_up_ns, progress.last_fetch_ns)
    progress.end = offset
    progress.last_fetch_ns = core.now_ns
    progress.leader_end_at_last_fetch = replica.log.end_offset
    return moved


def maybe_expand(core: Core, replica: Replica, follower: int, offset: int) -> None:
    """Expand the ISR by a follower that fetches from the high watermark or past it."""
    if follower in replica.isr:
        return
    caught_up = offset >= replica.high_watermark
    if core.rules.join_isr_past_epoch_start:
        caught_up = caught_up and offset >= replica.epoch_start
    if caught_up:
        _ask(core, replica, (*replica.isr, follower))


def check_all(core: Core) -> None:
    """Shrink the ISR by followers that lagged too long; runs on a timer, fetches or not."""
    core.after_ms(("isr-check",), max(1, core.config.replica_lag_ms_max // 2))
    for replica in core.state.replicas.values():
        if replica.role is Role.LEADER:
            late = {f for f in replica.isr if f != core.config.broker_id and _late(core, replica, f)}
            if late:
                _ask(core, replica, tuple(member for member in replica.isr if member not in late))


def _late(core: Core, replica: Replica, follower: int) -> bool:
    progress = replica.progress.get(follower)
    if progress is None or progress.end == replica.log.end_offset:
        return progress is None
    return core.now_ns - progress.caught_up_ns > core.config.replica_lag_ms_max * NS_PER_MS


def _ask(core: Core, replica: Replica, isr: tuple[int, ...]) -> None:
    if replica.isr_asked is not None or replica.isr_blocked:
        return
    replica.isr_asked = isr
    write = ZkSet(
        path=leader_and_isr_path(replica.tp),
        data=encode_state(_state(core, replica, isr)),
        version=replica.zk_version,
    )
    continuation = AwaitIsrWrite(tp=replica.tp, generation=replica.generation, isr=isr)
    id_ = replica.topic_id
    guard = () if id_ == NO_TOPIC_ID else (ZkCheck(path=topic_id_path(replica.tp, id_), version=0),)
    core.ask(continuation, ZkMulti(ops=(*guard, write)))


def _state(core: Core, replica: Replica, isr: tuple[int, ...]) -> PartitionState:
    return PartitionState(
        leader=core.config.broker_id,
        leader_epoch=replica.leader_epoch,
        isr=isr,
        controller_epoch=core.state.controller_epoch,
        zk_version=replica.zk_version,
        topic_id=replica.topic_id,
    )


def on_asked(core: Core, continuation: AwaitIsrWrite, result: ZkResult) -> None:
    """
    Adopt the new ISR once it is written; a refused write means that the controller decided meanwhile.

    The caller advances the high watermark afterwards: a smaller ISR may commit more.
    """
    replica = _still_ours(core, continuation)
    if replica is None:
        return
    if result is ZkError.LOST:
        read(core, AwaitIsrRead(tp=continuation.tp, generation=continuation.generation, isr=continuation.isr))
    elif isinstance(result, ZkError):
        # V3, discussion 3: a zombie leader cannot shrink the ISR, so it cannot commit. It waits for a command, but
        # not for ever if somebody has only written the same state once more.
        replica.isr_asked, replica.isr_blocked = None, True
        if result is ZkError.BAD_VERSION:
            read(core, AwaitIsrRead(tp=continuation.tp, generation=continuation.generation, isr=replica.isr))
    else:
        _take(core, replica, continuation.isr, replica.zk_version + 1)


def read(core: Core, continuation: AwaitIsrRead) -> None:
    """
    Read the state after a write whose answer was lost.

    Another server of the ensemble may not have that write yet: one that is not seen here would be forgotten, and
    who it added to the ISR would count no more. So the server catches up first.
    """
    replica = _still_ours(core, continuation)
    if replica is not None:
        path = leader_and_isr_path(continuation.tp)
        continuation = replace(continuation, refused=replica.isr_asked is None)
        core.ask(continuation, ZkSync(path=path), ZkGet(path=path))


def on_read(core: Core, continuation: AwaitIsrRead, result: ZkResult) -> None:
    """
    Decide from the state whether a write with a lost answer happened.

    If the state was written since, the lost write may have come before: its added members still count for the HW.
    """
    replica = _still_ours(core, continuation)
    if replica is None:
        return
    found = readable.read_state(core, continuation.tp, result) if isinstance(result, ZkNode) else None
    if found is not None:
        ours = (core.config.broker_id, replica.leader_epoch, continuation.isr)
        if not is_same_topic(replica.topic_id, found.topic_id):
            replica.isr_blocked = True
        elif found.zk_version == replica.zk_version:
            replica.isr_asked = None  # it did not happen; the next fetch or check tries again
        elif (found.leader, found.leader_epoch, found.isr) == ours:
            replica.isr_blocked = False
            _take(core, replica, continuation.isr, found.zk_version)
        else:
            replica.isr_blocked = True
    elif result is ZkError.LOST:
        core.after_ms(
            ("isr-read", continuation.tp, continuation.generation, continuation.isr),
            core.config.controller_backoff_ms,
        )
    else:
        replica.isr_blocked = True


def _still_ours(core: Core, continuation: AwaitIsrWrite | AwaitIsrRead) -> Replica | None:
    replica = core.state.replicas.get(continuation.tp)
    return replica if replica is not None and replica.generation == continuation.generation else None


def _take(core: Core, replica: Replica, isr: tuple[int, ...], zk_version: int) -> None:
    replica.isr, replica.zk_version, replica.isr_asked = isr, zk_version, None
    core.observe_replica("isr", replica, isr=list(isr), version=zk_version, epoch=replica.leader_epoch)
