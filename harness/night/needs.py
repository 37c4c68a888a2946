"""
What a plan needs of this machine, asked once when a night begins: a line that lacks something is left out of it.

Asked are the host, which is opened with its services (a Java, a Docker engine, the machines of ssh), what a
target's nodes are launched from (a release's jars), what faults need, and the clients' libraries. An answer is the
refusal's own words, which name the command that brings what is missing.

What goes wrong otherwise, as a schedule that cannot be read or a service that does not answer, is no lack: the
line is played, and says so.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from itertools import groupby
from pathlib import Path

from harness.cluster.names import protocol_of
from harness.environment.needs import why_no_power_loss
from harness.environment.real import RealEnvironment
from harness.hosts import HOSTS, TAKE_PORTS
from harness.model import UsageError
from harness.night.schedule import LineKey, Role, Unit
from harness.registry import pick
from harness.run.environment import Environment
from harness.scenario.file import Scenario
from harness.scenario.variant import Variant
from harness.search.random_runs import RandomRuns
from harness.suite.environments import closing, require_abilities
from harness.suite.interrupts import apart
from harness.suite.scenario_files import read_for
from harness.target.target import Target
from nemesis import faults_of


def lacks_of(
    units: Sequence[Unit], *, ports: range | None, folder: Path, note: Callable[[str], None]
) -> dict[LineKey, str]:
    """
    Return what this machine lacks for each line that cannot be played, in the order of the units.

    Args:
        units: the units that are left to play; of a line the first speaks for all.
        ports: the ports that local nodes may use, None for the default.
        folder: where a host has its files while it is asked.
        note: called with what could not be taken down again.
    """
    real = [unit for unit in {unit.key: unit for unit in reversed(units)}.values() if not unit.simulated]

    def host(unit: Unit) -> str:
        return unit.host

    found: dict[LineKey, str] = {}
    for name, group in groupby(sorted(real, key=host), key=host):
        found |= _of_host(name, list(group), ports if name in TAKE_PORTS else None, folder / name, note)
    return {key: found[key] for key in dict.fromkeys(unit.key for unit in units) if key in found}


def _of_host(
    name: str, units: Sequence[Unit], ports: range | None, folder: Path, note: Callable[[str], None]
) -> Mapping[LineKey, str]:
    with opened_host(name, units[0].runs[0], ports, folder, note) as (environment, why):
        if environment is None:
            return {unit.key: why for unit in units} if why else {}
        return {unit.key: why for unit in units if (why := _of_line(unit, environment))}


@contextmanager
def opened_host(
    name: str, runs: RandomRuns, ports: range | None, folder: Path, note: Callable[[str], None]
) -> Iterator[tuple[Environment | None, str]]:
    """Yield a host that is open, with its services; else None, and what the machine lacks, "" for nothing."""
    make_host = partial(pick("host", HOSTS, name), ports=ports, machines=runs.machines)
    environment = RealEnvironment(name, make_host=make_host, target=runs.load_target(), power_tier=runs.power_tier)
    with closing(environment.close, note):
        try:
            apart(lambda: environment.open(folder), "needs")
        except UsageError as error:
            yield None, str(error)
        except Exception:  # whatever it is, each line that is played here says it
            yield None, ""
        else:
            yield environment, ""


def _of_line(unit: Unit, environment: Environment) -> str:
    whys = [_of_run(*unit.run(place), environment) for place in range(len(unit.runs))]
    # Each scenario of a canary must fail; a seed that failed before is played though another cannot be.
    missing = all(whys) if unit.role is Role.KNOWN else any(whys)
    return next(filter(None, whys)) if missing else ""


def _of_run(runs: RandomRuns, seed: int, environment: Environment) -> str:
    """Return what the machine lacks for a run, "" for nothing."""
    target = runs.load_target()
    try:
        played = _played(runs)
        required = [runs.rules, *(target.rules(name, ()) for name in _installed(runs, played, target))]
    except UsageError:
        return ""
    try:
        for rules in required:
            target.require(rules)
        require_abilities(environment, faults_of(target), played.faults if played else runs.nemeses)
        if played and (why := why_no_power_loss(played, target, environment)):
            return why
    except UsageError as error:
        return str(error)
    return runs.lacks_clients(seed)


def _played(runs: RandomRuns) -> Scenario | None:
    """Return what is played of a schedule that was written or kept, None where each seed draws one."""
    if runs.schedule is None:
        return None
    variant = Variant.parse(runs.variant, "a night's plan")
    return read_for(runs.target, runs.schedule).under(variant.names(runs.traits))


def _installed(runs: RandomRuns, played: Scenario | None, target: Target) -> list[str]:
    own = Variant.parse(runs.variant, "a night's plan").protocol
    return [protocol_of(name, own, target.name) for name in sorted(played.installed)] if played else []
