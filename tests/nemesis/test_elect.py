"""An election without a failure: leadership moves, both replicas stay in the ISR, and no broker restarts."""

from __future__ import annotations

import pytest

from harness.cluster.cluster import Cluster
from harness.model import PreconditionError
from harness.scenario.file import PARTITION, TOPIC
from tests.nemesis.conftest import IDS, await_whole, inject, leads, produce, roles

pytestmark = pytest.mark.slow


def test_elected_follower_leads_in_a_newer_epoch_and_nobody_leaves_the_isr(cluster: Cluster) -> None:
    leader, follower = roles(cluster)
    before = cluster.metadata.truth(TOPIC, PARTITION)
    sessions = [cluster.metadata.incarnation(node) for node in IDS]
    probe = inject("elect", cluster, follower)
    assert f"broker {IDS[follower]} asked for" in probe
    cluster.await_(
        lambda: cluster.leader() == follower and leads(cluster),
        lambda: f"{follower} leads, not {cluster.leader()}",
    )
    after = cluster.metadata.truth(TOPIC, PARTITION)
    assert before is not None
    assert after is not None
    assert (True, set(before.in_sync)) == (after.epoch > before.epoch, set(after.in_sync))
    assert sessions == [cluster.metadata.incarnation(node) for node in IDS]
    await_whole(cluster)
    assert produce(cluster, 1) == cluster.log_end(follower)
    assert (follower, leader) == roles(cluster)


def test_election_of_who_leads_or_is_not_in_the_isr_is_refused(cluster: Cluster) -> None:
    leader, follower = roles(cluster)
    with pytest.raises(PreconditionError, match=f"elect {leader}: it leads already"):
        inject("elect", cluster, leader)
    with pytest.raises(PreconditionError, match=r"elect C: not in the ISR \['A', 'B'\]"):
        inject("elect", cluster, "C")
    inject("kill", cluster, follower)
    inject("expire", cluster, follower)
    cluster.await_(lambda: cluster.isr() == {leader}, lambda: f"{follower} out of the ISR, not {cluster.isr()}")
    with pytest.raises(PreconditionError, match=f"elect {follower}: not in the ISR"):
        inject("elect", cluster, follower)
