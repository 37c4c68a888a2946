"""A controller that loses its role without failing: a node becomes controller again, and elections go on."""

from __future__ import annotations

import pytest

from harness.cluster.cluster import Cluster
from harness.model import PreconditionError
from tests.nemesis.conftest import IDS, inject, leads, roles

pytestmark = pytest.mark.slow


def test_deposed_controller_lives_on_and_somebody_has_the_office_again(cluster: Cluster) -> None:
    old = cluster.metadata.controller()
    assert old is not None
    sessions = [cluster.metadata.incarnation(node) for node in IDS]
    probe = inject("depose-controller", cluster, old)
    assert f"/controller of {old} deleted; " in probe
    cluster.await_(lambda: cluster.metadata.controller() is not None, lambda: "somebody is controller")
    assert sessions == [cluster.metadata.incarnation(node) for node in IDS]
    leader, follower = roles(cluster)
    inject("elect", cluster, follower)
    cluster.await_(
        lambda: cluster.leader() == follower and leads(cluster),
        lambda: f"{follower} leads, not {cluster.leader()}",
    )
    assert leader != cluster.leader()


def test_node_that_is_not_controller_cannot_be_deposed(cluster: Cluster) -> None:
    holder = cluster.metadata.controller()
    other = next(node for node in IDS if node != holder)
    with pytest.raises(
        PreconditionError, match=f"depose-controller {other}: the controller is {holder}; expected {other}"
    ):
        inject("depose-controller", cluster, other)
