"""
What a target runs beside its nodes: services, whose processes are nodes of the host and no replicas.

A service is started, paused, killed, cut off and given a disk by the same calls as a node. One may serve all runs
of a suite; a run whose faults hit services has processes of its own. A target may need several kinds, or none.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from harness import limits
from harness.launch import Address, Launch, Place
from harness.target.settings import Settings

# What a service's process is, by `Service.mode`, if it leads its peers.
LEADER = "leader"


@dataclass(frozen=True, slots=True, kw_only=True)
class OfRun:
    """
    What a process that serves one run alone knows of it.

    Attributes:
        folder: the run's own, as nodes are told it.
        protocol: the version that the run's nodes are of, with its rules.
        metadata: where it reaches each process of the service that holds the metadata; by links if it is linked.
        past_links: the same processes, as the harness reaches them.
        reached: node -> where that node reaches it, if it is linked.
        hosts: node -> the host to which it resolves that node, if it is linked and nodes are found by hosts.
    """

    folder: Path
    protocol: str
    rules: Mapping[str, str]
    settings: Settings = field(default_factory=Settings)
    metadata: tuple[Address, ...] = ()
    past_links: tuple[Address, ...] = ()
    reached: Mapping[str, Address] = field(default_factory=dict)
    hosts: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Process:
    """
    One process of a service.

    Attributes:
        name: its node on the host: NAME for one that runs share, else NAME-1, NAME-2, …, as scenarios name it.
        number: its number among its peers, from 1 on.
        place: its paths and addresses, as it sees them; it listens for nodes on `place.client`.
        loses_power: its disk can lose power, so that it must flush what it promises.
        run: the run that it serves; None if runs share it.
    """

    name: str
    number: int
    place: Place
    loses_power: bool = False
    run: OfRun | None = None

    @property
    def address(self) -> Address:
        """Where the harness, and links, reach it."""
        return self.place.client_outside


# The processes of each kind that was started before, by kind.
Others = Mapping[str, Sequence[Address]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Service:
    """
    One kind of service that a target needs for a run.

    Attributes:
        name: the kind, as scenarios name it.
        launch: how a process is started: itself, all processes of its kind with it, and the addresses of the kinds
            before this one.
        mode: what a process is, asked at its address: LEADER, or any other word; "" while it serves nobody. It
            must answer within a second, and raise nothing.
        several: how many processes it has where one of them can be missed; 1 if there is never more than one.
        enough: of so many processes, how many must run for the others to be served.
        listeners: how many addresses a lone process listens on; the first is for nodes.
        peer_listeners: how many more it has with peers.
        shared: one process may serve all runs of a suite.
        linked: nodes and each process reach each other, and each process the metadata, by links of their own,
            which rules of links name as they name nodes'. It is then never shared, and listens for nodes on
            `place.internal`.
        holds_metadata: the harness's own view of the metadata asks it, and hears nothing while it is out. Nodes
            reach it by links to the metadata, or by links of its own if it is linked.
        prepared: file's name -> text of what must be in a process's data directory before it starts.
        before_restart: what is done before a process that ended starts again: it may wait for its own past to end.
        sessions: the sessions of the clients that are connected to a process now, asked at its address.
        start_s_max: how long a process may take until it serves, in seconds.
    """

    name: str
    launch: Callable[[Process, Sequence[Process], Others], Launch]
    mode: Callable[[Address], str]
    several: int = 1
    enough: Callable[[int], int] = lambda count: count // 2 + 1
    listeners: int = 1
    peer_listeners: int = 0
    shared: bool = False
    linked: bool = False
    holds_metadata: bool = False
    prepared: Callable[[Process], Mapping[str, str]] = lambda _: {}
    before_restart: Callable[[Process], None] = lambda _: None
    sessions: Callable[[Address], frozenset[int]] = lambda _: frozenset()
    start_s_max: float = limits.SERVICE_START_S_MAX

    @property
    def governs_by_links(self) -> bool:
        """Whether nodes reach the metadata by the links of its processes."""
        return self.linked and self.holds_metadata

    def names(self, count: int) -> tuple[str, ...]:
        """Return the names of a run's own processes."""
        return tuple(f"{self.name}-{number}" for number in range(1, count + 1))


def governed_by_links(services: Sequence[Service]) -> bool:
    """Return True if nodes reach the metadata by the links of a service's processes."""
    return any(each.governs_by_links for each in services)
