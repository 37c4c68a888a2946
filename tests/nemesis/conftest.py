"""One cluster for each power tier, made whole again before every test: faults on real broker processes."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest

from harness.cluster import fault as faults
from harness.cluster.cluster import Cluster
from harness.launch import Address
from harness.scenario.file import PARTITION, TOPIC
from nemesis import NEMESES
from tests.clusters import running
from workloads.clients.raw import RawClient

IDS = {"C": 2, "A": 6, "B": 5}
REPLICAS = ("A", "B")
_values = itertools.count()

Clusters = Callable[[str], Cluster]


@pytest.fixture(scope="package")
def clusters(tmp_path_factory: pytest.TempPathFactory, zookeeper: Address) -> Iterator[Clusters]:
    """A cluster of each tier, made when it is first asked for: C is controller, A and B hold the partition."""
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
    """A whole cluster, where the test is not about lost power."""
    return clusters("watermark")


def client_of(cluster: Cluster) -> RawClient:
    """The client that workloads use."""
    return RawClient(history=cluster.history, bootstrap=cluster.clients_addresses)


def inject(fault: str, cluster: Cluster, node: str) -> str:
    """Inject a fault of the table; give what its probe saw."""
    return faults.inject(cluster, NEMESES, NEMESES[fault], node)


def heal(fault: str, cluster: Cluster, node: str) -> str:
    """Undo a fault as its table line says; give what that saw."""
    by = next(each for each in NEMESES.values() if each.inject == NEMESES[fault].heal)
    return faults.inject(cluster, NEMESES, by, node)


def make_whole(cluster: Cluster) -> Cluster:
    """Undo what stands, then wait until both replicas are in sync and hold the same."""
    cluster.fabric.heal_all()
    for node in sorted(cluster.zombies):
        heal("zombie", cluster, node)
    for node in sorted(cluster.paused):
        heal("pause", cluster, node)
    for node in sorted(cluster.down):
        # A leader that returns unseen waits for an epoch that no controller gives it (KAFKA-1120, KIP-101).
        if cluster.zookeeper_view.registered(node):
            inject("expire", cluster, node)
        heal("kill", cluster, node)
    free_office(cluster)
    await_whole(cluster)
    return cluster


def free_office(cluster: Cluster) -> None:
    """End the office of a controller that was restarted at once: its dead session would hold it for long."""
    eye = cluster.zookeeper_view
    holder = eye.controller()
    if holder is not None and eye.office() != eye.registered(holder):
        eye.depose()
    cluster.await_(lambda: eye.controller() is not None, lambda: "somebody is controller")


def await_whole(cluster: Cluster) -> None:
    """Wait until there is a leader that knows it, both replicas are in sync, and their logs end alike."""
    cluster.await_(
        lambda: leads(cluster) and cluster.isr() == frozenset(REPLICAS) and len(set(ends(cluster).values())) == 1,
        lambda: f"a whole cluster, not {cluster.zookeeper_view.truth(TOPIC, PARTITION)} with ends {ends(cluster)}",
    )


def leads(cluster: Cluster) -> bool:
    """Whether somebody leads, by ZooKeeper's word and by its own for that epoch."""
    truth = cluster.zookeeper_view.truth(TOPIC, PARTITION)
    leader = cluster.leader()
    return truth is not None and leader is not None and cluster.reported_epoch(leader) == truth.leader_epoch


def ends(cluster: Cluster) -> dict[str, int]:
    """Where each replica's files end."""
    return {name: cluster.log_end(name) for name in REPLICAS}


def roles(cluster: Cluster) -> tuple[str, str]:
    """Who leads and who follows now."""
    leader = cluster.leader()
    assert leader is not None, "a whole cluster has a leader"
    return leader, next(name for name in REPLICAS if name != leader)


def produce(cluster: Cluster, count: int, *, acks: int = -1) -> int:
    """Produce records, each in a batch of its own; give the end that they bring about."""
    values = [f"v{next(_values)}" for _ in range(count)]
    return client_of(cluster).produce(TOPIC, PARTITION, "m", values, acks=acks, singly=True)[-1] + 1
