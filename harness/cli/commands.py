"""
Every command of `fencepost`, one entry each; targets register those that one system alone has.

Each entry names a module with configure(parser) and run(arguments) -> exit code. A module is imported only when
its command is used, so that a command does not wait for the imports of another.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from harness.target.commands import Command, registered

COMMANDS: Final[dict[str, Command]] = {
    "play": Command(
        module="harness.cli.play",
        help="play every scenario under every protocol and mutant that it has an expectation for",
    ),
    "scenarios": Command(
        module="harness.cli.scenarios",
        help="list the scenarios: title, source, and what is expected under each protocol",
    ),
    "targets": Command(
        module="harness.cli.targets",
        help="list the systems that can be tested: versions, abilities, what they lack, where they were found",
    ),
    "fetch": Command(
        module="harness.cli.fetch",
        help="bring what targets need, pinned by checksum; a fetch that was killed goes on where it was",
    ),
    "test": Command(
        module="harness.cli.test",
        help="play the suites of targets, and print the table scenario by version of each",
    ),
    "run": Command(
        module="harness.cli.run",
        help="play random schedules of faults, each drawn from one seed, and check them",
    ),
    "nightly": Command(
        module="harness.cli.nightly",
        help="play a plan for hours: fresh seeds, seeds that ever failed, and canaries; goes on after a kill",
    ),
    "shrink": Command(
        module="harness.cli.shrink",
        help="reduce a schedule that shows a violation to a minimal one that shows it too, in the simulator",
    ),
    "lineage": Command(
        module="harness.cli.lineage",
        help="compare the log directories of a cluster's brokers, ours or Apache Kafka's",
    ),
    "agree": Command(
        module="harness.cli.agree",
        help="compare two stored suites, run by run: anomalies, and every record of every log",
    ),
    "check": Command(
        module="harness.cli.check",
        help="judge stored runs again, all in one Spark session, and name each verdict that is not as stored; or "
        "judge histories of Jepsen's",
    ),
    "summary": Command(
        module="harness.cli.summary",
        help="count what stored runs showed: a data set, tables, and a page with plots",
    ),
    "abilities": Command(
        module="harness.cli.abilities",
        help="print what this machine has for faults and hosts, and what would bring the rest",
    ),
    "clean": Command(
        module="harness.cli.clean",
        help="show the Docker images of other builds, and remove them when told to",
    ),
}


def commands() -> Mapping[str, Command]:
    """Return all commands: those of targets come last, and cannot replace one of ours."""
    return {**COMMANDS, **{name: each for name, each in registered().items() if name not in COMMANDS}}
