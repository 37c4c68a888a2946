"""
Pairing: the same random schedules on two targets, on real processes, and a table of the kinds of their verdicts.

Runs are kept, so that an interrupted comparison continues where it ended. Each time, the results are judged anew
from the histories, and only by events that both targets have.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from rich.console import Console

from checkers.judge import judge
from harness.history.file import read_history
from harness.model import EXIT_CODES, Op, Source, UsageError, Verdict
from harness.random_schedule.profile import ALL
from harness.run.failure import reason_of
from harness.run.folders import SERVICES
from harness.run.result import RunResult
from harness.run.store import Run
from harness.search.crosstab import Comparison, Pair, kind_of, print_comparison
from harness.search.pairing_progress import PairingProgress, PlayedSeed
from harness.search.random_runs import RandomRuns
from harness.search.real_runs import Job, RealRun, open_players, play_many
from harness.search.tally_tables import say
from harness.suite.options import Options
from harness.suite.progress import RunProgress
from harness.version import commit
from targets import VIRTUAL_HOST

OURS: Final = "ours"
THEIRS: Final = "theirs"
SUMMARY: Final = "summary.json"
# Deleted from a run without a finding: its verdict follows from the other files.
_HEAVY: Final = ("logs", "nodes", "tables")
# The number of seeds that are printed; the summary has all of them.
TOLD_MAX: Final = 40
# Events from the printed lines of a broker that emits no events; our broker emits `stuck` itself.
_PRINTED: Final = frozenset({"printed", "stuck"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Pairing:
    """The runs of both sides, by "theirs" and "ours", in that order."""

    runs: Mapping[str, RandomRuns]

    def about(self) -> dict[str, Any]:
        """Return the data that must be the same when a comparison continues."""
        theirs = self.runs[THEIRS]
        names = {side: runs.name for side, runs in self.runs.items()}
        drawn = {"workload": theirs.workload} if theirs.workload else {}
        drawn |= {} if theirs.nemeses == (ALL,) else {"nemeses": ",".join(theirs.nemeses)}
        return {**names, "host": theirs.host, "power_tier": theirs.power_tier or "any", **drawn}

    @property
    def folder(self) -> str:
        """The name of the comparison's folder: one for each pair of targets, and for what is drawn for them."""
        theirs = self.runs[THEIRS]
        drawn = [theirs.workload, *(name for name in theirs.nemeses if name != ALL)]
        words = ("conform", theirs.target, theirs.variant, self.runs[OURS].variant, *filter(None, drawn))
        return "-".join(words)


def compare(pairing: Pairing, options: Options, seeds: range, console: Console) -> int:
    """Play the seeds that were not played yet; print and store the comparison; return the exit code."""
    theirs = pairing.runs[THEIRS]
    if theirs.host == VIRTUAL_HOST:
        raise UsageError("--compare-with: expected a host of real processes; name one (--host local)")
    folder = options.results / pairing.folder
    progress = PairingProgress(folder, pairing.about())
    wanted = [(side, seed) for seed in seeds for side in pairing.runs]
    todo = [(side, seed) for side, seed in wanted if not progress.has(side, seed)]
    say(console, f"{len(seeds)} seeds on both, {len(wanted) - len(todo)} runs of {len(wanted)} played before")
    problems: list[str] = []
    try:
        if todo:
            problems = _play(pairing, progress, todo, options, console)
    finally:
        # After an interrupt too: print the comparison of the seeds played so far.
        found = _judged(pairing, progress, seeds)
        problems += _conclude(pairing, progress, found, console)
        for problem in problems:
            say(console, problem)
    return _exit_code(found, problems)


