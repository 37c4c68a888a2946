"""
Chaos: play seeds one after another on real processes, until all are played or the time is up.

The folder of a run without a finding is deleted; the folder of a finding has all files that an engineer needs.
Unknown runs are kept as long as an engineer may read them, and never instead of a violation.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import count
from pathlib import Path
from typing import Final

from rich.console import Console

from harness.cleanup import mounts
from harness.model import Verdict
from harness.run.failure import reason_of
from harness.run.folders import SERVICES
from harness.run.result import RunResult
from harness.run.store import Run, create_suite
from harness.search.findings import KEPT_MAX, VIOLATIONS_KEPT_MAX, keep_finding
from harness.search.random_runs import RandomRuns
from harness.search.real_runs import Job, RealRun, open_players, play_many
from harness.search.tally import Tally
from harness.search.tally_tables import print_tally, say
from harness.suite.options import Options

TARGET: Final = "target"


@dataclass(frozen=True, slots=True, kw_only=True)
class Limit:
    """
    The condition that ends a search.

    Attributes:
        seeds: the number of seeds, if there is no time limit.
        seconds: the time limit, None for a number of seeds.
        first: True if the first finding ends the search.
    """

    seeds: int
    seconds: float | None = None
    first: bool = False


def play_chaos(runs: RandomRuns, options: Options, limit: Limit, console: Console) -> Verdict:
    """
    Play seeds from the options' seed on, and return the most severe verdict.

    Raises:
        KeyboardInterrupt: after the tally so far was printed, if nothing was found.
    """
    began, tally = time.monotonic(), Tally()
    problems: list[str] = []
    folder = create_suite(options.results, f"{datetime.now(UTC):%Y%m%dT%H%M%S}-chaos-{options.seed}")

    def receive(ended: RealRun) -> None:
        tally.add(ended.result)
        say(console, f"{time.monotonic() - began:6.1f} s  {_line(ended)}")
        if ended.run.failure:
            say(console, f"  failed: {ended.run.failure}")
        if not _is_kept(ended.result, tally):
            discard(ended.run)
            return
        if ended.run.failure:  # a part of it may still be in use
            say(console, f"  again: {ended.spec.command}")
            return
        try:
            page: Path | str = keep_finding(ended)
        except OSError as error:
            problems.append(f"{ended.run.name}: not kept whole: {reason_of(error)}")
            page = f"{ended.run.path}, not whole"
        for line in (*ended.result.sentences, f"finding: {page}", f"again: {ended.spec.command}"):
            say(console, f"  {line}")

    opened = open_players({TARGET: runs}, ports=options.ports, folder=folder.path / SERVICES, note=problems.append)
    try:
        with opened as players:
            jobs = _jobs(runs, options.seed, _enough(limit, tally, began))
            problems += filter(None, [play_many(jobs, players, folder, options.jobs or 1, receive)])
    except KeyboardInterrupt:  # everything is down; what was found is kept, and decides the verdict
        if not tally.findings:
            raise
        say(console, f"interrupted; seeds {options.seed} to {options.seed + tally.seeds - 1} were played")
    finally:
        for problem in problems:
            say(console, problem)
        if tally.seeds:
            print_tally(tally, console, wall_s=time.monotonic() - began)
    if tally.findings:
        say(console, f"findings: {folder.path}")
    return Verdict.merge([tally.verdict, Verdict.UNKNOWN if problems else Verdict.VALID])


def _is_kept(result: RunResult, tally: Tally) -> bool:
    """Return True for a finding, unless there are enough of its verdict, which the tally counts with it."""
    most = KEPT_MAX if result.verdict <= Verdict.UNKNOWN else VIOLATIONS_KEPT_MAX
    return result.is_finding and sum(each.verdict == result.verdict for each in tally.findings) <= most


def discard(run: Run) -> None:
    """Delete a run's folder, but none in which a filesystem is still mounted: the next run takes that down."""
    if not mounts.mounts_below(run.path):
        shutil.rmtree(run.path, ignore_errors=bool(run.failure))


def _enough(limit: Limit, tally: Tally, began: float) -> Callable[[int], bool]:
    """Return a function that returns True if no seed should begin after so many; one always begins."""

    def enough(begun: int) -> bool:
        if limit.first and tally.findings:
            return True
        if limit.seconds is None:
            return begun >= limit.seeds
        return begun > 0 and time.monotonic() - began >= limit.seconds

    return enough


def _jobs(runs: RandomRuns, first: int, enough: Callable[[int], bool]) -> Iterator[Job]:
    for begun in count():
        if enough(begun):
            return
        yield TARGET, runs.spec(first + begun)


def _line(ended: RealRun) -> str:
    result, done = ended.result, ended.result.activity
    bit, asked = sum(done.bit.values()), sum(done.asked.values())
    why = f"; {result.vacuous}" if result.vacuous else ""
    return (
        f"{ended.spec.name}: {result.verdict.name.lower()} in {result.seconds:.1f} s, "
        f"{bit} of {asked} faults bit, "
        f"{done.elections} elections, {done.acked} acknowledged by all{why}"
    )
