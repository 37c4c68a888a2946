"""
Throw aimed and random requests at one broker, and see who dies and who waits:  python -m tests.broker.storm

    --frames 300000         how many requests
    --against broker 3.9.1  our broker, and releases of Apache Kafka, one after the other
    --kinds many polling    only these kinds of requests, of tests/broker/aimed.py
    --memory-bytes N        address space of our broker's process (ulimit -v)

Meanwhile a client in a process of its own produces a record and reads it back, again and again. At the end every
record that was acknowledged to it must be there.
"""

from __future__ import annotations

import argparse
import json
import random
import socket
import subprocess
import sys
import tempfile
import time
from collections import Counter, deque
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final

from rich.console import Console
from rich.table import Table

from benchmarks.clusters import Peer, RunningCluster, our_peer, running, their_peer
from benchmarks.figures import percentile
from harness.hosts.local import ROOT
from harness.launch import Launch
from targets.kafka.fetch import default_source, fetch
from targets.kafka.jars import cache_dir
from targets.kafka.releases import release_of
from targets.kafka_family.clients.batches import write_batch
from targets.kafka_family.clients.connection import Connection
from targets.kafka_family.clients.questions import produce
from tests.broker.aimed import KINDS, Aimed, aimed
from tests.broker.fuzz import shots
from tests.little_memory import peak_bytes

OURS: Final = "broker"
TOPIC: Final = "storm"
BYSTANDERS: Final = "bystander"
MEMORY_BYTES: Final = 3 << 30
# kafka-server-start.sh
THEIR_HEAP: Final = "-Xmx1G"
THREADS: Final = 8
# Connections that are left open; the oldest is closed for a new one.
LINGERING_MAX: Final = 300
ANSWER_S_MAX: Final = 0.03
SEND_S_MAX: Final = 5.0
BYTES_MAX: Final = 1 << 16
BATCH: Final = 64
# What the topic holds before.
FILL_BATCHES: Final = 20
FILL_BATCH_BYTES: Final = 1_000_000
FILL_S_MAX: Final = 60.0
GOAL_P99_S: Final = 0.5
GOAL_BYTES: Final = 400 << 20


@dataclass(slots=True)
class Storm:
    """What was thrown, and what came of it."""

    seed: int
    kinds: Sequence[str] = ()
    thrown: Counter[str] = field(default_factory=Counter)
    outcomes: Counter[str] = field(default_factory=Counter)
    frames: int = 0
    _lingering: deque[socket.socket] = field(default_factory=deque)

    def throw(self, ports: Sequence[tuple[str, int]], frames: int) -> None:
        """
        Throw so many requests, each at one of the ports: every ninth shot random, the others aimed.

        Commands go to the first port, the clients': at the brokers' own, commands are obeyed.
        """
        rng = random.Random(self.seed)
        with ThreadPoolExecutor(THREADS) as pool:
            while self.frames < frames:
                drawn = [aimed(rng, TOPIC, self.kinds) for _ in range(BATCH)]
                drawn += (
                    []
                    if self.kinds
                    else [
                        Aimed(kind="random", data=shot.data)
                        for shot in shots(rng.randrange(1 << 30), BATCH // 8, TOPIC)
                    ]
                )
                where = [ports[0] if one.kind == "commanding" else rng.choice(ports) for one in drawn]
                for one, outcome in zip(drawn, pool.map(self._shoot, drawn, where), strict=True):
                    self.thrown[one.kind] += one.frames
                    self.frames += one.frames
                    self.outcomes[outcome] += 1

    def end(self) -> None:
        """Close the connections that were left open."""
        while self._lingering:
            self._lingering.popleft().close()

    def _shoot(self, shot: Aimed, port: tuple[str, int]) -> str:
        try:
            line = socket.create_connection(port, timeout=SEND_S_MAX)
        except OSError:
            return "refused"
        try:
            line.sendall(shot.data)
            if shot.lingers:
                self._linger(line)
                return "left open"
            line.settimeout(ANSWER_S_MAX)
            outcome = "answer" if line.recv(BYTES_MAX) else "hung up"
        except TimeoutError:
            outcome = "nothing yet"
        except OSError:
            outcome = "hung up"
        line.close()
        return outcome

    def _linger(self, line: socket.socket) -> None:
        self._lingering.append(line)
        if len(self._lingering) > LINGERING_MAX:
            self._lingering.popleft().close()


# --- the bystander ----------------------------------------------------------------------------------------------
@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """What the bystander saw: seconds of each produce with its fetch, errors, records acknowledged and lost."""

    waits_s: list[float]
    errors: list[str]
    acknowledged: int
    lost: int


@contextmanager
def bystander(address: str, topic: str = BYSTANDERS) -> Iterator[list[Seen]]:
    """Run a bystander meanwhile; the list has what it saw once the block has ended."""
    argv = (sys.executable, "-m", "tests.broker.bystander", address, topic)
    process = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=ROOT)
    seen: list[Seen] = []
    assert process.stdout is not None
    try:
        process.stdout.readline()  # it has begun
        yield seen
        told, _ = process.communicate("over\n", timeout=300)
        seen.append(Seen(**json.loads(told)))
    finally:
        process.kill()
        process.wait()


