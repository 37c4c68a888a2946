"""
What stands on the links now: holds, cuts, delays, doublings; the fabric's words and meaning, as plain data.

Which frames a rule is about is the fabric's own `Pattern` (harness/fabric/rules.py).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from harness.fabric.rules import Cut, Direction, HeldFrame, Link, Pattern, Seen
from targets.broker.core.messages import (
    CreateTopicsRequest,
    DeleteTopicsRequest,
    FetchRequest,
    LeaderAndIsrRequest,
    ListOffsetsRequest,
    MetadataRequest,
    OffsetForLeaderEpochRequest,
    ProduceRequest,
    Request,
    StopReplicaRequest,
)

ZOOKEEPER: Final = "zookeeper"
ZOOKEEPER_API: Final = "ZooKeeper"
ANY: Final = "*"

API_OF: Final[dict[type[Request], str]] = {
    ProduceRequest: "Produce",
    FetchRequest: "Fetch",
    ListOffsetsRequest: "ListOffsets",
    MetadataRequest: "Metadata",
    LeaderAndIsrRequest: "LeaderAndIsr",
    StopReplicaRequest: "StopReplica",
    CreateTopicsRequest: "CreateTopics",
    DeleteTopicsRequest: "DeleteTopics",
    OffsetForLeaderEpochRequest: "OffsetForLeaderEpoch",
}
APIS: Final = frozenset((*API_OF.values(), ZOOKEEPER_API, ANY))


@dataclass(slots=True, eq=False)
class SimHold:
    """A handle: matching frames stop, and all that is behind them on their connection and direction."""

    pattern: Pattern
    frames: list[HeldFrame] = field(default_factory=list)

    @property
    def held(self) -> tuple[HeldFrame, ...]:
        """All frames that the hold has stopped so far, in order."""
        return tuple(self.frames)

    def note_held(self, seen: Seen) -> None:
        """Say that the hold stopped a frame."""
        offset = max((offset for _, offset in seen.offsets), default=None)
        frame = HeldFrame(
            link=seen.link, api=seen.api, direction=seen.direction, version=seen.version, offset=offset
        )
        self.frames.append(frame)


@dataclass(slots=True, eq=False)
class SimDelay:
    """A handle: matching frames, and what is behind them, go on that much later than they came."""

    pattern: Pattern
    delay_ns: int
    bitten: set[Link] = field(default_factory=set)  # the links on which it took a frame


@dataclass(slots=True, eq=False)
class SimDouble:
    """A handle: matching requests are delivered twice, and their sender sees one answer."""

    pattern: Pattern


@dataclass(slots=True)
class Standing:
    """All rules that stand now, in the order in which they were made: the first that matches has a frame."""

    holds: list[SimHold] = field(default_factory=list)
    delays: list[SimDelay] = field(default_factory=list)
    doubles: list[SimDouble] = field(default_factory=list)
    cuts: list[Cut] = field(default_factory=list)

    @property
    def idle(self) -> bool:
        """Whether there is nothing to judge by."""
        return not (self.holds or self.cuts or self.delays or self.doubles)

    def cut_of(self, link: Link) -> Cut | None:
        """The first cut that takes the link's frames."""
        return next((cut for cut in self.cuts if cut.covers(link)), None)

    def hold_of(self, seen: Seen) -> SimHold | None:
        """The first hold that stops the frame."""
        return next((hold for hold in self.holds if hold.pattern.matches(seen)), None)

    def delay_of(self, seen: Seen) -> SimDelay | None:
        """The first delay that is about the frame."""
        return next((delay for delay in self.delays if delay.pattern.matches(seen)), None)

    def doubled(self, seen: Seen) -> bool:
        """Whether the frame is delivered twice."""
        return any(double.pattern.matches(seen) for double in self.doubles)


def seen_of(link: Link, request: Request | None, direction: Direction) -> Seen:
    """Give what the fabric knows of a frame; an answer is known by its request, None is ZooKeeper's."""
    if request is None:
        return Seen(link=link, api=ZOOKEEPER_API, direction=direction)
    offsets: tuple[tuple[str, int], ...] = ()
    if isinstance(request, FetchRequest):
        offsets = tuple((part.tp.topic, part.fetch_offset) for part in request.partitions)
    return Seen(link=link, api=API_OF[type(request)], direction=direction, offsets=offsets)
