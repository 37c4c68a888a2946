"""
The least that a target's client must have: append one value, read from an offset, at one node, of one partition.

`clients_of` makes all of a run's clients of it: who leads is found by asking node after node, and each call is an
operation of the history.

    returns              it is done
    Refused              it is certainly not done, as by a node that does not lead: another one is asked
    NotNow               nor is this, as by a leader that lacks followers: it is asked again
    any other error      it may be done, now or later

A node that refuses the connection (ConnectionRefusedError) was asked nothing, so that is a Refused too.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple, Protocol, runtime_checkable

from harness.model import FencepostError
from harness.registry import load
from harness.target.clients import TargetClients
from harness.workload.plan import Place

_PLAIN: Final = {"plain": "harness.clients.plain_part"}


class Refused(FencepostError):
    """The node did not do what it was asked, and will not."""


class NotNow(Refused):
    """The node would do it, and cannot now: it is asked again later, and no other one meanwhile."""


class Found(NamedTuple):
    """A record that was read."""

    offset: int
    value: bytes


class AtOffset(Protocol):
    """What a read brings: `Found`, or a target's own kind of record."""

    @property
    def offset(self) -> int:
        """The record's offset."""

    @property
    def value(self) -> bytes:
        """Its value."""


@dataclass
class AtNode:
    """
    Whom a client asks: a class of this with the methods of LogClient is a target's client.

    Attributes:
        address: "host:port" of the node.
        patience_s: how long a call may take, in seconds; longer counts as unknown.
    """

    address: str
    place: Place
    patience_s: float


class LogClient(Protocol):
    """A client of one partition at one node; it connects when it is used, and returns within its patience."""

    def produce(self, value: bytes) -> int:
        """Append a value, and return its offset once the system has acknowledged it."""

    def read(self, first: int) -> Sequence[AtOffset]:
        """Return records from an offset on, in order; none if there is nothing to read."""


class MakeLogClient(Protocol):
    """Makes a client; a class with these arguments does."""

    def __call__(self, address: str, place: Place, patience_s: float, /) -> LogClient:
        """Return the client of this partition at the node at "host:port"."""


def clients_of(
    make_one: MakeLogClient, *, creates_topics: bool = False, beside: object | None = None
) -> TargetClients:
    """
    Return the part `clients` of a target with this client.

    Args:
        creates_topics: whether the target's operator makes topics.
        beside: a library on which some clients of workloads stand: a `Beside` of harness/clients/beside.py.
    """
    # Imported on demand: a target imports this package, and what makes a run's clients is above it.
    made: TargetClients = load("clients", _PLAIN, "plain", "PlainClients")(
        make_one=make_one, creates_topics=creates_topics, beside=beside
    )
    return made


# --- abilities: a client that has the method can do more ---------------------------------------------------------
@runtime_checkable
class Creates(Protocol):
    """It makes its topic; without this the topics of a run are there from the start."""

    def create(self, assignments: Sequence[Sequence[int]]) -> None:
        """Create the topic with a partition on each of these groups of nodes, the first of each to lead."""


@runtime_checkable
class Batches(Protocol):
    """
    It appends several values in one batch; without this they are appended one after the other, with acks=all.

    Attributes:
        acks: what it can wait for: -1 for all that must have a record, 1 for the leader alone.
    """

    acks: Collection[int]

    def produce_batch(self, values: Sequence[bytes], acks: int) -> int:
        """Append values, all or none; return the offset of the first once the system has acknowledged them."""


@runtime_checkable
class Deletes(Protocol):
    """It deletes records from the beginning on."""

    def delete_before(self, offset: int) -> int:
        """Delete the records before an offset (-1: all that are committed); return where the log starts then."""


@runtime_checkable
class Serves(Protocol):
    """It asks the node whether it serves; without this one that listens does."""

    def serves(self) -> bool:
        """Return True if the node answers."""


@runtime_checkable
class Leads(Protocol):
    """It asks the node whether it leads; without this the metadata are believed."""

    def leads(self) -> bool:
        """Return True if the node says itself that it leads the partition."""


@runtime_checkable
class Closes(Protocol):
    """It keeps a connection."""

    def close(self) -> None:
        """Leave nothing open; safe to call twice."""
