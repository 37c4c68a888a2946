"""
Frames of Kafka's and ZooKeeper's wire protocols: lengths, headers, and api names.

Nothing here does IO. Readers are `(buffer, offset) -> (value, size)`, where size is the number of bytes read.
They raise Unreadable and never read past the buffer. A frame is a 4-byte length (big-endian, signed) and that
many bytes. ZooKeeper's packets have the same form, with other bodies.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from enum import Enum, auto
from typing import Final, TypeAlias

from harness.fabric.limits import FRAME_BYTES_MAX, HEAD_BYTES, WHOLE_BYTES_MAX

LENGTH: Final = struct.Struct(">i")
REQUEST_HEAD: Final = struct.Struct(">hhih")
ANSWER_HEAD: Final = struct.Struct(">i")

FETCH: Final = 1
LEADER_AND_ISR: Final = 4
CONTROLLED_SHUTDOWN: Final = 7
OFFSET_FOR_LEADER_EPOCH: Final = 23

# Kafka's api keys and names, as far as a broker in ZooKeeper mode receives them from other brokers and clients.
API_NAMES: Final[dict[int, str]] = {
    0: "Produce",
    1: "Fetch",
    2: "ListOffsets",
    3: "Metadata",
    4: "LeaderAndIsr",
    5: "StopReplica",
    6: "UpdateMetadata",
    7: "ControlledShutdown",
    8: "OffsetCommit",
    9: "OffsetFetch",
    10: "FindCoordinator",
    11: "JoinGroup",
    12: "Heartbeat",
    13: "LeaveGroup",
    14: "SyncGroup",
    15: "DescribeGroups",
    16: "ListGroups",
    17: "SaslHandshake",
    18: "ApiVersions",
    19: "CreateTopics",
    20: "DeleteTopics",
    21: "DeleteRecords",
    22: "InitProducerId",
    23: "OffsetForLeaderEpoch",
    24: "AddPartitionsToTxn",
    25: "AddOffsetsToTxn",
    26: "EndTxn",
    27: "WriteTxnMarkers",
    28: "TxnOffsetCommit",
    29: "DescribeAcls",
    30: "CreateAcls",
    31: "DeleteAcls",
    32: "DescribeConfigs",
    33: "AlterConfigs",
    34: "AlterReplicaLogDirs",
    35: "DescribeLogDirs",
    36: "SaslAuthenticate",
    37: "CreatePartitions",
    38: "CreateDelegationToken",
    39: "RenewDelegationToken",
    40: "ExpireDelegationToken",
    41: "DescribeDelegationToken",
    42: "DeleteGroups",
    43: "ElectLeaders",
    44: "IncrementalAlterConfigs",
    45: "AlterPartitionReassignments",
    46: "ListPartitionReassignments",
    47: "OffsetDelete",
    48: "DescribeClientQuotas",
    49: "AlterClientQuotas",
    50: "DescribeUserScramCredentials",
    51: "AlterUserScramCredentials",
    56: "AlterPartition",
    57: "UpdateFeatures",
    58: "Envelope",
    60: "DescribeCluster",
    61: "DescribeProducers",
    65: "DescribeTransactions",
    66: "ListTransactions",
    67: "AllocateProducerIds",
}


class Unreadable(ValueError):
    """Bytes that do not fit the layout: too short, a length out of range, text that is not UTF-8."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestHeader:
    """The header of every request; client_id is "" if it is null, or if the version has none."""

    api_key: int
    version: int
    correlation: int
    client_id: str

    @property
    def api(self) -> str:
        """The api's name; `api-<key>` if the table lacks it."""
        return api_name(self.api_key)


class Part(Enum):
    """The kind of a piece of a connection's bytes: a frame's beginning (often all of it), its rest, or opaque."""

    HEAD = auto()
    REST = auto()
    OPAQUE = auto()


Piece: TypeAlias = tuple[Part, bytes]


