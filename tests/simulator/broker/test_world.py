"""A whole cluster runs in one process and in virtual time."""

from __future__ import annotations

import pytest

from targets.broker.core.rules import PROTOCOLS, with_rule
from targets.simulator.broker.clients.client import SimClient
from targets.simulator.broker.world import Randomness, World
from targets.simulator.engine.network import Latency
from tests.kept import exhaustive
from tests.simulator.storm import IDS, Storm
from tests.simulator.worlds import TOPIC, TP, WAIT_S, boot, cluster, settled, state

# Storms that CI runs; each has several thousand events.
STORMS = 12


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_cluster_makes_a_topic_takes_records_and_gives_them_back_under_every_protocol(protocol: str) -> None:
    world = cluster(protocol, replicas=("A", "B", "C"))
    client = SimClient(world)
    assert [0, 1] == client.produce(TOPIC, 0, "m1", ["m1.0", "m1.1"], acks=-1)
    assert [2, 3] == client.produce(TOPIC, 0, "m2", ["m2.0", "m2.1"], acks=-1, singly=True)
    assert [(0, "m1.0"), (1, "m1.1"), (2, "m2.0"), (3, "m2.1")] == client.read_all(TOPIC, 0)
    assert world.until(lambda: settled(world), WAIT_S)
    assert (1, (1, 2, 3)) == (state(world).leader, state(world).isr)
    logs = [node.disk.replica_log(*TP) for node in world.nodes.values()]
    assert [4, 4, 4] == [log.log_end_offset for log in logs if log is not None]
    assert 1 == len({log.batches for log in logs if log is not None})


def test_time_passes_only_as_far_as_it_is_asked_to() -> None:
    world = cluster()
    before = world.clock.now_ns
    assert not world.until(lambda: False, 2.5)
    assert before + 2_500_000_000 == world.clock.now_ns
    assert world.until(lambda: True, 100.0)
    assert before + 2_500_000_000 == world.clock.now_ns


def test_world_in_which_nothing_is_planned_does_nothing() -> None:
    world = World(protocol="hw", ids={"A": 1})
    assert not world.step()
    world.run(1.0)
    assert (1_000_000_000, 0) == (world.clock.now_ns, world.steps)


def test_world_without_chance_is_the_same_whatever_its_seed() -> None:
    ends = []
    for seed in (1, 2):
        world = cluster(seed=seed)
        SimClient(world).produce(TOPIC, 0, "m1", ["m1.0"], acks=-1)
        ends.append((world.clock.now_ns, world.steps, world.core_steps))
    assert ends[0] == ends[1]


def test_random_world_differs_by_its_seed() -> None:
    ends = {
        cluster(seed=seed, randomness=Randomness(latency=Latency(low_ns=1, high_ns=10**6))).steps
        for seed in range(5)
    }
    assert len(ends) > 1


def test_rules_of_a_mutant_replace_the_protocols() -> None:
    mutant = with_rule(PROTOCOLS["kip101"], "truncate_to=high_watermark")
    world = World(protocol="kip101", rules=mutant, ids={"A": 1})
    boot(world)
    assert mutant == world.nodes["A"].broker.state.config.rules  # type: ignore[union-attr]
    assert ("A", None) == (world.name_of(1), world.name_of(-1))


def test_whoever_plans_a_call_is_called() -> None:
    world = World(protocol="hw", ids={"A": 1})
    called: list[tuple[int, str]] = []
    world.on_call("me", lambda what: called.append((world.clock.now_ns, what)))
    world.clock.after(5, ("call", "me", "hello"))
    world.run(1.0)
    assert [(5, "hello")] == called


@pytest.mark.parametrize("seed", range(STORMS))
def test_storm_ends_no_core_and_calms_down_with_all_replicas_alike(seed: int) -> None:
    """Random faults of every kind under the newest protocol end no core; once healed, all replicas agree."""
    world = Storm(seed).run(actions=40).world
    assert dict.fromkeys(IDS, "") == {name: node.ended for name, node in world.nodes.items()}
    assert (1, 2, 3) == tuple(sorted(state(world).isr))
    logs = [node.disk.replica_log(*TP) for node in world.nodes.values()]
    assert 1 == len({None if log is None else log.batches for log in logs})


@exhaustive
def test_storms_make_every_fault_bite() -> None:
    bit: set[str] = set()
    for seed in range(STORMS):
        bit |= Storm(seed).run(actions=40).bit.keys()
    assert 16 == len(bit)
