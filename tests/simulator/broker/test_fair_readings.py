"""A topic of many partitions is begun slice by slice: another topic waits for one slice, and not for all."""

from __future__ import annotations

import pytest

from targets.broker.core.messages import TopicPartition
from targets.broker.core.state import Together
from targets.broker.core.zookeeper import CONTROLLER, leader_and_isr_path
from targets.simulator.broker.clients.client import SimClient
from targets.simulator.broker.world import World
from tests.simulator.worlds import IDS, WAIT_S, boot

PARTITIONS, SLICE = 300, 20
LARGE = [TopicPartition("large", number) for number in range(PARTITIONS)]
SMALL = TopicPartition("small", 0)


def started(count: int = PARTITIONS, **together: int) -> World:
    """Return brokers that have registered the large topic, and begun some of its partitions."""
    world = World(protocol="kip380", ids=IDS, settings={"together": Together(writes_max=SLICE, **together)})
    boot(world)
    SimClient(world).create_topic("large", *[[world.ids["A"]]] * count)
    assert world.until(lambda: begun(world) > 0, WAIT_S)
    return world


def begun(world: World) -> int:
    """Return how many partitions of the large topic have a leader."""
    return sum(leader_and_isr_path(tp) in world.zookeeper.tree.nodes for tp in LARGE)


def has_small(world: World) -> bool:
    return leader_and_isr_path(SMALL) in world.zookeeper.tree.nodes


def test_topic_that_comes_later_waits_for_no_more_than_a_slice_of_a_large_one() -> None:
    world = started(firsts_max=SLICE)
    SimClient(world).create_topic(SMALL.topic, [world.ids["B"]])
    before = begun(world)
    assert before < PARTITIONS // 2
    assert world.until(lambda: has_small(world), WAIT_S)
    # What was being read when it came, and a slice in which it has its part.
    assert begun(world) - before <= 2 * SLICE
    assert world.until(lambda: begun(world) == PARTITIONS, WAIT_S)


def test_new_controller_goes_on_slice_by_slice_too() -> None:
    world = started(firsts_max=SLICE)
    owner = world.zookeeper.session_of(CONTROLLER)
    (name,) = [
        each
        for each, node in world.nodes.items()
        if node.process is not None and node.process.zookeeper.announced == owner
    ]
    world.nodes[name].kill()
    world.zookeeper.expire(owner)
    assert world.until(lambda: world.zookeeper.session_of(CONTROLLER) not in (owner, 0), WAIT_S)
    SimClient(world).create_topic(SMALL.topic, [world.ids["B"]])
    before = begun(world)
    assert before < PARTITIONS // 2
    assert world.until(lambda: has_small(world), WAIT_S)
    assert begun(world) - before <= 3 * SLICE
    world.nodes[name].boot()
    assert world.until(lambda: begun(world) == PARTITIONS, WAIT_S)


@pytest.mark.parametrize("slice_", [1, 7, 1_000])
def test_every_partition_is_begun_however_small_the_slice(slice_: int) -> None:
    world = started(30, firsts_max=slice_)
    assert world.until(lambda: begun(world) == 30, WAIT_S)