def _play(
    pairing: Pairing,
    progress: PairingProgress,
    todo: Sequence[tuple[str, int]],
    options: Options,
    console: Console,
) -> list[str]:
    """Play the seeds, and return what keeps the comparison from being complete."""
    folder, playing, problems = progress.begin_suite(), commit(), list[str]()
    services = folder.path / SERVICES
    opened = open_players(pairing.runs, ports=options.ports, folder=services, note=problems.append)
    with opened as players, RunProgress(console, len(todo)) as shown:

        def receive(ended: RealRun) -> None:
            if ended.run.failure:
                shown.end(ended.spec.name, ended.result.seconds, ended.run.failure)
                problems.append(f"{ended.spec.name}: no result; it is played again when the comparison continues")
                return
            played = PlayedSeed(
                side=ended.player,
                seed=ended.spec.seed,
                run=str(ended.run.path.relative_to(progress.folder)),
                commit=playing,
                seconds=round(ended.result.seconds, 2),
            )
            try:
                progress.add(played)
            except OSError as error:
                problems.append(f"{ended.spec.name}: not stored: {reason_of(error)}")
            shown.end(f"{ended.spec.name}: {kind_of(ended.result)},", ended.result.seconds)
            lighten(ended.run, ended.result)

        left_out = play_many(_jobs(pairing, todo), players, folder, options.jobs or 1, receive)
        if left_out:
            problems.append(left_out)
    return problems


def _jobs(pairing: Pairing, todo: Sequence[tuple[str, int]]) -> Iterator[Job]:
    return ((side, pairing.runs[side].spec(seed)) for side, seed in todo)


def lighten(run: Run, result: RunResult) -> None:
    """Delete the large files of a run without a finding, but not its schedule and history."""
    if result.verdict in (Verdict.VALID, Verdict.PERMITTED):
        for name in _HEAVY:
            shutil.rmtree(run.path / name, ignore_errors=True)


def seen_of_any(ops: Iterable[Op]) -> list[Op]:
    """Return the ops that any target has: brokers of Apache Kafka emit no events, only printed lines."""
    kept = (op for op in ops if op.source is not Source.BROKER or op.f in _PRINTED)
    # Numbered anew: a history with gaps in its indexes proves nothing.
    return [replace(op, index=index) for index, op in enumerate(kept)]


def _judged(pairing: Pairing, progress: PairingProgress, seeds: range) -> Comparison:
    """Judge every seed that was played on both sides, with the current checkers."""

    def result(side: str, seed: int) -> RunResult:
        played = progress.played[side, seed]
        ops = read_history(progress.run_of(played).history)
        return judge(pairing.runs[side].spec(seed), seen_of_any(ops), seconds=played.seconds)

    both = [seed for seed in seeds if progress.has(OURS, seed) and progress.has(THEIRS, seed)]
    pairs = [Pair(ours=result(OURS, seed), theirs=result(THEIRS, seed)) for seed in both]
    return Comparison(ours=pairing.runs[OURS].name, theirs=pairing.runs[THEIRS].name, pairs=pairs)


def _conclude(pairing: Pairing, progress: PairingProgress, found: Comparison, console: Console) -> list[str]:
    """Print the comparison, and store it as JSON; return why it could not be stored, [] if it was."""
    commands = {pair.seed: {OURS: pair.ours.rerun, THEIRS: pair.theirs.rerun} for pair in found.differing}
    summary = progress.folder / SUMMARY
    problems: list[str] = []
    try:
        summary.write_text(json.dumps(found.summary(commands), indent=1) + "\n", encoding="utf-8")
    except OSError as error:
        problems.append(f"{summary}: not written: {reason_of(error)}")
    print_comparison(found, console)
    for pair in found.differing[:TOLD_MAX]:
        say(console, f"seed {pair.seed}: ours {kind_of(pair.ours)}, theirs {kind_of(pair.theirs)}")
        for side in (OURS, THEIRS):
            say(console, f"  {commands[pair.seed][side]}")
    if more := found.differing[TOLD_MAX:]:
        say(console, f"and {len(more)} more: {' '.join(str(pair.seed) for pair in more)}")
    same = len(found.pairs) - len(found.differing)
    say(console, f"{len(found.pairs)} seeds on both: {same} of the same kind, {len(found.differing)} differ")
    for side in (OURS, THEIRS):
        say(console, f"{pairing.runs[side].name}: {found.invalid(side)} of {len(found.pairs)} invalid")
    if not problems:
        say(console, f"summary: {summary}")
    return problems


def _exit_code(found: Comparison, problems: Sequence[str]) -> int:
    """Return 4 if kinds differ, else 0 if more than half of the pairs were judged without problems, else 3."""
    if found.differing:
        return EXIT_CODES["invalid"]
    if problems:
        return EXIT_CODES["unknown"]
    return EXIT_CODES["valid"] if 2 * len(found.judged) > len(found.pairs) else EXIT_CODES["unknown"]