class Splitter:
    """
    Splits a stream of bytes into frames, in whatever portions the bytes arrive.

    The pieces that feed has returned, joined, are the bytes fed so far, without those still waiting in the
    splitter. A frame of up to WHOLE_BYTES_MAX is one HEAD piece. The HEAD of a larger one has at least
    HEAD_BYTES, and REST pieces follow. After a length that no frame has, all bytes are OPAQUE.
    """

    __slots__ = ("_need", "_rest", "_waiting", "bad_length", "opaque")

    def __init__(self) -> None:
        self.opaque = False
        self.bad_length = 0
        self._waiting = bytearray()
        self._need = 0
        self._rest = 0

    def feed(self, data: bytes) -> list[Piece]:
        """Add bytes that arrived; return the pieces that they complete."""
        if self.opaque:
            return [(Part.OPAQUE, data)]
        pieces: list[Piece] = []
        if self._rest:
            rest = data[: self._rest]
            self._rest -= len(rest)
            pieces.append((Part.REST, rest))
            data = data[len(rest) :]
        if self._waiting:
            self._waiting += data
            if len(self._waiting) < self._need:
                return pieces
            data = bytes(self._waiting)
            self._waiting = bytearray()
        self._split(data, pieces)
        return pieces

    def surrender(self) -> list[Piece]:
        """Return the bytes that still wait; treat all that follow as opaque."""
        waiting, self._waiting = bytes(self._waiting), bytearray()
        self.opaque = True
        return [(Part.OPAQUE, waiting)] if waiting else []

    def _split(self, data: bytes, pieces: list[Piece]) -> None:
        offset, total = 0, len(data)
        while offset < total:
            have = total - offset
            if have < LENGTH.size:
                self._wait(data, offset, LENGTH.size)
                return
            (length,) = LENGTH.unpack_from(data, offset)
            if not 0 <= length <= FRAME_BYTES_MAX:
                self.opaque, self.bad_length = True, length
                pieces.append((Part.OPAQUE, data[offset:]))
                return
            size = LENGTH.size + length
            if have >= size:
                pieces.append((Part.HEAD, data[offset : offset + size]))
                offset += size
            elif size > WHOLE_BYTES_MAX and have >= HEAD_BYTES:
                pieces.append((Part.HEAD, data[offset:]))
                self._rest = size - have
                return
            else:
                self._wait(data, offset, size if size <= WHOLE_BYTES_MAX else HEAD_BYTES)
                return

    def _wait(self, data: bytes, offset: int, need: int) -> None:
        self._waiting = bytearray(data[offset:])
        self._need = need


def api_name(api_key: int) -> str:
    """Return an api's name; `api-<key>` if the table lacks it."""
    return API_NAMES.get(api_key) or f"api-{api_key}"


def is_whole(frame: bytes) -> bool:
    """Return True if a HEAD piece holds its whole frame."""
    (length,) = LENGTH.unpack_from(frame)
    return bool(length == len(frame) - LENGTH.size)


def request_header(buffer: bytes, offset: int) -> tuple[RequestHeader, int]:
    """
    Read a request's header, up to and including the client id.

    The tagged fields of header v2, which only flexible requests have, are not counted in the size.

    Raises:
        Unreadable: The header is cut short, or its client id is not UTF-8.

    Source:  Kafka's RequestHeader.json; ControlledShutdown v0 alone has no client id.
    """
    try:
        api_key, version, correlation, length = REQUEST_HEAD.unpack_from(buffer, offset)
    except struct.error as error:
        raise Unreadable(f"request header at {offset}: {error}; expected {REQUEST_HEAD.size} bytes") from error
    if (api_key, version) == (CONTROLLED_SHUTDOWN, 0):
        header = RequestHeader(api_key=api_key, version=version, correlation=correlation, client_id="")
        return header, REQUEST_HEAD.size - 2
    start = offset + REQUEST_HEAD.size
    end = start + max(length, 0)
    if length < -1 or end > len(buffer):
        raise Unreadable(f"client id at {start}: length {length}; expected -1 to {len(buffer) - start}")
    try:
        client_id = buffer[start:end].decode()
    except UnicodeDecodeError as error:
        raise Unreadable(f"client id at {start}: {error}; expected UTF-8") from error
    return RequestHeader(
        api_key=api_key, version=version, correlation=correlation, client_id=client_id
    ), end - offset


def answer_correlation(buffer: bytes, offset: int) -> tuple[int, int]:
    """Read the correlation id at the beginning of an answer; raise Unreadable if it is cut short."""
    try:
        (correlation,) = ANSWER_HEAD.unpack_from(buffer, offset)
    except struct.error as error:
        raise Unreadable(f"answer header at {offset}: {error}; expected {ANSWER_HEAD.size} bytes") from error
    return correlation, ANSWER_HEAD.size
