"""A seed determines its world's latency and ZooKeeper faults; in some worlds the faults take effect."""

from __future__ import annotations

from functools import partial

from harness.events import Step
from harness.model import Op, OpType
from targets.broker.core.rules import PROTOCOLS
from targets.broker.core.state import ASKS_TOGETHER_MAX, DELETES_TOGETHER_MAX
from targets.simulator.broker.random_world import (
    FETCH_BYTES,
    LATENCIES,
    random_fetches,
    random_together,
    random_world,
)
from targets.simulator.broker.world import SETTINGS, World
from targets.simulator.engine.network import Latency
from targets.simulator.zookeeper.faults import ZooKeeperFaults
from tests.simulator.worlds import IDS, WAIT_S, boot, registered

SEEDS = range(40)


def world_of(seed: int) -> World:
    return random_world(seed, protocol="kip380", rules=PROTOCOLS["kip380"], ids=IDS, settings=SETTINGS)


def latency_of(world: World) -> Latency:
    network = world.network
    return Latency(low_ns=network._low_ns, high_ns=network._low_ns + network._span_ns)


def set_up() -> Op:
    step = Step(line=0, text="set up", narrative="")
    return Op.of(step, index=0, time_ns=0, process="runner", type=OpType.OK)


def faultsed(seed: int) -> tuple[World, ZooKeeperFaults]:
    """Return a world of three running brokers, and its ZooKeeper faults, after two seconds."""
    world = world_of(seed)
    faults = ZooKeeperFaults(world, world.zookeeper)
    boot(world)
    faults.listen(set_up())
    world.run(2.0)
    return world, faults


def test_world_of_a_seed_is_the_same_and_worlds_differ() -> None:
    latencies = [latency_of(world_of(seed)) for seed in SEEDS]
    assert latencies == [latency_of(world_of(seed)) for seed in SEEDS]
    assert set(LATENCIES) == set(latencies)


def test_faults_is_bad_for_some_seeds_and_bites() -> None:
    found = [faultsed(seed)[1] for seed in SEEDS]
    assert 0 < sum(faults.asked > 0 for faults in found) < len(SEEDS)
    assert 0 < sum(faults.bit for faults in found) <= sum(faults.asked for faults in found)


def test_faults_waits_for_the_set_up_and_comes_once() -> None:
    for seed in SEEDS:
        world = world_of(seed)
        faults = ZooKeeperFaults(world, world.zookeeper)
        world.run(2.0)
        assert 0 == faults.asked
        for _ in range(3):
            faults.listen(set_up())
        world.run(2.0)
        assert faults.asked <= 5


def test_brokers_come_through_whatever_faults() -> None:
    for seed in SEEDS:
        world, _ = faultsed(seed)
        for name in IDS:
            assert world.until(partial(registered, world, name), WAIT_S), f"seed {seed}: {name} is not registered"


def test_runs_of_several_partitions_fetch_little_or_much_and_delete_few_or_many_nodes_at_once() -> None:
    drawn = [random_fetches(seed, 60_000) for seed in SEEDS]
    fetches = {(each["fetch_bytes_max"], each["fetch_wait_ms_max"]) for each in drawn}
    assert {(size, wait) for size in (1, FETCH_BYTES) for wait in (50, 500)} == fetches
    assert {15} == {random_fetches(seed, 30)["fetch_wait_ms_max"] for seed in SEEDS}
    assert {1, 2, DELETES_TOGETHER_MAX} == {random_together(seed, 60_000).deletes_max for seed in SEEDS}
    assert {1, 2, ASKS_TOGETHER_MAX} == {random_together(seed, 60_000).asks_max for seed in SEEDS}
    assert {ASKS_TOGETHER_MAX} == {random_together(seed, 30).asks_max for seed in SEEDS}
    assert {ASKS_TOGETHER_MAX} == {random_together(seed, 60_000, in_use=True).asks_max for seed in SEEDS}
