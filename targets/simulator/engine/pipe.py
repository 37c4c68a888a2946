"""A connection of the simulator: the link core's, with its virtual times. Plain data; the network moves it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final, Protocol

from harness.fabric.core import lanes
from harness.fabric.core.lanes import ANSWERS, DIRECTIONS, REQUESTS, Connection
from harness.target.wire import Direction, Link, Seen, Word
from targets.broker.core.events import ANYBODY
from targets.broker.core.messages import (
    CreateTopicsRequest,
    DeleteTopicsRequest,
    FetchPartition,
    FetchRequest,
    InitProducerIdRequest,
    LeaderAndIsrRequest,
    ListOffsetsRequest,
    MetadataRequest,
    OffsetForLeaderEpochRequest,
    ProduceRequest,
    Request,
    StopReplicaRequest,
    TopicPartition,
)
from targets.simulator.broker.fetch_sessions import parts_of

_PACKET: Final = Word.METADATA_REQUEST.value
# The tag of ZooKeeper's answers to multis.
MULTI: Final = -2

__all__ = ["ANSWERS", "API_OF", "DIRECTIONS", "MULTI", "REQUESTS", "End", "Frame", "Lane", "Pipe"]

API_OF: Final[dict[type[Request], str]] = {
    ProduceRequest: "Produce",
    FetchRequest: Word.FETCH.value,
    ListOffsetsRequest: "ListOffsets",
    MetadataRequest: "Metadata",
    LeaderAndIsrRequest: Word.COMMAND.value,
    StopReplicaRequest: Word.STOP.value,
    CreateTopicsRequest: "CreateTopics",
    DeleteTopicsRequest: "DeleteTopics",
    OffsetForLeaderEpochRequest: Word.EPOCH_QUESTION.value,
    InitProducerIdRequest: "InitProducerId",
}


@dataclass(slots=True, eq=False)
class Frame(lanes.Frame):
    """
    A frame in flight.

    Attributes:
        body: The receiver's business.
        request: The request that it is or answers; None on a link to ZooKeeper.
        tag: The sender's number of the request, -1 for an unnumbered frame, MULTI for the answer to a multi.
        about: Of a fetch within a session, all partitions of the session.
    """

    link: Link
    direction: Direction
    body: Any
    request: Request | None
    tag: int
    about: tuple[FetchPartition, ...] | None = field(default=None, kw_only=True)

    @property
    def seen(self) -> Seen:
        """Return what rules see of it, built only when rules exist: an answer is described by its request."""
        if self.request is None:
            return Seen(link=self.link, api=_PACKET, direction=self.direction, multi=self.tag == MULTI)
        offsets: tuple[tuple[str, int], ...] = ()
        if isinstance(self.request, FetchRequest):
            parts = self.request.partitions if self.about is None else self.about
            offsets = tuple((part.tp.topic, part.fetch_offset) for part in parts)
        return Seen(
            link=self.link,
            api=API_OF[type(self.request)],
            direction=self.direction,
            offsets=offsets,
            correlation=self.tag,
        )


@dataclass(slots=True, eq=False)
class Lane(lanes.Lane):
    """
    One direction.

    Attributes:
        planned_ns: When its first frame is judged, -1 if that is not planned.
        last_due_ns: No later frame is due before it.
    """

    planned_ns: int = -1
    last_due_ns: int = 0


@dataclass(slots=True, eq=False)
class Pipe(Connection):
    """
    One connection; its link is (the side that opened it, the side that accepted it).

    Attributes:
        outside: True for a client's connection, to which only a cut of clients applies.
        meant_for: The broker that its requests name as their receiver, ANYBODY if they name none.
        last_offsets: The last fetch offset that the witness recorded, by partition.
        question_version: The version of the last OffsetForLeaderEpoch that the witness recorded, and its answer's.
        known: What the fetches of a session have asked so far, by partition.
        abouts: The partitions of fetches that have no answer yet, by their tags.
    """

    number: int
    channel: str
    outside: bool
    meant_for: int = ANYBODY
    lanes: tuple[Lane, Lane] = field(default_factory=lambda: (Lane(), Lane()), kw_only=True)
    last_offsets: dict[tuple[str, int], int] = field(default_factory=dict)
    question_version: int = 0
    known: dict[TopicPartition, FetchPartition] = field(default_factory=dict)
    abouts: dict[int, tuple[FetchPartition, ...]] = field(default_factory=dict)

    @property
    def src(self) -> str:
        """Return the side that opened it."""
        return self.link[0]

    @property
    def dst(self) -> str:
        """Return the side that accepted it."""
        return self.link[1]

    def about(self, direction: int, request: FetchRequest, tag: int) -> tuple[FetchPartition, ...] | None:
        """Return the partitions of a fetch within a session, or of the one that an answer is to."""
        if direction == ANSWERS:
            return self.abouts.pop(tag, None)
        self.abouts[tag] = parts_of(self.known, request)
        return self.abouts[tag]

    def receiver(self, direction: int) -> str:
        """Return the receiver of frames in that direction."""
        return self.link[1 - direction]


class End(Protocol):
    """The endpoint of connections."""

    @property
    def listening(self) -> bool:
        """Return True if it accepts connections now."""

    def on_frame(self, pipe: Pipe, direction: int, frame: Frame) -> None:
        """Process a frame that arrived."""

    def on_end(self, pipe: Pipe) -> None:
        """Process a closed connection."""
