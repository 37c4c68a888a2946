"""
Measure whether coverage pays: `python -m benchmarks.guidance [MUTANT …]`.

Bugs that a blind search finds late are searched three ways, each from several seeds on: blindly; with half of the
tries grown from schedules that brought new pairs of coverage; and, to tell growing from choosing, with half of the
tries grown from any schedule that was played. A way pays if it needs fewer tries, summed over all searches.
The core as it is, named "-", comes first: what is found there is no bug of a mutant, and makes all figures void.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Final

from rich.console import Console
from rich.table import Table

from benchmarks.mutants import MUTANTS
from benchmarks.mutants.worker import UNCHANGED
from harness import limits
from harness.ending import Parser, end, whole_number
from harness.model import FencepostError, UsageError

WAYS: Final = ("blind", "coverage", "any")
# Each was found between seeds 40 and 360 by `make bench-mutants`, most with an outcome that no narrow oracle sees.
LATE: Final = (
    "answers-while-it-waits-to-lead",
    "caught-up-at-the-high-watermark",
    "controller-outlives-its-session",
    "first-isr-has-the-dead",
    "fresh-by-its-creation",
    "isr-of-an-earlier-lead",
    "isr-of-the-leader-overwritten",
    "isr-written-sorted",
    "lost-topic-write-is-done",
    "min-isr-before-alone",
    "newer-epoch-passes",
    "office-before-its-replicas",
    "older-controller-obeyed",
    "own-office-unwatched",
    "sees-a-successor-and-stays",
    "unanswered-command-forgotten",
)
APART: Final = 1_000
SECONDS_PER_TRY_MAX: Final = 3.0


def searched(mutant: str, first: int, tries: int) -> dict[str, int | None]:
    """Search one mutant in a process of its own, and return each way's try."""
    ran = subprocess.run(
        [sys.executable, "-m", "benchmarks.guidance.worker", mutant, str(first), str(tries)],
        stdout=subprocess.PIPE,
        text=True,
        timeout=60 + SECONDS_PER_TRY_MAX * tries * len(WAYS),
        check=False,
    )
    if ran.returncode:
        raise FencepostError(f"{mutant}, from seed {first} on: exit code {ran.returncode}, expected 0; see above")
    found: dict[str, int | None] = json.loads(ran.stdout)
    return found


def measure(chosen: argparse.Namespace) -> int:
    """Print a row for each search, and the sums."""
    if wrong := [name for name in chosen.mutants if name not in MUTANTS and name != UNCHANGED]:
        raise UsageError(f"no mutant {wrong[0]!r}; see docs/mutants.md")
    console = Console()
    table = Table(title=f"tries to a finding, at most {chosen.tries}", title_justify="left")
    for name in ("mutant", "from", *WAYS):
        table.add_column(name, justify="left" if name == "mutant" else "right")
    sums, missed = dict.fromkeys(WAYS, 0), dict.fromkeys(WAYS, 0)
    names = (UNCHANGED, *chosen.mutants)
    jobs = [(name, start * APART) for name in names for start in range(1, chosen.starts + 1)]
    with ThreadPoolExecutor(chosen.jobs) as pool:
        for (name, first), found in zip(
            jobs, pool.map(lambda job: searched(job[0], job[1], chosen.tries), jobs), strict=True
        ):
            for way in WAYS if name != UNCHANGED else ():
                at = found[way]
                sums[way] += chosen.tries if at is None else at + 1
                missed[way] += at is None
            row = (name, str(first), *("-" if found[way] is None else str(found[way]) for way in WAYS))
            table.add_row(*row)
            console.print(" ".join(row), highlight=False)
    table.add_row("all tries", "", *(str(sums[way]) for way in WAYS))
    table.add_row("not found", "", *(str(missed[way]) for way in WAYS))
    console.print(table)
    return 0


def main(arguments: Sequence[str]) -> int:
    """Measure the mutants that were named, or those that are found late."""
    parser = Parser(prog="python -m benchmarks.guidance", description="Measure whether coverage guides a search.")
    number, jobs = whole_number(1, limits.OPTION_SEEDS_MAX), whole_number(1, limits.OPTION_JOBS_MAX)
    parser.add_argument("mutants", nargs="*", metavar="MUTANT", default=LATE, help="default: those found late")
    parser.add_argument("--tries", type=number, default=600, help="of one search, at most (default: 600)")
    parser.add_argument("--starts", type=number, default=3, help="searches of each mutant (default: 3)")
    parser.add_argument("--jobs", type=jobs, default=1, help="processes (default: 1)")
    return end("benchmarks.guidance", lambda: measure(parser.parse_args(arguments)))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
