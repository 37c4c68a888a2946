"""
Elections that clients ask for, and those of the preferred replicas by time: the controller's reading decides.

The answer comes once they are written, or when the time is up: what is decided later is still decided.
Source:  KIP-460 (ElectLeaders); Kafka, KafkaController.processReplicaLeaderElection and
         checkAndTriggerAutoLeaderRebalance.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from targets.broker.core.events import Answer, Caller
from targets.broker.core.messages import (
    ElectLeadersRequest,
    ErrorCode,
    PartitionError,
    PartitionErrors,
    TopicPartition,
)
from targets.broker.core.state import Core
from targets.broker.core.waiting import WaitingElection
from targets.broker.core.zookeeper import PartitionState

_Error = tuple[ErrorCode, str]
_NONE: Final = (ErrorCode.NONE, "")


def on_elect_leaders(core: Core, caller: Caller, request: ElectLeadersRequest) -> None:
    """Note what the reading that follows is to decide, if this broker is the controller."""
    if not core.state.controller.active:
        errors = tuple(PartitionError(tp, ErrorCode.NOT_CONTROLLER) for tp in request.partitions or ())
        response = PartitionErrors(error=ErrorCode.NOT_CONTROLLER, errors=errors)
        core.effects.append(Answer(to=caller, response=response))
        return
    number = core.number()
    core.state.elections[number] = WaitingElection(caller=caller, request=request)
    core.after_ms(("elect-leaders", number), request.timeout_ms)


def begin(core: Core) -> None:
    """Have the preferred replicas lead from time to time, as far as they are in sync."""
    if core.config.preferred_leader_check_ms:
        core.after_ms(("preferred-leaders",), core.config.preferred_leader_check_ms)


def prefer(core: Core) -> None:
    """Have the reading that follows elect the preferred replicas, if this broker is the controller."""
    begin(core)
    if core.state.controller.active:
        request = ElectLeadersRequest(partitions=None, timeout_ms=0)
        core.state.elections[core.number()] = WaitingElection(caller=None, request=request)


def doubted(core: Core, assignments: Mapping[TopicPartition, tuple[int, ...]]) -> set[TopicPartition]:
    """Return the partitions whose states are to be read for it: their leaders may have changed the ISR."""
    found: set[TopicPartition] = set()
    states = core.state.controller.states
    for waiting in core.state.elections.values():
        if waiting.request.partitions is not None:
            found |= {*waiting.request.partitions}
        else:
            found |= {tp for tp, of in assignments.items() if tp not in states or states[tp].leader not in of[:1]}
    return found


def take(
    core: Core, assignments: Mapping[TopicPartition, tuple[int, ...]]
) -> tuple[dict[TopicPartition, int], set[TopicPartition]]:
    """
    Return whom a reading is to elect where, and where anybody who is alive is to lead.

    What need not, or cannot, be elected is noted for the answer.
    """
    leaders: dict[TopicPartition, int] = {}
    unclean: set[TopicPartition] = set()
    for waiting in core.state.elections.values():
        if not waiting.is_taken:
            wanted = waiting.request.partitions
            waiting.required = dict.fromkeys(assignments if wanted is None else wanted, -1)
            waiting.is_taken = True
        for tp in tuple(waiting.required):
            state, replicas = core.state.controller.states.get(tp), assignments.get(tp, ())
            leader, error = _choice(core, tp, state, replicas, waiting)
            if error is not None:
                waiting.settle(tp, error)
                continue
            waiting.required[tp] = leader
            if waiting.request.unclean:
                unclean.add(tp)
            else:
                leaders[tp] = leader
    return leaders, unclean


def _choice(
    core: Core,
    tp: TopicPartition,
    state: PartitionState | None,
    replicas: tuple[int, ...],
    waiting: WaitingElection,
) -> tuple[int, _Error | None]:
    """Return who should lead, or the answer if nobody is to be elected."""
    live = core.state.controller.live
    if state is None:
        return -1, (
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
            f"{tp}: no such partition, or one without a leader so far",
        )
    if waiting.request.unclean:
        if state.leader in live:
            done = waiting.required[tp] == state.leader  # an earlier reading elected it
            return -1, _NONE if done else (ErrorCode.ELECTION_NOT_NEEDED, f"broker {state.leader} leads {tp}")
        there = [broker for broker in replicas if broker in live]
        first = next((broker for broker in there if broker in state.isr), there[0] if there else -1)
        text = f"no replica of {tp} is alive, of {list(replicas)}"
        return first, None if there else (ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE, text)
    preferred = replicas[0] if replicas else -1
    if state.leader == preferred:
        done = waiting.required[tp] == preferred
        return -1, _NONE if done else (ErrorCode.ELECTION_NOT_NEEDED, f"broker {preferred} leads {tp}")
    if preferred not in live or preferred not in state.isr:
        text = f"broker {preferred}, preferred for {tp}, is not alive and in sync; the ISR is {list(state.isr)}"
        return -1, (ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE, text)
    return preferred, None


def complete(core: Core) -> None:
    """Answer the elections whose decisions are written; those that were refused are read and decided again."""
    states = core.state.controller.states
    for number, waiting in tuple(core.state.elections.items()):
        if not waiting.is_taken:
            continue
        for tp, leader in tuple(waiting.required.items()):
            if tp in states and states[tp].leader == leader:
                waiting.settle(tp, _NONE)
        if not waiting.required or waiting.caller is None:
            _answer(core, number)


def on_timeout(core: Core, number: int) -> None:
    """Answer what is not known to be elected with error 7."""
    waiting = core.state.elections.get(number)
    if waiting is None:
        return
    if not waiting.is_taken:
        waiting.required = dict.fromkeys(waiting.request.partitions or (), -1)
    for tp in tuple(waiting.required):
        waiting.settle(tp, (ErrorCode.REQUEST_TIMED_OUT, f"nobody was elected in {tp} in time"))
    _answer(core, number)


def drop(core: Core, connection: int) -> None:
    """Forget the elections that a closed connection asked for; those decided are written all the same."""
    for number, waiting in tuple(core.state.elections.items()):
        if waiting.caller is not None and waiting.caller.connection == connection:
            del core.state.elections[number]
            core.state.timers.drop(("elect-leaders", number))


def _answer(core: Core, number: int) -> None:
    waiting = core.state.elections.pop(number)
    core.state.timers.drop(("elect-leaders", number))
    if waiting.caller is None:
        return
    errors = tuple(PartitionError(tp, *waiting.done[tp]) for tp in sorted(waiting.done))
    core.effects.append(Answer(to=waiting.caller, response=PartitionErrors(error=ErrorCode.NONE, errors=errors)))
