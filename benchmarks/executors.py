"""
Compare the two executors of the rules: `python -m benchmarks.executors [SUITE …] [--seeds N]`.

Every run of the folders, and N random seeds played for this, is checked in this process and on PySpark. Both must
find the same anomalies, with the same sentences. tests/checkers does so for all golden histories.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from checkers import CHECKERS
from checkers.judge import check_in_process
from checkers.spark.runs import check_runs
from checkers.spark.session import spark_session
from harness import limits
from harness.ending import Parser, end, whole_number
from harness.history.file import read_history
from harness.java import find_java
from harness.model import Anomaly, UsageError
from harness.run.store import Run, SuiteDir, create_suite
from harness.search.random_runs import RandomRuns
from harness.search.simulated import sim_player
from targets import VIRTUAL_HOST as SIM

PROTOCOL: Final = "hw"


def play(seeds: range, protocol: str, folder: SuiteDir) -> None:
    """Play random seeds in the simulator, into files."""
    runs = RandomRuns(target="broker", variant=protocol, host=SIM)
    player = sim_player(runs.load_target())
    for seed in seeds:
        spec = runs.spec(seed)
        player.play(spec, folder.create_run(spec.name))


def unlike(runs: Sequence[Run], on_spark: dict[str, list[Anomaly]]) -> list[str]:
    """Return the names of the runs in which the executors differ."""
    return [run.name for run in runs if check_in_process(read_history(run.history)) != on_spark[run.name]]


def main(arguments: Sequence[str]) -> int:
    """Compare; return 1 if a run differs or nothing was compared, else 0."""
    parser = Parser(prog="python -m benchmarks.executors", description="Compare the two executors of the rules.")
    parser.add_argument("suites", nargs="*", type=Path, metavar="SUITE", help="a suite's folder: results/SUITE")
    parser.add_argument(
        "--seeds",
        type=whole_number(0, limits.OPTION_SEEDS_MAX),
        default=0,
        help="random seeds to play and compare (default: none)",
    )
    parser.add_argument("--protocol", default=PROTOCOL, help=f"the seeds' protocol (default: {PROTOCOL})")
    return end("benchmarks.executors", lambda: _compare(parser.parse_args(arguments)))


def _compare(chosen: argparse.Namespace) -> int:
    for path in chosen.suites:
        if not path.is_dir():
            raise UsageError(f"{path}: no such folder; expected a suite's, such as results/latest")
    compared = 0
    differ: list[str] = []
    with tempfile.TemporaryDirectory() as folder, spark_session(find_java().home) as session:
        if chosen.seeds:
            suite = create_suite(Path(folder), "seeds")
            play(range(chosen.seeds), chosen.protocol, suite)
            chosen.suites.append(suite.path)
        for path in chosen.suites:
            runs = SuiteDir(path=path).runs()
            found = unlike(runs, check_runs(session, [run.path for run in runs], CHECKERS))
            print(f"{path.name}: {len(runs)} runs, {len(found)} differ")
            compared, differ = compared + len(runs), differ + found
    for name in differ:
        print(f"differs: {name}")
    return 1 if differ or not compared else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
