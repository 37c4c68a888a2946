"""Rules of links, and what the fabric sees on links. A link is [from, to] in the direction of its requests."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from harness.events.base import Event, key


@dataclass(frozen=True, slots=True, kw_only=True)
class OfLink(Event):
    """An event about one link; `*` at either end matches any node."""

    PROCESS: ClassVar[str] = "fabric"

    link: tuple[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkRule(OfLink):
    """A rule for frames of a link."""

    api: str
    direction: str = field(metadata=key("`request` or `answer`"))
    from_offset: int | None = field(metadata=key("only fetches from this offset on"))
    topic: str | None = field(default=None, metadata=key("only fetches of this topic"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Hold(LinkRule):
    """These frames, and all behind them, are held from now on."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Release(LinkRule):
    """A hold was released."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Delay(LinkRule):
    """These frames are delayed from now on."""

    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Double(LinkRule):
    """These requests are delivered twice from now on."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cut(OfLink):
    """Everything on the link is lost from now on."""

    close: bool = field(metadata=key("its connections are also reset"))
    share: float | None = field(
        default=None, metadata=key("only this share of the frames is lost, each with its connection")
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Heal(OfLink):
    """A cut, a delay or a doubling was healed; for a cut only the link is recorded."""

    api: str | None = field(default=None, metadata=key("of a delay or a doubling, like the next three"))
    direction: str | None = None
    from_offset: int | None = field(default=None, metadata=key(beside="api"))
    topic: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Close(OfLink):
    """Connections of the link were reset once."""

    connections: int = field(metadata=key("how many connections"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Lost(OfLink):
    """A cut lost its first bytes, or a connection, on a link."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OfFrame(OfLink):
    """An event about one frame."""

    api: str
    direction: str = field(metadata=key("`request` or `answer`"))
    offset: int | None = field(metadata=key("the highest fetch offset in the frame"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Held(OfFrame):
    """A frame was held."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Delayed(OfFrame):
    """A delay affected its first frame on a link."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Doubled(OfFrame):
    """A request was delivered twice."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Dropped(OfFrame):
    """A held frame was dropped."""

    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class FrameUnreadable(OfLink):
    """The fabric could not parse a frame, and passed it on; recorded once for each kind of frame."""

    api: str
    version: int
    direction: str = field(metadata=key("`request` or `answer`"))
    error: str


@dataclass(frozen=True, slots=True, kw_only=True)
class OfLinkAndPartition(OfLink):
    """An event about one partition, seen on a link."""

    topic: str
    partition: int


@dataclass(frozen=True, slots=True, kw_only=True)
class EpochQuestion(OfLinkAndPartition):
    """A follower asked its leader for the end offset of an epoch."""

    leader_epoch: int
    version: int = field(metadata=key("of the request"))


@dataclass(frozen=True, slots=True, kw_only=True)
class EpochAnswer(OfLinkAndPartition):
    """The answer to an epoch question, on the link of the question."""

    error: int = field(metadata=key("Kafka's code"))
    leader_epoch: int = field(metadata=key("-1 in v0"))
    end_offset: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Fetch(OfLinkAndPartition):
    """A follower's fetch offset, recorded when it changes."""

    offset: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Fetched(OfLinkAndPartition):
    """A follower's fetch from this offset was answered; recorded once per offset, if nodes emit no events."""

    offset: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Learned(OfLinkAndPartition):
    """A node learned a state from its controller, on whose link it said so; recorded if nodes emit no events."""

    leader: str | None = field(metadata=key("name of a node"))
    epoch: int
    isr: tuple[str | None, ...] = field(metadata=key("names of nodes"))
    error: int = field(metadata=key("Kafka's code; 0 if the node accepted it"))
