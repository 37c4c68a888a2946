"""An operator removes partitions of a topic that comes and goes, and never what clients could not do without."""

from __future__ import annotations

from targets.broker.core.assignments import decode_topic, encode_assignment
from targets.broker.core.messages import TopicPartition
from targets.broker.core.zookeeper import ELECTIONS, topic_path
from targets.simulator.broker.disturbances.remover import Remover
from targets.simulator.broker.world import World
from targets.simulator.zookeeper import ops
from tests.simulator.broker.disturbances.test_administrator import LAST_LINE, step
from tests.simulator.worlds import IDS, WAIT_S, Ops, cluster

TOPIC = "temp"
TPS = [TopicPartition(TOPIC, number) for number in range(3)]
SEEDS = range(20)


def world_of() -> World:
    """Return a world with a topic of three partitions on A and B."""
    world = cluster("kip380", replicas=("A", "B"))
    world.record_into(Ops())
    data = encode_assignment({tp.partition: (IDS["A"], IDS["B"]) for tp in TPS})
    world.zookeeper.tree.write((ops.Create(path=topic_path(TOPIC), data=data),), ops.OPERATOR)
    assert world.until(lambda: hosted(world) == {0, 1, 2}, WAIT_S)
    return world


def hosted(world: World) -> set[int]:
    """Return the partitions that any node has a log of."""
    logs = (node.disk.logs for node in world.nodes.values())
    return {tp.partition for each in logs for tp, log in each.items() if tp.topic == TOPIC and not log.deleted}


def assigned(world: World) -> set[int]:
    return {*decode_topic(world.zookeeper.tree.nodes[topic_path(TOPIC)].data).replicas}


def test_partitions_go_in_some_worlds_with_their_logs_and_the_first_stays() -> None:
    """V3, on_partitions_remove."""
    left = set()
    for seed in SEEDS:
        world = world_of()
        remover = Remover(world, seed, TPS, LAST_LINE)
        remover.listen(step(0))
        world.run(2.0)
        remover.listen(step(LAST_LINE))
        there = {0, 1, 2} - {tp.partition for tp in remover.asked}
        assert world.until(lambda world=world, there=there: assigned(world) == hosted(world) == there, WAIT_S)
        assert ELECTIONS not in world.zookeeper.tree.nodes
        left.add(len(there))
    assert {1, 3} <= left


def test_nothing_goes_before_the_first_step_nor_after_the_last() -> None:
    world = world_of()
    remover = Remover(world, next(seed for seed in SEEDS if removes(seed)), TPS, LAST_LINE)
    world.run(2.0)
    remover.listen(step(LAST_LINE))
    remover.listen(step(0))
    world.run(2.0)
    assert ([], {0, 1, 2}) == (remover.asked, assigned(world))


def removes(seed: int) -> bool:
    world = world_of()
    remover = Remover(world, seed, TPS, LAST_LINE)
    remover.listen(step(0))
    world.run(2.0)
    return bool(remover.asked)
