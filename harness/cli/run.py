"""
`fencepost run`: random schedules of faults, each drawn from one seed, played and judged.

One seed is played on any host, checked on Spark, and reported. Many seeds, or seeds for some time, are searched in
the simulator or played one after another on real processes. They are judged in this process by the same rules, and
each finding is kept with the same files as a single run. With --compare-with, the same seeds are also played on
our broker, and the kinds of verdicts are compared.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Final

from harness import limits
from harness.ending import seconds, whole_number
from harness.environment import ENVIRONMENTS
from harness.hosts import machines_of
from harness.model import EXIT_OF_VERDICT, UsageError
from harness.random_schedule.profile import ALL, NEMESES
from harness.report.console import console as make_console
from harness.run.spec import ALIKE, NARROW, STOP_AT_VIOLATION
from harness.search.chaos import Limit, play_chaos
from harness.search.long_run import WORKLOAD, play_long
from harness.search.pairing import OURS, THEIRS, Pairing, compare
from harness.search.random_runs import RandomRuns
from harness.search.simulated_search import SHRUNK_MAX, search_simulated
from harness.search.single import play_one
from harness.search.tally_tables import say
from harness.suite.options import Options, configure_options, configure_stop, configure_targets
from harness.target import found
from harness.version import build
from targets import DEFAULT_TARGET, VIRTUAL_HOST
from workloads import WORKLOADS

LOCAL: Final = "local"
PROTOCOL: Final = "kip380"


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    configure_options(parser, ENVIRONMENTS, host=None, otherwise=f"{VIRTUAL_HOST} for our broker, else {LOCAL}")
    add = parser.add_argument
    add("--target", default=DEFAULT_TARGET, metavar="TARGET[:PROTOCOL]", help="the target, such as kafka:3.9.1")
    add("--protocol", help=f"a protocol, or a mutant of one (default: {PROTOCOL}, or the newest)")
    add("--rule", action="append", metavar="RULE=VALUE", help="change a rule of the protocol; may be repeated")
    add(
        "--set",
        action="append",
        dest="rule",
        metavar="PROPERTY=VALUE",
        help="the same, for a target whose rules are properties",
    )
    seeds = whole_number(1, limits.OPTION_SEEDS_MAX)
    add("--seeds", type=seeds, default=1, metavar="COUNT", help="number of seeds, from --seed on (default: 1)")
    add("--time", type=seconds, metavar="S", help="go on for this many seconds: chaos on one cluster, or seeds")
    add(
        "--fresh",
        action=argparse.BooleanOptionalAction,
        help=f"with --time, a fresh cluster for each seed (default: on {VIRTUAL_HOST} only), or one for all of it",
    )
    add(
        "--nemesis",
        action="append",
        metavar="NAME[,NAME]",
        help=f"only these nemeses: {', '.join(NEMESES)} (default: {ALL}); for chaos, {ALL},-NAME leaves one out",
    )
    text = "also play the seeds on our broker under this protocol, and compare"
    add("--compare-with", metavar="PROTOCOL", help=text)
    add("--workload", choices=WORKLOADS, help="these clients, in place of those that a seed draws")
    add(ALIKE, action="store_true", help="draw schedules that every target can play, Apache Kafka among them")
    add(NARROW, action="store_true", help="draw schedules of one partition, without clients besides their steps")
    add("--beside", dest="compare_with", metavar="PROTOCOL", help=argparse.SUPPRESS)  # its name until 0.1
    add("--stop-at-first", action="store_true", help="stop at the first finding")
    text = f"do not shrink the schedules of the first {SHRUNK_MAX} findings of a search in the simulator"
    add("--no-shrink", action="store_true", help=text)
    configure_stop(parser)
    configure_targets(parser)
    add("--schedule", type=Path, metavar="FILE", help="play this schedule instead of the seed's")


def run(arguments: argparse.Namespace) -> int:
    """Play one seed, or many, or seeds for some time, or compare; return the exit code."""
    console = make_console()
    if arguments.host is None:  # the simulator runs only our own broker's core
        arguments.host = VIRTUAL_HOST if arguments.target.partition(":")[0] == DEFAULT_TARGET else LOCAL
    runs, options = runs_of(arguments), Options.of(arguments)
    _refuse(arguments)
    runs.spec(options.seed)  # raises UsageError for a wrong name before anything is started
    for library, why in runs.left_out(options.seed).items():
        say(console, f"workload {runs.workload}: its clients on {library} are left out: {why}")
    if options.host == VIRTUAL_HOST:
        options.make_environment(runs.load_target())  # and this one for an option that the simulator cannot have
    if arguments.compare_with:
        ours = RandomRuns(
            target=DEFAULT_TARGET,
            variant=arguments.compare_with,
            host=options.host,
            power_tier=options.power_tier,
            machines=options.machines,
            workload=runs.workload,
            nemeses=runs.nemeses,
            alike=True,
        )
        ours.spec(options.seed)
        say(console, f"seed {options.seed}, {build()}, host {options.host}, {runs.name}")
        seeds = range(options.seed, options.seed + arguments.seeds)
        return compare(Pairing(runs={THEIRS: runs, OURS: ours}), options, seeds, console)
    if runs.seconds is not None:
        return play_long(runs, options, console)
    if arguments.seeds > 1 or arguments.time is not None:
        say(console, f"seed {options.seed}, {build()}, host {options.host}, {runs.name}")
        limit = Limit(seeds=arguments.seeds, seconds=arguments.time, first=arguments.stop_at_first)
        if options.host != VIRTUAL_HOST:
            return EXIT_OF_VERDICT[play_chaos(runs, options, limit, console)]
        shrunk_max = 0 if arguments.no_shrink else SHRUNK_MAX
        return EXIT_OF_VERDICT[search_simulated(runs, options, limit, console, shrunk_max)]
    return play_one(runs, options, console)


def _usual(target: str) -> str:
    """Return the protocol of a target that is played if none is named: the newest of another's than ours."""
    return PROTOCOL if target == DEFAULT_TARGET else list(found.target(target).protocols())[-1]


