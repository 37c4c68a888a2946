"""Start the processes of a target's services on a host: those that all runs share, and those of one run alone."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from harness.ability import Ability
from harness.cleanup.process import until
from harness.cluster.last_words import end_of
from harness.hosts.base import Host
from harness.hosts.node import LOG_TAIL_CHARACTERS
from harness.launch import Address, Launch
from harness.model import UsageError
from harness.target.services import OfRun, Others, Process, Service

NOTHING: Final[Others] = {}


@dataclass(frozen=True, slots=True, kw_only=True)
class Own:
    """The services that a run must have for itself, each with the number of its processes; what their disks do."""

    counts: Mapping[str, int] = field(default_factory=dict)
    loses_power: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Started:
    """The processes of one kind, and how each is started again."""

    service: Service
    processes: tuple[Process, ...]
    launches: Mapping[str, Launch]


NONE_OWN: Final = Own()
# What says to a process of a service what it knows of its run; it opens the links of one that has some.
Tell = Callable[[Service, Process, Others], OfRun]


def start_shared(host: Host, services: Sequence[Service]) -> Others:
    """Start one process of each kind that runs may share; return their addresses, when all of them serve."""
    found: Others = {}
    for service in (each for each in services if each.shared):
        started = start(host, service, (service.name,), found)
        found = {**found, service.name: addresses(started)}
    return found


def start_own(
    host: Host, services: Sequence[Service], own: Own, shared: Others, tell: Tell | None = None
) -> tuple[list[Started], Others]:
    """
    Start the services of one run, those that it does not share; return them, and the addresses of all kinds.

    Args:
        own: those that it must not share; what cannot be shared is its own anyway.
        shared: the addresses of what runs share.
        tell: says to each process what it knows of the run.
    """
    started: list[Started] = []
    found: Others = {kind: each for kind, each in shared.items() if kind not in own.counts}
    for service in (each for each in services if each.name not in found):
        names = service.names(own.counts.get(service.name, 1))
        started.append(start(host, service, names, found, loses_power=own.loses_power, tell=tell))
        found = {**found, service.name: addresses(started[-1])}
    return started, found


def start(
    host: Host,
    service: Service,
    names: Sequence[str],
    others: Others = NOTHING,
    *,
    loses_power: bool = False,
    tell: Tell | None = None,
) -> Started:
    """
    Start the processes of one kind; return when all of them serve.

    Args:
        loses_power: Their disks can lose power, if the host can take no more than what they have not flushed.
            What they made before they served is flushed.

    Raises:
        UsageError: One of them does not serve in time; with what it printed.
    """
    loses_power = loses_power and not host.lacks(Ability.SERVICE_POWER_LOSS)
    listeners = service.listeners + (service.peer_listeners if len(names) > 1 else 0)
    processes = tuple(
        Process(
            name=name,
            number=number,
            place=host.add_node(name, disk=loses_power, listeners=listeners, beside=True),
            loses_power=loses_power,
        )
        for number, name in enumerate(names, start=1)
    )
    if tell is not None:
        processes = tuple(replace(each, run=tell(service, each, others)) for each in processes)
    launches = {each.name: service.launch(each, processes, others) for each in processes}
    for each in processes:
        prepare(host, service, each)
        host.start(each.name, launches[each.name])
    for each in processes:
        await_serving(host, service, each)
        if each.loses_power:
            # The kernel would write it in half a minute: a first snapshot, without which some do not start again.
            host.flush(each.name)
    return Started(service=service, processes=processes, launches=launches)


def addresses(started: Started) -> tuple[Address, ...]:
    """Return where nodes and the harness reach each process."""
    return tuple(each.address for each in started.processes)


def of_metadata(services: Sequence[Service], found: Others) -> Sequence[Address]:
    """Return the addresses of the service that holds the metadata; () if none does, or not yet."""
    return next((found.get(each.name, ()) for each in services if each.holds_metadata), ())


def beyond_links(services: Sequence[Service], found: Others) -> Sequence[Address]:
    """Return the addresses that are reached by links to the metadata: those above, unless it is linked itself."""
    return of_metadata([each for each in services if not each.governs_by_links], found)


def prepare(host: Host, service: Service, process: Process) -> None:
    """Write what must be in a process's data directory before it starts, unless it is there already."""
    for name, text in service.prepared(process).items():
        file = host.disk(process.name) / name
        if not file.exists():
            file.write_text(text, encoding="utf-8")
            if process.loses_power:
                host.flush(process.name)


def await_serving(host: Host, service: Service, process: Process) -> None:
    """Wait until a started process serves; raise UsageError, with its last output, if it does not."""
    name, address = process.name, process.address
    ready = until(lambda: bool(service.mode(address)) or not host.alive(name), service.start_s_max)
    if ready and host.alive(name):
        return
    what = "ended while starting" if ready else f"no answer within {service.start_s_max:g} s"
    said = end_of(host.log_text(name), LOG_TAIL_CHARACTERS)
    raise UsageError(f"service {name} at {address}: {what}; it said:\n{said}")
