"""A state keeps the id of its topic, and no write of an older topic reaches it: what does is named."""

from __future__ import annotations

from dataclasses import replace

import pytest

from targets.broker.core.assignments import encode_assignment
from targets.broker.core.messages import NO_TOPIC_ID, TopicPartition
from targets.broker.core.rules import PROTOCOLS
from targets.broker.core.zookeeper import encode_state, leader_and_isr_path, partition_path, topic_path
from targets.simulator.broker.oracles import Rule
from targets.simulator.zookeeper import ops
from tests.simulator.broker.oracles.planted import sentence_of, watched
from tests.simulator.broker.oracles.test_office import write
from tests.simulator.broker.oracles.test_rest import controller_of
from tests.simulator.worlds import state

NEXT = TopicPartition("next", 0)


@pytest.mark.parametrize(("topic_id", "says"), [
    (NO_TOPIC_ID, "is written without its topic's id, with A as leader"),
    (1, "is written as of 0x1, with A as leader"),
])  # fmt: skip
def test_state_that_is_of_no_topic_or_of_an_older_one_is_named(topic_id: int, says: str) -> None:
    world, oracles = watched()
    write(world, "A", isr=state(world).isr[:2])
    assert sentence_of(oracles, Rule.OFFICE) == ""
    write(world, "A", topic_id=topic_id)
    assert says in sentence_of(oracles, Rule.OFFICE)


@pytest.mark.parametrize("age", [0, 1])
def test_first_state_that_is_of_an_older_topic_is_named(age: int) -> None:
    """Its controller has read that topic, whose node had the version that the next one's has."""
    world, oracles = watched()
    tree = world.zookeeper.tree
    tree.write((ops.Create(path=topic_path(NEXT.topic), data=encode_assignment({0: (1,)})),), ops.OPERATOR)
    made = tree.nodes[topic_path(NEXT.topic)].czxid
    data = encode_state(replace(state(world), topic_id=made - age))
    tree.write(
        (ops.Create(path=partition_path(NEXT)), ops.Create(path=leader_and_isr_path(NEXT), data=data)),
        ops.OPERATOR,
    )
    says = f"{leader_and_isr_path(NEXT)}, of the topic {made:#x}, is written as of {made - 1:#x}, with A as leader"
    assert (says in sentence_of(oracles, Rule.OFFICE)) == bool(age) == bool(sentence_of(oracles, Rule.OFFICE))


@pytest.mark.parametrize("epochs", [0, 1])
def test_leader_that_a_release_without_ids_commanded_may_leave_the_id_out_until_the_next_command(
    monkeypatch: pytest.MonkeyPatch, epochs: int
) -> None:
    """The last broker of an older release was the controller, and is back since."""
    world, oracles = watched()
    controller = controller_of(world)
    last = next(node for name, node in world.nodes.items() if name != controller)
    newer = last.config
    monkeypatch.setattr(last, "config", replace(newer, rules=PROTOCOLS["kip279"]))
    there = state(world)
    write(world, controller, leader_epoch=there.leader_epoch + 1, topic_id=there.topic_id)
    monkeypatch.setattr(last, "config", newer)
    write(world, controller, leader_epoch=there.leader_epoch + 1 + epochs, topic_id=NO_TOPIC_ID)
    assert ("without its topic's id" in sentence_of(oracles, Rule.OFFICE)) == bool(epochs)


def test_topic_without_an_id_needs_none() -> None:
    world, oracles = watched("kip320")
    write(world, "A", isr=state(world).isr[:2])
    assert sentence_of(oracles, Rule.OFFICE) == ""
