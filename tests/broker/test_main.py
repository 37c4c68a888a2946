"""One broker's process: how it ends, what the next one recovers, and that it stops at a disk error."""

from __future__ import annotations

import itertools
import json
import resource
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer
from kazoo.client import KazooClient

from harness import limits
from harness.cleanup.process import until
from harness.history.file import History
from harness.hosts.local import ROOT
from harness.hosts.ports import PortClaims
from harness.launch import Address
from harness.model import PreconditionError
from targets.broker_target.target import SETTINGS
from targets.kafka_family.clients.librdkafka import LibrdkafkaClient
from tests.targets.kafka_family.logs.scans import scan_partition

pytestmark = pytest.mark.slow

BROKER_ID = 4
MARKER = ".kafka_cleanshutdown"
_chroots = itertools.count()


class Broker:
    """A broker on a folder over several lives, one process each; each life prints to its own file."""

    def __init__(self, folder: Path, config: dict[str, Any]) -> None:
        folder.mkdir()
        self.data = Path(config["data_dir"])
        self.port: int = config["listen_client"][1]
        self._folder = folder
        self._config = folder / "broker.json"
        self._config.write_text(json.dumps(config), encoding="utf-8")
        self._lives = 0
        self._child: subprocess.Popen[bytes] | None = None

    def start(self, *options: str) -> None:
        """Start the process."""
        self._lives += 1
        argv = [sys.executable, "-m", "targets.broker", "--config", str(self._config), *options]
        with self._said.open("wb") as said:
            self._child = subprocess.Popen(argv, cwd=ROOT, stderr=said, stdout=said)

    def ready(self) -> None:
        """Start the process and wait until it reports that it is ready."""
        self.start()
        assert until(lambda: bool(self.told("ready")) or self.ended, limits.PROCESS_START_S_MAX), self.said
        assert not self.ended, self.said

    @property
    def _said(self) -> Path:
        return self._folder / f"life-{self._lives}.txt"

    @property
    def said(self) -> str:
        """The output of this life so far."""
        return self._said.read_text(encoding="utf-8")

    def told(self, f: str) -> list[dict[str, Any]]:
        """Return the values of this life's events of kind `f`, from its output."""
        lines = [json.loads(line[line.index("{") :]) for line in self.said.splitlines() if '{"node"' in line]
        return [line["value"] for line in lines if line["f"] == f]

    @property
    def ended(self) -> bool:
        """Whether this life is over."""
        return self._child is not None and self._child.poll() is not None

    def limit_files(self, size: int) -> None:
        """Limit the size of each file it writes to this many bytes, as on a full disk."""
        assert self._child is not None, "nothing was started"
        resource.prlimit(self._child.pid, resource.RLIMIT_FSIZE, (size, size))

    def send(self, number: signal.Signals) -> int:
        """Send a signal and return the exit code."""
        assert self._child is not None, "nothing was started"
        self._child.send_signal(number)
        return self.wait()

    def wait(self) -> int:
        """Wait until the process has ended and return its exit code."""
        assert self._child is not None, "nothing was started"
        return self._child.wait(limits.PROCESS_START_S_MAX)

    def close(self) -> None:
        """Kill the process if it still runs."""
        if self._child is not None:
            self._child.kill()
            self._child.wait()


MakeBroker = Callable[..., Broker]


@pytest.fixture
def make_broker(tmp_path: Path, zookeeper: Address) -> Iterator[MakeBroker]:
    """Yield a factory of brokers, not yet started, on a ZooKeeper chroot of this test."""
    chroot = f"/main-{next(_chroots)}"
    maker = KazooClient(str(zookeeper))
    maker.start(timeout=limits.SERVICE_START_S_MAX)
    maker.ensure_path(chroot)
    maker.stop()
    maker.close()
    ports = PortClaims(None)
    made: list[Broker] = []

    def make(node: str = "A", **changed: Any) -> Broker:
        client, internal = ["127.0.0.1", ports.claim()], ["127.0.0.1", ports.claim()]
        config = {
            "broker_id": BROKER_ID,
            "node": node,
            "listen_client": client,
            "listen_internal": internal,
            "advertised_client": client,
            "advertised_internal": internal,
            "zookeeper": f"{zookeeper}{chroot}",
            "session_timeout_ms": 60_000,
            "data_dir": str(tmp_path / f"{node}-data"),
            "protocol": "kip101",
            "settings": SETTINGS,
            **changed,
        }
        made.append(Broker(tmp_path / node, config))
        return made[-1]

    yield make
    for broker in made:
        broker.close()
    ports.close()


