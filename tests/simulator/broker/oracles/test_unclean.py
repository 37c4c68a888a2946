"""What an unclean election loses is excused where it is allowed, and nothing else is."""

from __future__ import annotations

from dataclasses import replace

import pytest

from targets.broker.core.zookeeper import encode_state, leader_and_isr_path
from targets.simulator.broker.clients.client import SimClient
from targets.simulator.broker.oracles import Oracles, Rule
from targets.simulator.broker.world import World
from targets.simulator.zookeeper import ops
from tests.simulator.broker.oracles.planted import (
    acknowledged,
    log_of,
    post,
    produce,
    replica_of,
    sentence_of,
    watched,
)
from tests.simulator.worlds import TOPIC, TP, WAIT_S, leads, registered, state


def written(world: World, leader: str, epoch: int) -> None:
    """Write a leader, alone in its ISR, to ZooKeeper."""
    member = world.ids[leader]
    data = encode_state(replace(state(world), isr=(member,), leader=member, leader_epoch=epoch))
    world.zookeeper.tree.write((ops.Set(path=leader_and_isr_path(TP), data=data, version=-1),), 0)


def uncleanly_elected(unclean: bool, record: str = "m3.0") -> Oracles:
    """Return the oracles of a world whose only in-sync replica is gone, and C leads without its last record."""
    world, oracles = watched(settings={"unclean_election": unclean})
    client = SimClient(world)
    for name in ("B", "C"):
        world.links.cut(name, "A", close=True)
        world.nodes[name].kill()
        world.zookeeper.expire(world.zookeeper.session_of(f"/brokers/ids/{world.ids[name]}"))
    assert world.until(lambda: state(world).isr == (world.ids["A"],), WAIT_S)
    client.produce(TOPIC, 0, "m3", [record], acks=-1)
    if not unclean:  # what no controller does
        written(world, "C", 9)
        return oracles
    world.nodes["C"].boot()
    assert world.until(lambda: registered(world, "C"), WAIT_S)
    world.nodes["A"].kill()
    world.zookeeper.expire(world.zookeeper.session_of(f"/brokers/ids/{world.ids['A']}"))
    assert world.until(lambda: leads(world, "C"), WAIT_S)
    client.produce(TOPIC, 0, "m4", ["m4.0"], acks=-1)
    return oracles


@pytest.mark.parametrize("record", ["m3.0", "m1.0"])
def test_what_an_unclean_election_loses_is_excused_where_it_is_allowed(record: str) -> None:
    """Of a record that its producer sent twice, as m1.0 here, C may have the first copy, and not the second."""
    assert {} == uncleanly_elected(unclean=True, record=record).violations


def test_same_loss_is_named_where_it_is_not_allowed() -> None:
    assert "m3.0 was committed at offset 3 and is not on C" in (
        sentence_of(uncleanly_elected(unclean=False), Rule.COMMITTED)
    )


def test_what_a_replaced_leader_commits_and_the_new_isr_copies_is_committed() -> None:
    """Neither A nor B has heard that an unclean election made B the leader: B still fetches from A."""
    world, oracles = watched(settings={"unclean_election": True})
    for leader, epoch in (("A", 0), ("B", 1)):
        written(world, leader, epoch)
    post(world, "A", produce("m3.0"))
    assert world.until(lambda: replica_of(world, "B").high_watermark == 4, WAIT_S)
    oracles.listen(acknowledged(3, "m3.0"))
    assert {(Rule.OFFICE, TP)} == oracles.violations.keys()  # no controller wrote this election
    log_of(world, "B").truncate_to(3, world.rules.leo_after_cut)
    assert world.until(lambda: (Rule.COMMITTED, TP) in oracles.violations, WAIT_S)
    assert "m3.0 was committed at offset 3 and is not on B" in sentence_of(oracles, Rule.COMMITTED)
