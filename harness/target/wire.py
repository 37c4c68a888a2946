"""
The wire of a target: its links, and what its nodes say on them, as far as rules and histories must know.

A `Reading` is about one connection. It says how long the frame is that some bytes begin with, and then what the
frame says. The harness keeps and passes the bytes itself, so that a wire can neither lose nor change one.

Nothing of a wire does IO, knows a fault, or knows a rule of links. What it raises, but for `NotFramedError`, and
any answer that no frame can have makes the run unknown; the stream is passed on nevertheless.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final, Protocol, TypeAlias

from harness.events import Event

# (from, to) in the direction of its requests: the answers to A's requests to B are on link (A, B) too.
Link: TypeAlias = tuple[str, str]

ANY: Final = "*"
UNKNOWN: Final = "?"
METADATA: Final = "metadata"
CLIENTS: Final = "clients"


class Word(StrEnum):
    """
    The general words for messages, which scenarios, random schedules, rules of links and histories use.

    FETCH: a follower asks its leader for records, or is sent them. EPOCH_QUESTION: a follower asks where an epoch
    ends. QUESTION: the request that a restarted follower sends to its leader first; rules alone use this word, and
    it stands for one of the two before. COMMAND: the controller tells a node the state of a partition. STOP: the
    controller has a node give up a replica. METADATA_REQUEST: any message between a node and its metadata.
    """

    FETCH = "fetch"
    EPOCH_QUESTION = "epoch-question"
    QUESTION = "question"
    COMMAND = "command"
    STOP = "stop-command"
    METADATA_REQUEST = "metadata-request"


class Direction(StrEnum):
    """The direction of a frame: a request goes along its link, an answer against it."""

    REQUEST = "request"
    ANSWER = "answer"


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """
    The fields of a frame that rules match on.

    Attributes:
        api: a general word, or the system's own name of a message for which there is none; UNKNOWN if the frame
            cannot be read.
        offsets: (topic, offset) of each partition that a fetch is about; () for all others. An answer has those of
            its request.
        correlation: the number of the request, also of an answer. -1: the frame has none, or cannot be sent twice;
            no rule doubles it.
        multi: whether it asks for several operations, all done or none, or is the answer to that.
    """

    link: Link
    api: str
    direction: Direction
    version: int = -1
    offsets: tuple[tuple[str, int], ...] = ()
    correlation: int = -1
    multi: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """
    What a frame says.

    Attributes:
        events: what the history must have once the frame is passed on, and only then: a frame that is held or
            lost has reached no node.
        error: why a part of it could not be read, "" if all could; then the run is unknown.
    """

    seen: Seen
    events: tuple[Event, ...] = ()
    error: str = ""


class NotFramedError(ValueError):
    """The bytes are no frames of this wire (TLS, say): the connection passes unread; the text says why."""


class Reading(Protocol):
    """Reads the frames of one connection, in both directions, each in their order."""

    def size(self, buffer: bytes, offset: int, direction: Direction) -> int:
        """
        Return how many bytes the frame has that begins at the offset, all of its head included.

        Args:
            direction: REQUEST for bytes of the side that dialled, ANSWER for those of the other.

        Returns:
            0 if it takes more bytes to say so, of the head's few.

        Raises:
            NotFramedError: no frame begins so.
        """

    def read(self, frame: bytes, direction: Direction) -> Message:
        """
        Return what a frame says; called once for each, before `size` is asked about the next one.

        The source of its link may be UNKNOWN until a frame names it.

        Args:
            frame: all of it, or the first 64 KiB at least of one that is too large to be collected.
        """

    def sent_again(self, correlation: int) -> None:
        """Expect a second answer to a request, which was delivered twice."""


class Between(StrEnum):
    """The ends of a link."""

    NODES = "from node to node"
    METADATA = "from a node to the metadata"
    CLIENTS = "from clients to a node"


class Sender(StrEnum):
    """By what the sender of a connection is found."""

    FRAMES = "what its frames say"
    PAIR = "an address of its own for each pair of nodes"
    HOST = "the address to which each sender itself resolves the receiver's host; its port is the receiver's"
    LISTENER = "the address, which one sender alone is given"


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkKind:
    """
    A kind of link that a target has; one with two listeners for its nodes has two of them between nodes.

    Attributes:
        name: the listener's name, as the target's own configuration has it.
        either_dials: whether either of two nodes may dial, and one connection carries what both ask. Each frame
            then has the link and the direction of what it is about, whoever dialled; a cut takes frames by these.
        with_clients: of links by HOST, whether the receiver listens there for clients too; else it is where it
            listens for nodes alone. Services' processes are reached by the first kind between nodes.
    """

    name: str
    between: Between
    sender: Sender
    either_dials: bool = False
    with_clients: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Stands:
    """
    What stands for a general word in one system and version.

    Attributes:
        api: the `Seen.api` of the frames that a rule with this word matches; "" if nothing stands for it.
        own: the system's own name for it; if nothing stands for the word, why.
    """

    api: str
    own: str


class Hearing(Protocol):
    """What one run's connections share: the names of topics that only some frames say, for example."""

    def reading(self, kind: LinkKind, link: Link) -> Reading | None:
        """
        Return the reading of a new connection; None if its bytes are not split, so that only cuts apply to it.

        Args:
            link: its source is UNKNOWN if the frames must say it.
        """


class Wire(Protocol):
    """
    The messages of a system.

    Attributes:
        links: each kind of link that it has.
        messages: its own names of messages that no general word fits; rules of links may name them too.
    """

    links: Sequence[LinkKind]
    messages: Collection[str]

    def stands(self, rules: Mapping[str, str]) -> Mapping[Word, Stands]:
        """Return what stands for each general word under these rules, or why nothing does."""

    def hear(self, nodes: Mapping[int, str]) -> Hearing:
        """
        Begin to read the connections of one run.

        Args:
            nodes: number -> name; nodes are added while the cluster is opened.
        """


def words_of(wire: Wire) -> tuple[str, ...]:
    """Return each word that the wire's frames may have as their `api`."""
    return (*(word.value for word in Word if word is not Word.QUESTION), *wire.messages)
