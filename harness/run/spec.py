"""
`RunSpec`: everything that determines one run, as one value.

The history's first line and the command that repeats the run are printed from it.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from harness.scenario.file import Draw, Scenario
from harness.scenario.variant import Variant, expectation_of
from harness.target import found
from harness.target.traits import Traits
from harness.version import in_checkout
from targets import DEFAULT_TARGET

# The option of commands that makes the schedule of a run end at a violation.
STOP_AT_VIOLATION: Final = "--stop-at-violation"
# The option of `run` that draws schedules which every target can play.
ALIKE: Final = "--alike"
NARROW: Final = "--narrow"
# The option that has one cluster live through the time of `--time`.
NO_FRESH: Final = "--no-fresh"
# The option that names the protocol of a run, or the version of its target.
PROTOCOL_OPTION: Final = "--protocol"
# What every random run is expected to show.
NO_VIOLATION: Final = "no violation"


@dataclass(frozen=True, slots=True, kw_only=True)
class RunSpec:
    """
    One run: a scenario or a random schedule, on one variant of one target, on one host, with one seed.

    Attributes:
        target: the name of one.
        host: a name of `ENVIRONMENTS`.
        variant: the protocol, or a mutant of it.
        rules: rule's name -> its value, of every rule of the target's variant with the changes.
        traits: what is true of the target under these rules.
        scenario: the steps to play.
        draw: broker ids and numbers of records, drawn from the seed.
        changes: rules changed on top of the variant, as "rule=value".
        nemeses: the kinds of faults that a random schedule was drawn from; () for a written scenario.
        schedule: the file that a random run plays instead of the schedule of its seed, or "".
        make: the target of the Makefile that plays the scenario alone, or "".
        version_option: the option, and the variable of make, by which that names the variant.
        power_tier: the way to lose power that was asked for, or None for the best that the host has.
        workload: the workload whose clients work in place of those that the seed drew, or "".
        must_play: lines of steps that a replay must not skip, or it proves nothing; () for any other run.
        alike: whether an election is asked for only if every target could grant it, Apache Kafka included.
        narrow: whether the schedule was drawn with one partition, and no clients besides its steps.
        stop_at_violation: whether the schedule ends at the first violation that the live check sees.
        seconds: how long one cluster lives through chaos; None for a schedule that is played to its end.
        machines: the file that lists the machines, "" for a host that lists none.
    """

    target: str
    host: str
    variant: Variant
    rules: Mapping[str, str]
    traits: Traits
    scenario: Scenario
    draw: Draw
    changes: tuple[str, ...] = ()
    nemeses: tuple[str, ...] = ()
    schedule: str = ""
    make: str = ""
    version_option: str = PROTOCOL_OPTION
    power_tier: str | None = None
    workload: str = ""
    must_play: tuple[int, ...] = ()
    alike: bool = False
    narrow: bool = False
    stop_at_violation: bool = False
    seconds: float | None = None
    machines: str = ""

    @property
    def name(self) -> str:
        """The name of the run's folder, below its suite's."""
        return f"{self.scenario.name}-{self.variant}"

    @property
    def seed(self) -> int:
        """The seed of the schedule, the ids and the numbers of records."""
        return self.draw.seed

    @property
    def random(self) -> bool:
        """Whether the schedule is random, so that inapplicable steps are skipped."""
        return bool(self.nemeses)

    @property
    def has_producer_ids(self) -> bool:
        """Whether brokers give ids to producers; with the rule turned back they give them and do not heed them."""
        off = "idempotence=no"
        return self.traits.idempotence or off in (*self.changes, *self.variant.changes)

    @property
    def faults(self) -> tuple[str, ...]:
        """The faults that must be possible: those of a written scenario, or those chosen for a random one."""
        return self.nemeses if self.random else self.scenario.faults

    @property
    def expectation(self) -> str | None:
        """The outcome that the scenario's file expects of this variant, None if it names none."""
        found = expectation_of(self.variant, self.traits, self.scenario.expectations)
        return None if found is None else self.scenario.expectations[found]

    def replay(self, schedule: Path, host: str) -> RunSpec:
        """
        Return the run that plays what this one has executed, from a file and as far as it can on another host.

        Args:
            host: where it is played, if the simulator runs its target; any other stays where it is.
        """
        if self.target != DEFAULT_TARGET or host == self.host:
            return replace(self, schedule=str(schedule))
        return replace(self, schedule=str(schedule), host=host, machines="", power_tier=None)

    @property
    def command(self) -> str:
        """The command that repeats this run alone: of make in a checkout, else of fencepost."""
        if not self.make:
            return _run_command(self)
        return _make_command(self) if in_checkout() else _suite_command(self)


