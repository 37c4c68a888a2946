"""A node drives its core as the broker's own driver does: pauses, exits, recorded events, flushes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from harness.model import OpType, Source
from targets.broker.core.broker import Broker
from targets.broker.core.events import Answered, Effect, Event, Flushed, Observe, Tick
from targets.broker.core.zookeeper import broker_path, encode_registration
from targets.simulator.broker.clients.client import SimClient
from targets.simulator.broker.world import Randomness, World, registration
from targets.simulator.engine.clock import NS_PER_MS
from targets.simulator.zookeeper.ops import Set
from tests.simulator.worlds import (
    TOPIC,
    TP,
    WAIT_S,
    Ops,
    Steps,
    boot,
    cluster,
    kill,
    leads,
    registered,
    settled,
    state,
)


def test_paused_node_does_nothing_and_then_takes_all_that_came_in_order() -> None:
    world = cluster()
    client = SimClient(world)
    world.run(0.02)
    steps = Steps(world, "B")
    world.nodes["B"].pause()
    sent = client.begin_produce(TOPIC, 0, "m1", ["m1.0"], acks=-1)
    world.run(1.0)
    assert ([], False, 0) == (steps.events, sent.done, world.nodes["B"].disk.logs[TP].end_offset)
    world.nodes["B"].resume()
    assert [Tick, Answered] == sorted({type(e) for e in steps.events}, key=lambda kind: kind is Answered)
    assert world.until(lambda: sent.done, WAIT_S)
    assert [0] == sent.result()


def test_paused_node_that_is_killed_takes_nothing_any_more() -> None:
    world = cluster()
    world.nodes["B"].pause()
    world.run(1.0)
    steps = Steps(world, "B")
    kill(world, "B")
    world.nodes["B"].resume()
    assert [] == steps.events
    boot(world, "B")
    assert world.until(lambda: settled(world), WAIT_S)


def test_pause_longer_than_the_session_costs_the_registration_which_comes_back() -> None:
    world = cluster(session_timeout_ms=2_000)
    world.nodes["B"].pause()
    assert world.until(lambda: (1,) == state(world).isr, WAIT_S)
    world.nodes["B"].resume()
    assert world.until(lambda: registered(world, "B") and (1, 2) == state(world).isr, WAIT_S)


def test_follower_that_is_cut_from_zookeeper_finds_its_leader_again_where_it_was() -> None:
    """Source: KAFKA-6880, whose zombie keeps fetching."""
    world = cluster()
    follower = "A" if leads(world, "B") else "B"
    leader = "B" if follower == "A" else "A"
    client = SimClient(world)
    first = client.begin_produce(TOPIC, 0, "m0", ["m0.0"], acks=-1)
    assert world.until(lambda: first.done, WAIT_S)
    world.links.cut(follower, "metadata", close=True)
    world.run(0.5)
    cut = world.links.cut(follower, leader, close=True)
    world.run(0.5)
    world.links.heal(cut)
    sent = client.begin_produce(TOPIC, 0, "m1", ["m1.0"], acks=1)
    assert world.until(lambda: sent.done and world.nodes[follower].disk.logs[TP].end_offset == 2, WAIT_S)


def test_node_that_may_not_go_on_ends_by_itself_and_its_session_with_it() -> None:
    world = World(protocol="kip101", ids={"A": 1})
    boot(world)
    kill(world, "A")
    other = encode_registration(registration("Z"))
    world.zookeeper.tree.write((Set(path=broker_path(1), data=other, version=-1),), 0)
    node = world.nodes["A"]
    node.boot()
    world.run(1.0)
    assert (None, True) == (node.process, node.ended.startswith("broker id 1: registered by node 'Z'"))
    assert f"ended: {node.ended}" == node.printed[-1]
    assert 1 == world.zookeeper.ended


def test_core_that_fails_ends_its_node_which_says_where(monkeypatch: pytest.MonkeyPatch) -> None:
    world = cluster()

    def broken(_self: Broker, _now_ns: int, _event: object, *, wall_ms: int) -> list[object]:
        del wall_ms
        raise AssertionError("a planted fault")

    monkeypatch.setattr(Broker, "step", broken)
    world.run(0.1)
    assert {"AssertionError('a planted fault')"} == {node.ended for node in world.nodes.values()}
    assert all("in broken" in node.printed[-2] for node in world.nodes.values())


def test_broker_tells_the_history_what_it_does_and_what_it_flushed() -> None:
    ops = Ops()
    world = cluster(sink=ops, settings={"flush_messages": 1, "high_watermark_checkpoint_ms": 50})
    SimClient(world).produce(TOPIC, 0, "m1", ["m1.0"], acks=-1)
    world.run(0.1)
    assert [{"id": 1, "pid": 1002, "protocol": "kip101"}] == ops.of("started", "A")
    assert {"topic": TOPIC, "partition": 0, "upto": 1} == ops.of("flushed", "B")[-1]
    assert {"log-0/00000000000000000000.log", "replication-offset-checkpoint"} == {
        value["path"] for value in ops.of("flush", "B")
    }
    assert {(Source.BROKER, OpType.INFO)} == {(op[0], op[2]) for op in ops.found if op[1] == "B"}
    world.record_into(None)
    told = len(ops.found)
    world.run(1.0)
    assert told == len(ops.found)


def test_flush_is_durable_before_the_core_hears_of_it() -> None:
    world = cluster(settings={"flush_messages": 1})
    SimClient(world).produce(TOPIC, 0, "m1", ["m1.0"], acks=1)
    world.nodes["A"].lose_power()
    assert 1 == len(world.nodes["A"].disk.logs[TP].batches)


def test_flush_may_take_a_while_and_makes_durable_what_is_there_at_its_end() -> None:
    world = cluster(settings={"flush_messages": 1}, randomness=Randomness(flush_ns_max=500 * NS_PER_MS))
    heard = Steps(world, "A")
    client = SimClient(world)
    for name in ("m1", "m2"):
        client.produce(TOPIC, 0, name, [f"{name}.0"], acks=1)
    log = world.nodes["A"].disk.logs[TP]
    assert ([], ()) == (heard.of(Flushed), log.segments[0].durable)
    assert world.until(lambda: bool(heard.of(Flushed)), WAIT_S)
    assert tuple(log.batches) == log.segments[0].durable
    world.run(0.5)
    assert {1, 2} == {event.upto for event in heard.of(Flushed)}


def test_flush_under_way_ends_with_its_process() -> None:
    world = cluster(settings={"flush_messages": 1}, randomness=Randomness(flush_ns_max=50 * NS_PER_MS))
    SimClient(world).produce(TOPIC, 0, "m1", ["m1.0"], acks=1)
    world.nodes["A"].kill()
    world.run(0.2)
    assert () == world.nodes["A"].disk.logs[TP].segments[0].durable


def test_watchers_hear_of_a_step_when_its_effects_are_done() -> None:
    world = cluster()
    ends: list[tuple[int, Mapping[str, Any]]] = []

    def watch(name: str, event: Event, effects: Sequence[Effect]) -> None:
        del event
        for effect in effects:
            if name == "A" and isinstance(effect, Observe) and effect.f == "append":
                ends.append((world.nodes["A"].disk.logs[TP].end_offset, effect.value))

    world.watchers.append(watch)
    SimClient(world).produce(TOPIC, 0, "m1", ["m1.0"], acks=1)
    assert [(1, 0, 1)] == [(end, value["base"], value["end"]) for end, value in ends]


def test_power_cut_without_chance_takes_everything_unflushed_from_a_node() -> None:
    world = cluster("hw")
    client = SimClient(world)
    client.produce(TOPIC, 0, "m1", ["m1.0"], acks=-1)
    world.nodes["A"].disk.sync()
    client.produce(TOPIC, 0, "m2", ["m2.0"], acks=-1)
    world.nodes["A"].lose_power()
    assert (1, None) == (len(world.nodes["A"].disk.logs[TP].batches), world.nodes["A"].broker)
    boot(world, "A")
    assert world.until(lambda: leads(world, "A"), WAIT_S)
