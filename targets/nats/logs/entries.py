"""
Decode what a Raft group sends and logs: append entries, and the stream's records in them. Bytes in, values out.

All numbers are little endian. An append entry, as it is on the wire and in the group's log:

    leader 8, term 8, commit 8, term before 8, index before 8, entry count 2,
    entries: size 4 (counts what follows), kind 1, data; then the leader's term as a varint, since 2.10

An entry of kind 0 (normal) in a stream's group begins with an operation:

    4   record              last sequence 8, timestamp ns 8, then subject, reply, header (length 2 and bytes each),
                            payload (length 4 and bytes), flags as a varint
    14  compressed record   the same from the last sequence on, as one S2 block: where it would be above 8 KB
    16  part of a batch     batch's name (length 2 and bytes), number in it as a varint, 4 or 14, its record
    17  a batch's last part, which commits it
    15  gap                 JSON, its First sequence and Num: no records are there, since 2.14

The last sequence is that of the leader's log before the record; with the leader's failures, which a replica counts
and subtracts, it is higher than what the store has.

Source:  nats-server 2.15.3, server/raft.go, encode, decodeAppendEntry; server/jetstream_cluster.go,
         decodeStreamMsg, decodeBatchMsg, encodeStreamMsgAllowCompressAndBatch; the same in 2.12.1, without gaps.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from harness import limits
from targets.nats.logs.s2 import S2Error, opened_block, varint

# The kinds of an entry by their numbers, and the operations of a normal one.
KINDS: Final = (
    "normal",
    "old snapshot",
    "peer state",
    "add peer",
    "remove peer",
    "leader transfer",
    "snapshot",
    "catch-up",
)
NORMAL: Final = 0
RECORD, PURGE, DELETE, COMPRESSED_RECORD, GAP, BATCH_PART, BATCH_COMMIT = 4, 5, 6, 14, 15, 16, 17

_HEAD: Final = struct.Struct("<8sQQQQH")
_SIZE: Final = struct.Struct("<I")
_SHORT: Final = struct.Struct("<H")
_RECORD: Final = struct.Struct("<QQ")
_GAP_BYTES_MAX: Final = 200
_FROM_ELSEWHERE: Final = 1
_STATUS: Final = b"NATS/1.0"


class Malformed(ValueError):
    """The bytes are none that a server writes; the text says which, and what was expected."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """
    One entry of an append entry.

    Attributes:
        kind: A place in KINDS; a later release may have more.
    """

    kind: int
    data: bytes

    @property
    def operation(self) -> int | None:
        """What a normal entry does; None for another kind, or one without data."""
        return self.data[0] if self.kind == NORMAL and self.data else None


@dataclass(frozen=True, slots=True, kw_only=True)
class AppendEntry:
    """
    What a leader appends to the log of its group in one go; without entries it is a heartbeat.

    Attributes:
        term: Of the leader that made it: that of its place in the log.
        leader_term: Of the leader that sent it; None from a release without it. Higher for an older term's entry.
    """

    leader: str
    term: int
    commit: int
    previous_term: int
    previous_index: int
    entries: tuple[Entry, ...]
    leader_term: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamMessage:
    """
    A stream's record on its way through the group.

    Attributes:
        last: The sequence before it, as its leader counted.
        timestamp_ns: Since 1970; the leader's clock, and the same in every store.
        header: The whole block, with `NATS/1.0`; b"" if there is none.
        from_elsewhere: It comes from a source or a mirror.
        batch: The name of the batch that it is part of, "" if of none.
        batch_commits: It is the last one of its batch.
    """

    last: int
    timestamp_ns: int
    subject: str
    reply: str
    header: bytes
    payload: bytes
    from_elsewhere: bool = False
    batch: str = ""
    batch_number: int = 0
    batch_commits: bool = False

    @property
    def sequence(self) -> int:
        """The sequence that it has in the stream, unless records before it failed."""
        return self.last + 1

    @property
    def skips(self) -> bool:
        """Whether it only takes a sequence: nothing is stored for it but that."""
        return not (self.subject or self.timestamp_ns or self.payload or self.header)


def append_entry(data: bytes) -> AppendEntry:
    """
    Return an append entry.

    Raises:
        Malformed: A length lies, or bytes are missing.
    """
    if len(data) < _HEAD.size:
        raise Malformed(f"append entry of {len(data)} bytes; expected at least {_HEAD.size}")
    leader, term, commit, previous_term, previous_index, count = _HEAD.unpack_from(data)
    at = _HEAD.size
    entries = []
    for number in range(count):
        size = _number(_SIZE, data, at, f"size of entry {number}")
        at += _SIZE.size
        if not 1 <= size <= len(data) - at:
            raise Malformed(f"byte {at}: entry {number} has {size} bytes; expected 1 to {len(data) - at}")
        entries.append(Entry(kind=data[at], data=data[at + 1 : at + size]))
        at += size
    leader_term = None
    if at < len(data):
        leader_term, _ = _varint(data, at)
    return AppendEntry(
        leader=leader.rstrip(b"\0").decode("latin-1"),
        term=term,
        commit=commit,
        previous_term=previous_term,
        previous_index=previous_index,
        entries=tuple(entries),
        leader_term=leader_term,
    )


def stream_message(entry: Entry) -> StreamMessage | None:
    """
    Return the record in an entry of a stream's group; None if the entry is something else.

    Raises:
        Malformed: A length lies, bytes are missing, or it does not decompress.
    """
    operation, data = entry.operation, entry.data
    if operation in {BATCH_PART, BATCH_COMMIT}:
        name, at = _text(data, 1, "batch's name")
        number, at = _varint(data, at)
        if at >= len(data):
            raise Malformed(f"byte {at}: no operation in part {number} of a batch; expected {RECORD}")
        return _message(data[at], data[at + 1 :], batch=name, number=number, commits=operation == BATCH_COMMIT)
    if operation in {RECORD, COMPRESSED_RECORD}:
        assert operation is not None, "it is in a set of numbers"
        return _message(operation, data[1:])
    return None


def stream_messages(appended: AppendEntry) -> Iterator[StreamMessage]:
    """Yield the records in an append entry of a stream's group; raises as stream_message."""
    for entry in appended.entries:
        message = stream_message(entry)
        if message is not None:
            yield message


