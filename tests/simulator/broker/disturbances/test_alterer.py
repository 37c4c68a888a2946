"""A client alters what topics have of their own: the files of any, the age and size of some."""

from __future__ import annotations

from collections.abc import Sequence

from targets.broker.core.assignments import encode_assignment
from targets.broker.core.zookeeper import config_path, decode_config, topic_path
from targets.simulator.broker.disturbances.alterer import FILES, LIMITS, Alterer
from targets.simulator.broker.oracles.settings import wrong_settings
from targets.simulator.broker.world import World
from targets.simulator.zookeeper import ops
from tests.simulator.broker.disturbances.test_administrator import LAST_LINE, step
from tests.simulator.worlds import IDS, TOPIC, WAIT_S, Ops, cluster

SEEDS = range(30)
MORE = "temp"


def world_of() -> World:
    """Return a world with two topics."""
    world = cluster("kip380", replicas=("A", "B"))
    world.record_into(Ops())
    data = encode_assignment({0: (IDS["A"], IDS["B"])})
    world.zookeeper.tree.write((ops.Create(path=topic_path(MORE), data=data),), ops.OPERATOR)
    return world


def altered(seed: int, limited: Sequence[str] = (MORE,)) -> tuple[World, Alterer]:
    """Return a world in which the alterer of a seed has done what it does."""
    world = world_of()
    alterer = Alterer(world, seed, [TOPIC, MORE], limited, LAST_LINE)
    alterer.listen(step(0))
    world.run(2.0)
    alterer.listen(step(LAST_LINE))
    return world, alterer


def own(world: World, topic: str) -> set[str]:
    """Return the names of the settings that a topic has of its own in ZooKeeper."""
    node = world.zookeeper.tree.nodes.get(config_path(topic))
    return set() if node is None else {*decode_config(node.data)}


def test_each_topic_has_what_it_may_have_and_every_broker_takes_it_up() -> None:
    """KIP-339."""
    found: dict[str, set[str]] = {TOPIC: set(), MORE: set()}
    for seed in SEEDS:
        world, alterer = altered(seed)
        assert world.until(lambda world=world: not [*wrong_settings(world)], WAIT_S)
        for topic in found:
            found[topic] |= own(world, topic)
        assert alterer.asked or not own(world, TOPIC) | own(world, MORE)
    assert ({*FILES}, {*FILES, *LIMITS}) == (found[TOPIC], found[MORE])


def test_no_age_nor_size_is_limited_where_none_may_be() -> None:
    names = {name for seed in SEEDS for name in own(altered(seed, ())[0], MORE)}
    assert {*FILES} == names


def test_nothing_is_altered_before_the_first_step_nor_after_the_last() -> None:
    world = world_of()
    alterer = Alterer(world, next(seed for seed in SEEDS if altered(seed)[1].asked), [TOPIC], (), LAST_LINE)
    world.run(2.0)
    alterer.listen(step(LAST_LINE))
    alterer.listen(step(0))
    world.run(2.0)
    assert (0, set()) == (alterer.asked, own(world, TOPIC))
