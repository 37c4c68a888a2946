"""
Measure how soon a search finds violations: `python -m benchmarks.search [VARIANT …]`.

For each variant, it plays seeds from 0 on, until K of them have a violation or N are played. It prints how many it
took to the first violation or hang, the median number of seeds from one violation to the next, the same for hangs
without a violation, and seeds/s per core. With --narrow every schedule has one partition.

`python -m benchmarks.search --twice N` plays the first N seeds twice, in processes with different hash seeds, and
compares the rolling hashes of all steps. If two differ, it prints the first step in which they do.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from statistics import median
from typing import Final

from rich.console import Console
from rich.table import Table

from harness import limits
from harness.ending import Parser, end, whole_number
from harness.model import FencepostError, Verdict
from harness.run.result import RunResult
from harness.search.random_runs import RandomRuns
from harness.search.search import search
from harness.search.simulated import sim_player, simulate
from harness.search.tally import Tally
from targets import VIRTUAL_HOST as SIM
from targets.simulator.engine.trace import Detail, Trace, first_difference

PROTOCOL: Final = "kip380"
# Each rule that fixes a bug, turned back; and whole older protocols.
ABLATIONS: Final = (
    "fence_truncation_query=no",
    "fence_fetch=no",
    "fence_high_watermark=no",
    "fence_isr_join=no",
    "fetch_sessions=epoch_blind",
    "join_isr_past_epoch_start=no",
    "truncate_when_leader_unchanged=no",
    "truncate_to=high_watermark",
    "truncate_to=one_answer",
    "epoch_assigned_on_lead=no",
    "below_first_epoch=undefined",
    "drop_stale_answer=no",
    "forget_follower_ends=no",
    "fence_broker_epoch=no",
    "returning_leader=resumes",
    "topic_identity=no",
    "idempotence=no",
    "delete_past_high_watermark=yes",
    "clean_past_high_watermark=yes",
    "start_inside_batch=no",
    "epoch_trim=up_to_start",
)
LADDER: Final = ("hw", "kip101", "kip101-text", "kip279", "kip279-2.0.1", "kip320")
VARIANTS: Final = (*LADDER, *(f"{PROTOCOL}+{change}" for change in ABLATIONS))


@dataclass(slots=True)
class Found:
    """The findings of a variant: seeds with a violation, and seeds with only a hang."""

    variant: str
    violations: list[int] = field(default_factory=list)
    hangs: list[int] = field(default_factory=list)
    tally: Tally = field(default_factory=Tally)

    def add(self, result: RunResult) -> None:
        """Count a result."""
        self.tally.add(result)
        if result.verdict is Verdict.INVALID:
            self.violations.append(result.seed)
        elif result.verdict is Verdict.HANG:
            self.hangs.append(result.seed)

    def row(self) -> tuple[str, ...]:
        """Return the variant's row of the table."""
        tally = self.tally
        kinds = [kind for kind in tally.kinds if kind.value not in ("unpromised", "permitted", "vacuous")]
        shown = sorted(kind.value for kind in kinds if kind.value not in _NAMED)
        first = min((*self.violations, *self.hangs), default=None)
        return (
            self.variant,
            "-" if first is None else f"{first + 1}",
            f"{_median(self.violations)}",
            f"{len(self.violations)}",
            f"{_median(self.hangs)}",
            f"{tally.seeds}",
            f"{tally.seeds_per_second:.0f}",
            " ".join(shown),
        )


_NAMED: Final = ("last-standing", "returned-unseen")


def _runs(variant: str, *, narrow: bool = False) -> RandomRuns:
    return RandomRuns(target="broker", variant=variant, host=SIM, narrow=narrow)


def _median(seeds: Sequence[int]) -> str:
    """Return the median distance between neighbouring seeds, as text."""
    steps = [after - before for before, after in zip((-1, *seeds), seeds, strict=False)]
    return f"{median(steps):.0f}" if steps else "-"


