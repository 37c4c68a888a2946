"""Deleting a replica's active segment shortens its log; the replica copies the lost records when it returns."""

from __future__ import annotations

import pytest

from harness.cluster.cluster import Cluster
from harness.model import PreconditionError
from tests.nemesis.conftest import await_whole, heal, inject, produce, roles

pytestmark = pytest.mark.slow


def test_follower_whose_segment_is_gone_copies_it_all_again(cluster: Cluster) -> None:
    """Source: KAFKA-6361, its workaround."""
    leader, follower = roles(cluster)
    end = produce(cluster, 3)
    await_whole(cluster)
    inject("kill", cluster, follower)
    probe = inject("delete-active-segment", cluster, follower)
    assert f".log deleted; its log ended at {end}, and ends at " in probe
    assert cluster.log_end(follower) < end
    assert end == cluster.log_end(leader)
    inject("expire", cluster, follower)
    heal("kill", cluster, follower)
    await_whole(cluster)
    assert end == cluster.log_end(follower)


def test_segment_of_a_node_that_runs_is_not_deleted(cluster: Cluster) -> None:
    with pytest.raises(PreconditionError, match="delete-active-segment A: it runs; expected it to be down"):
        inject("delete-active-segment", cluster, "A")


def test_node_without_a_log_has_no_segment_to_delete(cluster: Cluster) -> None:
    with pytest.raises(PreconditionError, match="C: no segment of log-0 to delete"):
        cluster.host.delete_active_segment("C", "log", 0)
