"""Search many random runs in the simulator, print the tally, and keep the first findings in files."""

from __future__ import annotations

import time
from typing import Final

from rich.console import Console

from harness import limits
from harness.model import Verdict
from harness.run.result import RunResult
from harness.run.spec import RunSpec
from harness.run.store import Run, check_results
from harness.search.chaos import Limit
from harness.search.cores import cores, jobs_for
from harness.search.findings import KEPT_MAX
from harness.search.kept import KeptFindings
from harness.search.random_runs import RandomRuns
from harness.search.search import search
from harness.search.shrink.minimal import Ended
from harness.search.shrink.output import summary_of, write_shrunk
from harness.search.shrink.shrink import Bounds, NotShownError, shrink
from harness.search.shrink.subject import Subject
from harness.search.simulated import SearchEndedError
from harness.search.tally import Tally
from harness.search.tally_tables import SearchProgress, print_tally, say
from harness.suite.interrupts import INTERRUPTS
from harness.suite.options import Options

# The number of findings that are shrunk, and of runs that each may take.
SHRUNK_MAX: Final = 3
TRIES: Final = 2_000
# Why a search ended that somebody has interrupted.
INTERRUPTED: Final = "interrupted"


def search_simulated(
    runs: RandomRuns, options: Options, limit: Limit, console: Console, shrunk_max: int = SHRUNK_MAX
) -> Verdict:
    """
    Search seeds in the simulator, keep the first findings at once, print the tally, and return the worst verdict.

    An interrupt, the end of the time and a limit of the machine lose nothing: what was found until then is kept,
    told, and decides the verdict.

    Args:
        shrunk_max: how many of the kept findings are shrunk.

    Raises:
        KeyboardInterrupt: after the tally so far was printed, if nothing was found.
    """
    check_results(options.results)
    began, tally, why = time.monotonic(), Tally(), ""
    kept = KeptFindings(runs=runs, results=options.results, seed=options.seed, most=KEPT_MAX)
    seeds = range(options.seed, options.seed + (limit.seeds if limit.seconds is None else limits.OPTION_SEEDS_MAX))

    def enough(result: RunResult) -> bool:
        late = limit.seconds is not None and time.monotonic() - began >= limit.seconds
        return late or (limit.first and result.is_finding)

    jobs = options.jobs or jobs_for(len(seeds), limit.seconds)
    try:
        with SearchProgress(console, None if limit.seconds else len(seeds)) as progress:
            for result in search(runs, seeds, jobs=jobs, stop=enough):
                with INTERRUPTS.shielded():
                    tally.add(result)
                    if result.is_finding:
                        kept.keep(result)
                progress.step(tally)
    except KeyboardInterrupt:
        why, shrunk_max = INTERRUPTED, 0
    except SearchEndedError as error:
        why, shrunk_max = str(error), 0
    if tally.seeds:
        print_tally(tally, console, wall_s=time.monotonic() - began)
    try:
        _tell(tally, kept, options, console, shrunk_max)
    except KeyboardInterrupt:
        why = why or INTERRUPTED
    if why == INTERRUPTED and not tally.findings:
        raise KeyboardInterrupt
    if why:
        say(console, f"{why}; seeds {options.seed} to {options.seed + tally.seeds - 1} were played")
    for problem in kept.problems:
        say(console, f"findings {problem}")
    if kept.folder:
        say(console, f"findings: {kept.folder.path}")
    return Verdict.merge([tally.verdict, Verdict.VALID if why in ("", INTERRUPTED) else Verdict.UNKNOWN])


def _tell(tally: Tally, kept: KeptFindings, options: Options, console: Console, shrunk_max: int) -> None:
    """Print the sentences, the schedule and the command of the first findings; shrink some, name the rest."""
    for result in tally.findings[:KEPT_MAX]:
        say(console, f"seed {result.seed}: {result.verdict.name.lower()}")
        run = kept.runs_of.get(result.seed)
        place = (f"schedule: {run.schedule}",) if run else ()
        for line in (*result.sentences, *place, f"again: {result.rerun}"):
            say(console, f"  {line}")
        if run and not run.failure and result.verdict >= Verdict.HANG and shrunk_max > 0:
            shrunk_max -= 1
            _shrink(kept.runs.spec(result.seed), run, options, console)
    if more := tally.findings[KEPT_MAX:]:
        say(console, f"and {len(more)} more: {' '.join(str(result.seed) for result in more)}")


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
