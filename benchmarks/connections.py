"""
Let many connections produce and fetch at once, on two peers: `python -m benchmarks.connections`.

    --connections 2000 --seconds 300 --against ours 3.9.1

Each connection sends one record to the leader (acks=1) and fetches it back, again and again. Both peers run during
the whole measurement, a broker each, one of them idle while the other is loaded. The client is one process with
one thread: with two cores it often is what limits the speed, for both alike; so read the ratios.

Exit codes: 0 measured, without an error of ours; 1 with errors; 2 the machine lacks something.
"""

from __future__ import annotations

import argparse
import asyncio
import resource
import struct
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from rich.console import Console
from rich.table import Table

from benchmarks.clusters import RunningCluster, our_peer, running, their_peer
from benchmarks.figures import OURS, percentile
from harness.model import EXIT_CODES, FencepostError
from targets.kafka.fetch import default_source, fetch
from targets.kafka.jars import cache_dir
from targets.kafka.releases import release_of
from targets.kafka_family.clients.batches import write_batch

TOPIC: Final = "connections"
RECORD_BYTES: Final = 100
CONNECT_S_MAX: Final = 60.0
ANSWER_S_MAX: Final = 60.0
FETCH_WAIT_MS: Final = 500
FETCH_BYTES_MAX: Final = 4_096
# Connections that are being opened at once, and how often memory is read.
OPENING_MAX: Final = 64
SAMPLE_S: Final = 1.0
_CLIENT: Final = b"connections"
_PRODUCED: Final = struct.Struct(">ihq")  # partition, error, base offset
_FETCHED: Final = struct.Struct(">ihqqii")  # partition, error, high watermark, last stable, aborted, bytes


@dataclass(slots=True)
class Load:
    """What came of a load: waits in seconds of each produce and each fetch, errors, and memory by the second."""

    waits_s: dict[str, list[float]] = field(default_factory=lambda: {"produce": [], "fetch": []})
    errors: Counter[str] = field(default_factory=Counter)
    memory_mib: list[float] = field(default_factory=list)
    seconds: float = 0.0


def produce_frame(partition: int) -> bytes:
    """Return a Produce v3 of one record."""
    batch = write_batch([bytes(RECORD_BYTES)], "none")
    data = struct.pack(">iii", 1, partition, len(batch)) + batch
    return _framed(0, 3, struct.pack(">hhii", -1, 1, 30_000, 1) + _text(TOPIC) + data)


def fetch_frame(partition: int, offset: int) -> bytes:
    """Return a Fetch v4 of one partition."""
    limits = struct.pack(">iiiibi", -1, FETCH_WAIT_MS, 1, FETCH_BYTES_MAX, 0, 1)
    return _framed(1, 4, limits + _text(TOPIC) + struct.pack(">iiqi", 1, partition, offset, FETCH_BYTES_MAX))


def _framed(key: int, version: int, body: bytes) -> bytes:
    head = struct.pack(">hhih", key, version, 1, len(_CLIENT)) + _CLIENT
    return struct.pack(">i", len(head) + len(body)) + head + body


def _text(text: str) -> bytes:
    return struct.pack(">h", len(text)) + text.encode()


