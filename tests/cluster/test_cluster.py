"""The addresses that a cluster offers to a client, and their order."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

from harness.cluster.cluster import Cluster
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


def test_start_that_took_too_long_is_awaited_and_not_begun_again(cluster: FakeCluster) -> None:
    """On a machine that is slow, a node whose restart timed out serves a little later."""
    host, booted = cast(Any, cluster.host), list[str]()

    def boot(name: str) -> None:
        booted.append(name)
        cluster.gone.discard(name)

    host.boot = boot
    cluster.target = cast(Any, SimpleNamespace(**vars(cluster.target) | {"abilities": frozenset()}))
    cast(Any, cluster.target).clients = SimpleNamespace(serves=lambda _: True)
    begin(cluster, "B", Effect.DOWN)
    cluster.gone = {"B"}
    assert ["its process runs"] * 2 == [Cluster.start(cluster, "B") for _ in range(2)]
    assert ["B"] == booted
    # Of a node that no fault took down the host says that it runs.
    Cluster.start(cluster, "A")
    assert ["B", "A"] == booted
