"""Search many random runs in the simulator, print the tally, and keep the first findings in files."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from typing import Final

from rich.console import Console

from harness import limits
from harness.model import UsageError, Verdict
from harness.run.failure import reason_of
from harness.run.result import RunResult
from harness.run.spec import RunSpec
from harness.run.store import Run, check_results, create_suite
from harness.search.chaos import Limit
from harness.search.cores import cores, jobs_for
from harness.search.findings import KEPT_MAX, keep_simulated
from harness.search.random_runs import RandomRuns
from harness.search.search import search
from harness.search.shrink.minimal import Ended
from harness.search.shrink.output import summary_of, write_shrunk
from harness.search.shrink.shrink import Bounds, NotShownError, shrink
from harness.search.shrink.subject import Subject
from harness.search.simulated import sim_player
from harness.search.tally import Tally
from harness.search.tally_tables import SearchProgress, print_tally, say
from harness.suite.options import Options

# The number of findings that are shrunk, and of runs that each may take.
SHRUNK_MAX: Final = 3
TRIES: Final = 2_000


def search_simulated(
    runs: RandomRuns, options: Options, limit: Limit, console: Console, shrunk_max: int = SHRUNK_MAX
) -> Verdict:
    """
    Search seeds in the simulator, print the tally, keep the first findings, and return the worst verdict.

    Args:
        shrunk_max: how many of the kept findings are shrunk.

    Raises:
        KeyboardInterrupt: after the tally so far was printed, and the findings were named.
    """
    check_results(options.results)
    began, tally = time.monotonic(), Tally()
    seeds = range(options.seed, options.seed + (limit.seeds if limit.seconds is None else limits.OPTION_SEEDS_MAX))

    def enough(result: RunResult) -> bool:
        late = limit.seconds is not None and time.monotonic() - began >= limit.seconds
        return late or (limit.first and result.is_finding)

    jobs = options.jobs or jobs_for(len(seeds), limit.seconds)
    try:
        with SearchProgress(console, None if limit.seconds else len(seeds)) as progress:
            for result in search(runs, seeds, jobs=jobs, stop=enough):
                tally.add(result)
                progress.step(tally)
    except KeyboardInterrupt:
        _name(tally, console, wall_s=time.monotonic() - began)
        raise
    print_tally(tally, console, wall_s=time.monotonic() - began)
    if tally.findings:
        try:
            _keep(tally, runs, options, console, shrunk_max)
        except (UsageError, OSError) as error:
            say(console, f"findings not kept: {reason_of(error)}")
    return tally.verdict


def _name(tally: Tally, console: Console, *, wall_s: float) -> None:
    """Print what an interrupted search has found; whoever interrupts it does not wait for findings to be kept."""
    if tally.seeds:
        print_tally(tally, console, wall_s=wall_s)
    for result in tally.findings[:KEPT_MAX]:
        _say_finding(result, console, f"again: {result.rerun}")
    _say_more(tally, console)


def _say_finding(result: RunResult, console: Console, *more: str) -> None:
    say(console, f"seed {result.seed}: {result.verdict.name.lower()}")
    for line in (*result.sentences, *more):
        say(console, f"  {line}")


def _say_more(tally: Tally, console: Console) -> None:
    if more := tally.findings[KEPT_MAX:]:
        say(console, f"and {len(more)} more: {' '.join(str(result.seed) for result in more)}")


def _keep(tally: Tally, runs: RandomRuns, options: Options, console: Console, shrunk_max: int) -> None:
    """Keep the first findings, and print the sentences, the schedule and the command of each; shrink some."""
    folder = create_suite(options.results, f"{datetime.now(UTC):%Y%m%dT%H%M%S}-search-{options.seed}")
    player = sim_player(runs.load_target())
    for result in tally.findings[:KEPT_MAX]:
        kept = keep_simulated(player, runs.spec(result.seed), folder)
        _say_finding(result, console, f"schedule: {kept.schedule}", f"again: {result.rerun}")
        if result.verdict >= Verdict.HANG and shrunk_max > 0:
            shrunk_max -= 1
            _shrink(runs.spec(result.seed), kept, options, console)
    _say_more(tally, console)


def _shrink(spec: RunSpec, kept: Run, options: Options, console: Console) -> None:
    """Shrink the schedule of a finding, write it into the finding's folder, and print its steps."""
    name = kept.shrunk.stem
    subject = Subject.of(spec.variant.protocol, spec.rules, seed=spec.seed, name=name, alike=spec.alike)
    bounds = Bounds(jobs=options.jobs or cores(), tries=TRIES)
    try:
        shrunk = shrink(spec.scenario, subject, bounds, kept.shrunk)
    except NotShownError as error:
        say(console, f"  not shrunk: {error}")
        return
    write_shrunk(shrunk, kept.shrunk)
    say(console, f"  {summary_of(shrunk)}")
    for line in (*(f"  {step.text}" for step in shrunk.scenario.steps), f"again: {shrunk.again}"):
        say(console, f"  {line}")
    if shrunk.ended is Ended.INTERRUPTED:
        raise KeyboardInterrupt
