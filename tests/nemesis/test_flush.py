"""Flushing a disk from outside: flushed records survive a power loss, unflushed ones do not."""

from __future__ import annotations

import pytest

from harness.cluster.cluster import Cluster
from tests.nemesis.conftest import ends, inject, produce, roles

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("flushed", [True, False])
def test_records_outlive_the_power_only_when_they_were_flushed(cluster: Cluster, flushed: bool) -> None:
    _, follower = roles(cluster)
    inject("flush", cluster, follower)
    end = produce(cluster, 3)
    if flushed:
        inject("flush", cluster, follower)
    inject("power-loss", cluster, follower)
    assert (end if flushed else end - 3) == cluster.log_end(follower)


def test_flush_of_one_replica_flushes_no_other(cluster: Cluster) -> None:
    leader, follower = roles(cluster)
    before = ends(cluster)
    inject("flush", cluster, leader)
    inject("flush", cluster, follower)
    produce(cluster, 2)
    inject("flush", cluster, leader)
    inject("power-loss", cluster, follower)
    assert before[follower] == cluster.log_end(follower)


def test_node_that_is_down_is_flushed_too(cluster: Cluster) -> None:
    _, follower = roles(cluster)
    end = produce(cluster, 2)
    inject("kill", cluster, follower)
    assert "copied to the shadow" in inject("flush", cluster, follower)
    inject("power-loss", cluster, follower)
    assert end == cluster.log_end(follower)
