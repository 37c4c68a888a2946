"""Clusters of real broker processes on loopback, for tests that need a running cluster."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from confluent_kafka.admin import AdminClient

from harness import limits
from harness.cluster.cluster import Cluster
from harness.environment.machines import RealMachines
from harness.environment.opening import open_machines
from harness.environment.services import Own
from harness.history.file import History
from harness.hosts import HOSTS, MakeHost
from harness.launch import Address, Launch
from harness.model import OpType
from harness.scenario.file import Step
from harness.scenario.steps import Inject
from harness.target.metadata import TargetRun
from harness.target.settings import Settings
from harness.target.target import NodeSpec
from targets.broker_target.target import BrokerTarget
from tests.services import shared
from tests.specs import cluster_spec

_numbers = itertools.count()


class Tuned(BrokerTarget):
    """Our broker with some settings changed, and some nodes on a different protocol."""

    def __init__(self, settings: Mapping[str, Any], releases: Mapping[str, str]) -> None:
        self._settings = settings
        self._releases = releases

    def launch(self, spec: NodeSpec, protocol: str, rules: Mapping[str, str]) -> Launch:
        """Return the launch of a run, with those settings and protocols applied."""
        if spec.name in self._releases:
            protocol = self._releases[spec.name]
            rules = self.rules(protocol, ())
        launch = super().launch(spec, protocol, rules)
        config = json.loads(launch.files["broker.json"])
        config["settings"] |= self._settings
        return replace(launch, files={"broker.json": json.dumps(config)})


def disk(cluster: Cluster, name: str) -> Path:
    """Return a node's data directory."""
    assert isinstance(cluster.host, RealMachines), "only real machines have one"
    return cluster.host.disk(name)


def bootstrap(cluster: Cluster) -> str:
    """Return the addresses of all brokers, as clients take them."""
    return ",".join(cluster.clients_addresses())


def admin_of(cluster: Cluster) -> AdminClient:
    """Return an admin client of confluent-kafka that is silent."""
    return AdminClient({"bootstrap.servers": bootstrap(cluster), "log_level": 0})


def leaders(cluster: Cluster, topic: str) -> list[int]:
    """Return who leads each partition of a topic, as metadata say."""
    found = _metadata(cluster, topic).topics[topic].partitions
    return [found[number].leader for number in sorted(found)]


def await_leaders(cluster: Cluster, topic: str, count: int = 1) -> None:
    """Wait until a topic has so many partitions that a broker leads."""

    def led() -> bool:
        found = _metadata(cluster, topic)
        return count == sum(part.leader in found.brokers for part in found.topics[topic].partitions.values())

    cluster.await_(led, lambda: f"{count} partitions of {topic} with leaders")


def _metadata(cluster: Cluster, topic: str) -> Any:
    return admin_of(cluster).list_topics(topic, timeout=limits.CLIENT_OPERATION_S_MAX)


def run_of(history: History, *services: Address, ids: Mapping[str, int]) -> TargetRun:
    """Return a run of these services as the parts of a target see it."""
    return TargetRun(
        target="broker",
        ids=ids,
        folder=history.path.parent,
        record=lambda event: history.record("metadata", OpType.INFO, event),
        give_up=history.give_up,
        services=services,
    )


@contextmanager
def running(
    run_dir: Path,
    zookeeper: Address,
    protocol: str,
    ids: Mapping[str, int],
    *,
    replicas: Sequence[str] = (),
    power_tier: str | None = "watermark",
    settings: Mapping[str, Any] | None = None,
    releases: Mapping[str, str] | None = None,
    nemeses: Sequence[str] = (),
    faults: Sequence[str] = (),
    host: str = "local",
    make_host: MakeHost | None = None,
    own_servers: int = 0,
    power_of_services: bool = False,
    client_links: bool = False,
    changes: Sequence[str] = (),
    segment_bytes: int | None = None,
) -> Iterator[Cluster]:
    """
    Start a cluster with every node running and the first one as controller; close it after the block.

    Args:
        run_dir: the folder of the run, which must not exist.
        zookeeper: the address of ZooKeeper.
        protocol: the protocol of every node that `releases` does not name.
        ids: node -> broker id.
        replicas: the nodes that replicate the partition.
        power_tier: the host's power tier; None for the best that it has.
        settings: broker settings to change.
        releases: node -> its own protocol, as in a rolling upgrade.
        nemeses: the faults that the cluster's machines must be able to do.
        faults: the faults for which the nodes must be able to do more than others, as steps of the schedule.
        host: the host of the nodes.
        make_host: what opens it, where its name does not suffice.
        own_servers: how many servers its own ZooKeeper has; 0 for the one at `zookeeper`.
        power_of_services: whether their disks can lose power.
        client_links: whether clients reach brokers through the fabric.
        changes: rules of the protocol that are changed, as `idempotence=no`.
        segment_bytes: how large a segment of a log is at most; None for the broker's own limit.
    """
    run_dir.mkdir(parents=True)
    target = Tuned(settings or {}, releases or {})
    fixed = Settings(segment_bytes=segment_bytes)
    spec = cluster_spec(target, protocol, ids, replicas, changes=changes, settings=fixed, nemeses=nemeses)
    steps = tuple(Step(line=line, act=Inject(name, ())) for line, name in enumerate(faults, start=1))
    cluster = open_machines(
        replace(spec, scenario=replace(spec.scenario, steps=steps)),
        run_dir,
        History(run_dir / "history.jsonl"),
        make_host=make_host or HOSTS[host],
        target=target,
        shared=shared(zookeeper),
        power_tier=power_tier,
        own=Own(counts={"zookeeper": own_servers} if own_servers else {}, loses_power=power_of_services),
        client_links=client_links,
    )
    try:
        first, *others = ids
        cluster.start(first)
        cluster.await_(lambda: cluster.metadata.controller() == first, lambda: f"{first} is controller")
        with ThreadPoolExecutor() as pool:
            list(pool.map(cluster.start, others))
        yield cluster
    finally:
        cluster.close()
