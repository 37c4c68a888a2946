"""Search many random runs in the simulator, print the tally, and keep the first findings in files."""

from __future__ import annotations

import time
from datetime import UTC, datetime

from rich.console import Console

from harness import limits
from harness.model import UsageError, Verdict
from harness.run.failure import reason_of
from harness.run.result import RunResult
from harness.run.store import check_results, create_suite
from harness.search.chaos import Limit
from harness.search.findings import KEPT_MAX, keep_simulated
from harness.search.random_runs import RandomRuns
from harness.search.search import search
from harness.search.simulated import sim_player
from harness.search.tally import Tally
from harness.search.tally_tables import SearchProgress, print_tally, say
from harness.suite.options import Options


def search_simulated(runs: RandomRuns, options: Options, limit: Limit, console: Console) -> Verdict:
    """Search seeds in the simulator, print the tally, keep the first findings, and return the worst verdict."""
    check_results(options.results)
    began, tally = time.monotonic(), Tally()
    seeds = range(options.seed, options.seed + (limit.seeds if limit.seconds is None else limits.OPTION_SEEDS_MAX))

    def enough(result: RunResult) -> bool:
        late = limit.seconds is not None and time.monotonic() - began >= limit.seconds
        return late or (limit.first and result.is_finding)

    with SearchProgress(console, None if limit.seconds else len(seeds)) as progress:
        for result in search(runs, seeds, jobs=options.jobs or 1, stop=enough):
            tally.add(result)
            progress.step(tally)
    print_tally(tally, console, wall_s=time.monotonic() - began)
    if tally.findings:
        try:
            _keep(tally, runs, options, console)
        except (UsageError, OSError) as error:
            say(console, f"findings not kept: {reason_of(error)}")
    return tally.verdict


def _keep(tally: Tally, runs: RandomRuns, options: Options, console: Console) -> None:
    """Keep the first findings, and print the sentences, the schedule and the command of each."""
    folder = create_suite(options.results, f"{datetime.now(UTC):%Y%m%dT%H%M%S}-search-{options.seed}")
    player = sim_player(runs.load_target())
    for result in tally.findings[:KEPT_MAX]:
        kept = keep_simulated(player, runs.spec(result.seed), folder)
        say(console, f"seed {result.seed}: {result.verdict.name.lower()}")
        for line in (*result.sentences, f"schedule: {kept.schedule}", f"again: {result.rerun}"):
            say(console, f"  {line}")
    if more := tally.findings[KEPT_MAX:]:
        say(console, f"and {len(more)} more: {' '.join(str(result.seed) for result in more)}")
