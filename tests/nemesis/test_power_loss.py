"""Power loss on both tiers: flushed records survive, unflushed ones are gone."""

from __future__ import annotations

import pytest

from harness.cluster.cluster import Cluster
from harness.model import PreconditionError
from tests.needs import needs
from tests.nemesis.conftest import Clusters, await_whole, heal, inject, produce, roles

pytestmark = pytest.mark.slow

TIERS = ["watermark", pytest.param("loop", marks=[pytest.mark.root, needs("loop")])]
PROBES = {"watermark": "files undone \\(watermark\\)", "loop": "a write then failed with EIO; journal replayed"}


@pytest.fixture(params=TIERS)
def powered(request: pytest.FixtureRequest, clusters: Clusters) -> Cluster:
    """Return a healthy cluster of each tier."""
    return clusters(request.param)


def values_of(cluster: Cluster, name: str) -> list[str | None]:
    """Return the values in a replica's files, in order."""
    log = cluster.log(name)
    return [] if log is None else [record[2] for batch in log.batches for record in batch.records]


def test_flushed_records_outlive_the_power_and_unflushed_ones_are_gone(powered: Cluster) -> None:
    leader, follower = roles(powered)
    flushed = produce(powered, 3)
    inject("flush", powered, leader)
    end = produce(powered, 2)
    held = values_of(powered, leader)
    assert (end, end) == (powered.log_end(leader), powered.log_end(follower))
    probe = inject("power-loss", powered, leader)
    assert flushed == powered.log_end(leader)
    assert held[:flushed] == values_of(powered, leader)
    assert (end, held) == (powered.log_end(follower), values_of(powered, follower))
    assert (False, {leader}) == (powered.host.alive(leader), powered.down)
    assert PROBES[powered.host.power_tier].replace("\\", "") in probe


def test_second_power_loss_takes_what_came_after_the_flush_of_the_first_life(powered: Cluster) -> None:
    _, follower = roles(powered)
    inject("flush", powered, follower)
    flushed = powered.log_end(follower)
    produce(powered, 2)
    inject("power-loss", powered, follower)
    assert "registered in session" in heal("power-loss", powered, follower)
    await_whole(powered)  # it copies the lost records from the leader
    produce(powered, 2)
    held = values_of(powered, follower)
    inject("power-loss", powered, follower)
    left = values_of(powered, follower)
    assert held[:flushed] == left
    heal("power-loss", powered, follower)
    await_whole(powered)
    assert held == values_of(powered, follower)


def test_power_that_is_lost_again_while_the_node_is_down_takes_no_more(powered: Cluster) -> None:
    _, follower = roles(powered)
    inject("flush", powered, follower)
    produce(powered, 2)
    inject("power-loss", powered, follower)
    left = values_of(powered, follower)
    inject("power-loss", powered, follower)
    assert left == values_of(powered, follower)


def test_power_loss_of_all_replicas_leaves_what_each_had_flushed(powered: Cluster) -> None:
    leader, follower = roles(powered)
    inject("flush", powered, leader)
    inject("flush", powered, follower)
    flushed = powered.log_end(leader)
    produce(powered, 2)
    inject("flush", powered, follower)
    for node in (leader, follower):
        inject("power-loss", powered, node)
    assert (flushed, flushed + 2) == (powered.log_end(leader), powered.log_end(follower))


def test_node_whose_disk_cannot_lose_power_is_refused(cluster: Cluster) -> None:
    with pytest.raises(PreconditionError, match="it is a plain folder; expected a node added with a disk"):
        inject("power-loss", cluster, "C")
    assert cluster.host.alive("C")
