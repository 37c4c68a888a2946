"""
One replica's log on a broker of either system, and its move from one to the other: for tests that hold both
against one log.

C is the controller and A holds the partition; each bounce of A that C sees begins new epochs, alike on both.
B, where there is one, follows A.
"""

from __future__ import annotations

import itertools
import shutil
import socket
import struct
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from harness import limits
from harness.cluster.cluster import Cluster
from harness.cluster.target import Target
from harness.environment.machines import RealMachines, open_machines
from harness.fabric.bodies import EpochAnswer, epoch_answers
from harness.history.file import History
from harness.hosts import HOSTS
from harness.launch import Address
from harness.registry import load
from harness.scenario.file import PARTITION, TOPIC
from nemesis import NEMESES
from targets import TARGETS
from tests.specs import cluster_spec
from workloads.clients import questions
from workloads.clients.connection import Connection
from workloads.clients.librdkafka import LibrdkafkaClient

IDS = {"C": 1, "A": 2, "B": 3}
# What a broker keeps of its own in a partition's folder: the id under which its cluster knows the topic.
OWN = "partition.metadata"
# The magic of a record batch; what is below it is a message set's.
BATCH = 2
_numbers = itertools.count()
_RECORDS = 5


class Lodging:
    """A running cluster; whatever names no replica is about A."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._client = LibrdkafkaClient(history=cluster.history, bootstrap=cluster.clients_addresses)
        self._client.create_topic(TOPIC, [IDS[name] for name in cluster.replicas])
        self.await_leader()

    @property
    def epoch(self) -> int:
        """The epoch in which A leads."""
        truth = self._cluster.zookeeper_view.truth(TOPIC, PARTITION)
        assert truth is not None, "the topic is made before anybody asks"
        return truth.leader_epoch

    @property
    def folder(self) -> Path:
        """The replica's own files."""
        return self.folder_of("A")

    def folder_of(self, name: str) -> Path:
        """Any replica's own files."""
        assert isinstance(self._cluster.host, RealMachines), "only real machines have files"
        return self._cluster.host.disk(name) / f"{TOPIC}-{PARTITION}"

    @property
    def address(self) -> str:
        """Where clients reach A."""
        return self._cluster.addresses["A"]

    def await_leader(self) -> None:
        """Wait until A leads and knows it."""
        cluster = self._cluster
        cluster.await_(
            lambda: cluster.leader() == "A" and cluster.claims_leadership("A", self.epoch), lambda: "A leads"
        )

    def write(self, name: str, codec: str) -> None:
        """Have A append a batch, by librdkafka."""
        values = [f"{name} {codec} {number} " + "and again " * 20 for number in range(_RECORDS)]
        self._client.produce(TOPIC, PARTITION, name, values, acks=-1, codec=codec)

    def take_down(self, name: str = "A") -> None:
        """Kill a replica, and have C see it."""
        cluster = self._cluster
        NEMESES["kill"].inject(cluster, name)
        NEMESES["expire"].inject(cluster, name)
        cluster.await_(
            lambda: cluster.leader() is None or name not in cluster.isr(), lambda: f"{name} is out of the ISR"
        )

    def come_back(self) -> None:
        """Start A again, and wait until it leads."""
        NEMESES["restart"].inject(self._cluster, "A")
        self.await_leader()

    def catch_up(self) -> None:
        """Start B again, and wait until it has all that A has."""
        NEMESES["restart"].inject(self._cluster, "B")
        self._cluster.await_(lambda: {"A", "B"} == self._cluster.isr(), lambda: "B is in the ISR")

    def bounce(self) -> None:
        """Begin new epochs."""
        self.take_down()
        self.come_back()

    def move_in(self, folder: Path) -> None:
        """Come back with another's log in place of the replica's own."""
        for file in self.folder.iterdir():
            if file.name != OWN:
                file.unlink()
        for file in folder.iterdir():
            if file.name != OWN:
                shutil.copy(file, self.folder / file.name)
        self.come_back()

    def serve(self) -> bytes:
        """All that A gives a consumer, as it stands on the wire."""
        found, offset, end = b"", 0, 1
        with Connection(self.address, "lodger", _deadline()) as connection:
            while offset < end:
                fetched = questions.fetch(connection, TOPIC, PARTITION, offset)
                assert fetched.error == 0, fetched.error
                found, end = found + fetched.records, fetched.high_watermark
                offset = _end_of(found)
        return found

    def read(self) -> list[tuple[int, str]]:
        """All records, as librdkafka gives them."""
        return self._client.read_all(TOPIC, PARTITION)

    def epoch_ends(self, version: int, epochs: Sequence[int]) -> list[EpochAnswer]:
        """What A answers to the question where each of the epochs ends."""
        host, _, port = self.address.rpartition(":")
        found: list[EpochAnswer] = []
        with socket.create_connection((host, int(port)), limits.CLIENT_OPERATION_S_MAX) as connection:
            for number, epoch in enumerate(epochs):
                connection.sendall(_question(version, number, epoch))
                with connection.makefile("rb") as stream:
                    (size,) = struct.unpack(">i", stream.read(4))
                    answers, _ = epoch_answers(stream.read(size), 4, version)
                found += answers
        return found


@contextmanager
def lodging(
    target_name: str,
    protocol: str,
    zookeeper: Address,
    folder: Path,
    *,
    replicas: tuple[str, ...] = ("A",),
    changes: tuple[str, ...] = (),
) -> Iterator[Lodging]:
    """A cluster of that system, some of its rules or properties changed, everything down afterwards."""
    target: Target = load("target", TARGETS, target_name, "TARGET")
    number = next(_numbers)
    run_dir = folder / f"{target_name}-{number}"
    run_dir.mkdir()
    ids = {name: number for name, number in IDS.items() if name == "C" or name in replicas}
    cluster = open_machines(
        cluster_spec(target, protocol, ids, replicas, changes=changes),
        run_dir,
        History(run_dir / "history.jsonl"),
        make_host=HOSTS["local"],
        target=target,
        zookeeper=zookeeper,
        power_tier="watermark",
    )
    try:
        cluster.start("C")
        cluster.await_(lambda: cluster.zookeeper_view.controller() == "C", lambda: "C is controller")
        for name in replicas:
            cluster.start(name)
        yield Lodging(cluster)
    finally:
        cluster.close()


def _question(version: int, correlation: int, epoch: int) -> bytes:
    """OffsetForLeaderEpoch v0 to v3 of the one partition; nobody claims to know the current epoch (-1)."""
    replica = struct.pack(">i", -2) if version >= 3 else b""
    current = struct.pack(">i", -1) if version >= 2 else b""
    place = struct.pack(">ih", 1, len(TOPIC)) + TOPIC.encode() + struct.pack(">ii", 1, PARTITION)
    body = replica + place + current + struct.pack(">i", epoch)
    payload = struct.pack(">hhih", 23, version, correlation, 6) + b"lodger" + body
    return struct.pack(">i", len(payload)) + payload


def _end_of(data: bytes) -> int:
    """The offset after the last batch of the bytes, or after the last entry of a message set, which tells it."""
    position, end = 0, 0
    while position < len(data):
        base, size = struct.unpack_from(">qi", data, position)
        (delta,) = struct.unpack_from(">i", data, position + 23) if data[position + 16] == BATCH else (0,)
        end, position = base + delta + 1, position + 12 + size
    return int(end)


def _deadline() -> float:
    return time.monotonic() + limits.CLIENT_OPERATION_S_MAX
