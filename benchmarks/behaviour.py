"""
Dump the outcome of random seeds under each protocol, to compare two commits: `python -m benchmarks.behaviour`.

    dump FOLDER [--seeds N] [--jobs J] [PROTOCOL …]   one line for each seed, in one file for each protocol
    compare OLD NEW                                   every seed in which two dumps differ, and how

A change that keeps behaviour has the same dump: verdict, anomalies, oracles, elections, acknowledged records,
faults tried and in effect, and the content of every final log.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from hashlib import sha256
from multiprocessing import get_context
from pathlib import Path
from typing import Any, Final

from checkers.judge import judge
from harness import limits
from harness.ending import Parser, end, whole_number
from harness.history.memory import MemoryHistory
from harness.model import ORACLES, Anomaly, Kind, Op, Source
from harness.search.random_runs import RandomRuns
from harness.search.simulated import sim_player
from targets import VIRTUAL_HOST as SIM

PROTOCOLS: Final = ("hw", "kip101-text", "kip101", "kip279", "kip279-2.0.1", "kip320", "kip380")
SEEDS: Final = 1_000
TOLD_MAX: Final = 20


def outcomes(protocol: str, seeds: range) -> Iterator[dict[str, Any]]:
    """Play the seeds in order; yield the outcome of each as JSON data."""
    runs = RandomRuns(target="broker", variant=protocol, host=SIM)
    player = sim_player(runs.load_target())
    for seed in seeds:
        spec = runs.spec(seed)
        history = MemoryHistory(Path(spec.name))
        player.play_into(history, spec, Path())
        result = judge(spec, history.ops)
        done = result.activity
        proven = [a for a in result.anomalies if a.kind not in (*ORACLES, Kind.VACUOUS)]
        yield {
            "protocol": protocol,
            "seed": seed,
            "verdict": result.verdict.name,
            "vacuous": bool(result.vacuous),
            "violations": sorted(
                a.kind.value.removeprefix("oracle-") for a in result.anomalies if a.kind in ORACLES
            ),
            "anomalies": list(map(_anomaly, proven)),
            "elections": done.elections,
            "acked": done.acked,
            "asked": dict(sorted(done.asked.items())),
            "bit": dict(sorted(done.bit.items())),
            "steps": done.steps,
            "ops": sum(op.source is not Source.SIMULATOR for op in history.ops),
            "logs": _digest(history.ops),
        }


def _anomaly(anomaly: Anomaly) -> dict[str, Any]:
    """Return an anomaly without its sentence and proof, which change with wording and with other events."""
    return {key: value for key, value in anomaly.to_dict().items() if key not in ("sentence", "proof")}


def _digest(ops: Sequence[Op]) -> str:
    """Return a hash of the replicas' final logs."""
    raw = [json.loads(op.to_json()) for op in ops if op.source is Source.LOG]
    logs = [[each["process"], each["f"], each["type"], each["value"]] for each in raw]
    return sha256(json.dumps(logs, sort_keys=True).encode()).hexdigest()[:16]


def dump(folder: Path, seeds: int, protocol: str) -> str:
    """Write a protocol's file; return its path."""
    path = folder / f"{protocol}.jsonl"
    with path.open("w", encoding="utf-8") as file:
        for outcome in outcomes(protocol, range(seeds)):
            file.write(json.dumps(outcome, sort_keys=True) + "\n")
    return str(path)


def differences(old: Path, new: Path) -> tuple[int, list[str]]:
    """Return the number of compared seeds, and a line for each seed in which the dumps differ."""
    compared, found = 0, []
    for path in sorted(new.glob("*.jsonl")):
        before = {one["seed"]: one for one in map(json.loads, _lines(old / path.name))}
        for after in map(json.loads, _lines(path)):
            was = before.get(after["seed"])
            if was is None:
                continue
            compared += 1
            unlike = {key: (was.get(key), after[key]) for key in after if was.get(key) != after[key]}
            if unlike:
                found.append(f"{path.stem}, seed {after['seed']}: {unlike}")
    return compared, found


def _lines(path: Path) -> list[str]:
    return path.read_text(encoding="utf-8").splitlines()


def main(arguments: Sequence[str]) -> int:
    """Dump or compare; return 1 if two dumps differ or nothing was compared, else 0."""
    parser = Parser(
        prog="python -m benchmarks.behaviour", description="Dump the outcome of random seeds; compare two dumps."
    )
    commands = parser.add_subparsers(dest="command", required=True)
    dumping = commands.add_parser("dump", help="play seeds under each protocol, and write their outcomes")
    dumping.add_argument("folder", type=Path)
    dumping.add_argument("protocols", nargs="*", default=PROTOCOLS, metavar="PROTOCOL")
    dumping.add_argument("--seeds", type=whole_number(1, limits.OPTION_SEEDS_MAX), default=SEEDS)
    dumping.add_argument("--jobs", type=whole_number(1, limits.OPTION_JOBS_MAX), default=os.cpu_count() or 1)
    comparing = commands.add_parser("compare", help="compare two dumps, seed by seed")
    comparing.add_argument("old", type=Path)
    comparing.add_argument("new", type=Path)
    return end("benchmarks.behaviour", lambda: _run(parser.parse_args(arguments)))


def _run(chosen: argparse.Namespace) -> int:
    if chosen.command == "dump":
        chosen.folder.mkdir(parents=True, exist_ok=True)
        with ProcessPoolExecutor(chosen.jobs, mp_context=get_context("spawn")) as pool:
            for name in pool.map(partial(dump, chosen.folder, chosen.seeds), chosen.protocols):
                print(f"{name}: {chosen.seeds} seeds")
        return 0
    compared, found = differences(chosen.old, chosen.new)
    for line in found[:TOLD_MAX]:
        print(line)
    keys = Counter(line.partition(",")[0] for line in found)
    print(f"{compared} seeds compared, {len(found)} differ {dict(keys) if found else ''}".rstrip())
    return 1 if found or not compared else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
