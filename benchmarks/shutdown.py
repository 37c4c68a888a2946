"""
Measure how long producers wait when a broker is stopped with SIGTERM: `python -m benchmarks.shutdown`.

    --partitions 10 --against controlled at-once 3.9.1

Three brokers have a replica of each partition, and one that is not the controller leads them all. A producer sends
to each of them all the time, acks=all, and each record is timed from its send to its acknowledgement. `controlled`
is our broker with `controlled_shutdown_ms`, which has others lead before it ends; `at-once` is our broker without.

Exit codes: 0 measured; 1 a peer failed; 2 an option is wrong, or the machine lacks something.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final

from confluent_kafka import Producer
from rich.console import Console
from rich.table import Table

from benchmarks.clusters import Peer, RunningCluster, bring, keep_figures, our_peer, running, their_peer
from harness import limits
from harness.cleanup.process import until
from harness.ending import Parser, end, whole_number
from harness.hosts.local import ROOT
from harness.model import EXIT_CODES, PreconditionError

CONTROLLED: Final = "controlled"
AT_ONCE: Final = "at-once"
BROKERS: Final = (1, 2, 3)
SHUTDOWN_MS: Final = 10_000
# Between two records to a partition; how many of each are acknowledged before the signal, and after the end.
EVERY_S: Final = 0.2
ROUNDS: Final = 25
ACKNOWLEDGED_S_MAX: Final = 60.0
LATE_S: Final = 0.1
PARTITIONS_MAX: Final = 1_000
WIDTH_MIN: Final = 120
TOPIC: Final = "shutdown"


@dataclass(frozen=True, slots=True, kw_only=True)
class Shutdown:
    """
    One shutdown, in seconds.

    Attributes:
        usual, longest: the median and the longest time from send to acknowledgement.
        late: how many records took longer than 100 ms, of `sent`.
        failed: how many were given up.
        ended: from the signal to the end of the process.
    """

    peer: str
    partitions: int
    usual: float
    longest: float
    late: int
    sent: int
    failed: int
    ended: float


class Load:
    """A producer at work on all partitions, and what became of its records."""

    def __init__(self, bootstrap: str, partitions: int) -> None:
        settings = {"bootstrap.servers": bootstrap, "acks": "all", "linger.ms": 0, "log_level": 0}
        self._producer = Producer(settings | {"retry.backoff.ms": 20, "message.timeout.ms": 60_000})
        self._partitions = partitions
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._work)
        self.took: list[float] = []
        self.failed = 0

    def __enter__(self) -> Load:
        self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._ended.set()
        self._thread.join()
        self._producer.flush(limits.CLIENT_OPERATION_S_MAX)

    def await_more(self, records: int) -> None:
        """Wait until so many more records are acknowledged."""
        enough = len(self.took) + records
        if not until(lambda: len(self.took) >= enough, ACKNOWLEDGED_S_MAX):
            raise PreconditionError(f"{len(self.took)} records acknowledged; expected {enough} by now")

    def _work(self) -> None:
        """Send one record to each partition in every round."""
        while not self._ended.is_set():
            next_s = time.monotonic() + EVERY_S
            for number in range(self._partitions):
                done = partial(self._done, time.monotonic())
                self._producer.produce(TOPIC, b"x" * 100, partition=number, on_delivery=done)
            while (left_s := next_s - time.monotonic()) > 0:
                self._producer.poll(left_s)

    def _done(self, sent: float, error: Any, _message: Any) -> None:
        self.failed += error is not None
        self.took.append(time.monotonic() - sent)


def parser() -> Parser:
    """Declare the command's arguments."""
    made = Parser(prog="python -m benchmarks.shutdown", description=__doc__.splitlines()[1])
    made.add_argument("--partitions", type=whole_number(1, PARTITIONS_MAX), default=10)
    made.add_argument(
        "--against", nargs="+", default=[CONTROLLED, AT_ONCE, "3.9.1"], help="controlled, at-once, or a release"
    )
    made.add_argument("--json", type=Path, help="write all measurements to this file")
    return made


def peer_of(name: str) -> Peer:
    """Return what is measured under a name: our broker in one of two ways, or a release of Apache Kafka."""
    if name in (CONTROLLED, AT_ONCE):
        return our_peer(name, settings={"controlled_shutdown_ms": SHUTDOWN_MS if name == CONTROLLED else 0})
    return their_peer(name, name, properties=["controlled.shutdown.enable=true"])


def measure(peer: Peer, partitions: int, say: Callable[[str], None]) -> Shutdown:
    """Produce, stop the broker that leads everything, and produce on."""
    with tempfile.TemporaryDirectory(prefix="fencepost-", dir=ROOT) as made, running(peer, Path(made)) as cluster:
        return _measured(cluster, partitions, say)


def _measured(cluster: RunningCluster, partitions: int, say: Callable[[str], None]) -> Shutdown:
    victim = next(broker for broker in BROKERS if broker != cluster.controller)
    others = [broker for broker in BROKERS if broker != victim]
    cluster.create(TOPIC, partitions, [[victim, *others]] * partitions)
    with Load(cluster.bootstrap, partitions) as load:
        load.await_more(partitions * ROUNDS)
        began = time.monotonic()
        cluster.stop(victim)
        ended = time.monotonic() - began
        load.await_more(partitions * ROUNDS)
    took = sorted(load.took)
    say(f"broker {victim} ended {ended:.2f} s after the signal; the longest wait was {took[-1]:.2f} s")
    return Shutdown(
        peer=cluster.peer.name,
        partitions=partitions,
        usual=took[len(took) // 2],
        longest=took[-1],
        late=sum(each > LATE_S for each in took),
        sent=len(took),
        failed=load.failed,
        ended=ended,
    )


def table(measured: Sequence[Shutdown]) -> Table:
    """Return a row for each shutdown, and how its longest wait compares with our controlled one."""
    made = Table(title="Milliseconds that a producer waits when the leader of its partitions is stopped")
    for name in ("partitions", "peer", "usual", "longest", "longest / controlled", "late", "failed", "ended s"):
        made.add_column(name, justify="left" if name == "peer" else "right")
    base: Mapping[str, float] = {each.peer: each.longest for each in measured}
    for each in measured:
        made.add_row(
            str(each.partitions),
            each.peer,
            f"{each.usual * 1000:.0f}",
            f"{each.longest * 1000:.0f}",
            f"{each.longest / base[CONTROLLED]:.2f}" if CONTROLLED in base else "",
            f"{each.late:,} of {each.sent:,}",
            str(each.failed),
            f"{each.ended:.2f}",
        )
    return made


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and print the table."""
    return end("benchmarks.shutdown", lambda: _measure_all(parser().parse_args(arguments)))


def _measure_all(options: argparse.Namespace) -> int:
    """Measure every peer, one after the other."""
    console = Console(stderr=True, width=None if sys.stderr.isatty() else WIDTH_MIN)
    measured: list[Shutdown] = []
    bring([name for name in options.against if name not in (CONTROLLED, AT_ONCE)], console.print)
    for name in options.against:
        console.print(f"{name}: {options.partitions} partitions")
        measured.append(measure(peer_of(name), options.partitions, console.print))
    out = Console(width=None if sys.stdout.isatty() else WIDTH_MIN)
    out.print(table(measured))
    keep_figures(measured, options.json)
    return EXIT_CODES["valid"]


if __name__ == "__main__":
    sys.exit(main())
