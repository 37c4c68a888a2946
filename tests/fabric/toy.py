"""A wire that is not Kafka's: a head of nine bytes, and an address for each pair of nodes."""

from __future__ import annotations

import struct
from collections.abc import Collection, Mapping, Sequence
from typing import Final

from harness.events import Fetch
from harness.target.wire import (
    Between,
    Direction,
    Hearing,
    Link,
    LinkKind,
    Message,
    NotFramedError,
    Reading,
    Seen,
    Sender,
    Stands,
    Word,
)

_HEAD: Final = struct.Struct(">cii")  # kind, length, offset


def frame(kind: bytes, offset: int = 0, body: bytes = b"") -> bytes:
    return _HEAD.pack(kind, len(body), offset) + body


class ToyReading:
    """`C` asks for records from an offset, `A` answers with some, `B` begs for the office."""

    def __init__(self, link: Link) -> None:
        self._link = link

    def size(self, buffer: bytes, offset: int, direction: Direction) -> int:
        if len(buffer) - offset < _HEAD.size:
            return 0
        kind, length, _ = _HEAD.unpack_from(buffer, offset)
        if kind not in b"CAB":
            raise NotFramedError(f"kind {kind!r}; expected C, A or B")
        return _HEAD.size + int(length)

    def read(self, frame: bytes, direction: Direction) -> Message:
        kind, _, offset = _HEAD.unpack_from(frame)
        api = "beg" if kind == b"B" else Word.FETCH.value
        offsets = (("log", offset),) if kind == b"C" else ()
        events = tuple(Fetch(link=self._link, topic=t, partition=0, offset=o) for t, o in offsets)
        return Message(seen=Seen(link=self._link, api=api, direction=direction, offsets=offsets), events=events)

    def sent_again(self, correlation: int) -> None:
        raise AssertionError("no frame of it has a number")


class OfficeReading(ToyReading):
    """The same between two nodes of which either dialled: each asks, and answers what the other asked."""

    def __init__(self, link: Link) -> None:
        super().__init__(link)
        there = ToyReading(link)
        back = ToyReading(link[::-1])
        # (whether the one that dialled sent it, whether it answers) -> of whose question it is.
        self._of = {(True, False): there, (False, True): there, (False, False): back, (True, True): back}

    def read(self, frame: bytes, direction: Direction) -> Message:
        answers = frame[:1] == b"A"
        about = Direction.ANSWER if answers else Direction.REQUEST
        return self._of[direction is Direction.REQUEST, answers].read(frame, about)


class ToyWire:
    links: Sequence[LinkKind] = (
        LinkKind(name="copy", between=Between.NODES, sender=Sender.PAIR),
        LinkKind(name="office", between=Between.NODES, sender=Sender.PAIR, either_dials=True),
    )
    messages: Collection[str] = ("beg",)

    def stands(self, rules: Mapping[str, str]) -> Mapping[Word, Stands]:
        return {
            Word.FETCH: Stands(api="fetch", own="C"),
            Word.COMMAND: Stands(api="", own="a file says who leads"),
        }

    def hear(self, nodes: Mapping[int, str]) -> Hearing:
        return self

    def reading(self, kind: LinkKind, link: Link) -> Reading | None:
        return OfficeReading(link) if kind.either_dials else ToyReading(link)