@pytest.fixture
def broker(make_broker: MakeBroker) -> Broker:
    """A broker with the default configuration."""
    return make_broker()


def client_of(broker: Broker, folder: Path) -> LibrdkafkaClient:
    """Create the topic `log` and wait until the broker leads it; return the client."""
    history = History(folder / "history.jsonl")
    client = LibrdkafkaClient(history=history, bootstrap=lambda: [f"127.0.0.1:{broker.port}"])
    client.create_topic("log", [BROKER_ID])
    assert until(lambda: bool(broker.told("leader")), limits.CONDITION_WAIT_S_MAX), broker.said
    return client


@pytest.fixture
def client(broker: Broker, tmp_path: Path) -> Iterator[LibrdkafkaClient]:
    """A client of the default broker, which runs, leads `log` and has three records."""
    broker.ready()
    made = client_of(broker, tmp_path)
    made.produce("log", 0, "m1", ["a", "b", "c"], acks=-1)
    yield made
    made.history.close()


# --- shutdown ------------------------------------------------------------------------------------------------
def test_sigterm_leaves_the_marker_and_the_next_life_is_clean_and_loses_nothing(
    broker: Broker, client: LibrdkafkaClient
) -> None:
    assert 0 == broker.send(signal.SIGTERM)
    assert "ended cleanly on SIGTERM" in broker.said
    assert (broker.data / MARKER).exists()
    broker.ready()
    assert not (broker.data / MARKER).exists()  # it is valid for one start
    (recovered,) = broker.told("recovered")
    assert (True, 3, "clean", 3) == tuple(
        recovered[key] for key in ("clean", "log_end_offset", "reason", "high_watermark")
    )
    assert [False] == [told["taken_over"] for told in broker.told("member")]
    assert until(lambda: bool(broker.told("leader")), limits.CONDITION_WAIT_S_MAX)
    assert [(0, "a"), (1, "b"), (2, "c")] == client.read_all("log", 0)


def test_sigkill_leaves_no_marker_and_the_next_life_recovers_and_loses_nothing(
    broker: Broker, client: LibrdkafkaClient
) -> None:
    assert -signal.SIGKILL == broker.send(signal.SIGKILL)
    assert not (broker.data / MARKER).exists()
    broker.ready()
    (recovered,) = broker.told("recovered")
    assert (False, 3, 0) == tuple(recovered[key] for key in ("clean", "log_end_offset", "cut_bytes"))
    assert [True] == [told["taken_over"] for told in broker.told("member")]


def test_killed_in_its_second_life_is_not_clean_by_the_marker_of_its_first(
    broker: Broker, client: LibrdkafkaClient
) -> None:
    broker.send(signal.SIGTERM)
    broker.ready()
    broker.send(signal.SIGKILL)
    broker.ready()
    assert [False] == [recovered["clean"] for recovered in broker.told("recovered")]


def test_sigterm_ends_a_broker_that_never_reached_zookeeper_cleanly(make_broker: MakeBroker) -> None:
    with socket.create_server(("127.0.0.1", 0)) as nobody:
        lost = make_broker(zookeeper=f"127.0.0.1:{nobody.getsockname()[1]}/none", session_timeout_ms=1_000)
        lost.start()
        assert until(lambda: "Connecting to" in lost.said or lost.ended, limits.PROCESS_START_S_MAX)
        assert 0 == lost.send(signal.SIGTERM)
    assert (lost.data / MARKER).exists()


