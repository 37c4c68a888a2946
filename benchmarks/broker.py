"""
Measure our broker and Apache Kafka:  python -m benchmarks.broker [--seconds 10] [--repeats 3] …

Both clusters run during the whole measurement, one of them idle while the other is loaded: each repeat of each
load is measured on one cluster and immediately afterwards on the other, once both have had that load for a while.
docs/benchmarks.md explains the table.

Exit codes: 0 measured; 1 a peer failed; 2 an option is wrong, or the machine lacks something.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from rich.console import Console
from rich.table import Table

from benchmarks.clusters import Peer, RunningCluster, keep_profiles, our_peer, running, their_peer
from benchmarks.cpu import load_average
from benchmarks.figures import OURS, Load, Repeat, Repeats, shares_of_throughput, table
from benchmarks.job import Job, Measured, Work
from harness.ending import Parser, end, seconds, whole_number
from harness.hosts.local import ROOT
from harness.model import EXIT_CODES, FencepostError
from harness.registry import pick
from targets.broker_target.target import TARGET
from targets.kafka.fetch import default_source, fetch
from targets.kafka.jars import cache_dir
from targets.kafka.releases import release_of

RELEASE: Final = "3.9.1"
SIZES: Final = (1000, 100)
LOADS: Final = (
    *(Load(acks=acks, record_bytes=size) for size in SIZES for acks in (-1, 1)),
    Load(acks=0, record_bytes=1000),
    Load(acks=-1, record_bytes=1000, replicas=2),
    Load(acks=-1, record_bytes=1000, partitions=1_000),
    Load(acks=-1, record_bytes=1000, flushed=True),
)
GOAL: Final = 0.5
# Narrower tables break their cells; used also if the output is no terminal.
WIDTH_MIN: Final = 120
# The time that a load process may take besides its load: to start, and to drain its queue.
LOAD_S_MORE: Final = 60.0

REPEATS_MAX: Final = 1_000
PARTITIONS_MAX: Final = 1_000
RECORD_BYTES_MAX: Final = 1_000_000

Say = Callable[[str], None]


def parser() -> Parser:
    """Declare the command's arguments."""
    made = Parser(prog="python -m benchmarks.broker", description=__doc__.splitlines()[1])
    made.add_argument("--seconds", type=seconds, default=10.0, help="window of a load")
    made.add_argument("--warm", type=seconds, default=2.0, help="seconds of a load before its window begins")
    made.add_argument(
        "--warm-up", type=seconds_or_none, default=30.0, help="seconds of each load before its figures, or 0"
    )
    made.add_argument(
        "--repeats", type=whole_number(1, REPEATS_MAX), default=3, help="measurements of each load on each peer"
    )
    made.add_argument(
        "--partitions", type=whole_number(1, PARTITIONS_MAX), help="only loads of so many partitions of a topic"
    )
    made.add_argument("--replicas", type=int, choices=(1, 2, 3), help="only loads of so many replicas")
    made.add_argument("--flushed", action="store_true", help="only loads of brokers that flush each message")
    made.add_argument("--acks", type=int, action="append", choices=(-1, 1, 0), help="only these (-1: all)")
    made.add_argument(
        "--bytes", type=whole_number(1, RECORD_BYTES_MAX), action="append", help="only these sizes of records"
    )
    made.add_argument("--alone", action="store_true", help="measure only our broker")
    made.add_argument("--protocol", default="kip380", help="our broker's protocol")
    made.add_argument("--profile", type=Path, help="write cProfile profiles of our brokers to this folder")
    made.add_argument("--json", type=Path, help="write all measurements to this file")
    return made


def seconds_or_none(text: str) -> float:
    """Parse a time in seconds, or 0 for none."""
    return 0.0 if text == "0" else seconds(text)


def loads_of(options: argparse.Namespace) -> list[Load]:
    """Return the loads that the options name, else all; of what they do not name, what most loads have."""
    named = (options.acks, options.bytes, options.partitions, options.replicas, options.flushed)
    if not any(named):
        return list(LOADS)
    return [
        Load(
            acks=acks,
            record_bytes=size,
            partitions=options.partitions or 1,
            replicas=options.replicas or 3,
            flushed=options.flushed,
        )
        for size in options.bytes or SIZES
        for acks in options.acks or (-1, 1)
    ]


def peers_of(options: argparse.Namespace, say: Say, *, flushed: bool = False) -> list[Peer]:
    """Return the peers; only ours, with a printed reason, if Apache Kafka's jars cannot be fetched."""
    settings = {"flush_messages": 1} if flushed else {}
    profile = options.profile is not None
    found = [our_peer(OURS, profile=profile, protocol=options.protocol, settings=settings)]
    if options.alone:
        return found
    try:
        fetch([release_of(RELEASE)], cache_dir(), default_source(), say)
    except FencepostError as error:
        say(f"Apache Kafka {RELEASE} cannot be fetched; only our broker is measured: {error}")
        return found
    properties = ["log.flush.interval.messages=1"] if flushed else []
    return [*found, their_peer(f"Apache Kafka {RELEASE}", RELEASE, properties)]


def measure(cluster: RunningCluster, load: Load, topic: str, options: argparse.Namespace) -> Repeat:
    """Run every kind of work of a load on a cluster, on a new topic that is deleted afterwards."""
    job = Job(
        work=Work.PRODUCE,
        bootstrap=cluster.bootstrap,
        topic=topic,
        partitions=load.partitions,
        acks=load.acks,
        record_bytes=load.record_bytes,
        warm_s=options.warm,
        window_s=options.seconds,
        pids=cluster.pids,
    )
    cluster.create(topic, load.partitions, replicas=load.replicas)
    found = {work: run_load(replace(job, work=work)) for work in Work}
    cluster.delete(topic)
    return found