def runs_of(arguments: argparse.Namespace) -> RandomRuns:
    """Return the runs of the options; raise UsageError if --target and --protocol name two protocols."""
    target, _, named = arguments.target.partition(":")
    if named and arguments.protocol not in (None, named):
        raise UsageError(
            f"--target {arguments.target} --protocol {arguments.protocol}: two protocols; expected one of them"
        )
    return RandomRuns(
        target=target,
        variant=named or arguments.protocol or _usual(target),
        host=arguments.host,
        changes=tuple(arguments.rule or ()),
        nemeses=tuple(name for text in arguments.nemesis or (ALL,) for name in text.split(",")),
        power_tier=arguments.power_tier,
        machines=machines_of(arguments.host, arguments.machines),
        schedule=arguments.schedule,
        workload=arguments.workload or (WORKLOAD if _is_long(arguments) else ""),
        alike=arguments.alike or bool(arguments.compare_with),
        narrow=arguments.narrow,
        stop_at_violation=arguments.stop_at_violation,
        seconds=arguments.time if _is_long(arguments) else None,
    )


def _is_long(arguments: argparse.Namespace) -> bool:
    """Return True if one cluster is to live through the whole time."""
    fresh = arguments.host == VIRTUAL_HOST if arguments.fresh is None else arguments.fresh
    return arguments.time is not None and not fresh


def _refuse(arguments: argparse.Namespace) -> None:
    """Raise UsageError for options that exclude each other."""
    if arguments.time is not None and arguments.seeds > 1:
        raise UsageError(f"--time {arguments.time:g} --seeds {arguments.seeds}: expected one of them")
    if arguments.fresh is not None and arguments.time is None:
        raise UsageError("--fresh or --no-fresh: expected --time, which says how long clusters are played with")
    if _is_long(arguments) and (arguments.narrow or arguments.stop_at_first):
        raise UsageError("--narrow or --stop-at-first with --time: expected --fresh too, for seeds one by one")
    other = arguments.compare_with
    many = arguments.seeds > 1 or arguments.time is not None or other
    if many and arguments.schedule:
        raise UsageError(f"--schedule {arguments.schedule}: expected one seed; many draw schedules of their own")
    if arguments.narrow and (arguments.schedule or arguments.workload):
        raise UsageError(f"{NARROW}: expected neither --schedule nor --workload, which say what clients there are")
    if arguments.schedule and arguments.nemesis:
        raise UsageError(f"--schedule {arguments.schedule}: expected no --nemesis, which draws another schedule")
    if other and (arguments.time is not None or arguments.stop_at_first):
        raise UsageError(f"--compare-with {other}: expected no --time or --stop-at-first")
    if arguments.schedule and arguments.workload:
        raise UsageError(
            f"--schedule {arguments.schedule}: expected no --workload, since a schedule names its clients"
        )
    if other and arguments.stop_at_violation:
        raise UsageError(f"--compare-with {other}: expected no {STOP_AT_VIOLATION}: whole schedules are compared")
