"""
Measure how long partitions have no leader after their broker died: `python -m benchmarks.failover`.

    --partitions 1000 10000 --led third all --against batched single serial 3.9.1

Three brokers have a replica of each partition. One that is not the controller is killed and its session ended;
from then on the two others are asked for the log end of every partition that it led, until its new leader answers.
What comes before, the time until a session expires, is a setting and not measured.

    batched  our broker: a multi of ZooKeeper writes many partitions
    single   a write for each partition, many of them under way at once (Apache Kafka from 1.1 on, KAFKA-5642)
    serial   a write for each partition, each once the one before is answered, as Kafka Replication Design V3
             reckons it (discussion 1: 40 s for 10,000 partitions)

Exit codes: 0 measured; 1 a peer failed; 2 an option is wrong, or the machine lacks something.
"""

from __future__ import annotations

import argparse
import re
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Final

from rich.console import Console
from rich.table import Table

from benchmarks.clusters import (
    Peer,
    RunningCluster,
    bring,
    keep_figures,
    keep_profiles,
    our_peer,
    running,
    their_peer,
)
from benchmarks.connections import memory_mib
from benchmarks.cpu import cpu_seconds
from benchmarks.prober import Prober
from harness.ending import Parser, end, whole_number
from harness.hosts.local import ROOT
from harness.model import EXIT_CODES
from targets.zookeeper.server import ask

BATCHED: Final = "batched"
SINGLE: Final = "single"
SERIAL: Final = "serial"
# Our broker in each way: how much it does at once, where that is not the default.
OURS: Final[Mapping[str, Mapping[str, int]]] = MappingProxyType(
    {BATCHED: {}, SINGLE: {"writes_together_max": 1}, SERIAL: {"writes_together_max": 1, "writes_max": 1}}
)
LED: Final = ("third", "all")
BROKERS: Final = (1, 2, 3)
# Of one topic: more partitions are several topics.
TOPIC_PARTITIONS_MAX: Final = 1_000
FAILOVER_S_MAX: Final = 300.0
PARTITIONS_MAX: Final = 10_000
WIDTH_MIN: Final = 120
_KIB: Final = 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class Failover:
    """
    One failover, in seconds from the end of the dead broker's session.

    Attributes:
        first, median, last: until the partitions that it led were led again.
        writes, sent_bytes: ZooKeeper's transactions, and the bytes that it was sent, until then.
        controller_s, leader_s: processor time, until then, of the broker that is the controller, and of the one
            that leads all that the dead broker led.
        memory_kib: what a broker took for each partition, until before the failover.
        made_s: until all partitions were made.
        start_s: from its start until the dead broker has opened its logs and is registered.
        back_s: from its start until it is in every ISR again.
    """

    peer: str
    partitions: int
    led: str
    moved: int
    first: float
    median: float
    last: float
    writes: int
    sent_bytes: int
    controller_s: float
    leader_s: float
    memory_kib: float
    made_s: float
    start_s: float
    back_s: float


def parser() -> Parser:
    """Declare the command's arguments."""
    made = Parser(prog="python -m benchmarks.failover", description=__doc__.splitlines()[1])
    made.add_argument("--partitions", type=whole_number(1, PARTITIONS_MAX), nargs="+", default=[1_000, 10_000])
    made.add_argument("--led", nargs="+", choices=LED, default=list(LED), help="how many the dead broker leads")
    made.add_argument("--against", nargs="+", default=[*OURS, "3.9.1"], help=f"{', '.join(OURS)}, or a release")
    made.add_argument("--profile", type=Path, help="write cProfile profiles of our brokers to this folder")
    made.add_argument("--json", type=Path, help="write all measurements to this file")
    return made


def peer_of(name: str, *, profile: bool) -> Peer:
    """Return what is measured under a name: our broker in one of its ways, or a release of Apache Kafka."""
    return our_peer(name, profile=profile, together=OURS[name]) if name in OURS else their_peer(name, name)


def assignments(partitions: int, led: str, victim: int, controller: int) -> list[list[int]]:
    """
    Return the brokers of each partition: the victim first in a third of them, or in all.

    The one that is not the controller comes next: what one does is done beside what the other does.
    """
    others = sorted((broker for broker in BROKERS if broker != victim), key=lambda each: each == controller)
    turns = [[victim, *others], [others[0], victim, others[1]], [others[1], others[0], victim]]
    return [turns[0] if led == "all" else turns[number % len(turns)] for number in range(partitions)]


def measure(peer: Peer, partitions: int, led: str, say: Callable[[str], None], profiles: Path | None) -> Failover:
    """Make the partitions, kill the broker, and measure until all have leaders and it is back."""
    with tempfile.TemporaryDirectory(prefix="fencepost-", dir=ROOT) as made:
        folder = Path(made)
        with running(peer, folder) as cluster:
            found = _measured(cluster, partitions, led, say, profiled=profiles is not None)
            if profiles is not None:
                keep_profiles(folder, profiles)
            return found


