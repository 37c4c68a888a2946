"""A restarted broker takes its old registration over, so a controller that only counts brokers does not notice."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from harness.cluster.cluster import Cluster
from harness.launch import Launch
from harness.model import PreconditionError
from harness.scenario.file import PARTITION, TOPIC
from tests.nemesis.conftest import inject, make_whole, roles

pytestmark = pytest.mark.slow


def test_restarted_node_takes_its_registration_over_unseen(cluster: Cluster) -> None:
    """Source: KAFKA-1120: a bounce that leaves no gap in the registrations."""
    _, follower = roles(cluster)
    inject("kill", cluster, follower)
    session, version = cluster.before_down[follower]
    probe = inject("restart", cluster, follower)
    fresh = cluster.metadata.incarnation(follower)
    assert f"registered in session 0x{fresh:x}, taken over from 0x{session:x}" == probe
    assert fresh not in (0, session)
    truth = cluster.metadata.truth(TOPIC, PARTITION)
    assert truth is not None
    assert version == truth.version


def test_restarted_node_whose_session_has_ended_registers_anew(cluster: Cluster) -> None:
    _, follower = roles(cluster)
    inject("kill", cluster, follower)
    inject("expire", cluster, follower)
    assert 0 == cluster.metadata.incarnation(follower)
    probe = inject("restart", cluster, follower)
    assert f"registered in session 0x{cluster.metadata.incarnation(follower):x}" == probe


def test_office_of_a_controller_that_restarts_at_once_stays_with_its_dead_session(cluster: Cluster) -> None:
    """Only the registration is taken over; the cluster has no acting controller until the dead session ends."""
    office = cluster.metadata.office()
    assert office is not None
    holder = str(office.node)
    inject("kill", cluster, holder)
    inject("restart", cluster, holder)
    assert office == cluster.metadata.office()
    assert office.member != cluster.metadata.incarnation(holder)
    make_whole(cluster)
    now = cluster.metadata.office()
    assert now is not None
    assert cluster.metadata.incarnation(str(now.node)) == now.member != office.member


def test_node_that_runs_cannot_be_started(cluster: Cluster) -> None:
    with pytest.raises(PreconditionError, match="start A: it runs already"):
        inject("restart", cluster, "A")


def test_node_that_ends_by_itself_did_not_start_and_says_why(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    inject("kill", cluster, "B")
    usual = cluster.target.launch

    def as_another(*wishes: object) -> Launch:
        launch = usual(*wishes)  # type: ignore[arg-type]
        config = json.loads(launch.files["broker.json"]) | {"node": "another"}
        return replace(launch, files={"broker.json": json.dumps(config)})

    with monkeypatch.context() as patch:
        patch.setattr(cluster.target, "launch", as_another)
        with pytest.raises(
            PreconditionError, match=r"start B: the process ended by itself; .* registered by node 'B'"
        ):
            inject("restart", cluster, "B")
    assert {"B"} == cluster.down
