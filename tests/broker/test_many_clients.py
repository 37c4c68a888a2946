"""Many connections to a real broker: it refuses some, closes idle ones, and goes on writing its log."""

from __future__ import annotations

import json
import socket
import struct
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from benchmarks.clusters import Peer, RunningCluster, our_peer, running
from harness.cleanup.process import until
from harness.launch import Launch
from tests.broker.aimed import request
from tests.broker.storm import BYSTANDERS, bystander
from tests.broker.wires import api_versions
from tests.little_memory import peak_bytes
from tests.needs import needs

pytestmark = [pytest.mark.slow, needs("java")]

WAIT_S = 30.0
FILES = 256
CONNECTIONS = 400


def changed(change: Callable[[dict[str, Any]], None], prefix: tuple[str, ...] = ()) -> Peer:
    """Return our broker with a changed configuration, and with these words before its command."""
    peer = our_peer("broker")

    def tune(launch: Launch) -> Launch:
        launch = peer.tune(launch)
        config = json.loads(launch.files["broker.json"])
        change(config)
        return replace(launch, argv=(*prefix, *launch.argv), files={"broker.json": json.dumps(config)})

    return replace(peer, tune=tune)


@contextmanager
def one_broker(folder: Path, limits: Mapping[str, int], prefix: tuple[str, ...] = ()) -> Iterator[RunningCluster]:
    with running(changed(lambda config: config.update(limits=dict(limits)), prefix), folder, names="A") as cluster:
        cluster.create(BYSTANDERS, 1)
        yield cluster


def connect(port: tuple[str, int]) -> socket.socket:
    return socket.create_connection(port, timeout=WAIT_S)


def ends(line: socket.socket) -> bool:
    """Wait for the end of a connection; False if it goes on."""
    try:
        return not line.recv(1)
    except TimeoutError:
        return False
    except ConnectionError:
        return True


def test_connections_beyond_the_files_are_refused_and_the_log_is_written(tmp_path: Path) -> None:
    with one_broker(tmp_path, {}, ("prlimit", f"--nofile={FILES}", "--")) as cluster, ExitStack() as lines:
        before = lines.enter_context(connect(cluster.ports[0]))
        with bystander(cluster.bootstrap) as seen:
            many = [lines.enter_context(connect(cluster.ports[0])) for _ in range(CONNECTIONS)]
            # Served to the last place: who is refused is told so by the end of its connection.
            for line in many:
                line.settimeout(0.0)
            assert until(lambda: sum(_ended(line) for line in many) > CONNECTIONS - FILES, WAIT_S)
        assert peak_bytes(cluster.pids[0]), cluster.last_words()
        assert [] == seen[0].errors
        assert (0, True) == (seen[0].lost, seen[0].acknowledged > 1)
        before.sendall(api_versions(1))
        assert before.recv(4)
        told = [line for line in cluster.log("A").splitlines() if "refused " in line]
        assert 1 == len(told)
        assert "clients' listener" in told[0]


def _ended(line: socket.socket) -> bool:
    try:
        return not line.recv(1)
    except BlockingIOError:
        return False
    except ConnectionError:
        return True


def test_idle_connections_are_closed_and_those_that_ask_are_not(tmp_path: Path) -> None:
    """Source: Kafka, connections.max.idle.ms."""
    with one_broker(tmp_path, {"connection_idle_ms_max": 3_000}) as cluster, ExitStack() as lines:
        idle, half, busy = (lines.enter_context(connect(cluster.ports[0])) for _ in range(3))
        half.sendall(struct.pack(">i", 50) + b"x")
        closed = 0
        for number in range(1_000):
            busy.sendall(api_versions(number))
            assert busy.recv(1 << 16)
            idle.settimeout(0.02)
            if ends(idle):
                closed += 1
                break
        assert (1, True) == (closed, ends(half))
        busy.sendall(api_versions(1))
        assert busy.recv(4)


def test_clients_cannot_command_a_broker(tmp_path: Path) -> None:
    with one_broker(tmp_path, {}) as cluster:
        for name in (b"../../evil", BYSTANDERS.encode()):
            body = struct.pack(">ibii", 1_000, 1, 1, 2**31 - 1) + struct.pack(">ih", 1, len(name)) + name
            body += struct.pack(">iiii", 0, 1, 99, 1) + struct.pack(">iqii", 1, 0, 1, 1)
            for port, refused in ((cluster.ports[0], True), (cluster.ports[1], name.startswith(b".."))):
                if refused:
                    with connect(port) as line:
                        line.sendall(request(4, 0, body))
                        assert ends(line)
        assert peak_bytes(cluster.pids[0]), cluster.last_words()
        with bystander(cluster.bootstrap) as seen:
            pass
        assert ([], 0) == (seen[0].errors, seen[0].lost)
        assert not list(tmp_path.rglob("evil*"))
