"""
What the controller tells brokers: the states of their partitions, and which replicas to delete.

The controller also commands itself over the network, as Apache Kafka does: a decision reaches its own
replicas as late as any other's. `command_queue` keeps what is to be told until it is answered.
Source:  Kafka Replication Design V3, A.4, C and D.4.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from targets.broker.core import command_queue
from targets.broker.core.messages import (
    EPOCH_DURING_DELETE,
    LeaderAndIsr,
    StopReplica,
    TopicPartition,
)
from targets.broker.core.rules import ReturningLeader
from targets.broker.core.state import Core
from targets.broker.core.zookeeper import PartitionState


def send_state(core: Core, command: LeaderAndIsr) -> None:
    """Tell a partition's new state to all its live replicas (V3 A.4)."""
    for broker in command.replicas:
        if broker in core.state.controller.live:
            command_queue.tell(core, broker, command)


def inform(
    core: Core,
    brokers: Collection[int],
    assignments: Mapping[TopicPartition, tuple[int, ...]],
    states: Mapping[TopicPartition, PartitionState],
    *,
    is_init: bool,
    is_whole: bool = True,
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
    owed = core.state.controller.owed_init
    for broker in sorted(brokers):
        init = is_init or broker in owed or (core.rules.topic_identity and broker not in told_all)
        if init and not is_whole:
            owed.add(broker)  # once everything can be read again
            init = False
        elif init:
            told_all.add(broker)
            owed.discard(broker)
        known = {tp: state for tp, state in states.items() if not (awaits and state.leader == broker)}
        mine = tuple(
            _command(tp, replicas, known.get(tp), _topic_id(core, tp, states.get(tp)))
            for tp, replicas in sorted(assignments.items())
            if broker in replicas and (init or tp in known)
        )
        if init:
            command_queue.tell_all(core, broker, mine)
        else:
            for command in mine:
                command_queue.tell(core, broker, command)


def stop_replicas(
    core: Core, gone: Mapping[TopicPartition, tuple[int, ...]], ids: Mapping[TopicPartition, int]
) -> None:
    """
    Command the brokers of deleted partitions to delete them too (V3 B, on_topic_change 2).

    Many go in several commands: a broker serves others between two of them. An id keeps a late copy of a command
    from the next topic of that name; the epoch says that any is over (KIP-570).
    A broker that is not registered is told when it is again: its process may live on, and reads nothing then.
    """
    for broker in sorted({broker for replicas in gone.values() for broker in replicas}):
        mine = [StopReplica(tp=tp, topic_id=ids[tp]) for tp, replicas in gone.items() if broker in replicas]
        _stop(core, broker, mine)


def stop_removed(core: Core, command: LeaderAndIsr, removed: Collection[int]) -> None:
    """
    Command brokers to delete replicas that are no longer assigned to them, as was written (V3 F, 3.2.4).

    A replica that is assigned there once more is of a later epoch, and stays (KIP-570); commands without ids have
    no epochs either, and a late copy of one deletes it, as Kafka's did before 2.6.
    """
    epoch = command.leader_epoch if core.rules.topic_identity else EPOCH_DURING_DELETE
    for broker in sorted(removed):
        _stop(core, broker, [StopReplica(tp=command.tp, leader_epoch=epoch, topic_id=command.topic_id)])


def _stop(core: Core, broker: int, gone: Collection[StopReplica]) -> None:
    if broker in core.state.controller.live:
        command_queue.stop(core, broker, gone)
    else:
        command_queue.note_unstopped(core, broker, gone)


def stop_missed(
    core: Core, returned: Collection[int], assignments: Mapping[TopicPartition, tuple[int, ...]]
) -> None:
    """
    Command brokers that registered again to delete the replicas that they lost meanwhile.

    Where a broker is assigned the partition again it is told no more than that: the id in that command, if it has
    one, deletes the replica of an older topic. A broker of a release without ids would obey the older one after
    it had begun to follow by its own reading, when its leader may have let it into the ISR.
    Source:  Kafka's TopicDeletionManager ends a deletion only when every replica has confirmed it.
    """
    for broker in sorted(returned):
        missed = core.state.controller.unstopped.pop(broker, {})
        gone = [asked for asked in missed.values() if broker not in assignments.get(asked.tp, ())]
        command_queue.stop(core, broker, gone)


def _topic_id(core: Core, tp: TopicPartition, state: PartitionState | None) -> int:
    """Return a partition's id: of its state, which an older release may have written without one."""
    return core.state.controller.id_of(tp) if state is None else state.topic_id


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
