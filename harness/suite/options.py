"""The options of all commands that play runs, and of those that have Spark read stored ones."""

from __future__ import annotations

import argparse
import secrets
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from checkers.spark.options import SparkOptions, reach
from harness import limits
from harness.ending import whole_number
from harness.environment import ENVIRONMENTS
from harness.hosts import machines_of
from harness.numerals import whole
from harness.registry import load
from harness.run.environment import Environment, MakeEnvironment
from harness.run.spec import STOP_AT_VIOLATION
from harness.scenario.variant import check_distinct, present_name
from harness.target import found
from harness.target.target import Target

# Of a seed that nobody asked for: short to repeat.
RANDOM_SEED_MAX: Final = 1_000_000
PORT_MAX: Final = 65535
# Of a wrong range, in its error.
PORTS_CHARACTERS: Final = 40
# Where Spark runs if nothing else is asked for: here, on all cores.
MASTER: Final = "local[*]"


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """
    Where and how runs are played, from the command line.

    Attributes:
        jobs: the number of parallel runs, None for the environment's default.
        machines: the file that lists the machines, None for a host that lists none.
        rules: rules that are changed in every variant, as "rule=value".
        stop_at_violation: whether a schedule ends at the first violation that the live check sees.
    """

    host: str
    seed: int
    results: Path
    jobs: int | None = None
    power_tier: str | None = None
    ports: range | None = None
    machines: Path | None = None
    rules: tuple[str, ...] = ()
    stop_at_violation: bool = False

    @staticmethod
    def of(arguments: argparse.Namespace) -> Options:
        """
        Return the given options, with a random seed if none was given.

        Raises:
            UsageError: a rule is changed twice, or the host's list of machines is missing or wrong.
        """
        rules = tuple(getattr(arguments, "rule", None) or ())
        check_distinct(list(map(present_name, rules)), "option --rule")
        return Options(
            host=arguments.host,
            seed=secrets.randbelow(RANDOM_SEED_MAX) if arguments.seed is None else arguments.seed,
            results=arguments.results,
            jobs=arguments.jobs,
            power_tier=arguments.power_tier,
            ports=arguments.ports,
            machines=machines_of(arguments.host, arguments.machines),
            rules=rules,
            stop_at_violation=getattr(arguments, "stop_at_violation", False),
        )

    def make_environment(self, target: Target) -> Environment:
        """
        Return the environment of `host`, which is not open yet.

        Raises:
            UsageError: there is no such host, or it cannot run this target with these options.
        """
        make: MakeEnvironment = load("host", ENVIRONMENTS, self.host, "make_environment")
        return make(self.host, target=target, power_tier=self.power_tier, ports=self.ports, machines=self.machines)


def configure_options(
    parser: argparse.ArgumentParser, hosts: Collection[str], *, host: str | None = "local", otherwise: str = ""
) -> None:
    """Add the options to a command's parser."""
    parser.add_argument(
        "--host", default=host, help=f"where nodes run: {', '.join(hosts)} (default: {host or otherwise})"
    )
    parser.add_argument(
        "--seed",
        type=whole_number(0, limits.OPTION_SEED_MAX),
        help="seed of broker ids, record counts and random schedules (default: random)",
    )
    parser.add_argument(
        "--jobs",
        type=whole_number(1, limits.OPTION_JOBS_MAX),
        help="parallel runs (default: one for each core; one in the simulator, except for searches of many seeds)",
    )
    parser.add_argument("--power-tier", choices=("loop", "watermark"), help="require this way to lose power")
    parser.add_argument(
        "--ports",
        type=ports,
        metavar="FIRST-LAST",
        help=f"ports that nodes of local and ssh may use (default: {limits.PORT_FIRST}-{limits.PORT_LAST})",
    )
    parser.add_argument(
        "--hosts",
        type=file,
        dest="machines",
        metavar="FILE",
        help="the TOML file that lists the machines of the host ssh (default: $FENCEPOST_HOSTS; docs/hosts.md)",
    )
    parser.add_argument("--results", type=folder, default=Path("results"), help="folder of the results")


def configure_targets(parser: argparse.ArgumentParser) -> None:
    """Add the option that names folders of one's own targets; `fencepost` itself heeds it, before any other."""
    parser.add_argument(
        found.OPTION,
        action="append",
        metavar="FOLDER",
        help=f"also find targets here: a target's folder, or one of several; may be repeated (${found.VARIABLE})",
    )


def configure_stop(parser: argparse.ArgumentParser) -> None:
    """Add the option that lets the live check end schedules."""
    parser.add_argument(
        STOP_AT_VIOLATION,
        action="store_true",
        help="end a run's schedule at the first violation that the live check sees, then heal, read and judge",
    )


def configure_spark(parser: argparse.ArgumentParser) -> None:
    """Add the options that say which Spark reads stored runs."""
    parser.add_argument(
        "--master",
        default=MASTER,
        metavar="URL",
        help=f"where Spark runs: local[N], spark://HOST:PORT, yarn, k8s://… (default: {MASTER}; docs/spark.md)",
    )
    parser.add_argument(
        "--conf",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="a setting of Spark, as spark-submit takes it; may be repeated",
    )


def spark_options(arguments: argparse.Namespace) -> SparkOptions:
    """Return what these options say; raise UsageError if they are malformed, or no master listens there."""
    options = SparkOptions.of(arguments.master, arguments.conf)
    reach(options)
    return options


def folder(text: str) -> Path:
    """Parse a folder's name; refuse the empty one of an unset variable, which would mean the current folder."""
    if not text:
        raise argparse.ArgumentTypeError("'': expected a folder, such as results")
    return Path(text)


def file(text: str) -> Path:
    """Parse a file's name; refuse the empty one of an unset variable."""
    if not text:
        raise argparse.ArgumentTypeError("'': expected a file, such as hosts.toml")
    return Path(text)


def ports(text: str) -> range:
    """Parse FIRST-LAST, both inclusive."""
    try:
        first, last = (whole(number, 1, PORT_MAX) for number in text.split("-", 1))
        if first > last:
            raise ValueError(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(
            f"{text[:PORTS_CHARACTERS]!r}: expected FIRST-LAST, from 1 to {PORT_MAX}, as in 20000-20999"
        ) from error
    return range(first, last + 1)
