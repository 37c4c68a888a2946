"""
A wire on which each node asks another and waits for the answer: what a target must say of it at least.

It has one kind of link between nodes, with an address for each pair of nodes, so that none need say who it is.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Collection, Mapping, Sequence
from typing import ClassVar, Final

from harness.events import Fetch
from harness.target.wire import (
    Between,
    Direction,
    Hearing,
    Link,
    LinkKind,
    Message,
    Reading,
    Seen,
    Sender,
    Stands,
    Word,
)

# The partition of a system that has one, and an offset.
Asked = tuple[str, int, int]
_LINKS: Final = (LinkKind(name="nodes", between=Between.NODES, sender=Sender.PAIR),)


class PlainWire:
    """
    The messages of a system; see harness/target/wire.py for every call of a wire.

    Attributes:
        words: general word -> the system's own name of what stands for it; messages of those that are left out do
            not exist, or cannot be told apart.
        messages: its own names of messages that no general word fits.
    """

    words: ClassVar[Mapping[Word, str]]
    messages: Collection[str] = ()
    links: Sequence[LinkKind] = _LINKS

    def size(self, buffer: bytes, offset: int) -> int:
        """Return how many bytes the message at the offset has, 0 if it takes more to know: here it is a line."""
        return max(0, buffer.find(b"\n", offset) + 1 - offset)

    @abstractmethod
    def asks(self, question: bytes) -> tuple[str, Sequence[Asked]]:
        """Return the word, or own name, of a question; and (topic, partition, offset) of all that it asks for."""

    def stands(self, rules: Mapping[str, str]) -> Mapping[Word, Stands]:
        """Return what stands for each word; a restarted follower asks as any other, by a fetch."""
        del rules
        found = {word: Stands(api=word, own=own) for word, own in self.words.items()}
        if Word.FETCH in found:
            found.setdefault(Word.QUESTION, found[Word.FETCH])
        return found

    def hear(self, nodes: Mapping[int, str]) -> Hearing:
        """Return itself: connections share nothing."""
        del nodes
        return self

    def reading(self, kind: LinkKind, link: Link) -> Reading | None:
        """Return the reading of a connection."""
        del kind
        return PlainReading(self, link)


class PlainReading:
    """One connection: an answer is about what was asked last."""

    def __init__(self, wire: PlainWire, link: Link) -> None:
        self._wire = wire
        self._link = link
        self._api = ""
        self._about: Sequence[Asked] = ()

    def size(self, buffer: bytes, offset: int, direction: Direction) -> int:
        """Return how long the message is."""
        del direction
        return self._wire.size(buffer, offset)

    def read(self, frame: bytes, direction: Direction) -> Message:
        """Return what a question asks, or which question is answered."""
        events: tuple[Fetch, ...] = ()
        if direction is Direction.REQUEST:
            self._api, self._about = self._wire.asks(frame)
            if self._api == Word.FETCH:
                events = tuple(
                    Fetch(link=self._link, topic=topic, partition=partition, offset=offset)
                    for topic, partition, offset in self._about
                )
        offsets = tuple((topic, offset) for topic, _, offset in self._about)
        seen = Seen(link=self._link, api=self._api, direction=direction, offsets=offsets)
        return Message(seen=seen, events=events)

    def sent_again(self, correlation: int) -> None:
        """Expect nothing: no message of it has a number, so that none is sent twice."""
