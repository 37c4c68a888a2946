"""
What members of a Raft group of NATS send each other, as far as rules of links and histories need it.

    append entry   leader (8 bytes), term, commit, previous term, previous index (8 each), number of entries (2);
                   then entries: length of the rest (4), kind (1), data; little-endian
    its answer     term, index (8 each), peer (8), success (1); without the last: it asks for a snapshot
    answer to a vote request: term (8), peer (8), flags (1)
    stream message op (1), sequence before it (8), time (8), subject, reply, header, and the message
       of a batch  op (1), batch (2 bytes of length before it), number in it (uvarint), then a stream message

An append entry that has entries is one entry of the leader's log, whose index is the previous index and one.

Source:  raft.go and jetstream_cluster.go (encodeStreamMsgAllowCompressAndBatch) of nats-server 2.12.1 and 2.15.3.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from enum import IntEnum
from typing import Final

from targets.nats.wire import s2
from targets.nats.wire.frames import Malformed, text

_HEAD: Final = struct.Struct("<8sQQQQH")
_ENTRY: Final = struct.Struct("<IB")
_LENGTH_BYTES: Final = 4  # of an entry's length, which does not count itself
_ANSWER: Final = struct.Struct("<QQ8s")
_MESSAGE: Final = struct.Struct("<QQH")
_BATCH: Final = struct.Struct("<BH")

ANSWER_BYTES: Final = 25
SNAPSHOT_REQUEST_BYTES: Final = 24
VOTE_ANSWER_BYTES: Final = 17
# A sequence beyond is a lie: servers count from 1, and nobody's history has such numbers.
_NUMBER_MAX: Final = 2**63 - 1
# So much of a compressed message is looked at; its subject must be within.
_BEGINNING_BYTES: Final = 1024


class Kind(IntEnum):
    """The kind of an entry, as far as it matters here."""

    NORMAL = 0
    OLD_SNAPSHOT = 1
    SNAPSHOT = 6


class Op(IntEnum):
    """What a stream's normal entry does, as far as it matters here."""

    STREAM_MESSAGE = 4
    DELETE_MESSAGE = 6
    COMPRESSED_STREAM_MESSAGE = 14
    BATCH_MESSAGE = 16
    BATCH_COMMIT_MESSAGE = 17


_MESSAGES: Final = (
    Op.STREAM_MESSAGE,
    Op.COMPRESSED_STREAM_MESSAGE,
    Op.BATCH_MESSAGE,
    Op.BATCH_COMMIT_MESSAGE,
)


@dataclass(frozen=True, slots=True)
class StreamMessage:
    """A message of a stream; sequence: the one it is to have."""

    subject: str
    sequence: int


@dataclass(frozen=True, slots=True, kw_only=True)
class AppendEntry:
    """
    An append entry of a stream's group.

    Attributes:
        stored: whether members store it, under the index behind `previous`: neither heartbeat nor snapshot.
        first: the first stream message in it; None if there is none, or it cannot be read.
        last: the last one, in the same way.
        understood: whether all of it came, and the stream's last sequence is that of `last` behind it, or that of
            before if there is none.
    """

    term: int
    previous: int
    stored: bool
    first: StreamMessage | None
    last: StreamMessage | None
    understood: bool


@dataclass(frozen=True, slots=True)
class Answer:
    """The answer to an append entry: the last index that its sender's log has, and whether it took the entry."""

    term: int
    index: int
    success: bool


def append_entry(data: bytes, *, whole: bool) -> AppendEntry:
    """
    Return what an append entry of a stream's group says.

    Args:
        whole: whether this is all of it; else what is cut off is not missed.

    Raises:
        Malformed: it is too short for what it says.
    """
    if len(data) < _HEAD.size:
        raise Malformed(f"append entry of {len(data)} bytes; expected a head of {_HEAD.size}")
    _, term, _, _, previous, count = _HEAD.unpack_from(data)
    found: list[bytes] = []  # the first stream message, and the last
    at, understood, stored = _HEAD.size, True, count > 0
    for number in range(count):
        if len(data) <= at + _ENTRY.size and not whole:
            understood = False
            break
        kind, body, at = _body(data, at, number, whole=whole)
        if kind in (Kind.SNAPSHOT, Kind.OLD_SNAPSHOT):
            stored = False
        elif kind == Kind.NORMAL and body[:1] and body[0] in _MESSAGES:
            found[1:] = [body] if found else [body, body]
        elif kind == Kind.NORMAL and body[:1] != bytes((Op.DELETE_MESSAGE,)):
            understood = False  # a purge may put the stream's end forward
    first, last = (stream_message(found[0]), stream_message(found[1])) if found else (None, None)
    return AppendEntry(
        term=term,
        previous=previous,
        stored=stored,
        first=first,
        last=last,
        understood=understood and (last is not None or not found),
    )


def answer(data: bytes) -> Answer:
    """
    Return what the answer to an append entry says, or the request for a snapshot.

    Raises:
        Malformed: it has another length.
    """
    if len(data) not in (ANSWER_BYTES, SNAPSHOT_REQUEST_BYTES):
        raise Malformed(f"answer to an append entry of {len(data)} bytes; expected {ANSWER_BYTES}")
    term, index, _ = _ANSWER.unpack_from(data)
    return Answer(term, index, len(data) == ANSWER_BYTES and data[-1] == 1)


def stream_message(data: bytes) -> StreamMessage | None:
    """Return what an entry says of a stream message; None if it cannot be read, or is a gap without a subject."""
    try:
        if data[0] in (Op.BATCH_MESSAGE, Op.BATCH_COMMIT_MESSAGE):
            _, length = _BATCH.unpack_from(data)
            data = _behind_uvarint(data[_BATCH.size + length :])
        body = data[1:]
        if data[0] == Op.COMPRESSED_STREAM_MESSAGE:
            body = s2.beginning(body, _BEGINNING_BYTES)
        elif data[0] != Op.STREAM_MESSAGE:
            return None
        before, _, length = _MESSAGE.unpack_from(body)
    except (Malformed, struct.error, IndexError):
        return None
    subject = body[_MESSAGE.size : _MESSAGE.size + length]
    if len(subject) < length or not subject or before >= _NUMBER_MAX:
        return None
    return StreamMessage(text(subject), before + 1)


def _body(data: bytes, at: int, number: int, *, whole: bool) -> tuple[int, bytes, int]:
    """Return an entry's kind, its data and what is behind it."""
    try:
        length, kind = _ENTRY.unpack_from(data, at)
    except struct.error as error:
        raise Malformed(f"entry {number} at byte {at} of {len(data)}: {error}") from error
    end = at + _LENGTH_BYTES + length
    if length < 1 or (whole and end > len(data)):
        raise Malformed(f"entry {number} of {length} bytes at byte {at} of {len(data)}; expected it within")
    return kind, data[at + _ENTRY.size : end], end


def _behind_uvarint(data: bytes) -> bytes:
    return next((data[at + 1 :] for at, byte in enumerate(data[:10]) if byte < 0x80), b"")
