"""A broker under broken requests survives, stays small, serves other clients, and keeps acknowledged records."""

from __future__ import annotations

import socket
import threading
from collections import Counter
from contextlib import ExitStack
from pathlib import Path

import pytest

from harness.cluster.cluster import Cluster
from harness.environment.machines import RealMachines
from harness.history.file import read_history
from harness.launch import Address
from harness.scenario.file import PARTITION, TOPIC
from targets.kafka_family.clients.raw import RawClient
from tests.broker.fuzz import FUZZ_VALUE, Shot, shots
from tests.clusters import running

pytestmark = pytest.mark.slow

SEED = 101
SHOTS = 2_000
# Connections that stay open with half a request each, while others come and go.
LINGERING = 24
HALF = (50 * 1024 * 1024).to_bytes(4) + b"x" * 10_000
GROWN_KB_MAX = 64 * 1024
ANSWER_S_MAX = 0.03
BYTES_MAX = 1 << 16
# A fraction of what an idle machine serves, yet enough to show that the broker served others meanwhile.
SERVED_MEANWHILE = 100
OUTCOMES = ("answer", "hung up", "nothing", "not awaited")


class Bystander(threading.Thread):
    """A client that produces one record after the other until it is stopped."""

    def __init__(self, client: RawClient) -> None:
        super().__init__()
        self.written: dict[int, str] = {}
        self.errors: list[Exception] = []
        self._client = client
        self._over = threading.Event()

    def run(self) -> None:
        while not self._over.is_set():
            self.write(f"bystander.{len(self.written)}")

    def write(self, value: str) -> None:
        """Produce one record, acknowledged by all."""
        try:
            (offset,) = self._client.produce(TOPIC, PARTITION, "m", [value], acks=-1)
            self.written[offset] = value
        except Exception as error:  # asserted in the test's own thread
            self.errors.append(error)
            self._over.set()

    def stop(self) -> None:
        """Wait for the last record's answer and stop."""
        self._over.set()
        self.join()


def fire(address: Address, shot: Shot) -> str:
    """Send a shot over a new connection and close it; return the outcome, one of OUTCOMES."""
    with socket.create_connection((address.host, address.port)) as connection:
        connection.settimeout(ANSWER_S_MAX)
        try:
            connection.sendall(shot.data)
            if not shot.patient:
                return "not awaited"
            return "answer" if connection.recv(BYTES_MAX) else "hung up"
        except TimeoutError:
            return "nothing"
        except OSError:
            # The broker hung up before the whole shot was sent.
            return "hung up"


def resident_kb(pid: int) -> int:
    """Return the resident memory of a process."""
    status = Path(f"/proc/{pid}/status").read_text(encoding="ascii")
    return int(status.partition("VmRSS:")[2].split()[0])


def machines(cluster: Cluster) -> RealMachines:
    """Return the cluster's real machines."""
    assert isinstance(cluster.host, RealMachines)
    return cluster.host


def started(cluster: Cluster) -> list[int]:
    """Return the pids of all broker processes started so far, in order."""
    return [op.value["pid"] for op in read_history(cluster.history.path) if op.f == "started"]


def test_fuzzed_wire_kills_no_broker_and_loses_no_acknowledged_record(tmp_path: Path, zookeeper: Address) -> None:
    run_dir = tmp_path / "run"
    with running(run_dir, zookeeper, "kip320", {"A": 1}, replicas=("A",)) as cluster, ExitStack() as lines:
        client = RawClient(history=cluster.history, bootstrap=cluster.clients_addresses)
        client.create_topic(TOPIC, [1])
        # The controller has elected A when the call returns; A may not have received the command yet.
        cluster.await_(lambda: cluster.main.claims_leadership("A", 0), lambda: "A leads")
        bystander = Bystander(client)
        bystander.write("before")
        (pid,) = started(cluster)
        place = machines(cluster).specs["A"].place
        small_kb = resident_kb(pid)
        bystander.start()
        listeners = (place.client_outside, place.internal_outside)
        for _ in range(LINGERING):
            line = lines.enter_context(socket.create_connection((listeners[0].host, listeners[0].port)))
            line.sendall(HALF)
        came = Counter(fire(listeners[n % 2], shot) for n, shot in enumerate(shots(SEED, SHOTS, TOPIC)))
        bystander.stop()
        grown_kb = resident_kb(pid) - small_kb
        bystander.write("after")

        # Every outcome occurred often enough.
        assert all(came[outcome] > SHOTS // 50 for outcome in ("answer", "hung up", "nothing", "not awaited")), (
            came
        )
        assert [] == bystander.errors
        assert machines(cluster).alive("A")
        assert [pid] == started(cluster)
        assert grown_kb < GROWN_KB_MAX
        assert len(bystander.written) > SERVED_MEANWHILE
        read = dict(client.read_all(TOPIC, PARTITION))
        assert bystander.written == {offset: read.get(offset) for offset in bystander.written}
        # All other records come from the shots, some of which are valid.
        others = {value for offset, value in read.items() if offset not in bystander.written}
        assert others == {FUZZ_VALUE}
        assert [] == list((cluster.log("A") or pytest.fail("no log")).problems)
