"""
What ZooKeeper did not answer, or refused, is tried again, and at the time that is meant for it; and what a
controller wrote for somebody who asked it, or to mark a topic, is read at once, as no watch says so. A move is
looked at until it ends.

    a controller's reading that was lost, or whose decision's answer was   after its back-off
    a controller's reading after a decision that was refused               at once: another write came first
    the same of a first state, from the second time on                     after its back-off
    a broker's paths, registration, start-up reading, look at the office   after the back-off of each
    a leader's reading of an ISR whose write was lost                      after the controller's back-off

A later answer moves the time: the last one counts.
Source:  Kafka Replication Design V3, 6, D, E and G; targets/broker/core, which has one timer for each of these.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any, Final

from targets.broker.core import (
    isr,
    marking,
    membership,
    moves,
    neighbours,
    office,
    partitions,
    permanent_paths,
    reading,
)
from targets.broker.core.state import AwaitRest, State
from targets.broker.core.state_writes import AwaitStateWrites
from targets.broker.core.timers import TimerKey
from targets.broker.core.zookeeper import ZkDone, ZkError, ZkNode, ZkResult
from targets.simulator.engine.clock import NS_PER_MS

# After a decision that was refused: something else was written meanwhile, and is there to be read.
AT_ONCE_MS: Final = 1
_ASKED_FOR: Final = (
    marking.AwaitMarksWritten,
    moves.AwaitMovesNoted,
    partitions.AwaitTopicsExtended,
    reading.AwaitWishesTaken,
)
_READINGS: Final = (reading.AwaitNames, reading.AwaitNodes, reading.AwaitStates)
_START: Final = (membership.AwaitTopicNames, membership.AwaitAssignments, membership.AwaitPartitionStates)


def untried(about: Any, results: Sequence[ZkResult], sessions: Collection[int], state: State, now_ns: int) -> str:
    """
    Return what is wrong with the timer of what must be tried again after an answer, "" if nothing.

    Args:
        about: what the answer is for.
        sessions: those that were answered.
        state: after the answer.
    """
    found = _due(about, results, state) if _counts(about, sessions, state) else None
    if found is None:
        return ""
    key, delay_ms = found
    at_ns = dict(state.timers.times()).get(key)
    if at_ns == now_ns + delay_ms * NS_PER_MS:
        return ""
    if isinstance(about, AwaitStateWrites) and about.decisions[0].tp in state.controller.refused:
        # What stands in the way of a first state is given time once it was refused before.
        delay_ms = state.config.controller_backoff_ms
        if at_ns == now_ns + delay_ms * NS_PER_MS:
            return ""
    what = f"{type(about).__name__}, which failed,"
    if at_ns is None:
        return f"does not try {what} again"
    return f"tries {what} again in {(at_ns - now_ns) / NS_PER_MS:.1f} ms, not in {delay_ms}"


def unread(about: Any, results: Sequence[ZkResult], sessions: Collection[int], state: State) -> str:
    """
    Return what a controller does not read though it has just written it, "" if it does.

    Source:  V3, on_partitions_add and F: what was asked for begins; nobody else writes the topics' nodes.
    """
    if not isinstance(about, _ASKED_FOR) or not any(isinstance(result, ZkDone) for result in results):
        return ""
    controller = state.controller
    if not controller.active or set(sessions) != {state.session}:
        return ""
    asked = (each.continuation if isinstance(each, AwaitRest) else each for each in state.pending.values())
    begins = any(isinstance(each, reading.AwaitNames) for each in asked)
    if controller.reading and (controller.read_again or begins):
        return ""
    return f"does not read what it has written for {type(about).__name__}"


def unmoved(about: Any, results: Sequence[ZkResult], sessions: Collection[int], state: State) -> str:
    """
    Return that a controller does not look again at moves that wait for their ISR, "" if it will.

    Source:  V3 F: the agent "wakes up if notified or a certain amount of time has passed".
    """
    read = isinstance(about, reading.AwaitStates) and ZkError.LOST not in results
    if not read or not _counts(about, sessions, state) or ("reassignment",) in state.timers:
        return ""
    return "does not look again at the moves that wait" if state.controller.moves else ""


def _counts(about: Any, sessions: Collection[int], state: State) -> bool:
    """Return True if an answer is for what its broker is now: of its session, its office, its replica."""
    if set(sessions) != {state.session} or not state.session:
        return False
    if isinstance(about, AwaitStateWrites):
        return state.controller.active and state.controller.epoch == about.office
    if isinstance(about, _READINGS):
        return state.controller.active and state.controller.epoch == about.office
    if isinstance(about, isr.AwaitIsrRead):
        replica = state.replicas.get(about.tp)
        return replica is not None and replica.generation == about.generation
    return True


def _due(about: Any, results: Sequence[ZkResult], state: State) -> tuple[TimerKey, int] | None:
    """Return the timer that must be set after an answer, and after how long it is due; None if none is."""
    config, lost = state.config, ZkError.LOST in results
    if isinstance(about, AwaitStateWrites):
        refused = not isinstance(results[0], ZkDone)
        alone = len(about.decisions) == 1 and about.decisions[0].fresh
        if not refused or not (alone or lost):
            return None  # it is written, halved and written again, or read again once all are answered
        return ("controller-read",), config.controller_backoff_ms if lost else AT_ONCE_MS
    if not lost:
        return None
    if isinstance(about, _READINGS):
        needed = results[:2] if isinstance(about, reading.AwaitNames) else results
        return (("controller-read",), config.controller_backoff_ms) if ZkError.LOST in needed else None
    if isinstance(about, office.AwaitLook):
        return ("office", about.tried), config.controller_backoff_ms
    if isinstance(about, isr.AwaitIsrRead):
        return ("isr-read", about.tp, about.generation, about.isr), config.controller_backoff_ms
    if isinstance(about, permanent_paths.AwaitPaths):
        return ("paths",), config.register_backoff_ms
    if isinstance(about, membership.AwaitRegistrationRead) or (
        isinstance(about, neighbours.AwaitNeighbours) and about.is_before
    ):
        return ("register",), config.register_backoff_ms
    if isinstance(about, membership.AwaitRegistrationWatched):
        return ("registration",), config.register_backoff_ms
    if isinstance(about, membership.AwaitRegistrationWrite):
        again = _after_registration(results, state)
        return None if again is None else ((again,), config.register_backoff_ms)
    if isinstance(about, neighbours.AwaitNeighbourNames | neighbours.AwaitNeighbours):
        return ("neighbours",), config.register_backoff_ms
    if isinstance(about, _START):
        return ("startup",), config.register_backoff_ms
    return None


def _after_registration(results: Sequence[ZkResult], state: State) -> str | None:
    """Return what is tried again after a registration's write some of whose results were lost."""
    written, watched, *others, _, own = results
    if not (isinstance(written, ZkDone) and isinstance(own, ZkNode)):
        return "register"
    if watched is ZkError.LOST:
        return "registration"
    return "neighbours" if state.registered and ZkError.LOST in others else None