def _run_command(spec: RunSpec) -> str:
    words = ["fencepost", "run", "--host", spec.host, *(["--hosts", spec.machines] if spec.machines else [])]
    if spec.target == DEFAULT_TARGET:
        words += ["--protocol", str(spec.variant)]
    else:
        words += ["--target", f"{spec.target}:{spec.variant}", *found.again(spec.target)]
    words += [word for change in spec.changes for word in ("--rule", change)]
    words += [] if spec.power_tier is None else ["--power-tier", spec.power_tier]
    words += ["--seed", str(spec.seed)]
    words += ["--schedule", spec.schedule] if spec.schedule else _drawn_from(spec)
    words += [ALIKE] if spec.alike and spec.target == DEFAULT_TARGET else []
    words += [STOP_AT_VIOLATION] if spec.stop_at_violation else []
    return shlex.join(words)


def _drawn_from(spec: RunSpec) -> list[str]:
    """Return what a schedule is drawn from besides its seed; one from a file is drawn from nothing."""
    words = [] if spec.nemeses in ((), ("all",)) else ["--nemesis", ",".join(spec.nemeses)]
    words += ["--workload", spec.workload] if spec.workload else []
    words += [NARROW] if spec.narrow else []
    return words + ([] if spec.seconds is None else ["--time", repr(spec.seconds).removesuffix(".0"), NO_FRESH])


# Target of the Makefile -> the command that it calls, where that has another name.
_COMMANDS: Final = {"scenarios": "play"}


def _suite_command(spec: RunSpec) -> str:
    command = _COMMANDS.get(spec.make, spec.make)
    words = ["fencepost", command, "--host", spec.host, "--scenario", spec.scenario.name]
    words += [spec.version_option, str(spec.variant)]
    if spec.version_option == PROTOCOL_OPTION:
        words += [] if spec.target == DEFAULT_TARGET else ["--target", spec.target, *found.again(spec.target)]
        words += [word for change in spec.changes for word in ("--rule", change)]
    words += ["--seed", str(spec.seed)]
    words += ["--hosts", spec.machines] if spec.machines else []
    words += [] if spec.power_tier is None else ["--power-tier", spec.power_tier]
    words += [STOP_AT_VIOLATION] if spec.stop_at_violation else []
    return shlex.join(words)


def _make_command(spec: RunSpec) -> str:
    words = {"SCENARIO": spec.scenario.name}
    words |= {
        spec.version_option.removeprefix("--").upper(): str(spec.variant),
        "SEED": str(spec.seed),
        "HOST": spec.host,
    }
    if spec.version_option == PROTOCOL_OPTION:
        words |= {
            "TARGET": "" if spec.target == DEFAULT_TARGET else spec.target,
            "RULES": " ".join(spec.changes),
            "TARGETS": "".join(found.again(spec.target)[1:]),
        }
    words["HOSTS"] = spec.machines
    words["TIER"] = spec.power_tier or ""
    words["ARGS"] = STOP_AT_VIOLATION if spec.stop_at_violation else ""
    return f"make {spec.make} " + " ".join(f"{key}={shlex.quote(value)}" for key, value in words.items() if value)
