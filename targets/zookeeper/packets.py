"""
The packets between a node and ZooKeeper: they are split, and told apart as far as rules of links need it.

Nothing here does IO.
"""

from __future__ import annotations

import struct
from collections import deque
from dataclasses import replace
from typing import Final

from harness.target.length_prefix import LENGTH, PENDING_REQUESTS_MAX, frame_size
from harness.target.wire import Direction, Link, Message, Seen, Word

# The head of ZooKeeper's requests, and the type of a multi.
_HEAD: Final = struct.Struct(">ii")
_MULTI: Final = 14


class ZooKeeperReading:
    """
    The packets of a node's link to ZooKeeper, which differ by direction, and by being multis or not.

    Source:  zookeeper.jute: a request begins with xid and type, its answer with xid; the first of each direction,
             which begin a session, have neither.
    """

    def __init__(self, link: Link) -> None:
        self._plain = {direction: _of(link, Word.METADATA_REQUEST.value, direction) for direction in Direction}
        self._multi = {
            direction: Message(seen=replace(message.seen, multi=True))
            for direction, message in self._plain.items()
        }
        self._begun = dict.fromkeys(Direction, False)
        self._multis: deque[int] = deque(maxlen=PENDING_REQUESTS_MAX)

    def size(self, buffer: bytes, offset: int, direction: Direction) -> int:
        """Return the length of a packet."""
        del direction
        return frame_size(buffer, offset)

    def read(self, frame: bytes, direction: Direction) -> Message:
        """Return a packet, and whether it is a multi or the answer to one."""
        first, self._begun[direction] = not self._begun[direction], True
        is_multi = not first and (self._asks(frame) if direction is Direction.REQUEST else self._answers(frame))
        return self._multi[direction] if is_multi else self._plain[direction]

    def sent_again(self, correlation: int) -> None:
        """Raise AssertionError: a ZooKeeper server would accept the copy of a packet as a new packet."""
        raise AssertionError(f"ZooKeeper packet {correlation} was sent again; expected no packet to have a number")

    def _asks(self, frame: bytes) -> bool:
        if len(frame) < LENGTH.size + _HEAD.size:
            return False
        xid, kind = _HEAD.unpack_from(frame, LENGTH.size)
        if kind == _MULTI:
            self._multis.append(xid)
        return bool(kind == _MULTI)

    def _answers(self, frame: bytes) -> bool:
        if len(frame) < 2 * LENGTH.size:
            return False
        (xid,) = LENGTH.unpack_from(frame, LENGTH.size)
        if xid not in self._multis:
            return False
        self._multis.remove(xid)
        return True


def _of(link: Link, api: str, direction: Direction) -> Message:
    return Message(seen=Seen(link=link, api=api, direction=direction))
