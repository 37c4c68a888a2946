"""
`fencepost run --beside PROTOCOL`: the same random schedules on a target and on our broker, kind beside kind.

Each seed is played on both, on real processes, side by side; what was played is kept in a logbook, so that a
comparison that was cut off goes on where it ended. Verdicts are given anew each time, from the histories.
"""

from __future__ import annotations

import argparse
import json
import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from rich.console import Console

from harness.cli.contingency import Comparison, Pair, kind_of, print_comparison
from harness.cli.course import commit
from harness.cli.logbook import Entry, Logbook
from harness.cli.progress import CellProgress
from harness.cli.rounds import Ended, Missed, Round, Side, judge_run, open_sides, play_rounds
from harness.cli.searching import BROKER, Order
from harness.cli.tallies import say
from harness.cli.trials import HOST, Trial
from harness.hosts import HOSTS
from harness.model import EXIT_CODES, UsageError, Verdict

OURS: Final = "ours"
THEIRS: Final = "theirs"
SUMMARY: Final = "summary.json"
# Of a run that shows nothing only what its verdict follows from is kept.
_HEAVY: Final = ("nodes", "logs")
# Seeds that are named on the screen; the summary has them all.
TOLD_MAX: Final = 40


@dataclass(frozen=True, slots=True, kw_only=True)
class Compared:
    """What is compared: an order for each side, and where both are played."""

    orders: Mapping[str, Order]
    host: str
    power_tier: str | None = None

    def about(self) -> dict[str, Any]:
        """What must be the same when a comparison goes on."""
        names = {side: self.name(side) for side in self.orders}
        return {**names, "host": self.host, "power_tier": self.power_tier or "any"}

    def name(self, side: str) -> str:
        """How a side is called in what is printed."""
        order = self.orders[side]
        return f"{order.target}:{'+'.join((order.variant, *order.changes))}"

    def again(self, side: str, seed: int) -> str:
        """The command that plays a seed on one side, with its report."""
        return self.orders[side].command(seed, host=self.host, power_tier=self.power_tier)


def compare(theirs: Order, arguments: argparse.Namespace, seeds: range, console: Console) -> int:
    """Play the seeds that lack, on both; print and keep what came of all; see EXIT_CODES."""
    if arguments.host == HOST:
        raise UsageError(f"--beside {arguments.beside}: expected real processes; --host {', '.join(HOSTS)}")
    ours = Order(target=BROKER, variant=arguments.beside, real=True)
    compared = Compared(orders={THEIRS: theirs, OURS: ours}, host=arguments.host, power_tier=arguments.power_tier)
    folder = arguments.results / f"conform-{theirs.target}-{theirs.variant}-{ours.variant}"
    logbook = Logbook(folder, compared.about())
    wanted = [(side, seed) for seed in seeds for side in compared.orders]
    todo = [(side, seed) for side, seed in wanted if not logbook.has(side, seed)]
    say(console, f"{len(seeds)} seeds on both, {len(wanted) - len(todo)} rounds of {len(wanted)} played before")
    try:
        if todo:
            _play(compared, logbook, todo, arguments, console)
    finally:
        # Also of what was played until somebody ended it.
        found = _judged(compared, logbook, seeds)
        _conclude(compared, logbook, found, console)
    return _exit_code(found)


def _play(
    compared: Compared,
    logbook: Logbook,
    todo: Sequence[tuple[str, int]],
    arguments: argparse.Namespace,
    console: Console,
) -> None:
    specs = {side: order.spec() for side, order in compared.orders.items()}
    sitting, playing = logbook.begin_sitting(), commit()
    opened = open_sides(
        specs,
        host=compared.host,
        ports=arguments.ports,
        power_tier=compared.power_tier,
        folder=sitting.path / "zookeeper",
    )
    with opened as sides, CellProgress(console, len(todo), "rounds") as progress:

        def take(ended: Ended | Missed) -> None:
            if isinstance(ended, Missed):  # to be played when the comparison goes on
                say(console, ended.sentence)
                return
            entry = Entry(
                side=ended.round.side.name,
                seed=ended.round.seed,
                run=str(ended.run.path.relative_to(logbook.folder)),
                commit=playing,
                seconds=round(ended.trial.seconds, 2),
            )
            logbook.add(entry)
            progress.end(f"{ended.round.name}: {kind_of(ended.trial)},", ended.trial.seconds)
            lighten(ended)

        stages = [side.stage for side in sides]
        play_rounds(_rounds(sides, todo), stages, sitting, arguments.jobs or 1, take)


def _rounds(sides: Sequence[Side], todo: Sequence[tuple[str, int]]) -> Iterator[Round]:
    by_name = {side.name: side for side in sides}
    return (Round(side=by_name[side], seed=seed) for side, seed in todo)


def lighten(ended: Ended) -> None:
    """Keep of a run that shows nothing its schedule and history alone."""
    if ended.trial.verdict in (Verdict.VALID, Verdict.PERMITTED):
        for name in _HEAVY:
            shutil.rmtree(ended.run.path / name, ignore_errors=True)
        ended.run.parquet.unlink(missing_ok=True)


def _judged(compared: Compared, logbook: Logbook, seeds: range) -> Comparison:
    """Judge every seed that was played on both, by the checkers as they are now and by the same eyes."""

    def trial(side: str, seed: int) -> Trial:
        entry = logbook.entries[side, seed]
        return judge_run(logbook.run_of(entry), seed, entry.seconds, alike=True)

    both = [seed for seed in seeds if logbook.has(OURS, seed) and logbook.has(THEIRS, seed)]
    pairs = [Pair(ours=trial(OURS, seed), theirs=trial(THEIRS, seed)) for seed in both]
    return Comparison(ours=compared.name(OURS), theirs=compared.name(THEIRS), pairs=pairs)


def _conclude(compared: Compared, logbook: Logbook, found: Comparison, console: Console) -> None:
    """Print the comparison, and keep it as JSON."""
    commands = {
        pair.seed: {side: compared.again(side, pair.seed) for side in (OURS, THEIRS)} for pair in found.differing
    }
    summary = logbook.folder / SUMMARY
    summary.write_text(json.dumps(found.summary(commands), indent=1) + "\n", encoding="utf-8")
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
        say(console, f"{compared.name(side)}: {found.invalid(side)} of {len(found.pairs)} invalid")
    say(console, f"summary: {summary}")


def _exit_code(found: Comparison) -> int:
    """0 when all kinds are the same, 4 when some differ, 3 when too little was judged to say so."""
    if found.differing:
        return EXIT_CODES["invalid"]
    return EXIT_CODES["valid"] if 2 * len(found.judged) > len(found.pairs) else EXIT_CODES["unknown"]
