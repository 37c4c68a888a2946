"""What is done to links, and what the fabric sees on them. A link is [from, to] of its requests."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from harness.events.base import Event, key


@dataclass(frozen=True, slots=True, kw_only=True)
class OfLink(Event):
    """An event about one link; `*` at either end is any node."""

    PROCESS: ClassVar[str] = "fabric"

    link: tuple[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkRule(OfLink):
    """A rule about frames of a link."""

    api: str
    direction: str = field(metadata=key("`request` or `answer`"))
    from_offset: int | None = field(metadata=key("only fetches from that offset on"))
    topic: str | None = field(default=None, metadata=key("only fetches of that topic"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Hold(LinkRule):
    """Such frames, and all behind them, wait from now on."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Release(LinkRule):
    """A hold is over."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Delay(LinkRule):
    """Such frames go on later from now on."""

    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Double(LinkRule):
    """Such requests are delivered twice from now on."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cut(OfLink):
    """Everything on the link is lost from now on."""

    close: bool = field(metadata=key("its connections are reset too"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Heal(OfLink):
    """A cut, a delay or a doubling is over; one of a cut has the link alone."""

    api: str | None = field(default=None, metadata=key("of a delay or a doubling, as the three after it"))
    direction: str | None = None
    from_offset: int | None = field(default=None, metadata=key(beside="api"))
    topic: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Close(OfLink):
    """Connections of the link were reset once."""

    connections: int = field(metadata=key("how many"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Lost(OfLink):
    """A cut took its first bytes, or a connection, on a link."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OfFrame(OfLink):
    """An event about one frame."""

    api: str
    direction: str = field(metadata=key("`request` or `answer`"))
    offset: int | None = field(metadata=key("the highest fetch offset that it is about"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Held(OfFrame):
    """A frame was held."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Delayed(OfFrame):
    """A delay took its first frame on a link."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Doubled(OfFrame):
    """A request was delivered twice."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Dropped(OfFrame):
    """A held frame was thrown away."""

    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class FrameUnreadable(OfLink):
    """A frame of a kind that the fabric could not read, and let pass; once for each kind."""

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
    """A follower asked its leader where an epoch ends."""

    leader_epoch: int
    version: int = field(metadata=key("of the request"))


@dataclass(frozen=True, slots=True, kw_only=True)
class EpochAnswer(OfLinkAndPartition):
    """The answer to it, on the link of its question."""

    error: int = field(metadata=key("Kafka's code"))
    leader_epoch: int = field(metadata=key("-1 in v0"))
    end_offset: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Fetch(OfLinkAndPartition):
    """A follower's fetch offset, recorded when it changes."""

    offset: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Fetched(OfLinkAndPartition):
    """A follower's fetch from there was answered; once for every offset, where nodes report nothing themselves."""

    offset: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Commanded(OfLinkAndPartition):
    """A node answered a LeaderAndIsr, on the link from its controller, where nodes report nothing themselves."""

    leader: str | None = field(metadata=key("name of a node"))
    epoch: int
    isr: tuple[str | None, ...] = field(metadata=key("names of nodes"))
    error: int = field(metadata=key("Kafka's code; 0: it has obeyed"))