def warm_up(cluster: RunningCluster, load: Load, topic: str, options: argparse.Namespace) -> None:
    """Run the load without counting it, since a JVM compiles code that has run often."""
    if options.warm_up:
        measure(cluster, load, topic, replace_in(options, seconds=options.warm_up / len(Work), warm=0.0))


def replace_in(options: argparse.Namespace, **changes: float) -> argparse.Namespace:
    """Return a copy of the options with some of them changed."""
    return argparse.Namespace(**{**vars(options), **changes})


def run_load(job: Job) -> Measured:
    """
    Run a job in a separate process, and return its measurement.

    Raises:
        FencepostError: the process fails; the text has its output.
    """
    argv = (sys.executable, "-m", "benchmarks.load", job.to_json())
    limit = job.warm_s + job.window_s + LOAD_S_MORE
    try:
        done = subprocess.run(argv, capture_output=True, text=True, timeout=limit, cwd=ROOT, check=False)
    except subprocess.TimeoutExpired as error:
        raise FencepostError(f"{job.work} on {job.topic}: no end within {limit:g} s") from error
    if done.returncode != 0:
        raise FencepostError(f"{job.work} on {job.topic}: exit code {done.returncode}; it printed:\n{done.stderr}")
    return Measured.from_json(done.stdout)


def run(options: argparse.Namespace, folder: Path, console: Console) -> dict[Load, dict[str, list[Repeat]]]:
    """Measure every load on every peer, with repeats; the clusters' files are below the folder."""
    results: dict[Load, dict[str, list[Repeat]]] = {}
    loads = loads_of(options)
    for flushed in dict.fromkeys(load.flushed for load in loads):
        below = folder / ("flushed" if flushed else "usual")
        with ExitStack() as stack:
            peers = peers_of(options, console.print, flushed=flushed)
            clusters = [stack.enter_context(running(peer, below / f"peer-{n}")) for n, peer in enumerate(peers)]
            if options.profile is not None:
                clusters[0].begin_profiles()
            for load in (load for load in loads if load.flushed == flushed):
                results[load] = _repeats(clusters, load, f"load-{len(results)}", options, console)
            if options.profile is not None:
                clusters[0].end_profiles()
                keep_profiles(below / "peer-0", options.profile)
    return results


def _repeats(
    clusters: Sequence[RunningCluster], load: Load, topic: str, options: argparse.Namespace, console: Console
) -> dict[str, list[Repeat]]:
    """Measure a load on each cluster in turn, once all are warm."""
    for one in clusters:
        warm_up(one, load, f"{topic}-warm", options)
    found: dict[str, list[Repeat]] = {one.peer.name: [] for one in clusters}
    for repeat in range(options.repeats):
        for one in clusters:
            taken = measure(one, load, f"{topic}-{repeat}", options)
            found[one.peer.name].append(taken)
            console.print(line_of(load, repeat, one.peer.name, taken))
    return found


def line_of(load: Load, repeat: int, peer: str, taken: Repeat) -> str:
    """Return a progress line with the speeds of one repeat."""
    speeds = ", ".join(f"{work} {one.mb_per_s:.1f} MB/s" for work, one in taken.items() if work is not Work.ALONE)
    failed = sum(one.failed for one in taken.values())
    return f"{load}, repeat {repeat + 1}: {peer}: {speeds}; {failed} failed; load {load_average():.1f}"


def as_json(results: Mapping[Load, Repeats]) -> list[dict[str, Any]]:
    """Return every measurement as JSON data, one entry for each (load, peer, repeat, work)."""
    return [
        {
            "load": str(load),
            "peer": peer,
            "repeat": number,
            "work": work.value,
            **json.loads(one.to_json()),
        }
        for load, repeats in results.items()
        for peer, taken in repeats.items()
        for number, one_repeat in enumerate(taken)
        for work, one in one_repeat.items()
    ]


def verdict(results: Mapping[Load, Repeats]) -> list[str]:
    """Return a line for each throughput ratio, compared with the goal, the lowest first."""
    return [
        f"{load}, {name}: {share:.0%} of {peer}'s; "
        + ("the goal is met" if share >= GOAL else f"{GOAL - share:.0%} short of the goal of {GOAL:.0%}")
        for load, name, peer, share in sorted(shares_of_throughput(results), key=lambda found: found[-1])
    ]


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and print the table."""
    return end("benchmarks.broker", lambda: _measured(parser().parse_args(arguments)))


def _measured(options: argparse.Namespace) -> int:
    pick("protocol", TARGET.protocols(), options.protocol)
    console = Console(highlight=False, soft_wrap=True, markup=False)
    console.width = max(console.width, WIDTH_MIN)
    cores, before = os.cpu_count(), load_average()
    console.print(f"{cores} cores, load average {before:.1f} before the start")
    results_folder = ROOT / "results"
    results_folder.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(dir=results_folder, prefix="bench-") as folder:
        results = run(options, Path(folder), console)
    if options.json is not None:
        options.json.write_text(json.dumps(as_json(results), indent=1), encoding="utf-8")
    head, *rows = table(results)
    shown = Table(*head)
    for row in rows:
        shown.add_row(*row, end_section=row is rows[-1])
    console.print(shown)
    console.print("median (min … max) of the repeats; ratios within a repeat")
    console.print(f"load average {before:.1f} before, {load_average():.1f} now, on {cores} cores")
    for line in verdict(results):
        console.print(line)
    return EXIT_CODES["valid"]


if __name__ == "__main__":
    sys.exit(main())
