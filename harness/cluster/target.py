"""What a target is to the harness: how its nodes are launched, and where its truth stands in ZooKeeper."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Protocol

from harness.cluster.settings import Settings
from harness.launch import Address, Launch, Place

# Among a target's rules, where it is not our broker: the protocol of ours that it corresponds to. Expectations and
# conditional steps of scenarios are looked up by it.
MODELS: Final = "models"
# Likewise: what happens to a node that starts while an older session still holds its registration. Where it is
# refused, whoever starts the node must end that session first.
OLD_REGISTRATION: Final = "old_registration"
REFUSED: Final = "refused"
# Likewise: by which name, such as kafka:2.1.1, a scenario's file may mean it alone; what stands before the colon
# means all like it.
NAMED: Final = "named"


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionTruth:
    """What ZooKeeper holds of a partition; leader -1: none."""

    leader: int
    leader_epoch: int
    isr: tuple[int, ...]
    version: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Printed:
    """
    What a line of a node's log tells.

    Shapes:  what is "truncate", "stuck" or "fenced", as brokers that tell call it, or "exiting": the process ends
             itself. to is where a log was cut to, None where the line says nothing of that.
    """

    what: str
    topic: str
    partition: int
    to: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeSpec:
    """
    What a node must be told when it is launched.

    Shapes:  zookeeper is host:port/chroot, through the fabric. settings are the scenario's, which a target puts
             into words of its own.
    """

    name: str
    broker_id: int
    place: Place
    advertised_internal: Address
    zookeeper: str
    collector: Address
    settings: Settings = field(default_factory=Settings)


class ZooKeeperPort(Protocol):
    """ZooKeeper below the cluster's chroot, for what only an operator writes there."""

    def read(self, path: str) -> bytes | None:
        """A node's data, None when there is no such node."""

    def write(self, path: str, data: bytes) -> None:
        """Give a node its data; make it, and those above it, where they are not there."""

    def delete(self, path: str) -> bool:
        """Remove a node; False when there is none."""


class Target(Protocol):
    """
    A system under test. A new one is one module below targets/ and one line in `TARGETS`.

    Shapes:  protocols maps a protocol's name to its rules, as text, in the order of the ladder.
    """

    name: str

    def protocols(self) -> Mapping[str, Mapping[str, str]]:
        """Every protocol that the target can play, and its rules as written."""

    def rules(self, protocol: str, changes: Sequence[str]) -> Mapping[str, str]:
        """The rules of a protocol with some of them changed ("name=value"); UsageError for no such rule."""

    def launch(self, spec: NodeSpec, protocol: str, rules: Mapping[str, str]) -> Launch:
        """How to start a node."""

    def first_question(self, rules: Mapping[str, str]) -> str:
        """The api with which a restarted follower first asks its leader, under these rules."""

    def registration_path(self, broker_id: int) -> str:
        """The ephemeral node of a broker, below the chroot."""

    def controller_path(self) -> str:
        """The ephemeral node of the controller, below the chroot."""

    def controller_id(self, data: bytes) -> int:
        """Read the controller's node."""

    def partition_path(self, topic: str, partition: int) -> str:
        """The node with a partition's leader and ISR, below the chroot."""

    def partition_truth(self, data: bytes, version: int) -> PartitionTruth:
        """Read a partition's node."""

    def elect(self, zookeeper: ZooKeeperPort, topic: str, partition: int, broker_id: int) -> str:
        """Ask the controller to make an ISR member leader, though nobody failed; give what was asked."""

    def emits_events(self) -> bool:
        """Whether its nodes tell the collector what they do; else the wire and what they print must tell it."""

    def printed(self, line: str) -> Printed | None:
        """What a line tells that a node printed, None for nothing; asked only of nodes that tell nothing."""

    def client(self, rules: Mapping[str, str]) -> str:
        """The client of workloads/ with which it is played, where nobody asks for another."""
