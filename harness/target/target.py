"""The interface of a target: how its nodes are launched, and where ZooKeeper holds its state."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Protocol

from harness.events import MetadataState
from harness.launch import Address, Launch, Place
from harness.target.settings import Settings
from harness.target.wire import Wire
from harness.target.words import Lacks, Means

# A rule of targets other than our broker: the protocol of ours that it corresponds to. Expectations and
# conditional steps of scenarios are looked up by it.
MODELS: Final = "models"
# A rule of such targets too: what happens to a node that starts while an older session still holds its
# registration. If it is refused, that session must be ended before the node is started.
OLD_REGISTRATION: Final = "old_registration"
REFUSED: Final = "refused"
# A rule of such targets too: when a delete that was acknowledged takes effect, if not at once. Until then the
# topic is there, and cannot be created again.
DELETES: Final = "deletes"
LATER: Final = "later"
# A rule of every target: whether brokers give ids to idempotent producers, and heed them ("yes").
IDEMPOTENCE: Final = "idempotence"
# A rule of such targets too: the name, such as kafka:2.1.1, by which a scenario's file names this release alone;
# the part before the colon names all releases of the system.
NAMED: Final = "named"


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionTruth:
    """A partition's state in ZooKeeper, with broker ids; leader -1 is no leader."""

    leader: int
    leader_epoch: int
    isr: tuple[int, ...]
    version: int

    def event(self, topic: str, partition: int, name_of: Callable[[int], str | None]) -> MetadataState:
        """Return the state as the history records it, with node names."""
        return MetadataState(
            topic=topic,
            partition=partition,
            leader=name_of(self.leader),
            epoch=self.leader_epoch,
            isr=tuple(map(name_of, self.isr)),
            version=self.version,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Printed:
    """
    The meaning of a line that a node printed.

    Attributes:
        what: "truncate", "stuck", "fenced" or "format", like the events of brokers that emit them, or "exiting":
            the process ends itself.
        to: the offset that the log was truncated to, or the number of the message format; None if the line does
            not say it.
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
        peers: where it reaches each other node, if the target's links have an address for each pair of nodes;
            else it is told by the others' `advertised_internal`.
        zookeeper: host:port/chroot, through the fabric; host:port,host:port/chroot for several servers.
        collector: where the node sends its events.
        secret: what the node shows to the collector; other users must not see it.
        settings: the scenario's settings, which the target translates into its own configuration.
        shows_clocks: whether the node must print its clocks at a SIGQUIT.
    """

    name: str
    broker_id: int
    place: Place
    advertised_internal: Address
    zookeeper: str
    collector: Address
    peers: Mapping[str, Address] = field(default_factory=dict)
    settings: Settings = field(default_factory=Settings)
    secret: str = field(default="", repr=False)
    shows_clocks: bool = False


class ZooKeeperPort(Protocol):
    """ZooKeeper below the cluster's chroot, for writes that only an operator makes."""

    def read(self, path: str) -> bytes | None:
        """Return a znode's data, None if there is no such znode."""

    def update(self, path: str, change: Callable[[bytes | None], bytes]) -> None:
        """
        Write what `change` makes of a znode's data, None if there is no such znode.

        What was written meanwhile is not written over: then it is read, and changed, once more. The znode and its
        parents are created if they do not exist.
        """


class Target(Protocol):
    """
    A system under test. A new one is one module below targets/ and one line in `TARGETS`.

    Attributes:
        wire: how its connections are read; None: they are not, and no rule can name a message of it.
        words: what stands for each word of harness/target/words.py, or why nothing does.
    """

    name: str
    wire: Wire | None
    words: Mapping[str, Means | Lacks]

    def protocols(self) -> Mapping[str, Mapping[str, str]]:
        """Return protocol's name -> its rules as text, from the oldest protocol to the newest."""

    def rules(self, protocol: str, changes: Sequence[str]) -> Mapping[str, str]:
        """Return the rules of a protocol with changes ("name=value"); raise UsageError for an unknown rule."""

    def require(self, rules: Mapping[str, str]) -> None:
        """
        Check that this machine has what nodes with these rules are launched from.

        Raises:
            UsageError: it lacks something; the text has the command that brings it.
        """

    def launch(self, spec: NodeSpec, protocol: str, rules: Mapping[str, str]) -> Launch:
        """Return how to start a node."""

    def registration_path(self, broker_id: int) -> str:
        """Return the path of a broker's ephemeral znode, below the chroot."""

    def controller_path(self) -> str:
        """Return the path of the controller's ephemeral znode, below the chroot."""

    def controller_id(self, data: bytes) -> int:
        """Return the broker id in the data of the controller's znode."""

    def partition_path(self, topic: str, partition: int) -> str:
        """Return the path of the znode with a partition's leader and ISR, below the chroot."""

    def topic_path(self, topic: str) -> str:
        """Return the path of the znode with a topic's assignment, below the chroot."""

    def assignment(self, data: bytes) -> Mapping[int, tuple[int, ...]]:
        """Return the broker ids of each partition in the data of a topic's znode."""

    def partition_truth(self, data: bytes, version: int) -> PartitionTruth:
        """Return the partition's state in the data of its znode."""

    def elections_path(self) -> str:
        """Return the path of the znode at which a request for an election stands until a controller takes it."""

    def elect(self, zookeeper: ZooKeeperPort, topic: str, partition: int, broker_id: int) -> str:
        """Ask the controller to elect an ISR member although no node failed; return what was asked."""

    def move(self, zookeeper: ZooKeeperPort, topic: str, partition: int, broker_ids: Sequence[int]) -> str:
        """Ask the controller to move a partition to these replicas; return what was asked."""

    def remove(self, zookeeper: ZooKeeperPort, topic: str, partitions: Sequence[int]) -> str:
        """
        Ask the controller to take these partitions, its highest, out of a topic; return what was asked.

        Raises:
            UsageError: the target cannot remove partitions.
        """

    def wanted(self, zookeeper: ZooKeeperPort, topic: str, partition: int) -> tuple[int, ...]:
        """Return the replicas that a partition is to have: those asked for last, else those that it has."""

    def emits_events(self) -> bool:
        """Return True if its nodes send events to the collector; if not, the wire and printed lines are used."""

    def printed(self, line: str) -> Printed | None:
        """Return the meaning of a line that a node printed, None for none; used if nodes emit no events."""

    def clocks(self, line: str) -> tuple[int, int] | None:
        """
        Return what a line that a node printed at a SIGQUIT says of its clocks; None for any other line.

        Returns:
            The wall clock, in nanoseconds since 1970, and the monotonic clock, in nanoseconds since any moment of
            the process's life or before; both read by the node's own process at the same moment.
        """

    def client(self, rules: Mapping[str, str]) -> str:
        """Return the name of the default client in workloads/ for this target."""
