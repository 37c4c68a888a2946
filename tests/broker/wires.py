"""Helpers for the connection tests: a transport that records its calls, and frames to feed it."""

from __future__ import annotations

import asyncio
import struct
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from targets.broker.connections import Connections, Listener
from targets.broker.core.events import Event, Received
from targets.broker.core.messages import (
    EpochAnswer,
    EpochQuestion,
    ErrorCode,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
    TopicPartition,
)
from targets.broker.inbound import Common, Inbound
from targets.broker.limits import Limits
from targets.broker.peers import HANDSHAKE_CORRELATION_ID
from targets.broker.wire import encode_request
from targets.broker.wire.versions import ROWS, Rows
from tests.broker.log.batches import produced_batch

TP = TopicPartition("t", 0)


def question(epoch: int) -> OffsetForLeaderEpochRequest:
    """Return a small request, identified by its epoch."""
    return OffsetForLeaderEpochRequest(questions=(EpochQuestion(tp=TP, leader_epoch=epoch),))


def asked(epoch: int, client_id: str = "x") -> bytes:
    """Return the request's frame; its correlation id is its epoch."""
    return encode_request(question(epoch), version=0, correlation_id=epoch, client_id=client_id)


def reply(end: int) -> OffsetForLeaderEpochResponse:
    """Return an answer, identified by its end offset."""
    return OffsetForLeaderEpochResponse(answers=(EpochAnswer(tp=TP, error=ErrorCode.NONE, end_offset=end),))


def replied(correlation_id: int, end: int) -> bytes:
    """Return the answer's frame, written by hand. Source: KIP-101: error i16, partition i32, end_offset i64."""
    body = struct.pack(">iih1sihiq", correlation_id, 1, 1, b"t", 1, 0, 0, end)
    return struct.pack(">i", len(body)) + body


def produce(acks: int) -> bytes:
    """Return a produce request v3 of one record, written by hand."""
    batch = produced_batch()
    body = struct.pack(">hhih1s", 0, 3, 1, 1, b"x") + struct.pack(">hhi", -1, acks, 1000)
    body += struct.pack(">ih1siii", 1, 1, b"t", 1, 0, len(batch)) + batch
    return struct.pack(">i", len(body)) + body


def api_versions(correlation_id: int, client_id: str = "x") -> bytes:
    """Return an ApiVersions request v0, written by hand; the wire answers it without the core."""
    body = struct.pack(">hhih", 18, 0, correlation_id, len(client_id)) + client_id.encode()
    return struct.pack(">i", len(body)) + body


def versions_told(*rows: tuple[int, int, int], error: int = 0) -> bytes:
    """Return a response to a broker's own ApiVersions v0, written by hand; rows are (api key, oldest, newest)."""
    body = struct.pack(">ihi", HANDSHAKE_CORRELATION_ID, error, len(rows))
    body += b"".join(struct.pack(">hhh", *row) for row in rows)
    return struct.pack(">i", len(body)) + body


def receive(protocol: asyncio.BufferedProtocol, data: bytes) -> None:
    """Feed bytes to a connection as a socket does, as many at a time as it has room for."""
    while data:
        room = protocol.get_buffer(-1)
        count = min(len(room), len(data))
        room[:count] = data[:count]
        data = data[count:]
        protocol.buffer_updated(count)


class Wire(asyncio.Transport):
    """A transport that only records its calls."""

    def __init__(self) -> None:
        super().__init__({"peername": ("127.0.0.1", 1)})
        self.written: list[bytes] = []
        self.reading = True
        self.aborted = False
        self.unsent = 0

    def get_write_buffer_size(self) -> int:
        return self.unsent

    def write(self, data: Any) -> None:
        self.written.append(bytes(data))

    def pause_reading(self) -> None:
        self.reading = False

    def resume_reading(self) -> None:
        self.reading = True

    def abort(self) -> None:
        self.aborted = True

    @property
    def answered(self) -> list[int]:
        """The correlation ids of the written answers."""
        return [struct.unpack_from(">ii", frame)[1] for frame in self.written]


class House:
    """What the connections of a broker share, with a clock and a thread of its own."""

    def __init__(self, limits: Limits | None = None, rows: Rows = ROWS, *, of_clients: bool = True) -> None:
        self.now = 0.0
        self.limits = limits or Limits()
        self.events: list[Event] = []
        self.connections = Connections(self.limits, lambda: self.now)
        self.listener = Listener("clients", rows, self.limits.connections_max, of_clients=of_clients)
        self.common = Common(
            broker_id=1,
            post=self.events.append,
            connections=self.connections,
            limits=self.limits,
            now_s=lambda: self.now,
            worker=ThreadPoolExecutor(max_workers=1),
        )


class Client:
    """A connection, accepted if there is room for it, its posted events, and whether it has ended."""

    def __init__(self, number: int = 1, rows: Rows = ROWS, house: House | None = None) -> None:
        self.house = house or House(rows=rows)
        self.events = self.house.events
        self.gone: list[int] = []
        self.wire = Wire()
        self.inbound = Inbound(number, self.house.listener, self.house.common, self.gone.append)
        self.inbound.connection_made(self.wire)

    def sends(self, *frames: bytes) -> None:
        receive(self.inbound, b"".join(frames))

    @property
    def epochs(self) -> list[int]:
        """The epochs of the requests handed to the core, in order."""
        return [
            event.request.questions[0].leader_epoch
            for event in self.events
            if isinstance(event, Received) and isinstance(event.request, OffsetForLeaderEpochRequest)
        ]
