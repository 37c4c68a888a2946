"""Pausing a broker's process: it stops replicating and keeps its registration."""

from __future__ import annotations

import pytest

from harness.cluster.cluster import Cluster
from harness.model import PreconditionError
from tests.nemesis.conftest import heal, inject, produce, roles

pytestmark = pytest.mark.slow


def test_paused_followers_log_stands_still_while_the_leaders_grows_until_it_resumes(cluster: Cluster) -> None:
    leader, follower = roles(cluster)
    before = produce(cluster, 2)
    session = cluster.metadata.incarnation(follower)
    assert "stopped" in inject("pause", cluster, follower)
    end = produce(cluster, 4, acks=1)
    assert (before + 4, before) == (cluster.log_end(leader), cluster.log_end(follower))
    assert (True, session) == (cluster.host.alive(follower), cluster.metadata.incarnation(follower))
    assert {follower} == cluster.paused
    assert "runs" in heal("pause", cluster, follower)
    cluster.await_(
        lambda: cluster.log_end(follower) == end,
        lambda: f"{follower} ends at {cluster.log_end(follower)}, not at {end}",
    )
    assert set() == cluster.paused


def test_record_that_a_paused_follower_lacks_is_not_committed(cluster: Cluster) -> None:
    leader, follower = roles(cluster)
    before = produce(cluster, 1)
    cluster.await_(lambda: cluster.checkpoint(leader) == before, lambda: f"{leader}'s checkpoint at {before}")
    inject("pause", cluster, follower)
    produce(cluster, 1, acks=1)
    assert before == cluster.checkpoint(leader)
    heal("pause", cluster, follower)
    cluster.await_(lambda: cluster.checkpoint(leader) == before + 1, lambda: f"{leader}'s checkpoint moves on")


def test_killing_a_paused_node_ends_its_pause(cluster: Cluster) -> None:
    inject("pause", cluster, "B")
    inject("kill", cluster, "B")
    assert (set(), {"B"}) == (cluster.paused, cluster.down)


def test_node_that_is_down_cannot_be_paused(cluster: Cluster) -> None:
    inject("kill", cluster, "B")
    with pytest.raises(PreconditionError, match="pause B: no process of it runs"):
        inject("pause", cluster, "B")
    assert set() == cluster.paused