def _measured(
    cluster: RunningCluster, partitions: int, led: str, say: Callable[[str], None], *, profiled: bool
) -> Failover:
    controller = cluster.controller
    victim = next(broker for broker in BROKERS if broker != controller)
    placed = assignments(partitions, led, victim, controller)
    topics = {
        f"failover-{first}": placed[first : first + TOPIC_PARTITIONS_MAX]
        for first in range(0, partitions, TOPIC_PARTITIONS_MAX)
    }
    before_kib, began = _memory_kib(cluster), time.monotonic()
    for topic, assignment in topics.items():
        cluster.create(topic, len(assignment), assignment)
        say(f"{topic}: {len(assignment)} partitions are led, {time.monotonic() - began:.1f} s")
    made_s = time.monotonic() - began
    memory_kib = (_memory_kib(cluster) - before_kib) / partitions / len(BROKERS)
    affected = [
        (topic, number)
        for topic, assignment in topics.items()
        for number, brokers in enumerate(assignment)
        if brokers[0] == victim
    ]
    survivors = [broker for broker in BROKERS if broker != victim]
    (heir,) = {assignment[1] for assignment in placed if assignment[0] == victim}
    if profiled:
        cluster.begin_profiles()
    cluster.kill(victim)
    with Prober(cluster.clients[broker - 1] for broker in survivors) as prober:
        writes, sent = _zookeeper(cluster)
        spent = {broker: cpu_seconds([cluster.pids[broker - 1]]) for broker in survivors}
        cluster.end_session(victim)
        times = prober.until_led(affected, FAILOVER_S_MAX)
        spent = {broker: cpu_seconds([cluster.pids[broker - 1]]) - before for broker, before in spent.items()}
        writes_after, sent_after = _zookeeper(cluster)
    if profiled:
        cluster.end_profiles(survivors)
    say(f"{len(times)} leaders moved in {max(times):.2f} s")
    began = time.monotonic()
    cluster.start(victim)
    cluster.await_registered(victim)
    start_s = time.monotonic() - began
    cluster.await_brokers()
    for topic, assignment in topics.items():
        cluster.await_whole(topic, len(assignment))
    back_s = time.monotonic() - began
    say(f"broker {victim} is registered after {start_s:.1f} s, and in every ISR again after {back_s:.1f} s")
    return Failover(
        peer=cluster.peer.name,
        partitions=partitions,
        led=led,
        moved=len(times),
        first=times[0],
        median=times[len(times) // 2],
        last=times[-1],
        writes=writes_after - writes,
        sent_bytes=sent_after - sent,
        controller_s=spent[controller],
        leader_s=spent[heir],
        memory_kib=memory_kib,
        made_s=made_s,
        start_s=start_s,
        back_s=back_s,
    )


def _zookeeper(cluster: RunningCluster) -> tuple[int, int]:
    """Return how many transactions ZooKeeper has made, and how many bytes it was sent."""
    zxid = re.search(r"^Zxid: 0x([0-9a-f]+)$", ask(cluster.zookeeper, "srvr"), re.MULTILINE)
    sent = re.search(r"^zk_bytes_received_count\t(\d+)$", ask(cluster.zookeeper, "mntr"), re.MULTILINE)
    assert zxid and sent, "srvr names the last transaction, and mntr counts bytes, in ZooKeeper 3.6 and later"
    return int(zxid[1], 16), int(sent[1])


def _memory_kib(cluster: RunningCluster) -> float:
    """Return the memory of all brokers."""
    return sum(map(memory_mib, cluster.pids)) * _KIB


def table(measured: Sequence[Failover]) -> Table:
    """Return a row for each failover, and how it compares with our batched one."""
    made = Table(title="Seconds without a leader, from the end of the dead broker's session")
    for name in ("partitions", "led", "peer", "first", "median", "last", "last / batched"):
        made.add_column(name, justify="left" if name in ("led", "peer") else "right")
    for name in ("writes", "MiB sent", "CPU s", "KiB/partition", "made s", "start s", "back s"):
        made.add_column(name, justify="right")
    batched: Mapping[tuple[int, str], float] = {
        (each.partitions, each.led): each.last for each in measured if each.peer == BATCHED
    }
    for each in measured:
        base = batched.get((each.partitions, each.led))
        made.add_row(
            f"{each.partitions:,}",
            each.led,
            each.peer,
            *(f"{value:.2f}" for value in (each.first, each.median, each.last)),
            "" if base is None else f"{each.last / base:.2f}",
            f"{each.writes:,}",
            f"{each.sent_bytes / _KIB**2:.1f}",
            f"{each.controller_s:.1f} + {each.leader_s:.1f}",
            f"{each.memory_kib:.1f}",
            f"{each.made_s:.1f}",
            f"{each.start_s:.1f}",
            f"{each.back_s:.1f}",
        )
    return made


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and print the table."""
    return end("benchmarks.failover", lambda: _measure_all(parser().parse_args(arguments)))


def _measure_all(options: argparse.Namespace) -> int:
    """Measure every peer with every number of partitions, one after the other."""
    console = Console(stderr=True, width=None if sys.stderr.isatty() else WIDTH_MIN)
    measured: list[Failover] = []
    bring([name for name in options.against if name not in OURS], console.print)
    for partitions in options.partitions:
        for led in options.led:
            for name in options.against:
                console.print(f"{name}: {partitions:,} partitions, the dead broker leads {led}")
                peer = peer_of(name, profile=options.profile is not None)
                profiles = options.profile if name in OURS else None
                measured.append(measure(peer, partitions, led, console.print, profiles))
    out = Console(width=None if sys.stdout.isatty() else WIDTH_MIN)
    out.print(table(measured))
    keep_figures(measured, options.json)
    return EXIT_CODES["valid"]


if __name__ == "__main__":
    sys.exit(main())