# --- starts that must fail -----------------------------------------------------------------------------------
def test_second_node_with_the_same_id_gives_way_and_says_who_holds_it(make_broker: MakeBroker) -> None:
    first, second = make_broker("A"), make_broker("B")
    first.ready()
    second.start()
    assert 1 == second.wait()
    assert "broker id 4: registered by node 'A', expected no node or 'B'" in second.said
    assert not (second.data / MARKER).exists()
    assert not first.ended


def test_second_broker_on_a_data_directory_ends_before_it_touches_a_file(make_broker: MakeBroker) -> None:
    """Source: Kafka, LogManager.lockLogDirs."""
    first = make_broker("A")
    first.ready()
    second = make_broker("B", broker_id=BROKER_ID + 1, data_dir=str(first.data))
    second.start()
    assert 1 == second.wait()
    assert f"data_dir {first.data}: a running broker holds its .lock" in second.said.splitlines()[-1]
    assert [] == second.told("started")
    assert not first.ended


def test_wrong_configuration_exits_2_with_one_line_that_says_what(make_broker: MakeBroker) -> None:
    wrong = make_broker(protocol="kip102")
    wrong.start()
    assert 2 == wrong.wait()
    assert "broker.json: protocol 'kip102': expected one of hw, " in wrong.said
    assert 1 == len(wrong.said.splitlines())
    assert not wrong.data.exists()


def test_check_reads_the_configuration_and_touches_nothing(broker: Broker) -> None:
    broker.start("--check")
    assert (0, "") == (broker.wait(), broker.said)
    assert not broker.data.exists()


def test_taken_port_exits_1_and_names_it(make_broker: MakeBroker) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        late = make_broker(listen_client=["127.0.0.1", port])
        late.start()
        assert 1 == late.wait()
    assert f"('127.0.0.1', {port}): address already in use" in late.said.splitlines()[-1]


# --- a disk that fails ---------------------------------------------------------------------------------------
def test_data_directory_that_cannot_be_made_exits_1_and_says_why(make_broker: MakeBroker, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("no directory", encoding="utf-8")
    broker = make_broker(data_dir=str(tmp_path / "file" / "data"))
    broker.start()
    assert 1 == broker.wait()
    assert "ended: NotADirectoryError: " in broker.said.splitlines()[-1]


def test_disk_that_is_full_ends_the_broker_and_what_it_refused_is_not_acknowledged(
    broker: Broker, client: LibrdkafkaClient
) -> None:
    """
    A limit on file sizes simulates a full disk.

    Source:  Kafka Replication Design V3, discussion 4.
    """
    limit = 64 * 1024
    broker.limit_files(limit)
    with pytest.raises(PreconditionError, match="0 of 1 records acknowledged"):
        client.produce("log", 0, "m2", ["x" * 2 * limit], acks=-1)
    assert 1 == broker.wait()
    assert "ended: OSError(27, 'File too large')" in broker.said.splitlines()[-1]
    assert not (broker.data / MARKER).exists()
    broker.ready()
    (recovered,) = broker.told("recovered")
    assert (False, 3, True) == (recovered["clean"], recovered["log_end_offset"], recovered["cut_bytes"] > 0)
    assert 3 == scan_partition(broker.data / "log-0").log_end_offset


def test_data_directory_that_is_taken_away_ends_the_broker(broker: Broker, client: LibrdkafkaClient) -> None:
    broker.data.rename(broker.data.with_name("elsewhere"))
    broker.data.write_text("no directory", encoding="utf-8")
    # Give the next checkpoint something new to write, in case the current one is not the one that fails.
    producer = Producer({**client._config(), "message.timeout.ms": 1000})
    producer.produce("log", b"d", partition=0)
    producer.flush(limits.CLIENT_OPERATION_S_MAX)
    assert 1 == broker.wait()
    assert "a file; expected a directory" in broker.said.splitlines()[-1]


def test_topic_directory_that_is_a_file_ends_the_broker_that_is_to_hold_it(
    broker: Broker, client: LibrdkafkaClient
) -> None:
    (broker.data / "next-0").write_text("no directory", encoding="utf-8")
    client.create_topic("next", [BROKER_ID])
    assert 1 == broker.wait()
    assert "ended: FileExistsError" in broker.said.splitlines()[-1]
