"""The interface of a target: how its nodes are launched, and who knows and asks for what."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Protocol

from harness.ability import Ability
from harness.downloads import Download
from harness.launch import Address, Launch, Place
from harness.target.clients import TargetClients
from harness.target.logs import Logs
from harness.target.metadata import Metadata, TargetRun
from harness.target.operator import Operator
from harness.target.services import Service
from harness.target.settings import Settings
from harness.target.traits import Traits
from harness.target.wire import Wire
from harness.target.words import Lacks, Means


@dataclass(frozen=True, slots=True, kw_only=True)
class Printed:
    """
    The meaning of a line that a node printed.

    Attributes:
        what: "truncate", "stuck", "fenced" or "format", like the events of brokers that emit them, or "exiting":
            the process ends itself. "failed": after an error of its disk it serves a partition no more until it is
            started again, and its process goes on. "skip": it took a record for one that it has, without reading
            it.
        to: the offset that the log was truncated to, or of the record, or the number of the message format;
            None if the line does not say it.
    """

    what: str
    topic: str
    partition: int
    to: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeSpec:
    """
    The configuration of a node to launch.

    Attributes:
        peers: where it reaches each other node, and each linked service's process, if the target's links have an
            address for each pair of nodes; else it is told by the others' `advertised_internal`.
        reached: where each of those reaches it, if each pair has an address.
        services: where it reaches each process of the service that holds the metadata, through the fabric.
        folder: the run's own, an absolute path; its name together with its parent's is unique among all open runs.
        collector: where the node sends its events.
        secret: what the node shows to the collector; other users must not see it.
        settings: the scenario's settings, which the target translates into its own configuration.
        shows_clocks: whether the node must print its clocks at a SIGQUIT.
    """

    name: str
    broker_id: int
    place: Place
    advertised_internal: Address
    services: tuple[Address, ...]
    folder: Path
    collector: Address
    peers: Mapping[str, Address] = field(default_factory=dict)
    reached: Mapping[str, Address] = field(default_factory=dict)
    settings: Settings = field(default_factory=Settings)
    secret: str = field(default="", repr=False)
    shows_clocks: bool = False


def traits_under(target: Target, protocol: str, changes: Sequence[str]) -> Traits:
    """Return what is true of a target under a protocol with changes, what its metadata show included."""
    return replace(
        target.traits(protocol, changes),
        names_controller=Ability.CONTROLLER in target.abilities,
        shows_members=Ability.MEMBERS in target.abilities,
    )


def keeps_metadata(target: Target) -> bool:
    """Return True if the nodes of a target keep its metadata themselves, with a controller among them."""
    return Ability.CONTROLLER in target.abilities and not target.services


class Target(Protocol):
    """
    A system under test; harness/target/found.py finds it.

    Attributes:
        wire: how its connections are read; None: they are not, and no rule can name a message of it.
        words: what stands for each word of harness/target/words.py, or why nothing does.
    """

    name: str
    wire: Wire | None
    words: Mapping[str, Means | Lacks]

    @property
    def clients(self) -> TargetClients:
        """Its clients, and what a node says of itself."""

    @property
    def logs(self) -> Logs:
        """What reads the logs of its nodes."""

    @property
    def abilities(self) -> frozenset[Ability]:
        """What an operator can ask of it, and what its metadata show, of harness.ability.OF_TARGETS."""

    @property
    def downloads(self) -> Callable[[str], Sequence[Download]] | None:
        """What returns the files that a version needs, for `fencepost fetch`; None: nothing is downloaded."""

    @property
    def services(self) -> Sequence[Service]:
        """What it needs beside its nodes, in the order of starting; () for nothing."""

    @property
    def faults(self) -> Mapping[str, object]:
        """The faults of its own, by name, each a harness.cluster.fault.Fault; {} for none."""

    def protocols(self) -> Mapping[str, Mapping[str, str]]:
        """Return protocol's name -> its rules as text, from the oldest protocol to the newest."""

    def rules(self, protocol: str, changes: Sequence[str]) -> Mapping[str, str]:
        """Return the rules of a protocol with changes ("name=value"); raise UsageError for an unknown rule."""

    def traits(self, protocol: str, changes: Sequence[str]) -> Traits:
        """Return what is true of a protocol with changes: what its evidence can be, and what it promises."""

    def require(self, rules: Mapping[str, str]) -> None:
        """
        Check that this machine has what nodes with these rules are launched from.

        Raises:
            UsageError: it lacks something; the text has the command that brings it.
        """

    def launch(self, spec: NodeSpec, protocol: str, rules: Mapping[str, str]) -> Launch:
        """Return how to start a node."""

    def metadata(self, run: TargetRun) -> Metadata:
        """Open the metadata of a run; raise PreconditionError if they cannot be read."""

    def operator(self, run: TargetRun, metadata: Metadata) -> Operator:
        """Return who can be asked for what is in `abilities`, in a run with these metadata."""

    def printed(self, line: str) -> Printed | None:
        """Return the meaning of a line that a node printed, None for none; used if nodes emit no events."""

    @property
    def clocks(self) -> Callable[[str], tuple[int, int] | None] | None:
        """
        What reads what a line that a node printed at a SIGQUIT says of its clocks; None: its nodes print none.

        It returns None for any other line. Else it returns the wall clock, in nanoseconds since 1970, and the
        monotonic clock, in nanoseconds since any moment of the process's life or before; both read by the node's
        own process at the same moment.
        """
