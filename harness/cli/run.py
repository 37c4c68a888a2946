"""
`fencepost run`: random schedules of faults, each drawn from one seed, played and checked.

One seed is played on any host, checked on Spark, and reported. Many seeds, or seeds for some time, are searched in
the simulator, or played one after another on real processes; what shows something is kept as if it had been played
alone. With --beside the same seeds are played on our broker too, and the kinds of verdicts are compared.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Final

from rich.console import Console

from harness.chance.profile import ALL, NEMESES
from harness.cli.chaos import play_many
from harness.cli.conform import compare
from harness.cli.course import commit, configure_course, seed_of
from harness.cli.findings import KEPT_MAX, Kept, keep_trial
from harness.cli.grounds import GROUNDS
from harness.cli.searching import BROKER, Order, Tally, search
from harness.cli.single import play_single
from harness.cli.tallies import SearchProgress, print_tally, say
from harness.cli.trials import HOST, Trial
from harness.model import EXIT_OF_VERDICT, UsageError
from harness.schedule import read_scenario
from harness.store import create_suite

LOCAL: Final = "local"
PROTOCOL: Final = "kip380"
# More seeds than any time suffices for.
SEEDS_MAX: Final = 10**9


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    configure_course(parser, GROUNDS, host=None, otherwise=f"{HOST} for our broker, else {LOCAL}")
    add = parser.add_argument
    add("--target", default=BROKER, metavar="TARGET[:PROTOCOL]", help="what is tested, such as kafka:3.9.1")
    add("--protocol", help=f"a protocol, or a mutant of one (default: {PROTOCOL})")
    add("--rule", action="append", metavar="RULE=VALUE", help="change a rule of it; may be repeated")
    add(
        "--set",
        action="append",
        dest="rule",
        metavar="PROPERTY=VALUE",
        help="the same, where rules are properties",
    )
    add("--seeds", type=int, default=1, metavar="COUNT", help="play so many, from --seed on (default: one)")
    add("--time", type=float, metavar="S", help="play seeds one after another, for so many seconds")
    add(
        "--nemesis",
        action="append",
        metavar="NAME[,NAME]",
        help=f"break things in these ways alone: {', '.join(NEMESES)} (default: {ALL})",
    )
    add("--beside", metavar="PROTOCOL", help="play the seeds on our broker under this protocol too, and compare")
    add("--stop-at-first", action="store_true", help="end at the first finding")
    add("--schedule", type=Path, metavar="FILE", help="play this schedule in place of the seed's")


def run(arguments: argparse.Namespace) -> int:
    """Play one seed, or many, or seeds for some time, or compare; see EXIT_CODES."""
    console = Console()
    if arguments.host is None:  # only our own broker's core plays in the simulator
        arguments.host = HOST if arguments.target.partition(":")[0] == BROKER else LOCAL
    order = order_of(arguments)
    _refuse(arguments)
    spec, seed = order.spec(), seed_of(arguments)
    say(console, f"seed {seed}, commit {commit()}, host {arguments.host}, {order.target} {spec.variant}")
    again = partial(
        order.command, host=arguments.host, power_tier=arguments.power_tier, schedule=arguments.schedule
    )
    if arguments.beside:
        return compare(order, arguments, range(seed, seed + arguments.seeds), console)
    if arguments.seeds > 1 or arguments.time is not None:
        if arguments.host != HOST:
            return play_many(order, arguments, seed, again, console)
        return _search(order, arguments, seed, again, console)
    if arguments.schedule:
        spec = replace(spec, schedule=read_scenario(arguments.schedule))
    verdict = play_single(spec, arguments, seed, again(seed), console)
    return EXIT_OF_VERDICT[verdict]


def order_of(arguments: argparse.Namespace) -> Order:
    """Take TARGET[:PROTOCOL] and --protocol together; UsageError where they say two things."""
    target, _, named = arguments.target.partition(":")
    if named and arguments.protocol not in (None, named):
        raise UsageError(
            f"--target {arguments.target} --protocol {arguments.protocol}: two protocols; expected one of them"
        )
    return Order(
        target=target,
        variant=named or arguments.protocol or PROTOCOL,
        changes=tuple(arguments.rule or ()),
        nemeses=tuple(name for text in arguments.nemesis or (ALL,) for name in text.split(",")),
        real=arguments.host != HOST,
    )


def _refuse(arguments: argparse.Namespace) -> None:
    """Raise UsageError for what does not go together."""
    if arguments.seeds < 1:
        raise UsageError(f"--seeds {arguments.seeds}: expected a whole number from 1")
    if arguments.time is not None and not arguments.time > 0:
        raise UsageError(f"--time {arguments.time:g}: expected a number of seconds above 0")
    if arguments.time is not None and arguments.seeds > 1:
        raise UsageError(f"--time {arguments.time:g} --seeds {arguments.seeds}: expected one of them")
    many = arguments.seeds > 1 or arguments.time is not None or arguments.beside
    if many and arguments.schedule:
        raise UsageError(f"--schedule {arguments.schedule}: expected one seed; many draw schedules of their own")
    if arguments.beside and (arguments.time is not None or arguments.nemesis or arguments.stop_at_first):
        raise UsageError(f"--beside {arguments.beside}: expected no --time, --nemesis or --stop-at-first")


def _search(
    order: Order, arguments: argparse.Namespace, first: int, command: Callable[[int], str], console: Console
) -> int:
    began, tally = time.monotonic(), Tally()
    seeds = range(first, first + (arguments.seeds if arguments.time is None else SEEDS_MAX))

    def enough(trial: Trial) -> bool:
        late = arguments.time is not None and time.monotonic() - began >= arguments.time
        return late or (bool(arguments.stop_at_first) and trial.found)

    with SearchProgress(console, None if arguments.time else len(seeds)) as progress:
        for trial in search(order, seeds, jobs=arguments.jobs or 1, stop=enough):
            tally.take(trial)
            progress.step(tally)
    print_tally(tally, console, wall_s=time.monotonic() - began)
    if tally.found:
        spec = order.spec()
        folder = create_suite(arguments.results, f"{datetime.now(UTC):%Y%m%dT%H%M%S}-search-{first}")
        for trial in tally.found[:KEPT_MAX]:
            _tell(trial, keep_trial(folder, spec, trial.seed), command(trial.seed), console)
        if more := tally.found[KEPT_MAX:]:
            say(console, f"and {len(more)} more: {' '.join(str(trial.seed) for trial in more)}")
    return EXIT_OF_VERDICT[tally.verdict]


def _tell(trial: Trial, kept: Kept, command: str, console: Console) -> None:
    """Tell a finding: what it is, where its schedule and history are, and how it is played again."""
    say(console, f"seed {trial.seed}: {trial.verdict.name.lower()}")
    for line in (*trial.sentences, f"schedule: {kept.schedule}", f"again: {command}"):
        say(console, f"  {line}")
