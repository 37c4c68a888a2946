"""A rolling upgrade on real processes: two releases replicate in both directions and lose nothing."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import pytest

from harness.cluster.cluster import Cluster
from harness.history.file import read_history
from harness.launch import Address
from harness.model import PreconditionError, Source
from harness.scenario.file import PARTITION, TOPIC
from targets.kafka_family.clients.raw import RawClient
from tests.clusters import running

pytestmark = pytest.mark.slow

IDS = {"A": 3, "B": 1}


def lead(cluster: Cluster, name: str) -> None:
    """Make a node the leader without a failure; repeat the request until the node leads."""

    def asked() -> bool:
        if cluster.leader() != name:
            with suppress(PreconditionError):
                cluster.operator.elect(TOPIC, PARTITION, name)
        return leads(cluster, name)

    cluster.await_(asked, lambda: f"{name} leads, not {cluster.leader()}")


def leads(cluster: Cluster, name: str) -> bool:
    """Return whether ZooKeeper and the node itself both report this leadership."""
    truth = cluster.metadata.truth(TOPIC, PARTITION)
    return truth is not None and truth.leader == name and cluster.main.reported_epoch(name) == truth.epoch


def questions(cluster: Cluster, follower: str, leader: str) -> set[int]:
    """Return the versions of a follower's epoch requests to its leader, as recorded by the fabric."""
    return {
        op.value["version"]
        for op in read_history(cluster.history.path)
        if op.source is Source.FABRIC and op.f == "epoch-question" and op.value["link"] == [follower, leader]
    }


def cuts(cluster: Cluster, name: str) -> set[str]:
    """Return the reasons of a node's truncations, from its own events."""
    return {
        op.value["reason"]
        for op in read_history(cluster.history.path)
        if op.source is Source.BROKER and op.f == "truncate" and op.process == name
    }


@pytest.mark.parametrize(
    ("a", "b", "spoken"),
    [
        pytest.param("hw", "kip320", None, id="hw and kip320"),
        pytest.param("kip101", "kip320", 0, id="kip101 and kip320"),
        pytest.param("kip279", "kip380", 1, id="kip279 and kip380"),
        pytest.param("kip380", "kip320", 2, id="kip380 and kip320"),
    ],
)
def test_two_releases_follow_each_other_in_the_older_ones_versions_and_hold_the_same(
    tmp_path: Path, zookeeper: Address, a: str, b: str, spoken: int | None
) -> None:
    with running(tmp_path / "run", zookeeper, a, IDS, replicas=("A", "B"), releases={"B": b}) as cluster:
        cluster.metadata.watch([(TOPIC, PARTITION)])
        client = RawClient(history=cluster.history, bootstrap=cluster.clients_addresses)
        client.create_topic(TOPIC, [IDS["A"], IDS["B"]])
        sent: list[str] = []
        for turn, name in enumerate(("A", "B", "A", "B")):
            lead(cluster, name)
            values = [f"m{turn}.{number}" for number in range(3)]
            # With acks=all the follower has asked for epochs and fetched in this leader's epoch.
            assert [len(sent) + at for at in range(3)] == client.produce(
                TOPIC, PARTITION, f"m{turn}", values, acks=-1
            )
            sent += values
        assert list(enumerate(sent)) == client.read_all(TOPIC, PARTITION)
        logs = [cluster.log(name) for name in IDS]
        assert all(log is not None and [] == list(log.problems) for log in logs)
        first, second = (log.batches for log in logs if log is not None)
        assert first == second
        known = set() if spoken is None else {spoken}
        assert questions(cluster, "A", "B") == known
        assert questions(cluster, "B", "A") == known
        # If it cannot ask, it truncates to its high watermark, even if it knows epochs (KIP-101, compatibility).
        assert cuts(cluster, "B") == ({"high-watermark"} if spoken is None else {"high-watermark", "epoch-answer"})
