"""`RandomRuns`: the random runs of one set of options, one for each seed; it can be sent to another process."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from harness.ability import Ability
from harness.cluster.names import SPEAKS_AS
from harness.model import UsageError
from harness.random_schedule.chaos import draw_chaos, kinds_of
from harness.random_schedule.climb import VERSIONS, draw_climb
from harness.random_schedule.final_records import FINAL_RECORDS
from harness.random_schedule.generate import draw_schedule
from harness.random_schedule.profile import ALL, DEFAULT, REAL, Profile, of_quorum, profile_of, without
from harness.random_schedule.seed_name import seed_name
from harness.random_schedule.service_faults import with_service_faults
from harness.random_schedule.timing import REAL as REAL_TIME
from harness.random_schedule.timing import VIRTUAL
from harness.random_schedule.upgrades import for_epochless, is_epochless
from harness.random_schedule.width import NARROW
from harness.registry import pick
from harness.run.spec import RunSpec
from harness.scenario.file import Draw, Scenario, draw
from harness.scenario.steps import Produce
from harness.scenario.text import first_line
from harness.scenario.variant import Variant
from harness.suite.scenario_files import faults_on, read_for
from harness.target.found import target as target_of
from harness.target.operator import lacking
from harness.target.target import Target, traits_under
from harness.target.traits import Commit, Traits
from harness.workload.plan import NO_CLIENTS, SIMULABLE, Clients, Library
from targets import DEFAULT_TARGET, VIRTUAL_HOST
from workloads import WORKLOADS
from workloads.definition import Definition

# What belongs to faults that are chosen for an upgrade: a broker's return, and the end of its session.
UNDOING: Final = ("expire", "restart", "resume")
# Why it has no client that stands on a library.
NO_SOCKETS: Final = "host sim: libraries need sockets; expected a host of real nodes, as --host local"


def is_written(scenario: Scenario) -> bool:
    """Return True for a written scenario: it lacks the records that a random run sends at its end."""
    return not any(count.name in FINAL_RECORDS for count in scenario.records)


def draw_run(scenario: Scenario, seed: int) -> Draw:
    """
    Draw the ids and numbers of a run: a random schedule's are those of its seed, whatever it is called.

    They are drawn from the name. With those of the file's name a stored schedule would be another run than the one
    in which it was found: the order of broker ids decides too.
    """
    return draw(scenario if is_written(scenario) else replace(scenario, name=seed_name(seed)), seed)


@dataclass(frozen=True, slots=True, kw_only=True)
class RandomRuns:
    """
    All random runs of one variant on one host. `spec` raises UsageError if a name is wrong.

    Attributes:
        variant: a protocol or a mutant, as on the command line.
        changes: rules changed in it, as on the command line.
        nemeses: names from harness/random_schedule/profile.py.
        schedule: a file that is played instead of each seed's own schedule, or None. A written scenario, which has
            no records for the end of a random run, is played as written: each of its steps must be applicable.
        workload: a name of WORKLOADS, whose clients work in place of those that a seed draws; "" for the latter.
        alike: whether schedules are those that every target can play, Apache Kafka among them; a target other than
            our broker always gets these.
        narrow: whether schedules have one partition, and no clients besides their steps.
        stop_at_violation: whether a schedule ends at the first violation that the live check sees.
        seconds: how long one cluster lives through chaos; None for schedules that are played to their end.
        machines: the file that lists the machines, None for a host that lists none.
    """

    target: str
    variant: str
    host: str
    changes: tuple[str, ...] = ()
    nemeses: tuple[str, ...] = (ALL,)
    power_tier: str | None = None
    schedule: Path | None = None
    workload: str = ""
    alike: bool = False
    narrow: bool = False
    stop_at_violation: bool = False
    seconds: float | None = None
    machines: Path | None = None

    @property
    def name(self) -> str:
        """The target and its variant, as printed."""
        return f"{self.target}:{'+'.join((self.variant, *self.changes))}"

    def load_target(self) -> Target:
        """Return the target."""
        return target_of(self.target)

    @property
    def rules(self) -> Mapping[str, str]:
        """Every rule of the variant, by name."""
        variant = Variant.parse(self.variant, "option --protocol")
        return self.load_target().rules(variant.protocol, (*variant.changes, *self.changes))

    @property
    def traits(self) -> Traits:
        """What is true of the target under these rules."""
        variant = Variant.parse(self.variant, "option --protocol")
        return traits_under(self.load_target(), variant.protocol, (*variant.changes, *self.changes))

    def spec(self, seed: int) -> RunSpec:
        """
        Return the spec of a seed; the same options and seed return the same spec.

        Raises:
            UsageError: there is no such target, protocol, rule, nemesis or schedule, the schedule is a written
                scenario that expects nothing of the variant, or a client is impossible on the host.
        """
        if self.seconds is not None:
            if self.workload and _workload(self.workload).climbs:
                raise UsageError(f"workload {self.workload} has a schedule of its own; expected no --time")
            scenario = self._chaos(seed, self.seconds)
        elif self.schedule:
            scenario = read_for(self.target, self.schedule)
            self._refuse_unsendable(scenario)
        elif self.workload and _workload(self.workload).climbs:
            scenario = self._climb(seed)
        else:
            scenario = draw_schedule(seed, faults_on(self.target), self._profile())
        if not self.schedule:
            target, faults = self.load_target(), faults_on(self.target)
            scenario = with_service_faults(scenario, seed, target, faults, self.nemeses)
        if self.workload:
            drawn = _drawn(scenario, self.workload, seed).without(self.left_out(seed))
            drawn = self.load_target().clients.fit(drawn)
            self._refuse(drawn)
            scenario = _with_clients(scenario, drawn)
        else:
            self._refuse(scenario.clients)
            self._refuse_lacking(scenario.clients)
        spec = RunSpec(
            target=self.target,
            host=self.host,
            variant=Variant.parse(self.variant, "option --protocol"),
            changes=self.changes,
            rules=self.rules,
            traits=self.traits,
            scenario=scenario,
            draw=draw_run(scenario, seed),
            nemeses=() if is_written(scenario) else self.nemeses,
            schedule=str(self.schedule) if self.schedule else "",
            power_tier=self.power_tier,
            workload=self.workload,
            alike=self._is_alike,
            narrow=self.narrow,
            stop_at_violation=self.stop_at_violation,
            seconds=self.seconds,
            machines=str(self.machines or ""),
        )
        if not spec.random and spec.expectation is None:
            raise UsageError(
                f"{self.schedule}: no expectation for protocol {spec.variant}; expected a line "
                f"'expect {spec.variant}: OUTCOME', or the records {', '.join(FINAL_RECORDS)} of a random schedule"
            )
        return spec

    def _chaos(self, seed: int, seconds: float) -> Scenario:
        """Return the schedule of a long run, as yet without the clients of its workload."""
        timing = VIRTUAL if self.host == VIRTUAL_HOST else REAL_TIME
        faults = faults_on(self.target)
        kinds = kinds_of(self.nemeses, faults)
        target = self.load_target()
        return draw_chaos(
            seed,
            faults,
            kinds,
            seconds,
            timing=timing,
            clients=NO_CLIENTS,
            controller=Ability.CONTROLLER in target.abilities,
            partitions=target.clients.creates and not self.traits.one_group,
            election_s=self.traits.election_s,
            own=self._own_messages,
        )

    def _climb(self, seed: int) -> Scenario:
        """
        Return the schedule of an upgrade, as yet without the clients of its workload.

        Raises:
            UsageError: the run's protocol can speak no older version.
        """
        target, protocol = self.load_target(), Variant.parse(self.variant, "option --protocol").protocol
        versions = [each for each in VERSIONS if _speaks(target, protocol, each)]
        if not versions:
            raise UsageError(
                f"workload {self.workload}: {self.name} can speak none of {', '.join(VERSIONS)}; "
                "expected a newer protocol, as kip380 or kafka:3.9.1"
            )
        faults = faults_on(self.target)
        chosen = faults if ALL in self.nemeses else {*self.nemeses, *UNDOING}
        if self.target != DEFAULT_TARGET and ALL in self.nemeses:
            # Nobody says there which of the unflushed records a broker still had, and so which loss is lawful.
            chosen = {*faults} - {"power-loss"}
        return draw_climb(seed, [name for name in faults if name in chosen], versions)

    def left_out(self, seed: int) -> Mapping[Library, str]:
        """Return the libraries of the workload that this host cannot have, each with why and what to do."""
        if not self.workload:
            return {}
        workload = _workload(self.workload)
        clients = workload.clients((), seed=seed)
        if self.host != VIRTUAL_HOST:
            return self.load_target().clients.lacking(clients)
        return (
            {}
            if workload.of_libraries
            else {each: NO_SOCKETS for each in clients.libraries if each not in SIMULABLE}
        )

    def lacks_clients(self, seed: int) -> str:
        """
        Return why this machine cannot have the clients of a seed's run, "" if it can.

        A workload goes without those of its clients that cannot be had, as long as one is left; the clients of a
        schedule are part of it.
        """
        if self.workload:
            workload = _workload(self.workload).clients((), seed=seed)
            left_out = self.left_out(seed)
            rest = workload.without(left_out)
            missing = {} if rest.producers or rest.consumers else left_out
        else:
            named = read_for(self.target, self.schedule).clients if self.schedule else NO_CLIENTS
            missing = self.load_target().clients.lacking(named)
        return "; ".join(f"client {library}: {why}" for library, why in missing.items())

    def _refuse(self, clients: Clients) -> None:
        """Raise UsageError if a client is impossible on this host or with this target."""
        if self.host == VIRTUAL_HOST:
            clients.require_simulable()
            return
        of_target = self.load_target().clients
        for why in of_target.impossible(clients, of_target.own(self.rules)):
            raise UsageError(f"host {self.host}, target {self.name}: {why}")

    def _refuse_unsendable(self, scenario: Scenario) -> None:
        """Raise UsageError if a random schedule has a step that the target's client cannot send."""
        unsendable = self.load_target().clients.unsendable
        for step in () if is_written(scenario) else scenario.steps:
            act = step.act
            if isinstance(act, Produce) and (why := unsendable(act.acks, act.codec or "none")):
                raise UsageError(f"{self.schedule}:{step.line}: {step.text!r}: target {self.name} sends no {why}")

    def _refuse_lacking(self, clients: Clients) -> None:
        """Raise UsageError if a schedule names a library that this machine cannot have."""
        for library, why in self.load_target().clients.lacking(clients).items():
            raise UsageError(f"host {self.host}: client {library}: {why}")

    def _profile(self) -> Profile:
        target = self.load_target()
        profile = REAL if self._is_alike else DEFAULT
        if Ability.CONTROLLER not in target.abilities:
            profile = replace(profile, controller=False)
        if target.clients.unsendable(1, "none"):
            profile = replace(profile, acks_all=1.0)
        if self._own_messages:
            profile = of_quorum(profile, self._own_messages)
        if self.narrow:
            profile = replace(profile, breadth=NARROW)
        if self.workload:  # schedules of the older message format need clients that are quiet
            profile = replace(profile, breadth=replace(profile.breadth, older=0.0))
        if ALL in self.nemeses:
            profile = without(profile, self._never_granted)
        return profile_of(self.nemeses, profile, faults_on(self.target))

    @property
    def _never_granted(self) -> Collection[str]:
        """The faults that this target has no request for, whatever the machine."""
        target = self.load_target()
        return {
            name
            for name, fault in faults_on(self.target).items()
            if any(lacking(target.name, target.abilities, need) for need in fault.needs)
        }

    @property
    def _own_messages(self) -> Collection[str]:
        """The messages of a quorum's wire that no general word fits; none for any other system."""
        wire = self.load_target().wire
        return wire.messages if wire is not None and self.traits.commit is Commit.QUORUM else ()

    @property
    def _is_alike(self) -> bool:
        return self.alike or self.target != DEFAULT_TARGET


def _speaks(target: Target, protocol: str, version: str) -> bool:
    """Return True if the program of a protocol can speak an older version."""
    try:
        target.rules(f"{protocol}{version}", ())
    except UsageError:
        return False
    return not protocol.startswith(version.removeprefix(SPEAKS_AS))  # else it is its own


def _workload(name: str) -> Definition:
    return pick("workload", WORKLOADS, name)


def _drawn(schedule: Scenario, name: str, seed: int) -> Clients:
    """Return all clients of a workload for a schedule's partitions and nodes, fit for the versions in it."""
    workload = _workload(name)
    drawn = workload.clients(tuple(schedule.places), seed=seed)
    drawn = replace(drawn, churners=workload.churners(schedule.nodes, seed=seed))
    if is_epochless(step.act for step in schedule.steps) and not is_written(schedule):
        return for_epochless(drawn)
    return drawn


def _with_clients(schedule: Scenario, clients: Clients) -> Scenario:
    """Return the schedule with these clients; the lines of its steps follow from its text."""
    found = replace(schedule, clients=clients)
    steps = (replace(step, line=line) for line, step in enumerate(found.steps, start=first_line(found)))
    return replace(found, steps=tuple(steps))
