"""
What a target runs beside its nodes: services, whose processes are nodes of the host and no replicas.

A service is started, paused, killed, cut off and given a disk by the same calls as a node. One may serve all runs
of a suite; a run whose faults hit services has processes of its own. A target may need several kinds, or none.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from harness import limits
from harness.launch import Address, Launch, Place

# What a service's process is, by `Service.mode`, if it leads its peers.
LEADER = "leader"


@dataclass(frozen=True, slots=True, kw_only=True)
class Process:
    """
    One process of a service.

    Attributes:
        name: its node on the host: NAME for one that runs share, else NAME-1, NAME-2, …, as scenarios name it.
        number: its number among its peers, from 1 on.
        place: its paths and addresses, as it sees them; it listens for nodes on `place.client`.
        loses_power: its disk can lose power, so that it must flush what it promises.
    """

    name: str
    number: int
    place: Place
    loses_power: bool = False

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
        holds_metadata: the harness's own view of the metadata asks it, and hears nothing while it is out.
        prepared: file's name -> text of what must be in a process's data directory before it starts.
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
    holds_metadata: bool = False
    prepared: Callable[[Process], Mapping[str, str]] = lambda _: {}
    sessions: Callable[[Address], frozenset[int]] = lambda _: frozenset()
    start_s_max: float = limits.SERVICE_START_S_MAX

    def names(self, count: int) -> tuple[str, ...]:
        """Return the names of a run's own processes."""
        return tuple(f"{self.name}-{number}" for number in range(1, count + 1))
