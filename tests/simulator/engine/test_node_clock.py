"""A node measures by its own clock: what it plans happens when that shows the time; oracles judge it by that."""

from __future__ import annotations

from typing import Any

import pytest

from targets.broker.core import isr
from targets.simulator.broker.oracles import Oracles, Rule
from targets.simulator.broker.world import World
from targets.simulator.engine.clock import NS_PER_MS, NS_PER_S, Clock
from targets.simulator.engine.node_clock import RATES, Drift, NodeClock, random_clocks
from tests.simulator.broker.oracles.planted import patch, post, produce, replica_of, sentence_of, watched

LAG_MS = 200
SETTINGS = {"replica_lag_ms_max": LAG_MS, "fetch_wait_ms_max": 20, "high_watermark_checkpoint_ms": 50}
FAST = Drift(offset_ns=7 * NS_PER_S + 3, rate=4_000)
SLOW = Drift(offset_ns=12_345_678_901, rate=250)


@pytest.mark.parametrize("rate", [*RATES, 250, 333, 4_000])
def test_event_comes_at_the_first_moment_at_which_the_clock_shows_its_time(rate: int) -> None:
    for at_ns in (10**9, 10**9 + 1, 10**9 + 12_347):
        world = Clock(1)
        own = NodeClock(world, Drift(offset_ns=777, rate=rate))
        own.at(at_ns, ("tick",))
        assert ("tick",) == world.pop()
        assert own.now_ns >= at_ns > own.own(world.now_ns - 1)


def test_delay_is_one_of_the_nodes_own_time() -> None:
    world = Clock(1)
    NodeClock(world, FAST).after(8 * NS_PER_MS, ("tick",))
    NodeClock(world, SLOW).after(8 * NS_PER_MS, ("tock",))
    assert [(2 * NS_PER_MS, "tick"), (32 * NS_PER_MS, "tock")] == [
        (world.now_ns, event[0]) for event in iter(world.pop, None)
    ]


def with_laggard(clocks: dict[str, Drift]) -> tuple[World, Oracles]:
    """Return a watched world in which B has not reached A, the leader, for half of the lag that it may have."""
    world, oracles = watched(settings=SETTINGS, clocks=clocks)
    world.links.cut("B", "A", close=True)
    for number in range(4):
        post(world, "A", produce(f"more.{number}", acks=1))
        world.run(LAG_MS / 8_000)
    return world, oracles


@pytest.mark.parametrize(
    ("clocks", "members"), [({}, "ABC"), ({"A": FAST}, "AC"), ({"A": SLOW, "B": FAST}, "ABC")]
)
def test_follower_lags_by_the_clock_of_its_leader(clocks: dict[str, Drift], members: str) -> None:
    world, oracles = with_laggard(clocks)
    assert {world.ids[name] for name in members} == {*replica_of(world, "A").isr}
    assert {} == oracles.violations


def test_leader_that_keeps_who_lags_by_its_clock_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    patch(monkeypatch, isr, "_late", lambda *_: False)
    _, oracles = with_laggard({"A": FAST})
    assert "A, leader of log-0, keeps B, which has lagged for" in sentence_of(oracles, Rule.DUE)


def test_leader_that_takes_out_who_does_not_lag_by_its_clock_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def after_a_while(_original: Any, *_: Any) -> bool:
        return True

    patch(monkeypatch, isr, "_late", after_a_while)
    world, oracles = watched(settings=SETTINGS, clocks={"A": SLOW})
    world.run(LAG_MS / 1_000)
    assert "A, leader of log-0, takes out" in sentence_of(oracles, Rule.DUE)


def test_clocks_are_drawn_from_the_seed_for_some_runs() -> None:
    drawn = [random_clocks(seed, "ABC") for seed in range(100)]
    assert drawn == [random_clocks(seed, "ABC") for seed in range(100)]
    assert 30 < sum(map(bool, drawn)) < 70
    assert {*RATES} == {drift.rate for clocks in drawn for drift in clocks.values()}


def test_what_is_planned_comes_when_a_clock_that_was_set_shows_its_time() -> None:
    world = Clock(1)
    own = NodeClock(world, Drift())
    for at_ns in (1 * NS_PER_S, 2 * NS_PER_S, 90 * NS_PER_S):
        own.at(at_ns, ("tick", at_ns))
    world.at(1 * NS_PER_S, ("world",))
    own.go_on(ahead_ns=0, rate=10_000, planned=lambda event: event[0] == "tick")
    assert ("tick", 1 * NS_PER_S) == world.pop()
    assert (NS_PER_S // 10, 1 * NS_PER_S) == (world.now_ns, own.now_ns)
    own.go_on(ahead_ns=80 * NS_PER_S, rate=100, planned=lambda event: event[0] == "tick")
    assert [("tick", 2 * NS_PER_S), ("world",), ("tick", 90 * NS_PER_S)] == list(iter(world.pop, None))
    assert (NS_PER_S // 10 + 90 * NS_PER_S, 90 * NS_PER_S) == (world.now_ns, own.now_ns)


def test_clock_that_was_set_still_tells_what_it_showed_before() -> None:
    world = Clock(1)
    own = NodeClock(world, FAST)
    before = own.own(5)
    world.advance(NS_PER_S)
    shown = own.now_ns
    own.go_on(ahead_ns=8, rate=100, planned=lambda _: False)
    assert (before, shown + 8) == (own.own(5), own.now_ns)
    assert 8 * 1_000 // FAST.rate == own.gained_ns
