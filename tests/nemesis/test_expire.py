"""Expiring the session of a live broker: leadership moves, and the broker registers again by itself."""

from __future__ import annotations

import pytest

from harness.cluster.cluster import Cluster
from harness.fabric.core.rules import METADATA
from harness.model import PreconditionError
from harness.scenario.file import PARTITION, TOPIC
from tests.nemesis.conftest import IDS, await_whole, client_of, inject, produce, roles

pytestmark = pytest.mark.slow


def test_expired_leader_loses_its_office_registers_anew_and_is_back_in_the_isr(cluster: Cluster) -> None:
    leader, follower = roles(cluster)
    produce(cluster, 2)
    before, session = cluster.metadata.truth(TOPIC, PARTITION), cluster.metadata.incarnation(leader)
    # The broker's requests to ZooKeeper are held meanwhile: if the broker registers again at once, the controller
    # may not notice that the registration was gone (KAFKA-1120).
    held = cluster.fabric.hold("metadata-request", leader, METADATA, "request")
    probe = inject("expire", cluster, leader)
    assert f"session 0x{session:x} closed in " in probe
    assert probe.endswith(f"/brokers/ids/{IDS[leader]} gone")
    cluster.await_(lambda: cluster.leader() == follower, lambda: f"{follower} leads, not {cluster.leader()}")
    cluster.fabric.release(held)
    cluster.await_(
        lambda: cluster.metadata.incarnation(leader) not in (0, session),
        lambda: f"{leader} is registered anew",
    )
    await_whole(cluster)
    after = cluster.metadata.truth(TOPIC, PARTITION)
    assert before is not None
    assert after is not None
    assert after.epoch > before.epoch
    assert cluster.host.alive(leader)
    end = produce(cluster, 2)
    assert end == len(client_of(cluster).read_all(TOPIC, PARTITION))


def test_expired_controller_takes_office_again_or_leaves_it_and_elections_go_on(cluster: Cluster) -> None:
    old = cluster.metadata.controller()
    assert old is not None
    session = cluster.metadata.incarnation(old)
    inject("expire", cluster, old)
    cluster.await_(lambda: cluster.metadata.controller() is not None, lambda: "somebody is controller")
    cluster.await_(
        lambda: cluster.metadata.incarnation(old) not in (0, session), lambda: f"{old} is registered anew"
    )
    await_whole(cluster)
    leader, follower = roles(cluster)
    held = cluster.fabric.hold("metadata-request", leader, METADATA, "request")
    inject("expire", cluster, leader)
    cluster.await_(lambda: cluster.leader() == follower, lambda: f"{follower} leads, not {cluster.leader()}")
    cluster.fabric.release(held)


def test_node_without_a_registration_has_no_session_to_end(cluster: Cluster) -> None:
    inject("kill", cluster, "B")
    inject("expire", cluster, "B")
    with pytest.raises(PreconditionError, match=r"expire B: no session owns /\S+/brokers/ids/5"):
        inject("expire", cluster, "B")