# --- a peer ------------------------------------------------------------------------------------------------------
def bounded(peer: Peer, memory_bytes: int) -> Peer:
    """Return the peer with its process' address space bounded."""

    def tune(launch: Launch) -> Launch:
        launch = peer.tune(launch)
        return replace(launch, argv=("prlimit", f"--as={memory_bytes}", "--", *launch.argv))

    return replace(peer, tune=tune)


def peer_of(name: str, memory_bytes: int) -> Peer:
    """Return our broker, or a release of Apache Kafka, whose jars are fetched if they are missing."""
    if name == OURS:
        return bounded(our_peer(OURS), memory_bytes)
    fetch([release_of(name)], cache_dir(), default_source(), print)
    return with_heap(their_peer(f"Apache Kafka {name}", name))


def with_heap(peer: Peer) -> Peer:
    """Return Apache Kafka with the heap that its own script gives it, in place of a run's small one."""

    def tune(launch: Launch) -> Launch:
        launch = peer.tune(launch)
        argv = [THEIR_HEAP if word.startswith("-Xmx") else word for word in launch.argv]
        return replace(launch, argv=tuple(argv))

    return replace(peer, tune=tune)


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """What came of a storm against a peer."""

    peer: str
    storm: Storm
    seen: Seen
    peak_bytes: int
    seconds: float

    @property
    def alive(self) -> bool:
        """Return True if the process was there at the end."""
        return self.peak_bytes > 0


def storm_at(cluster: RunningCluster, frames: int, seed: int, kinds: Sequence[str] = ()) -> Result:
    """Throw a storm at a cluster of one broker."""
    cluster.create(TOPIC, 1)
    cluster.create(BYSTANDERS, 1)
    fill(cluster.bootstrap)
    (pid,) = cluster.pids
    storm = Storm(seed, kinds)
    with bystander(cluster.bootstrap) as seen:
        began = time.monotonic()
        storm.throw(cluster.ports, frames)
        storm.end()
        seconds = time.monotonic() - began
        peak = peak_bytes(pid)
    return Result(peer=cluster.peer.name, storm=storm, seen=seen[0], peak_bytes=peak, seconds=seconds)


def fill(address: str) -> None:
    """Write some megabytes to the topic, so that reading it is much."""
    batch = write_batch([bytes(FILL_BATCH_BYTES)], "none")
    with Connection(address, "fill", time.monotonic() + FILL_S_MAX) as connection:
        for _ in range(FILL_BATCHES):
            made = produce(connection, TOPIC, 0, batch, acks=1, timeout_s=FILL_S_MAX, zstd=False)
            assert made is not None and int(made.error) == 0, f"fill: {made}"


def table(results: Sequence[Result]) -> Table:
    """Return one row for each peer."""
    made = Table("", *(result.peer for result in results), title="who dies, who waits")

    def row(name: str, *values: str) -> None:
        made.add_row(name, *values)

    waits = [sorted(result.seen.waits_s) for result in results]
    row("requests", *(f"{r.storm.frames:,} in {r.seconds:.0f} s" for r in results))
    row("alive", *("yes" if r.alive else "no" for r in results))
    row("peak memory", *(f"{r.peak_bytes / (1 << 20):.0f} MiB" for r in results))
    row("others' produce and fetch", *(f"{len(w):,}" for w in waits))
    for name, share in (("p50", 0.5), ("p99", 0.99)):
        row(f"their wait, {name}", *(f"{percentile(w, share) * 1000:.0f} ms" if w else "" for w in waits))
    row("their longest wait", *(f"{w[-1] * 1000:.0f} ms" if w else "" for w in waits))
    row("their errors", *(str(len(r.seen.errors)) for r in results))
    row("acknowledged, lost", *(f"{r.seen.acknowledged:,}, {r.seen.lost}" for r in results))
    for outcome in sorted({o for r in results for o in r.storm.outcomes}):
        row(f"shots: {outcome}", *(f"{r.storm.outcomes[outcome]:,}" for r in results))
    return made


def main() -> int:
    """Throw the storms and print the table; 0 if every broker of ours lives and lost nothing."""
    parser = argparse.ArgumentParser(prog="python -m tests.broker.storm", description=__doc__.splitlines()[1])
    parser.add_argument("--frames", type=int, default=300_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--against", nargs="+", default=[OURS], metavar="PEER")
    parser.add_argument("--kinds", nargs="+", default=[], choices=[kind.__name__ for kind in KINDS])
    parser.add_argument("--memory-bytes", type=int, default=MEMORY_BYTES)
    parser.add_argument("--keep", type=Path, help="keep the brokers' files below this folder")
    options = parser.parse_args()
    results = []
    for name in options.against:
        with tempfile.TemporaryDirectory(prefix="fencepost-storm-") as folder:
            below = Path(options.keep or folder) / name
            below.mkdir(parents=True)
            with running(peer_of(name, options.memory_bytes), below, names="A") as cluster:
                results.append(storm_at(cluster, options.frames, options.seed, options.kinds))
                if not results[-1].alive:
                    print(cluster.last_words())
    Console(width=120).print(table(results))
    for result in results:
        for error, count in Counter(result.seen.errors).most_common(5):
            print(f"{result.peer}: {count} times {error}")
    ours = [result for result in results if result.peer == OURS]
    return 0 if all(r.alive and not r.seen.lost and not r.seen.errors for r in ours) else 1


if __name__ == "__main__":
    sys.exit(main())
