"""What a step must do at once, and did not, is named."""

from __future__ import annotations

from typing import Any

import pytest

from targets.broker.core import leader
from targets.broker.core.events import Caller, Hungup, Tick, ZkAsk
from targets.broker.core.state import State, Together
from targets.broker.core.waiting import WaitingFetch
from targets.broker.core.zookeeper import ZkCheck, ZkGet, ZkMulti
from targets.simulator.broker.oracles import Rule
from targets.simulator.broker.oracles.due import Due
from targets.simulator.broker.world import World
from tests.simulator.broker.oracles.planted import fetch, patch, post, produce, replica_of, sentence_of, watched
from tests.simulator.worlds import TP

WAITING = Caller(connection=77, number=1)


def state_of(world: World, name: str) -> State:
    broker = world.nodes[name].broker
    assert broker is not None
    return broker.state


def test_leader_whose_isr_shrinks_commits_at_once() -> None:
    """Source: Kafka Replication Design V3, G: the high watermark is the least log end in the ISR."""
    world, _ = watched()
    due, state = Due(world, [TP]), state_of(world, "A")
    replica = state.replicas[TP]
    assert [] == list(due.behind("A", state))
    replica.high_watermark -= 1
    assert [] == list(due.behind("A", state))  # only a change of the ISR is looked at
    replica.isr = replica.isr[:1]
    ((tp, text),) = due.behind("A", state)
    assert TP == tp
    assert f"has the high watermark 2, and its ISR {replica.isr} has all below 3" in text


def test_request_whose_connection_is_closed_waits_no_more() -> None:
    world, _ = watched()
    due, state = Due(world, [TP]), state_of(world, "A")
    hungup = Hungup(connection=WAITING.connection)
    assert [] == list(due.wrong("A", hungup, state))
    state.fetches.add(99, WaitingFetch(caller=WAITING, request=fetch(0)))
    assert [(None, "A lets a fetch wait whose connection is closed")] == list(due.wrong("A", hungup, state))


def test_timer_that_is_due_and_is_not_fired_is_named() -> None:
    world, _ = watched()
    due, state = Due(world, [TP]), state_of(world, "A")
    assert [] == list(due.wrong("A", Tick(), state))
    state.timers.set(("forgotten",), world.clock.now_ns)
    assert [(None, "A has not done what was due: ('forgotten',)")] == list(due.wrong("A", Tick(), state))


def test_sound_steps_are_silent() -> None:
    world, oracles = watched(settings={"replica_lag_ms_max": 100, "fetch_wait_ms_max": 50})
    for name in ("B", "C"):
        world.links.cut(name, "A", close=True)
    post(world, "A", produce("alone", acks=1))
    assert world.until(lambda: len(replica_of(world, "A").isr) == 1, 5)
    world.run(0.1)
    assert "" == sentence_of(oracles, Rule.DUE)


@pytest.mark.parametrize(
    ("ops", "expected"),
    [
        ((ZkGet(path="/a"),), ""),
        ((ZkGet(path="/a"), ZkGet(path="/b")), ""),
        ((ZkGet(path="/a"), ZkGet(path="/b"), ZkGet(path="/c")), "asks ZooKeeper for 3 operations at once"),
        ((ZkMulti(ops=(ZkCheck(path="/a", version=0),) * 5),), ""),
        ((ZkMulti(ops=(ZkCheck(path="/a", version=0),) * 2), ZkGet(path="/b")), "for 3 operations at once"),
    ],
)
def test_ask_that_is_larger_than_it_may_be_is_named(ops: tuple[ZkGet | ZkMulti, ...], expected: str) -> None:
    world, _ = watched(settings={"together": Together(ask_ops_max=2)})
    found = Due(world, [TP]).asked("A", ZkAsk(tag=1, ops=ops))
    assert expected in found
    assert bool(expected) == bool(found)


def test_timer_before_the_tick_and_one_that_fires_early_are_named() -> None:
    world, _ = watched()
    due, state, now_ns = Due(world, [TP]), state_of(world, "A"), world.clock.now_ns
    assert "" == due.timers("A", Tick(), state)
    state.timers.set(("soon",), state.armed_ns - 1_000_000)
    assert "A has a timer that is due 1.0 ms before it wakes" == due.timers("A", Tick(), state)
    state.timers.drop(("soon",))
    state.timers.set(("moved",), now_ns + 10**12)
    assert "" == due.timers("A", Tick(), state)
    state.timers.drop(("moved",))
    assert "A fires ('moved',) 1000000.0 ms too early" == due.timers("A", Tick(), state)


def test_leader_that_takes_a_follower_to_have_more_than_itself_is_named() -> None:
    world, _ = watched()
    due, state, replica = Due(world, [TP]), state_of(world, "A"), replica_of(world, "A")
    request = fetch(3, replica=world.ids["B"])
    assert [] == list(due.counted("A", state, request))
    replica.progress[world.ids["B"]].end = 5
    text = "A counts B as having all below 5, and its own log ends at 3"
    assert [(TP, text)] == list(due.counted("A", state, request))
    assert [] == list(due.counted("B", state_of(world, "B"), request))  # B does not lead


def test_leader_that_counts_a_fetch_past_its_log_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def count(_: Any, core: Any, replica: Any, follower: int, part: Any) -> None:
        leader.isr.note_fetch(core, replica, follower, part.fetch_offset, 0)

    world, oracles = watched()
    patch(monkeypatch, leader, "_count_fetch", count)
    post(world, "A", fetch(9, replica=world.ids["B"]))
    assert "A counts B as having all below 9" in sentence_of(oracles, Rule.DUE)
