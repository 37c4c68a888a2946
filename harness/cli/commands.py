"""
Every command of `fencepost`, one entry each.

Each entry names a module with configure(parser) and run(arguments) -> exit code. A module is imported only when
its command is used, so that a command does not wait for the imports of another.
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from types import ModuleType
from typing import Final


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """A command: its module, and one line of help."""

    module: str
    help: str

    def load(self) -> ModuleType:
        """Import its module."""
        return import_module(self.module)


COMMANDS: Final[dict[str, Command]] = {
    "test-kip101": Command(
        module="targets.broker_commands.kip101",
        help="play KIP-101's scenarios under every protocol and print scenario x protocol",
    ),
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
    "test-kafka": Command(
        module="targets.kafka_commands.suite",
        help="play the scenarios on releases of Apache Kafka and on our broker, and print both in one table",
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
    "kafka": Command(
        module="targets.kafka_commands.kafka",
        help="list the releases of Apache Kafka that can be a target, or fetch their jars from Maven Central",
    ),
}