def gap(entry: Entry) -> tuple[int, int] | None:
    """
    Return the (first, end) sequences that an entry leaves without records; None if it is something else.

    Raises:
        Malformed: It is no JSON with both numbers.
    """
    if entry.operation != GAP:
        return None
    try:
        found = json.loads(entry.data[1 : 1 + _GAP_BYTES_MAX])
        first, count = found["First"], found["Num"]
    except (ValueError, RecursionError, TypeError, KeyError) as error:
        raise Malformed(f"gap {entry.data[1:80]!r}; expected JSON with First and Num") from error
    if not (type(first) is int and type(count) is int and min(first, count) >= 0):
        raise Malformed(f"gap {entry.data[1:80]!r}; expected whole numbers")
    return first, first + count


def header_lines(header: bytes) -> tuple[tuple[bytes, bytes | None], ...]:
    """
    Return a record's headers as (name, value), in order; the status behind `NATS/1.0` has the name b"".

    Raises:
        Malformed: The block does not begin with NATS/1.0, or a line has no colon.
    """
    if not header:
        return ()
    first, *lines = header.split(b"\r\n")
    if not first.startswith(_STATUS):
        raise Malformed(f"header {first[:40]!r}; expected {_STATUS!r}")
    found: list[tuple[bytes, bytes | None]] = []
    if status := first[len(_STATUS) :].strip():
        found.append((b"", status))
    if header.count(b"\r\n") > limits.LOG_RECORD_HEADERS_MAX:
        raise Malformed(f"{len(lines)} header lines; this reader takes at most {limits.LOG_RECORD_HEADERS_MAX}")
    for line in filter(None, lines):
        name, colon, value = line.partition(b":")
        if not colon:
            raise Malformed(f"header line {line[:40]!r}; expected a name, a colon and a value")
        found.append((name, value.strip()))
    return tuple(found)


def _message(
    operation: int, data: bytes, *, batch: str = "", number: int = 0, commits: bool = False
) -> StreamMessage:
    if operation == COMPRESSED_RECORD:
        try:
            data = opened_block(data, limits.LOG_BATCH_BYTES_MAX)
        except S2Error as error:
            raise Malformed(f"compressed record: {error}") from error
    elif operation != RECORD:
        raise Malformed(f"operation {operation} in a batch; expected {RECORD} or {COMPRESSED_RECORD}")
    if len(data) < _RECORD.size:
        raise Malformed(f"record of {len(data)} bytes; expected at least {_RECORD.size}")
    last, timestamp_ns = _RECORD.unpack_from(data)
    subject, at = _text(data, _RECORD.size, "subject")
    reply, at = _text(data, at, "reply")
    header, at = _bytes(_SHORT, data, at, "header")
    payload, at = _bytes(_SIZE, data, at, "payload")
    flags = _varint(data, at)[0] if at < len(data) else 0
    return StreamMessage(
        last=last,
        timestamp_ns=timestamp_ns,
        subject=subject,
        reply=reply,
        header=header,
        payload=payload,
        from_elsewhere=bool(flags & _FROM_ELSEWHERE),
        batch=batch,
        batch_number=number,
        batch_commits=commits,
    )


def _bytes(length: struct.Struct, data: bytes, at: int, what: str) -> tuple[bytes, int]:
    """Return bytes that have their length before them, and where they end."""
    size = _number(length, data, at, f"length of the {what}")
    at += length.size
    if size > len(data) - at:
        raise Malformed(f"byte {at}: {what} of {size} bytes; expected at most {len(data) - at}")
    return data[at : at + size], at + size


def _text(data: bytes, at: int, what: str) -> tuple[str, int]:
    found, at = _bytes(_SHORT, data, at, what)
    return found.decode("utf-8", "surrogateescape"), at


def _number(form: struct.Struct, data: bytes, at: int, what: str) -> int:
    if at + form.size > len(data):
        raise Malformed(f"byte {at}: no {what}; expected {form.size} bytes, and {len(data) - at} are left")
    return int(form.unpack_from(data, at)[0])


def _varint(data: bytes, at: int) -> tuple[int, int]:
    try:
        return varint(data, at)
    except S2Error as error:
        raise Malformed(str(error)) from error
