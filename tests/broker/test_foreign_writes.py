"""
Ten cells of what others write into ZooKeeper, on real processes and a real ZooKeeper, with sessions of 2 s.

The table is tests/simulator/broker/test_foreign_writes.py; the nodes and the edits are the same. Its times are
virtual; here a condition is awaited, and none asserts how long it took.
Source:  Kafka, ControllerMovedException and KafkaController.maybeResign.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any, Final

import pytest
from confluent_kafka import KafkaException, Producer
from confluent_kafka.admin import NewTopic
from kazoo.client import KazooClient
from kazoo.exceptions import NoNodeError, NotEmptyError

from harness import limits
from harness.cluster.cluster import Cluster
from harness.launch import Address
from targets.broker.core.zookeeper import CONTROLLER
from targets.broker_target import target as broker_target
from tests.clusters import admin_of, await_leaders, bootstrap, leaders, running
from tests.kept import keep
from tests.simulator.foreign import EDITS, NODES, Found

pytestmark = pytest.mark.slow

IDS: Final = {"A": 1, "B": 2, "C": 3}
SESSION_MS: Final = 2_000
TOPIC: Final = "t"
_topics = itertools.count()

CELLS: Final = [
    pytest.param(*cell)
    for cell in (
        ("controller-epoch", "equal", "idle"),
        ("controller-epoch", "higher", "idle"),
        ("controller-epoch", "impossible-text", "no-controller"),
        ("controller-epoch", "deleted", "no-controller"),
        ("controller", "given-back", "idle"),
        ("controller", "impossible-nul", "idle"),
        ("registration-of-leader", "deleted", "idle"),
        ("ids", "deleted", "idle"),
        ("configs", "deleted", "idle"),
        ("brokers", "deleted", "idle"),
    )
]
KEPT: Final = (("controller-epoch", "equal", "idle"),)


class Shell:
    """A hand in a real ZooKeeper, by a client below a cluster's own path."""

    def __init__(self, client: KazooClient) -> None:
        self._client = client

    def read(self, path: str) -> bytes | None:
        try:
            return bytes(self._client.get(path)[0])
        except NoNodeError:
            return None

    def below(self, path: str) -> list[str]:
        try:
            return [f"{path}/{name}" for name in self._client.get_children(path)]
        except NoNodeError:
            return []

    def write(self, path: str, data: bytes) -> None:
        try:
            self._client.set(path, data)
        except NoNodeError:
            self._client.create(path, data)

    def delete(self, path: str) -> None:
        try:
            self._client.delete(path)
        except NoNodeError:
            return
        except NotEmptyError:  # a broker has registered again meanwhile
            self._client.delete(path, recursive=True)


@pytest.fixture
def cluster(
    tmp_path_factory: pytest.TempPathFactory, zookeeper: Address, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Cluster]:
    monkeypatch.setattr(broker_target, "SESSION_TIMEOUT_MS", SESSION_MS)
    with running(tmp_path_factory.mktemp("foreign") / "run", zookeeper, "kip380", IDS) as made:
        yield made


def writes_a_new_topic(cluster: Cluster) -> str:
    """Create topics until one is created, and write to it; return its name."""
    made: list[str] = []

    def created() -> bool:
        topic, admin = f"new-{next(_topics)}", admin_of(cluster)
        try:
            admin.create_topics([NewTopic(topic, 1, 2)])[topic].result(timeout=SESSION_MS / 1_000)
        except (KafkaException, TimeoutError):  # of a client that knows no broker for a moment, too
            return False
        made.append(topic)
        return True

    cluster.await_(created, lambda: "a new topic that is created")
    await_leaders(cluster, made[-1])
    producer = Producer({"bootstrap.servers": bootstrap(cluster), "acks": "all", "log_level": 0})
    errors: list[object] = []
    producer.produce(made[-1], b"m", partition=0, on_delivery=lambda error, _: errors.append(error))
    assert producer.flush(limits.CLIENT_OPERATION_S_MAX) == 0
    assert errors == [None]
    return made[-1]


@pytest.mark.parametrize(("node", "edit", "moment"), keep(CELLS, *KEPT))
def test_new_topic_is_writable_after_a_foreign_write(cluster: Cluster, node: str, edit: str, moment: str) -> None:
    view: Any = cluster.metadata
    admin = admin_of(cluster)
    admin.create_topics([NewTopic(TOPIC, 1, 3)])[TOPIC].result(timeout=limits.CLIENT_OPERATION_S_MAX)
    await_leaders(cluster, TOPIC)
    hand = Shell(view.client)
    holder = view.controller()
    assert holder is not None
    at = Found(controller=IDS[holder], leader=leaders(cluster, TOPIC)[0], other=IDS["C"], topic=TOPIC)
    path = NODES[node](hand, at)
    if moment == "no-controller":
        cluster.host.kill(holder)
        cluster.await_(lambda: hand.read(CONTROLLER) is None, lambda: "the end of the controller's session")
    EDITS[edit](hand, path, None)
    writes_a_new_topic(cluster)
