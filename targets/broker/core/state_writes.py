"""
The controller's decisions on their way to ZooKeeper: many in one multi, each conditional, then the commands.

    decided -> multi {epoch check, states} -> written -> commands
A multi is all or nothing: one that is refused is halved, until what is refused stands alone; that partition is
read again. Every multi checks /controller_epoch, so that a deposed controller cannot write (KAFKA-6082).
Source:  Kafka Replication Design V3, A.3.3 and A.4 ("Ideally we want to use ZK multi"), discussions 1 and 6.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from targets.broker.core import bounces, commands, made, reassignment
from targets.broker.core.controller_state import Controller
from targets.broker.core.decided import Decided, Write
from targets.broker.core.fences import in_office
from targets.broker.core.messages import LeaderAndIsr, TopicPartition
from targets.broker.core.reading import left_office
from targets.broker.core.state import Core
from targets.broker.core.zookeeper import (
    PartitionState,
    ZkCreate,
    ZkDone,
    ZkError,
    ZkMulti,
    ZkResult,
    ZkSet,
)

# What ZooKeeper's protocol adds to the path and the data of one operation, at most.
_FRAME_BYTES = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class AwaitStateWrites:
    """Decisions were sent to ZooKeeper in one multi, in this controller epoch."""

    office: int
    decisions: tuple[Decided, ...]


def send(core: Core) -> None:
    """
    Send decisions, some at a time, so that others are served meanwhile.

    A decision that waits here is never forgotten: the next reading begins when all are answered.
    """
    controller = core.state.controller
    while (controller.split or controller.writes) and controller.writing < core.config.together.writes_max:
        batch = controller.split.popleft() if controller.split else _next_batch(core, controller)
        controller.writing += len(batch)
        ops = (op for decided in batch for op in decided.ops)
        core.ask(AwaitStateWrites(office=controller.epoch, decisions=batch), ZkMulti(ops=(in_office(core), *ops)))


def is_over(controller: Controller) -> bool:
    """Return True if every decision is written, or refused for good."""
    return not (controller.writes or controller.split or controller.writing)


def _next_batch(core: Core, controller: Controller) -> tuple[Decided, ...]:
    """Take decisions off the queue, as many as one multi may hold; one at least."""
    together = core.config.together
    batch: list[Decided] = []
    most = min(together.writes_together_max, together.writes_max - controller.writing)
    left, bytes_left = together.ask_ops_max - 1, together.write_bytes_max
    while controller.writes and len(batch) < most:
        decided = controller.writes[0]
        left -= len(decided.ops)
        bytes_left -= sum(map(_size, decided.ops))
        if batch and min(left, bytes_left) < 0:
            break
        batch.append(controller.writes.popleft())
    return tuple(batch)


def _size(op: Write) -> int:
    data = op.data if isinstance(op, ZkCreate | ZkSet) else b""
    return len(op.path) + len(data) + _FRAME_BYTES


def on_wrote(core: Core, continuation: AwaitStateWrites, result: ZkResult) -> None:
    """
    Command the brokers once decisions are written; halve what was refused; read again about one alone.

    Decisions whose states were not read for them are read again all together: many may be out of date.
    """
    controller = core.state.controller
    if left_office(core, continuation.office):
        return
    decisions = continuation.decisions
    controller.writing = max(0, controller.writing - len(decisions))  # it may be of the same epoch, held before
    if isinstance(result, ZkDone):
        for decided in decisions:
            controller.refused.discard(decided.tp)
            _know(controller, decided)
            _announce(core, decided)
        if any(decided.moved for decided in decisions):
            reassignment.wake(core, soon=True)
    elif result is not ZkError.LOST and len(decisions) > 1 and all(decided.fresh for decided in decisions):
        middle = len(decisions) // 2
        controller.split += (decisions[:middle], decisions[middle:])
    else:
        _read_again(core, decisions, result)


def _know(controller: Controller, decided: Decided) -> None:
    """Know what was written as if it had been read."""
    tp, state = decided.tp, decided.state
    reassignment.know(controller, decided)
    controller.wanted.pop(tp, None)
    if tp in controller.seen:
        controller.seen[tp] = replace(controller.seen[tp], version=state.zk_version, below=None)
        controller.states[tp] = state


def _read_again(core: Core, decisions: tuple[Decided, ...], result: ZkResult) -> None:
    """
    Read again about decisions that were not written, as far as is known.

    The leader changed the ISR meanwhile, the write is indeterminate, or this controller is deposed: reading shows
    which; a deposed controller fails its epoch check from now on. What stands in the way of a first state does not
    go by itself: after the second refusal it is given time.
    """
    controller = core.state.controller
    for decided in decisions:
        controller.states.pop(decided.tp, None)
        controller.seen.pop(decided.tp, None)
        controller.tried_to_see.discard(decided.tp)
        bounces.note_unhandled(core, decided.tp, decided.changes, lost=result is ZkError.LOST)
        if result is ZkError.LOST:
            controller.uncertain[decided.tp] = decided
    if result is ZkError.LOST:
        core.after_ms(("controller-read",), core.config.controller_backoff_ms)
    elif not all(decided.fresh for decided in decisions):
        controller.read_again = True  # at once: what is read now was written long ago
    else:
        (decided,) = decisions
        again = decided.tp in controller.refused
        topic = decided.tp.topic
        if again and result is ZkError.NO_NODE and topic in controller.topics:
            made.look(core, topic, controller.topics[topic][0], controller.made.get(topic, ""))
        if result is not ZkError.BAD_VERSION:
            controller.refused.add(decided.tp)
        core.after_ms(("controller-read",), core.config.controller_backoff_ms if again else 1)


def announce_if_written(core: Core, tp: TopicPartition, found: PartitionState | None) -> None:
    """Send the command of a write that succeeded but lost its answer; nothing else would send it."""
    tried = core.state.controller.uncertain.pop(tp, None)
    if tried is None or found is None:
        return
    # Do not compare the ISR: the new leader may have read this state at its start and changed the ISR since.
    # Nor the id: an older release's leader leaves it out, and a state of another topic is not found here.
    # What a later controller decided alike is for that one to announce.
    same = (tried.state.leader, tried.state.leader_epoch) == (found.leader, found.leader_epoch)
    if same and found.controller_epoch <= tried.state.controller_epoch:
        _announce(core, replace(tried, state=found))


def _announce(core: Core, decided: Decided) -> None:
    state = decided.state
    told = {
        "leader": state.leader,
        "epoch": state.leader_epoch,
        "isr": list(state.isr),
        "unclean": decided.unclean,
    }
    saw = [list(registration) for registration in decided.saw]
    core.observe("elected", {"topic": decided.tp.topic, "partition": decided.tp.partition, **told, "saw": saw})
    command = LeaderAndIsr(
        tp=decided.tp,
        leader=state.leader,
        leader_epoch=state.leader_epoch,
        isr=state.isr,
        zk_version=state.zk_version,
        replicas=decided.replicas,
        topic_id=state.topic_id,
    )
    commands.send_state(core, command)
    if decided.removed:
        commands.stop_removed(core, command, decided.removed)
