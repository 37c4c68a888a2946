"""
A target's metadata: what the system itself holds true, seen from outside of its nodes and of the links under test.

Nodes are named; None is no node, or a node that is none of the run. A target hands a `Metadata` over for each run:
its own, or one of harness/metadata, which polls a function or follows what an iterator yields.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from harness.events import Event, MetadataState
from harness.launch import Address

# Topic and partition.
Place = tuple[str, int]
# The version of a state that the system gives no number: the harness numbers what it sees.
UNNUMBERED = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class TargetRun:
    """
    One run, as a target's parts see it.

    Attributes:
        target: the target's name.
        ids: node's name -> its number, in the order of starting.
        folder: the run's own, an absolute path; its name together with its parent's is unique among all open runs.
        services: the addresses of the target's services, past the links under test.
        nodes: node -> where it answers clients, past the links under test; filled while the cluster is opened.
        record: writes an event to the history; raises HistoryError if it cannot be written any more.
        give_up: notes that an observation was lost: the run is unknown then, and says why.
    """

    target: str
    ids: Mapping[str, int]
    folder: Path
    record: Callable[[Event], object]
    give_up: Callable[[Exception], None]
    services: tuple[Address, ...] = ()
    nodes: Mapping[str, Address] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionTruth:
    """
    A partition's state, as the system holds it true.

    Attributes:
        epoch: the leader's epoch, or term.
        in_sync: the nodes that must have a record before it is committed; of a quorum, its members.
        version: rises with every change of the state; UNNUMBERED if the system has no such number.
        unheard: the nodes that may not know the partition yet: what they said last was of one of its name that is
            gone, and so may be what is in their files.
    """

    leader: str | None
    epoch: int
    in_sync: tuple[str | None, ...]
    version: int = UNNUMBERED
    unheard: frozenset[str] = field(default=frozenset(), compare=False)

    def event(self, topic: str, partition: int) -> MetadataState:
        """Return the state as the history records it."""
        return MetadataState(
            topic=topic,
            partition=partition,
            leader=self.leader,
            epoch=self.epoch,
            isr=self.in_sync,
            version=self.version,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Office:
    """
    The controller's office while somebody holds it.

    Attributes:
        member: the incarnation of the membership in which its holder took it.
        incarnation: another number each time that it is taken.
    """

    node: str | None
    member: int
    incarnation: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """
    All that the metadata show at one moment.

    Attributes:
        states: the state of each partition that has one.
        members: the incarnation of each node that is a member, a number above 0.
        office: None while there is no controller.
        assigned: the replicas of each partition; {} if the metadata do not show them.
        said: what nodes say of their part in each partition, for who asks why it is not whole: node -> words that
            follow its name, "waits for votes in term 7".
    """

    states: Mapping[Place, PartitionTruth] = field(default_factory=dict)
    members: Mapping[str, int] = field(default_factory=dict)
    office: Office | None = None
    assigned: Mapping[Place, tuple[str | None, ...]] = field(default_factory=dict)
    said: Mapping[Place, Mapping[str, str]] = field(default_factory=dict)


class Metadata(Protocol):
    """
    The metadata of one run's cluster; they are open from the beginning, before any node runs.

    Attributes:
        exact: whether every change is seen. If not, what lies between two looks is not known.

    Raises:
        PreconditionError: they cannot be read now; the text says why.
    """

    exact: bool

    def watch(self, places: Sequence[Place]) -> None:
        """Record these partitions, the controller and the members: what is there, and every change of it."""

    def truth(self, topic: str, partition: int) -> PartitionTruth | None:
        """Return the partition's state now, None for none yet; it is in the history before this returns."""

    def assignment(self, topic: str) -> Mapping[int, tuple[str | None, ...]]:
        """Return the nodes of each partition of a topic now; {} if there is no such topic."""

    def incarnation(self, name: str) -> int:
        """Return the incarnation of a node's membership now, another one each time it joins; 0 for no member."""

    def controller(self) -> str | None:
        """Return the current controller, None for no controller."""

    def office(self) -> Office | None:
        """Return the controller's office, None while nobody holds it."""

    def said(self, topic: str, partition: int) -> Mapping[str, str]:
        """Return what nodes say of their part in a partition, {} for a system whose nodes say nothing."""
        del topic, partition
        return {}

    def close(self) -> None:
        """End what reads them; safe to call twice."""
