"""A zombie has no registration in ZooKeeper, while its process and its fetchers keep running."""

from __future__ import annotations

import pytest

from harness.cluster.cluster import Cluster
from harness.model import PreconditionError
from tests.nemesis.conftest import await_whole, heal, inject, leads, produce, roles

pytestmark = pytest.mark.slow


def test_zombie_follower_is_not_registered_and_still_copies_what_its_leader_appends(cluster: Cluster) -> None:
    """Source: KAFKA-6880: "its fetchers are still alive"."""
    leader, follower = roles(cluster)
    probe = inject("zombie", cluster, follower)
    assert "its process lives on, cut from ZooKeeper" in probe
    assert (0, True) == (cluster.metadata.incarnation(follower), cluster.host.alive(follower))
    end = produce(cluster, 3)
    cluster.await_(
        lambda: cluster.log_end(follower) == end,
        lambda: f"{follower} ends at {cluster.log_end(follower)}, not at {end}",
    )
    assert (leader, 0) == (cluster.leader(), cluster.metadata.incarnation(follower))


def test_zombie_leader_is_replaced_and_does_not_know_it(cluster: Cluster) -> None:
    leader, follower = roles(cluster)
    epoch = cluster.main.reported_epoch(leader)
    inject("zombie", cluster, leader)
    cluster.await_(
        lambda: cluster.leader() == follower and leads(cluster),
        lambda: f"{follower} leads, not {cluster.leader()}",
    )
    assert epoch == cluster.main.reported_epoch(leader)


def test_returned_zombie_registers_anew_and_joins_again(cluster: Cluster) -> None:
    _, follower = roles(cluster)
    session = cluster.metadata.incarnation(follower)
    inject("zombie", cluster, follower)
    with pytest.raises(PreconditionError, match=f"zombie {follower}: it is a zombie already"):
        inject("zombie", cluster, follower)
    probe = heal("zombie", cluster, follower)
    fresh = cluster.metadata.incarnation(follower)
    assert fresh not in (0, session)
    assert f"registered in session 0x{fresh:x}" == probe
    assert set() == cluster.zombies
    await_whole(cluster)


def test_return_of_who_is_no_zombie_is_refused(cluster: Cluster) -> None:
    with pytest.raises(PreconditionError, match=r"return A: it is not a zombie; expected one of \[\]"):
        inject("return", cluster, "A")


def test_zombie_that_died_has_its_link_back_and_no_registration(cluster: Cluster) -> None:
    _, follower = roles(cluster)
    inject("zombie", cluster, follower)
    inject("kill", cluster, follower)
    assert "its link is healed; it is down" == heal("zombie", cluster, follower)
    assert 0 == cluster.metadata.incarnation(follower)


def test_zombie_that_is_registered_again_or_whose_process_ended_did_not_bite(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, follower = roles(cluster)
    monkeypatch.setattr(cluster.operator, "expire", lambda _: "nothing done")
    with pytest.raises(PreconditionError, match=f"zombie {follower}: registered again in session 0x"):
        inject("zombie", cluster, follower)
    heal("zombie", cluster, follower)
    monkeypatch.setattr(cluster.host, "alive", lambda _: False)
    with pytest.raises(PreconditionError, match=f"zombie {follower}: its process is gone"):
        inject("zombie", cluster, follower)
