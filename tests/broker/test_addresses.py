"""
Real processes: registrations that lead to another broker's address, and clients that speak as brokers.

Source:  Kafka, KafkaServer.createBrokerInfo, KafkaApis.handleFetchRequest.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from harness import limits
from harness.cluster.cluster import Cluster
from harness.history.file import read_history
from harness.hosts.local import ROOT
from harness.hosts.ports import PortClaims
from harness.launch import Address
from harness.model import Source
from targets.broker.core.rules import PROTOCOLS
from targets.broker.core.zookeeper import broker_path
from targets.kafka_family.clients import questions
from targets.kafka_family.clients.connection import Connection
from targets.kafka_family.clients.raw import RawClient
from targets.kafka_family.wire import requests
from targets.kafka_family.wire.errors import ErrorCode
from tests.clusters import running
from tests.kept import keep

pytestmark = pytest.mark.slow

IDS: Final = {"C": 3, "A": 1, "B": 2}
EIGHT: Final = broker_path(8)
COUNT: Final = 100
ITS_ADDRESS = (
    "is registered by broker {}, expected one that no other broker has; change the address of one of the two"
)


@pytest.fixture(scope="module", params=keep(PROTOCOLS, "kip380"))
def cluster(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, zookeeper: Address
) -> Iterator[Cluster]:
    """Yield three brokers, the first as controller, that each test leaves whole."""
    folder = tmp_path_factory.mktemp("addresses") / "run"
    with running(folder, zookeeper, request.param, IDS, replicas=("A", "B")) as found:
        yield found


@pytest.fixture
def client(cluster: Cluster) -> RawClient:
    """A client that sends each request once."""
    return RawClient(history=cluster.history, bootstrap=cluster.clients_addresses)


def make_topic(cluster: Cluster, client: RawClient, topic: str, *names: str, count: int) -> list[str]:
    """Make a topic that the first of these nodes leads, with records that all of them have acknowledged."""
    client.create_topic(topic, [IDS[name] for name in names])

    def led() -> bool:
        deadline = time.monotonic() + limits.CLIENT_OPERATION_S_MAX
        with Connection(cluster.address_of(names[0]), "client", deadline) as connection:
            return questions.fetch(connection, topic, 0, 0).error is ErrorCode.NONE

    cluster.await_(led, lambda: f"{names[0]} leads {topic}")
    sent = [f"m{number}" for number in range(count)]
    assert list(range(count)) == client.produce(topic, 0, "m", sent, acks=-1)
    return sent


def named(cluster: Cluster, node: str, path: str) -> list[str]:
    """Return what a broker reports of a node in ZooKeeper that it cannot use."""
    return [
        op.value["error"]
        for op in read_history(cluster.history.path)
        if (op.source, op.process, op.f) == (Source.BROKER, node, "unreadable-metadata")
        and op.value["path"] == path
    ]


def test_registration_by_hand_with_another_brokers_address_costs_that_broker_nothing(
    cluster: Cluster, client: RawClient
) -> None:
    """The INIT for 8 came to A, which deleted its replicas; once it started again they were gone everywhere."""
    sent = make_topic(cluster, client, "by-hand", "A", "B", count=COUNT)
    view: Any = cluster.metadata  # of ZooKeeper, whose operator it is
    copied = view.read(broker_path(IDS["A"]))
    assert copied is not None
    # A program's own session: what no session owns is no broker.
    view.client.create(EIGHT, copied, ephemeral=True)
    view.depose()  # the next controller tells every broker all that it is to have
    cluster.await_(
        lambda: bool(named(cluster, "A", EIGHT)), lambda: "A is asked in place of broker 8, and says so"
    )
    assert named(cluster, "A", EIGHT)[0].startswith("it leads to broker 1; expected the address of broker 8: ")
    assert [COUNT, COUNT] == [cluster.host.log_end(name, "by-hand", 0) for name in ("A", "B")]
    view.delete(EIGHT)
    assert list(enumerate(sent)) == client.read_all("by-hand", 0)
    assert [COUNT] == client.produce("by-hand", 0, "n", ["n"], acks=-1)


def test_fourth_broker_whose_configuration_was_copied_ends_in_one_line(
    cluster: Cluster, client: RawClient, tmp_path: Path
) -> None:
    sent = make_topic(cluster, client, "copied", "A", "B", count=COUNT)
    folder = Path(cluster.history.path).parent
    configs = [json.loads(path.read_text(encoding="utf-8")) for path in folder.rglob("broker.json")]
    (copied,) = [config for config in configs if config["node"] == "A"]
    address = ":".join(map(str, copied["advertised_client"]))
    ports = PortClaims(None)
    copied |= {"broker_id": 8, "node": "D", "data_dir": str(tmp_path / "D")}
    copied |= {name: ["127.0.0.1", ports.claim()] for name in ("listen_client", "listen_internal")}
    del copied["collector"]
    file = tmp_path / "broker.json"
    file.write_text(json.dumps(copied), encoding="utf-8")
    argv = [sys.executable, "-m", "targets.broker", "--config", str(file)]
    ended = subprocess.run(
        argv, cwd=ROOT, capture_output=True, text=True, timeout=limits.PROCESS_START_S_MAX, check=False
    )
    ports.close()
    assert 1 == ended.returncode, ended.stderr
    assert f" ended: broker id 8: its address {address} {ITS_ADDRESS.format(1)}" in ended.stderr.splitlines()[-1]
    assert "Traceback" not in ended.stderr
    assert cluster.metadata.read(EIGHT) is None  # type: ignore[attr-defined]
    assert list(enumerate(sent)) == client.read_all("copied", 0)


def test_clients_fetches_that_claim_to_be_frozen_followers_acknowledge_nothing(
    cluster: Cluster, client: RawClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """acks=all was answered with both followers frozen, and the record was lost with its leader."""
    make_topic(cluster, client, "frozen", "A", "B", "C", count=1)
    for name in ("B", "C"):
        cluster.host.pause(name)
    try:
        underway = client.begin_produce("frozen", 0, "n", ["m1"], acks=-1)
        cluster.await_(lambda: cluster.host.log_end("A", "frozen", 0) == 2, lambda: "A has the record")
        deadline = time.monotonic() + limits.CLIENT_OPERATION_S_MAX
        with Connection(cluster.address_of("A"), "client", deadline) as connection:
            for follower in ("B", "C", "B", "C"):
                with monkeypatch.context() as patched:
                    patched.setattr(requests, "_CONSUMER", IDS[follower])
                    fetched = questions.fetch(connection, "frozen", 0, 2)
                assert ErrorCode.TOPIC_AUTHORIZATION_FAILED is fetched.error
            assert 1 == questions.fetch(connection, "frozen", 0, 0).high_watermark
            with monkeypatch.context() as patched:
                patched.setattr(requests, "_CONSUMER", -2)  # of tools that look at replicas
                assert ErrorCode.NONE is questions.fetch(connection, "frozen", 0, 0).error
        assert not underway.done
    finally:
        for name in ("B", "C"):
            cluster.host.resume(name)
    cluster.await_(lambda: underway.done, lambda: "the followers have fetched")
    assert [1] == underway.result()
