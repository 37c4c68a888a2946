"""
Frames of the remoting protocol: a length, the head's length, a head as JSON, a body.

The upper byte of the head's length says how the head is spelled; by default it is JSON, which is all that is read
here. A node that is set to another spelling passes unread, and the run is unknown.

Source:  RemotingCommand.java (encode, decode, markSerializeType); RequestCode.java, 5.3.3 and 5.5.0.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Any, Final

from harness.target.length_prefix import LENGTH
from harness.target.wire import Word

HEAD: Final = struct.Struct(">iI")
HEAD_BYTES_MAX: Final = 1024 * 1024
_LENGTH_MASK: Final = 0xFFFFFF
_JSON: Final = 0
_ANSWER: Final = 1
_VERSION: Final = 463  # of 5.x; brokers log it, and compare it with their own
_SHOWN: Final = 80


class Code(IntEnum):
    """The requests that nodes, services and the harness send; a member's name is the word for it in rules."""

    SendMessage = 10
    PullMessage = 11
    UpdateAndCreateTopic = 17
    GetAllTopicConfig = 21
    GetMaxOffset = 30
    GetAllConsumerOffset = 43
    GetAllDelayOffset = 45
    GetTimerCheckpoint = 60
    GetTimerMetrics = 61
    RegisterBroker = 103
    UnregisterBroker = 104
    GetRouteInfo = 105
    GetAllSubscriptionGroupConfig = 201
    GetNameServerConfig = 319
    QueryDataVersion = 322
    GetTopicConfig = 351
    GetAllMessageRequestMode = 402
    GetBrokerMemberGroup = 901
    BrokerHeartbeat = 904
    NotifyMinBrokerIdChange = 905
    ExchangeHaInfo = 906
    AlterSyncStateSet = 1001
    ElectMaster = 1002
    RegisterToController = 1003
    GetReplicaInfo = 1004
    GetControllerMetadata = 1005
    GetSyncStateData = 1006
    GetEpochCache = 1007
    NotifyRoleChanged = 1008
    GetNextBrokerId = 1012
    ApplyBrokerId = 1013


COMMAND: Final = Code.NotifyRoleChanged
MESSAGES: Final = tuple(code.name for code in Code if code is not COMMAND)


class Unreadable(ValueError):
    """A frame is no frame of the protocol; the text says why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Frame:
    """
    A request or an answer.

    Attributes:
        code: what is asked, or the answer's result: 0 for success.
        number: of the request, also in its answer.
        remark: what an answer says beside its code.
    """

    code: int
    number: int
    answers: bool = False
    fields: Mapping[str, Any] = field(default_factory=dict)
    remark: str = ""
    body: bytes = b""


def word_of(code: int) -> str:
    """Return the word for a request: a general one, its own name, or its number."""
    if code == COMMAND:
        return Word.COMMAND.value
    try:
        return Code(code).name
    except ValueError:
        return f"request-{code}"


def written(code: int, number: int, fields: Mapping[str, object], body: bytes = b"") -> bytes:
    """Return the frame of a request."""
    head = json.dumps(
        {
            "code": code,
            "language": "JAVA",
            "version": _VERSION,
            "opaque": number,
            "flag": 0,
            "extFields": {name: str(value) for name, value in fields.items()},
        }
    ).encode()
    return HEAD.pack(4 + len(head) + len(body), len(head)) + head + body


def read(frame: bytes) -> Frame:
    """
    Read a frame of which the head is there; the body may be cut.

    Raises:
        Unreadable: it has no head as JSON.
    """
    if len(frame) < HEAD.size:
        raise Unreadable(f"a frame of {len(frame)} bytes; expected one with a head")
    _, word = HEAD.unpack_from(frame)
    size, spelling = word & _LENGTH_MASK, word >> 24
    if spelling != _JSON or not 0 < size <= min(HEAD_BYTES_MAX, len(frame) - HEAD.size):
        raise Unreadable(
            f"a head of {size} bytes, spelled in way {spelling}; expected JSON within {len(frame)} bytes"
        )
    head = frame[HEAD.size : HEAD.size + size]
    try:
        found = json.loads(head)
        return Frame(
            code=int(found["code"]),
            number=int(found["opaque"]),
            answers=bool(int(found.get("flag", 0)) & _ANSWER),
            fields=dict(found.get("extFields") or {}),
            remark=str(found.get("remark") or ""),
            body=frame[HEAD.size + size :],
        )
    except (ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError) as error:
        raise Unreadable(f"head {head[:_SHOWN]!r}: {error!r:.100}; expected JSON of a remoting command") from error


def length_of(frame: bytes) -> int:
    """Return the length that a frame begins with, without the length itself."""
    (length,) = LENGTH.unpack_from(frame)
    return int(length)
