"""
The frames of Fluss: a length, then a head, then a message of FlussApi.proto.

    request   length (4), api key (2), version (2), request id (4), message; big-endian
    answer    length (4), type (1), request id (4), message; an ErrorResponse unless the type is SUCCESS

Source:  MessageCodec.java, ApiKeys.java and FlussApi.proto of Fluss 0.9.1.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from enum import IntEnum
from typing import Final

from harness.target.length_prefix import LENGTH
from harness.target.wire import Word

REQUEST: Final = struct.Struct(">hhi")
ANSWER: Final = struct.Struct(">bi")


class Api(IntEnum):
    """The requests that servers and clients send; the name of each is Fluss's own."""

    ApiVersions = 1000
    CreateDatabase = 1001
    DropDatabase = 1002
    ListDatabases = 1003
    DatabaseExists = 1004
    CreateTable = 1005
    DropTable = 1006
    GetTableInfo = 1007
    ListTables = 1008
    ListPartitionInfos = 1009
    TableExists = 1010
    GetTableSchema = 1011
    GetMetadata = 1012
    UpdateMetadata = 1013
    ProduceLog = 1014
    FetchLog = 1015
    PutKv = 1016
    Lookup = 1017
    NotifyLeaderAndIsr = 1018
    StopReplica = 1019
    AdjustIsr = 1020
    ListOffsets = 1021
    CommitKvSnapshot = 1022
    InitWriter = 1026
    CommitRemoteLogManifest = 1027
    NotifyRemoteLogOffsets = 1028
    NotifyKvSnapshotOffset = 1029
    NotifyLakeTableOffset = 1031
    Authenticate = 1038
    ControlledShutdown = 1043


class Type(IntEnum):
    """What an answer is."""

    SUCCESS = 0
    ERROR = 1
    FAILURE = 2


_NAMES: Final[Mapping[int, str]] = {each.value: each.name for each in Api}
WORDS: Final[Mapping[int, Word]] = {
    Api.FetchLog: Word.FETCH,
    Api.NotifyLeaderAndIsr: Word.COMMAND,
    Api.StopReplica: Word.STOP,
}
# The names of messages that no general word fits.
MESSAGES: Final = tuple(each.name for each in Api if each not in WORDS)


class Unreadable(ValueError):
    """A frame that is too short for its head."""


def api_word(key: int) -> str:
    """Return the general word for a request, else its name; `api-KEY` for one that is not in the table."""
    word = WORDS.get(key)
    return word.value if word is not None else _NAMES.get(key, f"api-{key}")


def request_head(frame: bytes) -> tuple[int, int, int]:
    """Return a request's api key, version and request id; raise Unreadable if it is cut short."""
    try:
        key, version, request = REQUEST.unpack_from(frame, LENGTH.size)
    except struct.error as error:
        raise Unreadable(f"request of {len(frame)} bytes: {error}") from error
    return key, version, request


def answer_head(frame: bytes) -> tuple[int, int]:
    """Return an answer's type and request id; raise Unreadable if it is cut short."""
    try:
        kind, request = ANSWER.unpack_from(frame, LENGTH.size)
    except struct.error as error:
        raise Unreadable(f"answer of {len(frame)} bytes: {error}") from error
    return kind, request


def request_body(frame: bytes) -> bytes:
    """Return the message of a request."""
    return frame[LENGTH.size + REQUEST.size :]


def answer_body(frame: bytes) -> bytes:
    """Return the message of an answer."""
    return frame[LENGTH.size + ANSWER.size :]


def request(key: Api, number: int, body: bytes) -> bytes:
    """Return the frame of a request, in its version 0."""
    return LENGTH.pack(REQUEST.size + len(body)) + REQUEST.pack(key, 0, number) + body
