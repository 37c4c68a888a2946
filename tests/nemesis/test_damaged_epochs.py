"""A real broker starts with an epoch checkpoint that is damaged in any of seven ways, and is in the ISR again."""

from __future__ import annotations

from typing import cast

import pytest

from harness.cluster.cluster import Cluster
from harness.environment.machines import RealMachines
from harness.scenario.file import PARTITION, TOPIC
from tests.broker.log.test_recovery import DAMAGED
from tests.kept import keep
from tests.nemesis.conftest import await_whole, heal, inject, produce, roles

FILE = f"{TOPIC}-{PARTITION}/leader-epoch-checkpoint"
NOTE = "clean+epoch-checkpoint-unreadable"
WAYS = keep((pytest.param(content, id=name) for name, content in DAMAGED.items()), "offsets fall")


@pytest.mark.slow
@pytest.mark.parametrize("content", WAYS)
def test_real_broker_makes_the_epochs_of_its_batches_and_returns(cluster: Cluster, content: bytes) -> None:
    """Source: Kafka, CheckpointFile.read and LeaderEpochFileCache.assign."""
    leader, follower = roles(cluster)
    produce(cluster, 1)
    await_whole(cluster)
    noted = cluster.history.path.read_text().count(NOTE)
    inject("kill", cluster, follower)
    (cast(RealMachines, cluster.host).disk(follower) / FILE).write_bytes(content)
    inject("expire", cluster, follower)
    heal("kill", cluster, follower)
    await_whole(cluster)
    cluster.await_(cluster.main.in_sync, cluster.main.lacking)
    assert noted + 1 == cluster.history.path.read_text().count(NOTE)
    ours, theirs = cluster.log(follower), cluster.log(leader)
    assert ours is not None
    assert theirs is not None
    assert ((), theirs.epochs) == (ours.problems, ours.epochs)
