"""The connections of our broker's wire, as links see them: each request by its word, and what it asks about."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final

from harness.target.wire import Seen, Word
from targets.broker.core.events import ANYBODY
from targets.broker.core.messages import (
    NO_SESSION_EPOCH,
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
from targets.simulator.engine.pipe import ANSWERS, DIRECTIONS, Frame, Pipe

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
# What rules of links may name: these, and any message between a node and ZooKeeper.
WORDS: Final = (*API_OF.values(), Word.METADATA_REQUEST)


@dataclass(slots=True, eq=False)
class WireFrame(Frame):
    """
    A request or an answer.

    Attributes:
        about: Of a fetch within a session, all partitions of the session.
    """

    about: tuple[FetchPartition, ...] | None = field(default=None, kw_only=True)

    @property
    def seen(self) -> Seen:
        """Return what rules see of it, built only when rules exist: an answer is described by its request."""
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
class WirePipe(Pipe):
    """
    A connection to a broker.

    Attributes:
        meant_for: The broker that its requests name as their receiver, ANYBODY if they name none.
        last_offsets: The last fetch offset that the witness recorded, by partition.
        question_version: The version of the last OffsetForLeaderEpoch that the witness recorded, and its answer's.
        known: What the fetches of a session have asked so far, by partition.
        abouts: The partitions of fetches that have no answer yet, by their tags.
    """

    meant_for: int = ANYBODY
    last_offsets: dict[tuple[str, int], int] = field(default_factory=dict)
    question_version: int = 0
    known: dict[TopicPartition, FetchPartition] = field(default_factory=dict)
    abouts: dict[int, tuple[FetchPartition, ...]] = field(default_factory=dict)

    def frame(self, due_ns: int, direction: int, body: Any, request: Any, tag: int, *, end: bool) -> WireFrame:
        """Return a frame that is sent now; a fetch within a session has all that the session is about."""
        frame = WireFrame(due_ns, self.link, DIRECTIONS[direction], body, request, tag, end=end)
        if type(request) is FetchRequest and request.session_epoch != NO_SESSION_EPOCH:
            frame.about = self._about(direction, request, tag)
        return frame

    def _about(self, direction: int, request: FetchRequest, tag: int) -> tuple[FetchPartition, ...] | None:
        """Return the partitions of a fetch within a session, or of the one that an answer is to."""
        if direction == ANSWERS:
            return self.abouts.pop(tag, None)
        self.abouts[tag] = parts_of(self.known, request)
        return self.abouts[tag]
