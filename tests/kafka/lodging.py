"""
One replica's log on a broker of either system, and its move to the other system: for tests that compare both
systems on one log.

C is the controller and A leads the partition; each bounce of A that C sees starts new leader epochs, the same on
both systems. B, if there is one, follows A.
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
from harness.environment.machines import RealMachines
from harness.environment.opening import open_machines
from harness.history.file import History
from harness.hosts import HOSTS
from harness.launch import Address
from harness.scenario.file import PARTITION, TOPIC
from harness.target.found import target as target_of
from harness.target.target import Target
from targets.kafka_family.clients import questions
from targets.kafka_family.clients.connection import Connection
from targets.kafka_family.clients.librdkafka import LibrdkafkaClient
from targets.kafka_family.wire.bodies import EpochAnswer, epoch_answers
from tests.faults import NEMESES
from tests.services import shared
from tests.specs import cluster_spec

IDS = {"C": 1, "A": 2, "B": 3}
# A broker's own file in a partition's folder: it has the topic id, which differs between clusters.
OWN = "partition.metadata"
# The magic of a record batch; a lower magic is that of a message set.
BATCH = 2
_numbers = itertools.count()
_RECORDS = 5


class Lodging:
    """A running cluster; methods that take no replica act on A."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._client = LibrdkafkaClient(history=cluster.history, bootstrap=cluster.clients_addresses)
        self._client.create_topic(TOPIC, [IDS[name] for name in cluster.replicas])
        self.await_leader()

    @property
    def epoch(self) -> int:
        """The leader epoch in which A leads."""
        truth = self._cluster.metadata.truth(TOPIC, PARTITION)
        assert truth is not None, "the topic is made before anybody asks"
        return truth.epoch

    @property
    def folder(self) -> Path:
        """The folder of A's log."""
        return self.folder_of("A")

    def folder_of(self, name: str) -> Path:
        """Return the folder of a replica's log."""
        assert isinstance(self._cluster.host, RealMachines), "only real machines have files"
        return self._cluster.host.disk(name) / f"{TOPIC}-{PARTITION}"

    @property
    def address(self) -> str:
        """A's address for clients."""
        return self._cluster.addresses["A"]

    def await_leader(self) -> None:
        """Wait until A leads and claims the leadership itself."""
        cluster = self._cluster
        cluster.await_(
            lambda: cluster.leader() == "A" and cluster.main.claims_leadership("A", self.epoch), lambda: "A leads"
        )

    def write(self, name: str, codec: str) -> None:
        """Produce a batch to A with librdkafka."""
        values = [f"{name} {codec} {number} " + "and again " * 20 for number in range(_RECORDS)]
        self._client.produce(TOPIC, PARTITION, name, values, acks=-1, codec=codec)

    def take_down(self, name: str = "A") -> None:
        """Kill a replica, and wait until C has removed it from the ISR or the partition has no leader."""
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
        """Start B again, and wait until it is in the ISR."""
        NEMESES["restart"].inject(self._cluster, "B")
        self._cluster.await_(lambda: {"A", "B"} == self._cluster.isr(), lambda: "B is in the ISR")

    def bounce(self) -> None:
        """Kill A and start it again, which starts new leader epochs."""
        self.take_down()
        self.come_back()

    def move_in(self, folder: Path) -> None:
        """Replace A's log with the log in the folder, and start A again."""
        for file in self.folder.iterdir():
            if file.name != OWN:
                file.unlink()
        for file in folder.iterdir():
            if file.name != OWN:
                shutil.copy(file, self.folder / file.name)
        self.come_back()

    def serve(self) -> bytes:
        """Return all bytes that a consumer fetches from A, as they are on the wire."""
        found, offset, end = b"", 0, 1
        with Connection(self.address, "lodger", _deadline()) as connection:
            while offset < end:
                fetched = questions.fetch(connection, TOPIC, PARTITION, offset)
                assert fetched.error == 0, fetched.error
                found, end = found + fetched.records, fetched.high_watermark
                offset = _end_of(found)
        return found

    def read(self) -> list[tuple[int, str]]:
        """Return all records, as read by librdkafka."""
        return self._client.read_all(TOPIC, PARTITION)

    def epoch_ends(self, version: int, epochs: Sequence[int]) -> list[EpochAnswer]:
        """Return A's answers to an OffsetForLeaderEpoch request for each of the epochs."""
        host, _, port = self.address.rpartition(":")
        found: list[EpochAnswer] = []
        with socket.create_connection((host, int(port)), limits.CLIENT_OPERATION_S_MAX) as connection:
            for number, epoch in enumerate(epochs):
                connection.sendall(epoch_question(version, number, epoch))
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
    """Start a cluster of the target with changed rules or properties, and close it afterwards."""
    target: Target = target_of(target_name)
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
        shared=shared(zookeeper),
        power_tier="watermark",
    )
    try:
        cluster.start("C")
        cluster.await_(lambda: cluster.metadata.controller() == "C", lambda: "C is controller")
        for name in replicas:
            cluster.start(name)
        yield Lodging(cluster)
    finally:
        cluster.close()


def epoch_question(version: int, correlation: int, epoch: int) -> bytes:
    """Return OffsetForLeaderEpoch v0 to v3 for the partition; the current leader epoch is unknown (-1)."""
    replica = struct.pack(">i", -2) if version >= 3 else b""
    current = struct.pack(">i", -1) if version >= 2 else b""
    place = struct.pack(">ih", 1, len(TOPIC)) + TOPIC.encode() + struct.pack(">ii", 1, PARTITION)
    body = replica + place + current + struct.pack(">i", epoch)
    payload = struct.pack(">hhih", 23, version, correlation, 6) + b"lodger" + body
    return struct.pack(">i", len(payload)) + payload


def _end_of(data: bytes) -> int:
    """Return the offset after the last record batch, or after the last entry of a message set."""
    position, end = 0, 0
    while position < len(data):
        base, size = struct.unpack_from(">qi", data, position)
        (delta,) = struct.unpack_from(">i", data, position + 23) if data[position + 16] == BATCH else (0,)
        end, position = base + delta + 1, position + 12 + size
    return int(end)


def _deadline() -> float:
    return time.monotonic() + limits.CLIENT_OPERATION_S_MAX