def figures(variants: Sequence[str], *, seeds: int, hits: int, jobs: int, narrow: bool, console: Console) -> None:
    """Search each variant, and print the table as it grows."""
    kind = "narrow schedules: " if narrow else ""
    table = Table(title=f"{kind}seeds to the next violation, up to {hits} of {seeds}", title_justify="left")
    for name in ("variant", "first", "median", "violations", "median to a hang", "seeds", "seeds/s/core", "found"):
        table.add_column(name, justify="left" if name in ("variant", "found") else "right")
    for variant in variants:
        found = Found(variant)

        def enough(_: RunResult, found: Found = found) -> bool:
            return len(found.violations) >= hits

        for result in search(_runs(variant, narrow=narrow), range(seeds), jobs=jobs, stop=enough):
            found.add(result)
            if enough(result):
                break
        table.add_row(*found.row())
        console.print(" ".join(found.row()), highlight=False, markup=False, soft_wrap=True)
    console.print(table)


# --- twice ---------------------------------------------------------------------------------------------------
def digests(variant: str, seeds: range) -> Iterator[str]:
    """Yield the rolling hash of each seed's run."""
    runs = _runs(variant)
    for seed in seeds:
        trace = Trace(Detail.EVENTS)
        simulate(sim_player(runs.load_target(), trace), runs.spec(seed))
        yield trace.digest


def events(variant: str, seed: int) -> Iterator[str]:
    """Yield every step of a seed's run, as it was hashed."""
    trace = Trace(Detail.EVENTS, keep=True)
    runs = _runs(variant)
    simulate(sim_player(runs.load_target(), trace), runs.spec(seed))
    yield from trace.lines


def twice(variant: str, count: int, console: Console) -> int:
    """Compare two runs of each seed, in processes with different hash seeds; return 0 if all are equal, else 1."""
    first, second = _in_two_processes(f"digests({variant!r}, range({count}))")
    unlike = [seed for seed in range(count) if first[seed : seed + 1] != second[seed : seed + 1]]
    console.print(f"{count} seeds of {variant} twice: {len(set(first))} different hashes, {len(unlike)} differ")
    for seed in unlike[:1]:
        found = first_difference(*_in_two_processes(f"events({variant!r}, {seed})"))
        console.print(f"seed {seed}: {found}", highlight=False, markup=False, soft_wrap=True)
    return 1 if unlike else 0


def _in_two_processes(expression: str) -> list[list[str]]:
    """Return the lines of an expression of this module under each of two hash seeds, run in parallel."""
    code = f"from benchmarks import search\nfor line in search.{expression}: print(line)"
    runs = [
        subprocess.Popen(
            [sys.executable, "-c", code],
            env={**os.environ, "PYTHONHASHSEED": hash_seed},
            stdout=subprocess.PIPE,
            text=True,
        )
        for hash_seed in ("1", "2")
    ]
    lines = [run.communicate()[0].splitlines() for run in runs]
    if any(run.returncode for run in runs):
        raise FencepostError(f"{expression}: exit codes {[run.returncode for run in runs]}, expected 0; see above")
    return lines


def main(arguments: Sequence[str]) -> int:
    """Print the figures, or compare."""
    parser = Parser(prog="python -m benchmarks.search", description="Measure how soon a search finds violations.")
    seeds, jobs = whole_number(1, limits.OPTION_SEEDS_MAX), whole_number(1, limits.OPTION_JOBS_MAX)
    parser.add_argument(
        "variants", nargs="*", metavar="VARIANT", default=VARIANTS, help="protocols and mutants (default: all)"
    )
    parser.add_argument(
        "--seeds", type=seeds, default=3_000, help="at most so many for each variant (default: 3000)"
    )
    parser.add_argument("--hits", type=seeds, default=15, help="stop after so many violations (default: 15)")
    parser.add_argument("--jobs", type=jobs, default=os.cpu_count() or 1, help="processes (default: one per core)")
    text = "draw schedules of one partition, without clients besides their steps"
    parser.add_argument("--narrow", action="store_true", help=text)
    parser.add_argument(
        "--twice",
        type=seeds,
        metavar="N",
        help=f"instead: run {PROTOCOL}'s first N seeds twice, compare the hashes",
    )
    return end("benchmarks.search", lambda: _measure(parser.parse_args(arguments)))


def _measure(chosen: argparse.Namespace) -> int:
    console = Console()
    for variant in chosen.variants:
        _ = RandomRuns(target="broker", variant=variant, host=SIM).rules  # raises UsageError for an unknown one
    if chosen.twice:
        return twice(PROTOCOL, chosen.twice, console)
    figures(
        chosen.variants,
        seeds=chosen.seeds,
        hits=chosen.hits,
        jobs=chosen.jobs,
        narrow=chosen.narrow,
        console=console,
    )
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
