"""
The replication between two brokers: a slave dials its master, and says what it has; the master sends the rest.

    slave    HANDSHAKE 16 bytes: state 4, flags 4, its number 8;  TRANSFER 12: state 4, the end of its log 8
    master   HANDSHAKE 20 bytes: state 4, size 4, the end of its log 8, epoch 4, and 12 bytes for each epoch;
             TRANSFER 36: state 4, size 4, offset 8, epoch 4, where it began 8, the confirm offset 8, and the bytes

A master that has cut its log may say a size below zero, with more bytes behind it than it says (transferToSlave):
no slave reads on, and neither does this.

A handshake is the question where each epoch begins: from the answer a slave finds where to cut its log.

Source:  AutoSwitchHAClient.java, AutoSwitchHAConnection.java, HAConnectionState.java, 5.3.3 and 5.5.0.
"""

from __future__ import annotations

import struct
from typing import Final

from harness.target.length_prefix import LENGTH_MAX
from harness.target.wire import Direction, Link, Message, NotFramedError, Seen, Word
from targets.rocketmq.logs.commit_log import Entry, begins_record, entries
from targets.rocketmq.wire.memory import Memory

_HANDSHAKE: Final = 1
_TRANSFER: Final = 2
_STATE: Final = struct.Struct(">i")
_SIZES: Final = struct.Struct(">ii")
_REPORT: Final = struct.Struct(">iq")
_SENT: Final = struct.Struct(">iiqiqq")
_SLAVE_BYTES: Final = {_HANDSHAKE: 16, _TRANSFER: _REPORT.size}
_MASTER_BYTES: Final = {_HANDSHAKE: 20, _TRANSFER: _SENT.size}
_BODY_BYTES_MAX: Final = LENGTH_MAX - _SENT.size


class Replication:
    """The frames of one connection, which a slave dialled."""

    def __init__(self, link: Link, memory: Memory) -> None:
        self._link = link
        self._memory = memory
        # A record may come in several frames: its beginning, and the byte where that is.
        self._begun = b""
        self._begun_at = -1
        # Whether the master has said a size below zero: what it sends from then on are no frames.
        self._beyond_frames = False

    def size(self, buffer: bytes, offset: int, direction: Direction) -> int:
        """Return the size of a frame by its state, and by the size of its body."""
        if self._beyond_frames and direction is Direction.ANSWER:
            return len(buffer) - offset
        if len(buffer) - offset < _STATE.size:
            return 0
        (state,) = _STATE.unpack_from(buffer, offset)
        heads = _SLAVE_BYTES if direction is Direction.REQUEST else _MASTER_BYTES
        if state not in heads:
            raise NotFramedError(f"state {state}; expected HANDSHAKE (1) or TRANSFER (2)")
        if direction is Direction.REQUEST:
            return heads[state]
        if len(buffer) - offset < _SIZES.size:
            return 0
        _, body = _SIZES.unpack_from(buffer, offset)
        if body > _BODY_BYTES_MAX or (body < 0 and state != _TRANSFER):
            raise NotFramedError(f"a body of {body} bytes; expected at most {_BODY_BYTES_MAX}")
        return heads[state] + max(0, int(body))

    def read(self, frame: bytes, direction: Direction) -> Message:
        """Return what a frame is about; the records that it carries are remembered."""
        if self._beyond_frames and direction is Direction.ANSWER:
            return Message(seen=Seen(link=self._link, api=Word.FETCH.value, direction=direction))
        (state,) = _STATE.unpack_from(frame)
        if state == _HANDSHAKE:
            return Message(seen=Seen(link=self._link, api=Word.EPOCH_QUESTION.value, direction=direction))
        if direction is Direction.REQUEST:
            _, position = _REPORT.unpack_from(frame)
        else:
            _, body, position, _, _, _ = _SENT.unpack_from(frame)
            self._beyond_frames = body < 0
            self._remember(position, frame[_SENT.size :])
        offsets = self._memory.offsets_at(position)
        return Message(seen=Seen(link=self._link, api=Word.FETCH.value, direction=direction, offsets=offsets))

    def sent_again(self, correlation: int) -> None:
        """Raise AssertionError: no frame of it has a number."""
        raise AssertionError(f"frame {correlation} was sent again; expected none of replication to be doubled")

    def _remember(self, position: int, data: bytes) -> None:
        """Note each record that is whole now, and keep the beginning of the next one."""
        if self._begun and self._begun_at + len(self._begun) == position:
            position, data = self._begun_at, self._begun + data
        after = 0
        for each in entries(data, checked=False):
            if not isinstance(each, Entry):
                break
            after = each.at + each.size
            self._memory.note(each.topic, each.queue, end=position + after, after=each.queue_offset + 1)
        rest = data[after:]
        self._begun, self._begun_at = rest if begins_record(rest) else b"", position + after