class Line:
    """One connection."""

    def __init__(self, load: Load, partition: int) -> None:
        self._load = load
        self._partition = partition
        self._produce = produce_frame(partition)

    async def run(self, host: str, port: int, opening: asyncio.Semaphore, over: asyncio.Event) -> None:
        """Connect, then produce and fetch until it is over."""
        try:
            async with opening, asyncio.timeout(CONNECT_S_MAX):
                reader, writer = await asyncio.open_connection(host, port)
            try:
                while not over.is_set():
                    await self._turn(reader, writer)
            finally:
                writer.close()
                await writer.wait_closed()
        except (OSError, EOFError, TimeoutError, ValueError) as error:
            self._load.errors[repr(error)[:80]] += 1

    async def _turn(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        answer = await self._ask("produce", self._produce, reader, writer)
        at = answer.index(TOPIC.encode()) + len(TOPIC) + 4
        _, error, base = _PRODUCED.unpack_from(answer, at)
        if error:
            raise ValueError(f"produce: error {error}")
        answer = await self._ask("fetch", fetch_frame(self._partition, base), reader, writer)
        at = answer.index(TOPIC.encode()) + len(TOPIC) + 4
        _, error, _, _, _, size = _FETCHED.unpack_from(answer, at)
        if error or size <= 0:
            raise ValueError(f"fetch at {base}: error {error}, {size} bytes")

    async def _ask(
        self, what: str, frame: bytes, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> bytes:
        began = time.monotonic()
        writer.write(frame)
        async with asyncio.timeout(ANSWER_S_MAX):
            size = struct.unpack(">i", await reader.readexactly(4))[0]
            answer = await reader.readexactly(size)
        self._load.waits_s[what].append(time.monotonic() - began)
        return answer


async def run_load(cluster: RunningCluster, connections: int, partitions: int, seconds: float) -> Load:
    """Load a cluster of one broker."""
    load, over, opening = Load(), asyncio.Event(), asyncio.Semaphore(OPENING_MAX)
    host, port = cluster.ports[0]
    began = time.monotonic()
    async with asyncio.TaskGroup() as group:
        for number in range(connections):
            group.create_task(Line(load, number % partitions).run(host, port, opening, over))
        while time.monotonic() - began < seconds:
            await asyncio.sleep(SAMPLE_S)
            load.memory_mib.append(memory_mib(cluster.pids[0]))
        load.seconds = time.monotonic() - began
        over.set()
    return load


def memory_mib(pid: int) -> float:
    """Return the memory that a process has resident, 0 if it has ended."""
    status = Path(f"/proc/{pid}/status").read_text(encoding="ascii")
    _, found, rest = status.partition("VmRSS:")
    return int(rest.split()[0]) / 1024 if found else 0.0


def table(loads: dict[str, Load], connections: int) -> Table:
    """Return a row for each figure and a column for each peer; the last column is ours to theirs."""
    made = Table("", *loads, *(["ours / theirs"] if len(loads) == 2 else []), title=f"{connections:,} connections")

    def row(name: str, values: Sequence[float], form: str) -> None:
        ratio = [f"{values[0] / values[1]:.2f}"] if len(values) == 2 and values[1] else [""] * (len(values) == 2)
        made.add_row(name, *(format(value, form) for value in values), *ratio)

    each = list(loads.values())
    row(
        "records produced and fetched each second",
        [len(one.waits_s["fetch"]) / one.seconds for one in each],
        ",.0f",
    )
    for what in ("produce", "fetch"):
        for name, share in (("p50", 0.5), ("p99", 0.99), ("longest", 1.0)):
            waits = [sorted(one.waits_s[what]) or [0.0] for one in each]
            row(f"{what}, {name}, ms", [1000 * percentile(one, share) for one in waits], ",.0f")
    for name, at in (("early", 0.1), ("in the middle", 0.5), ("at the end", 1.0)):
        row(f"memory {name}, MiB", [one.memory_mib[int((len(one.memory_mib) - 1) * at)] for one in each], ",.0f")
    row("errors", [one.errors.total() for one in each], ",d")
    return made


def main() -> int:
    """Measure, and print the table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.connections", description=__doc__.splitlines()[1])
    parser.add_argument("--connections", type=int, default=2_000)
    parser.add_argument("--partitions", type=int, default=10)
    parser.add_argument("--seconds", type=float, default=300.0)
    parser.add_argument("--against", nargs="+", default=[OURS, "3.9.1"], metavar="PEER")
    options = parser.parse_args()
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    loads: dict[str, Load] = {}
    try:
        with ExitStack() as stack:
            clusters = []
            for name in options.against:
                folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="fencepost-connections-")))
                if name != OURS:
                    fetch([release_of(name)], cache_dir(), default_source(), print)
                peer = our_peer(OURS) if name == OURS else their_peer(f"Apache Kafka {name}", name)
                clusters.append(stack.enter_context(running(peer, folder / "run", names="A")))
                clusters[-1].create(TOPIC, options.partitions)
            for cluster in clusters:
                loads[cluster.peer.name] = asyncio.run(
                    run_load(cluster, options.connections, options.partitions, options.seconds)
                )
    except FencepostError as error:
        print(error, file=sys.stderr)
        return EXIT_CODES["usage"]
    Console(width=120).print(table(loads, options.connections))
    for name, load in loads.items():
        for text, count in load.errors.most_common(5):
            print(f"{name}: {count} times {text}")
    return 1 if loads.get(OURS, Load()).errors else 0


if __name__ == "__main__":
    sys.exit(main())
