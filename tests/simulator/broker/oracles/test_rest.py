"""Once all is healed nothing is left over: what a broker forgot is named, whatever it is."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from harness.events import Healed
from harness.model import Op, OpType
from targets.broker.core.assignments import Move
from targets.broker.core.command_queue import AwaitCommandAck
from targets.broker.core.decided import Decided
from targets.broker.core.events import Caller
from targets.broker.core.messages import StopReplica, TopicPartition
from targets.broker.core.state import State
from targets.broker.core.state_writes import AwaitStateWrites
from targets.broker.core.waiting import WaitingFetch
from targets.simulator.broker.clients.client import SimClient
from targets.simulator.broker.disturbances.by_hand import depose_controller
from targets.simulator.broker.oracles import Rule
from targets.simulator.broker.oracles.rest import left_over
from targets.simulator.broker.world import SETTINGS, World
from targets.simulator.engine.clock import NS_PER_MS
from targets.simulator.engine.node_clock import Drift
from tests.simulator.broker.oracles.planted import fetch, replica_of, sentence_of, watched
from tests.simulator.worlds import TP, WAIT_S, state

CALLER = Caller(connection=1, number=1)


def texts(world: World) -> list[str]:
    """Return what is not at rest; nobody waits for an answer."""
    callers: dict[str, set[Caller]] = {name: set() for name in world.nodes}
    return [text for _, _, text in left_over(world, [TP], callers)]


def at_rest() -> World:
    """Return a world in which every follower has learned the last high watermark and checkpointed it."""
    world, _ = watched()
    world.run(1.0)
    for node in world.nodes.values():  # a follower's own fetches wait; their callers are not of this test
        assert node.broker is not None
        for number in list(node.broker.state.fetches.requests):
            node.broker.state.fetches.pop(number)
    return world


def state_of(world: World, name: str) -> State:
    broker = world.nodes[name].broker
    assert broker is not None
    return broker.state


def test_world_at_rest_has_nothing_left_over() -> None:
    assert [] == texts(at_rest())


def controller_of(world: World) -> str:
    return next(name for name in world.nodes if state_of(world, name).controller.active)


def _two_controllers(world: World) -> None:
    other = next(name for name in world.nodes if name != controller_of(world))
    state_of(world, other).controller.active = True


def _forgets(world: World) -> None:
    state_of(world, controller_of(world)).controller.active = False


def _writes(world: World) -> None:
    state_of(world, controller_of(world)).controller.writing = 1


def _decision(world: World) -> Decided:
    epoch = state_of(world, controller_of(world)).controller.epoch
    return Decided(tp=TP, state=replace(state(world), controller_epoch=epoch), replicas=(1, 2), unclean=False)


def _unsent(world: World) -> None:
    state_of(world, controller_of(world)).controller.writes.append(_decision(world))


def _commands(world: World) -> None:
    channel = state_of(world, controller_of(world)).controller.channels[2]
    channel.stops[TP] = StopReplica(tp=TP)


def _late_timer(world: World) -> None:
    state_of(world, "A").timers.set(("late",), world.clock.now_ns - 5 * NS_PER_MS)


def _waits(world: World) -> None:
    state_of(world, "A").fetches.add(99, WaitingFetch(caller=CALLER, request=fetch(0)))


def _isr(world: World) -> None:
    replica_of(world, "A").isr_asked = (1, 2)


def _epoch(world: World) -> None:
    replica_of(world, "B").leader_epoch -= 1


def _high_watermark(world: World) -> None:
    replica_of(world, "B").high_watermark -= 1


def _checkpoint(world: World) -> None:
    world.nodes["B"].disk.high_watermarks[TP] = 0


def _stray(world: World) -> None:
    state_of(world, "A").replicas[TopicPartition(TP.topic, 7)] = replica_of(world, "A")


@pytest.mark.parametrize(
    ("forget", "expected"),
    [
        (_two_controllers, "takes itself for the controller, and"),
        (_forgets, "does not know that it is controller"),
        (_writes, "waits for 1 decisions, of which 0 are under way"),
        (_unsent, "and has 1 left"),
        (_commands, "has commands left for 2"),
        (_late_timer, "has let the time of ('late',) pass"),
        (_waits, "lets a fetch wait whose caller is gone"),
        (_isr, "asked for (1, 2)"),
        (_epoch, "is follower of log-0 in epoch -1"),
        (_high_watermark, "has the high watermark 2 of log-0, whose log ends at 3"),
        (_stray, "has a replica of log-7, which ZooKeeper does not assign to it"),
        (_checkpoint, "has checkpointed 0 of log-0, and its high watermark is 3"),
    ],
    ids=lambda each: each.__name__ if callable(each) else "",
)
def test_what_a_broker_forgot_is_named(forget: Callable[[Any], None], expected: str) -> None:
    world = at_rest()
    forget(world)
    assert any(expected in text for text in texts(world)), texts(world)


def _decision_in_flight(world: World) -> None:
    there = state_of(world, controller_of(world))
    there.controller.writing = 1
    there.controller.writes.append(_decision(world))  # it waits for the one in flight
    there.pending[10**6] = AwaitStateWrites(office=there.controller.epoch, decisions=(_decision(world),))


def _command_in_flight(world: World) -> None:
    _commands(world)
    there = state_of(world, controller_of(world))
    there.controller.channels[2].tag = 10**6
    there.pending[10**6] = AwaitCommandAck(broker=2, controller_epoch=there.controller.epoch)


def _command_to_be_sent_again(world: World) -> None:
    _commands(world)
    state_of(world, controller_of(world)).timers.set(("command", 2), world.clock.now_ns + NS_PER_MS)


@pytest.mark.parametrize("begin", [_decision_in_flight, _command_in_flight, _command_to_be_sent_again])
def test_what_is_under_way_is_not_left_over(begin: Callable[[World], None]) -> None:
    world = at_rest()
    begin(world)
    assert [] == texts(world)


def test_high_watermark_that_waits_for_the_end_of_a_fetch_is_given_time() -> None:
    world, oracles = watched(settings={**SETTINGS, "fetch_wait_ms_max": 500})
    world.run(1.0)
    client = SimClient(world)
    client.produce(TP.topic, 0, "m3", ["m3.0"], acks=-1)
    assert texts(world)
    oracles.listen(Op.of(Healed(), index=0, time_ns=0, process="runner", type=OpType.OK))
    oracles.end()
    assert {} == oracles.violations


@pytest.mark.parametrize("rate", [1_500, 1_000, 700])
def test_high_watermark_that_waits_for_a_fetch_of_the_epoch_before_is_given_time(rate: int) -> None:
    """A new controller raises the epoch under fetches that wait on a leader; theirs end before the next begin."""
    clocks = {"A": Drift(offset_ns=10**15, rate=rate)}
    world, oracles = watched(settings={**SETTINGS, "fetch_wait_ms_max": 500}, clocks=clocks)
    world.run(1.0)
    SimClient(world).produce(TP.topic, 0, "m3", ["m3.0"], acks=-1)
    depose_controller(world)
    epoch = state(world).leader_epoch
    assert world.until(lambda: all(replica_of(world, name).leader_epoch > epoch for name in "ABC"), WAIT_S)
    left = [text for text in texts(world) if "high watermark 3 of log-0, whose log ends at 4" in text]
    assert ["B", "C"] == sorted(text[0] for text in left)
    oracles.listen(Op.of(Healed(), index=0, time_ns=0, process="runner", type=OpType.OK))
    oracles.end()
    assert {} == oracles.violations


def test_what_is_left_over_at_the_end_is_a_violation_and_only_if_all_was_healed() -> None:
    world, oracles = watched()
    world.run(1.0)
    _checkpoint(world)
    oracles.end()
    assert {} == oracles.violations
    oracles.listen(Op.of(Healed(), index=0, time_ns=0, process="runner", type=OpType.OK))
    oracles.end()
    assert "has checkpointed 0 of log-0" in sentence_of(oracles, Rule.REST)


def test_move_whose_replicas_are_all_in_sync_is_not_over_by_itself() -> None:
    world = at_rest()
    isr = state(world).isr
    controller = state_of(world, controller_of(world)).controller
    controller.moves[TP] = Move(origin=isr[:1], target=(*isr[:2], 99))
    assert [] == texts(world)
    controller.moves[TP] = Move(origin=isr[:1], target=isr[:2])
    (text,) = texts(world)
    assert f"has not ended the move of {TP} to {list(isr[:2])}, all of which are in the ISR" in text
