"""Fixtures for faults on real broker processes: one cluster for each power tier, repaired before every test."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest

from harness.cluster import fault as faults
from harness.cluster.cluster import Cluster
from harness.effect import ON_LINKS
from harness.launch import Address
from harness.scenario.file import PARTITION, TOPIC
from targets.kafka_family.clients.raw import RawClient
from tests.clusters import running
from tests.faults import NEMESES

IDS = {"C": 2, "A": 6, "B": 5}
REPLICAS = ("A", "B")
_values = itertools.count()

Clusters = Callable[[str], Cluster]


@pytest.fixture(scope="package")
def clusters(tmp_path_factory: pytest.TempPathFactory, zookeeper: Address) -> Iterator[Clusters]:
    """Return tier -> cluster, started on first use: C starts as controller, A and B replicate the partition."""
    made: dict[str, Cluster] = {}
    with ExitStack() as stack:

        def of(tier: str) -> Cluster:
            if tier not in made:
                run_dir = tmp_path_factory.mktemp("nemesis") / tier
                opened = running(run_dir, zookeeper, "kip101", IDS, replicas=REPLICAS, power_tier=tier)
                made[tier] = stack.enter_context(opened)
                client_of(made[tier]).create_topic(TOPIC, [IDS[name] for name in REPLICAS])
            return make_whole(made[tier])

        yield of


@pytest.fixture
def cluster(clusters: Clusters) -> Cluster:
    """Return a healthy cluster for tests that do not depend on the power tier."""
    return clusters("watermark")


def client_of(cluster: Cluster) -> RawClient:
    """Return the client that workloads use."""
    return RawClient(history=cluster.history, bootstrap=cluster.clients_addresses)


def inject(fault: str, cluster: Cluster, node: str) -> str:
    """Inject a fault of the table and return what its probe saw."""
    return faults.inject(cluster, NEMESES, NEMESES[fault], node)


def heal(fault: str, cluster: Cluster, node: str) -> str:
    """Inject the fault that heals this one, according to the table, and return what its probe saw."""
    by = next(each for each in NEMESES.values() if each.inject == NEMESES[fault].heal)
    return faults.inject(cluster, NEMESES, by, node)


def make_whole(cluster: Cluster) -> Cluster:
    """Heal every fault in force, then wait until both replicas are in sync and their logs end alike."""
    cluster.fabric.heal_all()
    for node in sorted(cluster.in_force.nodes(ON_LINKS)):
        inject("reconnect", cluster, node)
    for node in sorted(cluster.zombies):
        heal("zombie", cluster, node)
    for node in sorted(cluster.paused):
        heal("pause", cluster, node)
    for node in sorted(cluster.down):
        # A leader whose restart goes unnoticed waits for a leader epoch that the controller never sends
        # (KAFKA-1120, KIP-101).
        if cluster.metadata.incarnation(node):
            inject("expire", cluster, node)
        heal("kill", cluster, node)
    free_office(cluster)
    await_whole(cluster)
    return cluster


def free_office(cluster: Cluster) -> None:
    """Delete the znode of a controller that restarted at once: its dead session would keep the znode for long."""
    eye = cluster.metadata
    office = eye.office()
    if office is not None and office.member != eye.incarnation(str(office.node)):
        cluster.operator.depose()
    cluster.await_(lambda: eye.controller() is not None, lambda: "somebody is controller")


def await_whole(cluster: Cluster) -> None:
    """Wait until leader and follower know their epoch, both are in sync, and their logs end alike."""
    cluster.await_(
        lambda: (
            leads(cluster)
            and follows(cluster)
            and cluster.isr() == frozenset(REPLICAS)
            and len(set(ends(cluster).values())) == 1
        ),
        lambda: f"a whole cluster, not {cluster.metadata.truth(TOPIC, PARTITION)} with ends {ends(cluster)}",
    )


def leads(cluster: Cluster) -> bool:
    """Return whether ZooKeeper names a leader that reports the same leader epoch as ZooKeeper."""
    truth = cluster.metadata.truth(TOPIC, PARTITION)
    leader = cluster.leader()
    return truth is not None and leader is not None and cluster.main.reported_epoch(leader) == truth.epoch


def follows(cluster: Cluster) -> bool:
    """Return whether each replica has a role since it started: one that is just registered copies nothing yet."""
    truth = cluster.metadata.truth(TOPIC, PARTITION)
    return truth is not None and all(cluster.heard_epoch(name) == truth.epoch for name in REPLICAS)


def ends(cluster: Cluster) -> dict[str, int]:
    """Return the log end offset of each replica's files."""
    return {name: cluster.log_end(name) for name in REPLICAS}


def roles(cluster: Cluster) -> tuple[str, str]:
    """Return the current leader and follower."""
    leader = cluster.leader()
    assert leader is not None, "a whole cluster has a leader"
    return leader, next(name for name in REPLICAS if name != leader)


def produce(cluster: Cluster, count: int, *, acks: int = -1) -> int:
    """Produce records, each in its own batch, and return the log end offset after the last one."""
    values = [f"v{next(_values)}" for _ in range(count)]
    return client_of(cluster).produce(TOPIC, PARTITION, "m", values, acks=acks, singly=True)[-1] + 1
