"""
Brokers that left, and perhaps are back: the failure of one is decided first, and only then its return.

    left or bounced -> its failure is decided -> it counts as live, and has returned
A decision about it that was not written is made again about that partition alone. In others the broker may be in
the ISR again meanwhile: if it left these too, it would join them once more, that would make the next write fail,
and so on without end.
Source:  KIP-380: a larger czxid of the same id is a failure, then a start-up (KAFKA-1120). Kafka,
         PartitionStateMachine.doElectLeaderForPartitions and ReplicaStateMachine.removeReplicasFromIsr: what is
         refused is decided again with the live brokers that the controller knows, before a start-up is handled.
"""

from __future__ import annotations

from targets.broker.core.controller_state import Controller
from targets.broker.core.decided import Changes
from targets.broker.core.messages import TopicPartition
from targets.broker.core.state import Core


def failing(controller: Controller, registered: dict[int, int]) -> dict[int, int]:
    """
    Return the brokers that are back while a decision about their failure is missing, each with its registration.

    Who is in no ISR any more of which that is so has nothing left to be decided.
    """
    return {
        broker: registered[broker]
        for tp, changes in controller.unhandled.items()
        for broker, czxid in changes.gone
        if registered.get(broker, czxid) != czxid
        and (state := controller.states.get(tp)) is not None
        and broker in state.isr
    }


def live(core: Core, registered: dict[int, int], failing: dict[int, int]) -> dict[int, int]:
    """
    Return the live brokers: not those that are failing, nor who bounced since the last reading; the next has them.

    Before KIP-380 nobody is seen to have bounced; but who was read to be gone is, until what follows is decided.
    """
    controller = core.state.controller
    known = controller.live if core.rules.fence_broker_epoch else registered
    bounced = {broker for broker, czxid in registered.items() if known.get(broker, czxid) != czxid}
    controller.read_again |= bool(bounced)
    if failing:  # not at once: what was refused may be so again, as this controller is deposed
        core.after_ms(("controller-read",), 1)
    return {b: czxid for b, czxid in registered.items() if not (b in bounced or b in failing)}


def changes(core: Core, live: dict[int, int]) -> Changes:
    """Return what differs from the last reading."""
    known = core.state.controller.live
    gone = [each for each in known.items() if each[0] not in live]
    return Changes(returned=frozenset(live.keys() - known.keys()), gone=tuple(gone))


def changes_about(changes: Changes, unhandled: Changes | None, live: dict[int, int]) -> Changes:
    """Return what is to be decided about a partition: the changes, and those that were not handled."""
    if unhandled is None:
        return changes
    still = {broker: czxid for broker, czxid in unhandled.gone if broker not in live}
    return Changes(
        returned=changes.returned | (unhandled.returned & live.keys()),
        gone=tuple((still | dict(changes.gone)).items()),
    )


def alive(live: dict[int, int], failing: dict[int, int], about: Changes) -> dict[int, int]:
    """Return who counts as live where a partition is decided about: also who fails, but not in that partition."""
    if not failing:
        return live
    gone = dict(about.gone)
    return live | {broker: czxid for broker, czxid in failing.items() if broker not in gone}


def note_unhandled(core: Core, tp: TopicPartition, changes: Changes, *, lost: bool) -> None:
    """
    Make the next reading find these changes once more about a partition, though a broker that left may be back.

    Where czxids do not count, that is so after a refusal alone: whoever lost its connection does not know whether
    it is in office, and a new controller knows nothing.
    """
    kept = core.rules.fence_broker_epoch or not lost
    gone = changes.gone if kept else ()
    core.state.controller.unhandled[tp] = Changes(returned=changes.returned, gone=gone)
