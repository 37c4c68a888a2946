"""
A plan says what a night plays; it is read from TOML, and whatever is wrong in it is named before anything starts.

A plan has plays, each a share of the night's time, and canaries, which must fail. A play or canary stands for
every combination of its hosts, targets and workloads.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final, NoReturn

from harness import limits
from harness.environment import ENVIRONMENTS
from harness.input_file import read_text
from harness.model import UsageError
from harness.random_schedule.profile import ALL, NEMESES
from harness.registry import nearest, pick
from harness.scenario.variant import Variant
from harness.suite.scenario_files import files_for
from harness.target.found import found
from harness.target.found import target as target_of
from targets import DEFAULT_TARGET, PLAN_KEYS, VIRTUAL_HOST
from workloads import WORKLOADS

DEFAULT: Final = Path(__file__).parent / "default.toml"
# The clients that each seed draws, in place of a workload's.
DRAWN: Final = "drawn"
OF_TARGET: Final = "night.toml"
# The key that lists versions of any target, as TARGET:VERSION.
TARGETS: Final = "targets"
_WHAT: Final = "a plan of a night, as `fencepost nightly --print-plan` prints one"
_MOST: Final = 1_000_000_000
# A run is judged when it has ended, and a night that is killed loses it.
CHAOS_S_MAX: Final = 3600


@dataclass(frozen=True, slots=True, kw_only=True)
class Play:
    """
    Random runs that get a share of the night.

    Attributes:
        targets: (name, variant) of each target.
        workloads: names of WORKLOADS, or DRAWN.
        share: of the night's time, beside the shares of the other plays; its combinations divide it evenly.
        jobs: runs at a time on real processes.
        chaos: how many seconds each run lives, on one cluster that becomes whole again and again; 0: each has a
            schedule of its own, which ends.
    """

    hosts: tuple[str, ...]
    targets: tuple[tuple[str, str], ...]
    workloads: tuple[str, ...] = (DRAWN,)
    nemeses: tuple[str, ...] = (ALL,)
    share: float = 1.0
    narrow: bool = False
    jobs: int = 1
    chaos: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Canary:
    """
    Runs of which one must show a violation.

    Attributes:
        seeds: so many random schedules are tried, up to the first violation; 0 with scenarios.
        scenarios: written scenarios, each of which must show a violation.
    """

    hosts: tuple[str, ...]
    targets: tuple[tuple[str, str], ...]
    seeds: int = 0
    scenarios: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """
    What one night plays.

    Attributes:
        text: the plan as it was written.
        disk_mb: what all nights together may take on the disk, in millions of bytes.
        seeds_a_minute: what the simulator is reckoned to play here.
        known_max: how many of the seeds that ever failed are played again, on each host.
    """

    text: str
    plays: tuple[Play, ...]
    canaries: tuple[Canary, ...]
    disk_mb: int = 4096
    seeds_a_minute: int = 1200
    known_max: int = 40

    @property
    def hosts(self) -> tuple[str, ...]:
        """Every host of the plan, in the order of the table of hosts, the simulator first."""
        named = {host for hosts in (each.hosts for each in self.plays) for host in hosts}
        named |= {host for each in self.canaries for host in each.hosts}
        return tuple(sorted(named, key=lambda host: (host != VIRTUAL_HOST, list(ENVIRONMENTS).index(host))))

    def on(self, hosts: Sequence[str]) -> Plan:
        """
        Return what is left of the plan on these hosts.

        Raises:
            UsageError: nothing is left, or a host is unknown.
        """
        for host in hosts:
            pick("host", ENVIRONMENTS, host)
        plays = [replace(each, hosts=_within(each.hosts, hosts)) for each in self.plays]
        canaries = [replace(each, hosts=_within(each.hosts, hosts)) for each in self.canaries]
        kept = tuple(each for each in plays if each.hosts)
        if not kept:
            raise UsageError(
                f"option --host {','.join(hosts)}: the plan has no play there; expected one of "
                f"{', '.join(self.hosts)}"
            )
        return replace(self, plays=kept, canaries=tuple(each for each in canaries if each.hosts))

    def of(self, texts: Sequence[str]) -> Plan:
        """
        Return the plan with these targets, such as `broker:kip279` or `kafka:3.9.1`, in place of its plays' own.

        Its canaries are those of our own broker, which show that this night finds bugs, and those of the
        targets asked for. A play in the simulator, which runs our broker alone, keeps the targets of that.

        Raises:
            UsageError: there is no such target, or no play can have it.
        """
        asked = tuple(_target(text, "option --target") for text in texts)
        plays = []
        for each in self.plays:
            fitting = (
                asked
                if VIRTUAL_HOST not in each.hosts
                else tuple(one for one in asked if one[0] == DEFAULT_TARGET)
            )
            if fitting:
                plays.append(replace(each, targets=fitting))
        if not plays:
            raise UsageError(
                f"option --target {' '.join(texts)}: the plan has plays in the simulator alone; expected "
                "broker:PROTOCOL"
            )
        systems = {DEFAULT_TARGET, *(system for system, _ in asked)}
        canaries = [
            replace(each, targets=tuple(one for one in each.targets if one[0] in systems))
            for each in self.canaries
        ]
        return replace(self, plays=_distinct(plays), canaries=tuple(each for each in canaries if each.targets))


def _within(mine: Sequence[str], asked: Sequence[str]) -> tuple[str, ...]:
    return tuple(host for host in mine if host in asked)


def _distinct(plays: Sequence[Play]) -> tuple[Play, ...]:
    """Return the plays, those that are now the same as one."""
    shares: dict[Play, float] = {}
    for each in plays:
        alone = replace(each, share=1.0)
        shares[alone] = shares.get(alone, 0.0) + each.share
    return tuple(replace(each, share=share) for each, share in shares.items())


# --- reading -----------------------------------------------------------------------------------------------------
def default_text() -> str:
    """Return the plan that is played when none is named: numbers, and the plays of every target that is found."""
    folders = [one.folder for one in found().values() if one.folder is not None and not one.problem]
    files = [DEFAULT, *(folder / OF_TARGET for folder in folders if (folder / OF_TARGET).is_file())]
    texts = [read_text(file, _WHAT, limits.SCENARIO_BYTES_MAX) for file in files]
    for file, text in zip(files, texts, strict=True):
        _toml(text, str(file))  # a wrong one is named by its own file
    return "\n".join(texts)


def read_plan(path: Path | None = None) -> Plan:
    """
    Read a plan: a file, or the default one.

    Raises:
        UsageError: the file cannot be read, is no TOML, or a key or value in it is wrong; the message has the
            file, the key with its value, what was expected, and the nearest name.
    """
    if path is None:
        return parse_plan(default_text(), "the default plan")
    return parse_plan(read_text(path, _WHAT, limits.SCENARIO_BYTES_MAX), str(path))


def _toml(text: str, where: str) -> Mapping[str, Any]:
    try:
        return tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise UsageError(f"{where}: {error}; expected {_WHAT}, in TOML") from error


def parse_plan(text: str, where: str) -> Plan:
    """Return the plan in a text of the file `where`; raise UsageError as `read_plan` does."""
    top = _Table(_toml(text, where), where, ("play", "canary", "disk_mb", "seeds_a_minute", "known_max"))
    plays = tuple(_play(table) for table in top.tables("play"))
    canaries = tuple(_canary(table) for table in top.tables("canary"))
    if not plays:
        raise UsageError(f"{where}: no [[play]]; expected at least one; see `fencepost nightly --print-plan`")
    return Plan(
        text=text,
        plays=plays,
        canaries=canaries,
        disk_mb=top.whole("disk_mb", 4096, least=1),
        seeds_a_minute=top.whole("seeds_a_minute", 1200, least=1),
        known_max=top.whole("known_max", 40, least=0),
    )


def _play(table: _Table) -> Play:
    table.only("hosts", *PLAN_KEYS, TARGETS, "workloads", "nemeses", "share", "narrow", "jobs", "chaos")
    play = Play(
        hosts=table.names("hosts", ENVIRONMENTS, "host"),
        targets=_targets(table),
        workloads=table.names("workloads", {DRAWN: "", **dict.fromkeys(WORKLOADS, "")}, "workload", (DRAWN,)),
        nemeses=table.names("nemeses", NEMESES, "nemesis", (ALL,)),
        share=table.share("share"),
        narrow=table.truth("narrow"),
        jobs=table.whole("jobs", 1, least=1, most=limits.OPTION_JOBS_MAX),
        chaos=table.whole("chaos", 0, least=1, most=CHAOS_S_MAX),
    )
    if play.chaos and (play.narrow or VIRTUAL_HOST in play.hosts):
        table.refuse("chaos", f"expected a play without narrow, on hosts other than {VIRTUAL_HOST}")
    if play.narrow and play.workloads != (DRAWN,):
        table.refuse("workloads", "narrow schedules have no clients besides their steps; expected no workloads")
    return play


def _canary(table: _Table) -> Canary:
    table.only("hosts", *PLAN_KEYS, TARGETS, "seeds", "scenarios")
    targets = _targets(table)
    scenarios = {name: "" for system, _ in targets for name in files_for(system, ("*",))}
    canary = Canary(
        hosts=table.names("hosts", ENVIRONMENTS, "host"),
        targets=targets,
        seeds=table.whole("seeds", 0, least=1),
        scenarios=table.names("scenarios", scenarios, "scenario", ()),
    )
    if bool(canary.seeds) == bool(canary.scenarios):
        table.refuse(
            "seeds", "expected either seeds, how many schedules are tried, or scenarios, each of which fails"
        )
    return canary


def _targets(table: _Table) -> tuple[tuple[str, str], ...]:
    listed = [(key, f"{name}:{each}") for key, name in PLAN_KEYS.items() for each in table.texts(key, ())]
    listed += [(TARGETS, text) for text in table.texts(TARGETS, ())]
    if not listed:
        keys = ", ".join((*PLAN_KEYS, TARGETS))
        table.refuse(next(iter(PLAN_KEYS)), f"expected versions of a target by one of {keys}, at least one")
    read = []
    for key, text in listed:
        if VIRTUAL_HOST in table.texts("hosts") and not text.startswith(f"{DEFAULT_TARGET}:"):
            table.refuse(key, f"the host {VIRTUAL_HOST} runs {DEFAULT_TARGET} alone; expected it in another block")
        try:
            read.append(_target(text))
        except UsageError as error:
            raise UsageError(f"{table.where}, key {key}: {error}") from error
    return tuple(dict.fromkeys(read))


def _target(text: str, where: str = "target") -> tuple[str, str]:
    name, _, variant = text.partition(":")
    if not variant:
        raise UsageError(f"{where} {text}: expected TARGET:PROTOCOL, such as {DEFAULT_TARGET}:kip380")
    return _checked(name, variant)


def _checked(name: str, variant: str) -> tuple[str, str]:
    """Return a target; raise UsageError if it lacks this protocol, or a rule of a mutant."""
    target = target_of(name)
    parsed = Variant.parse(variant, name)
    kind = "protocol" if name == DEFAULT_TARGET else f"version of {name}"
    pick(kind, target.protocols(), parsed.protocol)
    target.rules(parsed.protocol, parsed.changes)
    return name, variant


@dataclass(frozen=True, slots=True)
class _Table:
    """A table of the file, and where it is; each method returns a value of the right kind, or refuses."""

    raw: Mapping[str, Any]
    where: str
    keys: Sequence[str] = field(default=())

    def __post_init__(self) -> None:
        if self.keys:
            self.only(*self.keys)

    def only(self, *keys: str) -> None:
        """Refuse any other key."""
        for key in self.raw:
            if key not in keys:
                near = nearest(key, keys)
                raise UsageError(f"{self.where}: no key {key!r}; expected one of {', '.join(keys)}{near or '.'}")

    def refuse(self, key: str, why: str) -> NoReturn:
        """Raise UsageError about a key's value."""
        shown = f" = {self.raw[key]!r:.80}" if key in self.raw else ""
        raise UsageError(f"{self.where}, key {key}{shown}: {why}")

    def tables(self, key: str) -> list[_Table]:
        """Return the tables of an array."""
        found = self.raw.get(key, [])
        if not isinstance(found, list) or not all(isinstance(each, dict) for each in found):
            self.refuse(key, f"expected [[{key}]] before its keys")
        return [_Table(each, f"{self.where}: {key} {number}") for number, each in enumerate(found, start=1)]

    def texts(self, key: str, default: tuple[str, ...] | None = None) -> tuple[str, ...]:
        """Return a list of texts, each once."""
        if key not in self.raw and default is not None:
            return default
        found = self.raw.get(key)
        if not isinstance(found, list) or not found or not all(isinstance(each, str) for each in found):
            self.refuse(key, f'expected a list of names, such as {key} = ["…"]')
        return tuple(dict.fromkeys(found))

    def names(
        self, key: str, known: Mapping[str, Any], kind: str, default: tuple[str, ...] | None = None
    ) -> tuple[str, ...]:
        """Return a list of names of a table."""
        found = self.texts(key, default)
        for name in found:
            try:
                pick(kind, known, name)
            except UsageError as error:
                raise UsageError(f"{self.where}, key {key}: {error}") from error
        return found

    def whole(self, key: str, default: int, *, least: int, most: int = _MOST) -> int:
        """Return a whole number."""
        found = self.raw.get(key, default)
        if key in self.raw and (
            isinstance(found, bool) or not isinstance(found, int) or not least <= found <= most
        ):
            self.refuse(key, f"expected a whole number from {least} to {most}")
        return int(found)

    def share(self, key: str) -> float:
        """Return a number above 0, 1 if there is none."""
        found = self.raw.get(key, 1.0)
        if isinstance(found, bool) or not isinstance(found, int | float) or not 0 < found <= _MOST:
            self.refuse(key, "expected a number above 0: what this play gets beside the others")
        return float(found)

    def truth(self, key: str) -> bool:
        """Return a truth value, False if there is none."""
        found = self.raw.get(key, False)
        if not isinstance(found, bool):
            self.refuse(key, "expected true or false")
        return bool(found)
