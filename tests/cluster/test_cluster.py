"""The addresses that a cluster offers to a client, and their order."""

from __future__ import annotations

from dataclasses import replace

from harness.cluster.in_force import FaultInForce
from harness.effect import Effect
from tests.scenario.fakes import FakeCluster


def begin(cluster: FakeCluster, node: str, effect: Effect) -> None:
    cluster.in_force.begin(FaultInForce(fault="a fault", effect=effect, node=node))


def test_client_reaches_the_leader_first_since_it_knows_first(cluster: FakeCluster) -> None:
    assert ["127.0.0.1:2", "127.0.0.1:3", "127.0.0.1:1"] == cluster.clients_addresses()
    cluster.state = replace(cluster.state, leader="A")
    assert ["127.0.0.1:1", "127.0.0.1:3", "127.0.0.1:2"] == cluster.clients_addresses()


def test_client_reaches_all_that_run_while_nobody_leads(cluster: FakeCluster) -> None:
    cluster.state = replace(cluster.state, leader=None)
    begin(cluster, "B", Effect.DOWN)
    assert ["127.0.0.1:3", "127.0.0.1:1"] == cluster.clients_addresses()


def test_client_reaches_who_cannot_know_the_leader_only_where_nobody_else_runs(cluster: FakeCluster) -> None:
    begin(cluster, "B", Effect.CUT_OFF)
    begin(cluster, "C", Effect.PAUSED)
    assert ["127.0.0.1:1"] == cluster.clients_addresses()
    begin(cluster, "A", Effect.POWER_LOST)
    assert ["127.0.0.1:2", "127.0.0.1:3"] == cluster.clients_addresses()
