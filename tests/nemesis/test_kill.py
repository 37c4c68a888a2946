"""Killing a broker's process: its log and its registration stay."""

from __future__ import annotations

import pytest

from harness.cluster.cluster import Cluster
from harness.model import PreconditionError
from tests.nemesis.conftest import heal, inject, produce, roles

pytestmark = pytest.mark.slow


def test_killed_leader_is_gone_and_its_page_cache_is_kept(cluster: Cluster) -> None:
    leader, _ = roles(cluster)
    end = produce(cluster, 3)
    session = cluster.metadata.incarnation(leader)
    assert "ended by SIGKILL" in inject("kill", cluster, leader)
    assert (False, end) == (cluster.host.alive(leader), cluster.log_end(leader))
    assert session == cluster.metadata.incarnation(leader)  # a kill does not end the session
    assert {leader} == cluster.down


def test_killed_node_has_told_all_that_it_did(cluster: Cluster) -> None:
    leader, _ = roles(cluster)
    told: list[int] = []
    cluster.history.listeners.append(
        lambda op: told.append(op.value["end"]) if (op.process, op.f) == (leader, "append") else None
    )
    end = produce(cluster, 5, acks=1)
    inject("kill", cluster, leader)
    assert end == told[-1]
    cluster.history.listeners.pop()


def test_heal_starts_it_again_and_it_catches_up(cluster: Cluster) -> None:
    _, follower = roles(cluster)
    inject("kill", cluster, follower)
    end = produce(cluster, 3, acks=1)
    assert end > cluster.log_end(follower)
    heal("kill", cluster, follower)
    assert (True, set()) == (cluster.host.alive(follower), cluster.down)
    cluster.await_(
        lambda: cluster.log_end(follower) == end,
        lambda: f"{follower} ends at {cluster.log_end(follower)}, not at {end}",
    )


def test_node_that_is_down_cannot_be_killed(cluster: Cluster) -> None:
    inject("kill", cluster, "B")
    with pytest.raises(PreconditionError, match="kill B: no process of it runs"):
        inject("kill", cluster, "B")
