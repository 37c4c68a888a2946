"""Frames of NATS and what members of a Raft group say, written field by field as the server's source has them."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Any

from harness.target.wire import Direction, Message, Seen
from targets.nats.wire.memory import Memory
from targets.nats.wire.reading import RouteReading
from targets.nats.wire.wire import LINKS, WIRE
from tests.events.as_recorded import as_recorded

GROUP = "S-R3F-abcdefgh"
# An entry: its kind and its data.
Entry = tuple[int, bytes]
PEER_STATE: Entry = (2, bytes(12))


def rmsg(subject: str, payload: bytes = b"", reply: str = "", account: str = "$SYS") -> bytes:
    """Return a message from server to server."""
    words = [account, subject, *([reply] if reply else []), str(len(payload))]
    return f"RMSG {' '.join(words)}\r\n".encode() + payload + b"\r\n"


def stream_message(sequence: int, subject: str = "log-0", body: bytes = b"value") -> bytes:
    """Return what an entry has that gives a message this sequence."""
    said = b"\x04" + struct.pack("<QQH", sequence - 1, 5, len(subject)) + subject.encode()
    return said + struct.pack("<HHI", 0, 0, len(body)) + body + b"\x00"


def stored(sequence: int, subject: str = "log-0") -> Entry:
    """Return the entry of a stream's message."""
    return 0, stream_message(sequence, subject)


def append_entry(previous: int, entries: Sequence[Entry] = (), *, term: int = 1, count: int = -1) -> bytes:
    """Return an append entry."""
    count = len(entries) if count < 0 else count
    head = b"leader__" + struct.pack("<QQQQH", term, previous, term, previous, count)
    body = b"".join(struct.pack("<IB", 1 + len(data), kind) + data for kind, data in entries)
    return head + body + b"\x00"


def answer(index: int, *, success: bool = True, term: int = 1) -> bytes:
    """Return the answer to an append entry."""
    return struct.pack("<QQ8sB", term, index, b"follower", success)


def vote_request() -> bytes:
    """Return a request for a vote."""
    return struct.pack("<QQQ8s", 2, 1, 7, b"follower")


def vote() -> bytes:
    """Return a vote."""
    return struct.pack("<Q8sB", 2, b"follower", 1)


class Route:
    """The route that `dialler` dialled to `other`, and all that its frames said."""

    def __init__(self, dialler: str = "L", other: str = "F", memory: Memory | None = None) -> None:
        link = (dialler, other)
        reading = WIRE.hear({}).reading(LINKS[0], link) if memory is None else RouteReading(link, memory)
        assert isinstance(reading, RouteReading)
        self.reading = reading
        self.directions = {dialler: Direction.REQUEST, other: Direction.ANSWER}
        self.said: list[tuple[str, dict[str, Any]]] = []
        self.errors: list[str] = []

    def sends(self, sender: str, frame: bytes) -> Seen:
        """Read a frame that one of the two sent."""
        direction = self.directions[sender]
        assert len(frame) == self.reading.size(frame, 0, direction)
        return self.read(sender, frame).seen

    def read(self, sender: str, frame: bytes) -> Message:
        """Read a frame, or the beginning of one."""
        found = self.reading.read(frame, self.directions[sender])
        assert -1 == found.seen.correlation
        self.said += map(as_recorded, found.events)
        self.errors += [found.error] if found.error else []
        return found

    def appends(
        self, previous: int, *entries: Entry, group: str = GROUP, sender: str = "L", term: int = 1
    ) -> Seen:
        """Read an append entry, whose inbox is the group's name behind that of the sender."""
        payload = append_entry(previous, entries, term=term)
        return self.sends(sender, rmsg(f"$NRG.AE.{group}", payload, f"$NRG.R.{sender}{group}"))

    def answers(self, index: int, *, success: bool = True, group: str = GROUP, to: str = "L") -> Seen:
        """Read the answer to an append entry."""
        sender = next(each for each in self.directions if each != to)
        return self.sends(sender, rmsg(f"$NRG.R.{to}{group}", answer(index, success=success)))

    def offsets(self, f: str) -> list[tuple[str, int, int]]:
        """Return topic, partition and offset of each event of this kind."""
        return [(value["topic"], value["partition"], value["offset"]) for name, value in self.said if name == f]


def asked(api: str, *offsets: tuple[str, int], link: tuple[str, str] = ("F", "L")) -> Seen:
    """Return a request."""
    return Seen(link=link, api=api, direction=Direction.REQUEST, offsets=offsets)


def given(api: str, *offsets: tuple[str, int], link: tuple[str, str] = ("F", "L")) -> Seen:
    """Return an answer."""
    return Seen(link=link, api=api, direction=Direction.ANSWER, offsets=offsets)
