"""
A connection of a client, a follower or a controller: requests in, answers out in their order.

An asyncio Protocol, not a stream: bytes are received in their final buffer, and one write sends a frame.
A connection has one request in progress at a time, as in Kafka, so that answers leave in the order of requests.
While others wait it reads no more, so that a producer that is faster than its brokers makes larger batches.
What takes long, a request with much in it or a long answer, is read and written on a thread, while the loop serves
others; and of many requests that came at once each connection has a few in its turn.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable
from concurrent.futures import Executor
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final

from targets.broker.connections import Connections, Listener
from targets.broker.core.events import ANYBODY, Caller, Event, Hungup, Misdirected, Received
from targets.broker.core.messages import (
    AlterConfigsResponse,
    DeleteRecordsResponse,
    DescribeConfigsResponse,
    DescribeLogDirsResponse,
    FetchResponse,
    ListOffsetsResponse,
    MetadataResponse,
    OffsetForLeaderEpochResponse,
    Payload,
    Response,
    TopicErrors,
)
from targets.broker.limits import Limits
from targets.broker.log import HeavyError, split_produced
from targets.broker.wire.addressing import receiver_of
from targets.broker.wire.codec import Incoming, decode_request, encode_response
from targets.broker.wire.frames import SMALL_BYTES, FrameSplitter
from targets.broker.wire.scalars import Pieces, WireError
from targets.broker.wire.versions import PRODUCE

log = logging.getLogger("fencepost.broker")

# Smaller pieces (on average) cost more as separate writes than as a copy.
PIECE_BYTES_MIN: Final = 32 * 1024
# Requests of one connection in its turn.
TURN_REQUESTS_MAX: Final = 16
# Work in the loop on one request: records that are looked at, and partitions of an answer.
WORK_MAX: Final = 100_000
ITEMS_MAX: Final = 1_000
# A request that is longer, and no Produce, has many items, each of which takes its time.
FRAME_BYTES_MAX: Final = 32 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class Common:
    """What the connections of a broker share; `worker` has one thread."""

    broker_id: int
    post: Callable[[Event], None]
    connections: Connections
    limits: Limits
    now_s: Callable[[], float]
    worker: Executor


class Inbound(asyncio.BufferedProtocol):
    """One connection to a listener."""

    def __init__(self, number: int, listener: Listener, common: Common, gone: Callable[[int], None]) -> None:
        self.number = number
        self.moved_s = common.now_s()
        self._listener = listener
        self._common = common
        self._gone = gone
        self._splitter = FrameSplitter(common.limits.request_bytes_max)
        self._waiting: deque[Payload] = deque()
        self._current: Incoming | None = None
        self._away: Payload | None = None  # the frame that the thread reads, or an empty one while it writes
        self._count = 0
        self._turn = 0
        self._unread = False
        self._short = False
        self._muted = False
        self._transport: asyncio.Transport | None = None

    # --- as the connections' keeper sees it --------------------------------------------------------------
    @property
    def unsent_bytes(self) -> int:
        """Return the bytes of answers that the peer has not taken yet."""
        return 0 if self._transport is None else self._transport.get_write_buffer_size()

    @property
    def wanted_bytes(self) -> int:
        """Return the bytes that the large request needs to go on."""
        return 0 if self._transport is None else self._splitter.wanted

    def resume(self) -> None:
        """Take the memory that was wanted, and go on."""
        self._short = False
        if self._transport is not None:
            self._splitter.grow()
            self._hold()
            self._mute()

    def hang_up(self, reason: str) -> None:
        """End the connection, as its other end means another broker; "" if that was said before."""
        if reason:
            log.warning("connection %d: %s; closing it", self.number, reason)
        self.close()

    def close(self) -> None:
        """End the connection at once; what waits there is not taken up."""
        self._waiting.clear()
        if self._transport is not None:
            self._transport.abort()

    # --- what asyncio calls ------------------------------------------------------------------------------
    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport), f"{transport!r} cannot be written to"
        address = str((transport.get_extra_info("peername") or ("",))[0])
        if self._common.connections.enter(self, self._listener, address):
            self._transport = transport
        else:
            transport.abort()

    def pause_writing(self) -> None:
        """Start no further request of a client that does not read its answers: they would pile up here."""
        self._unread = True

    def resume_writing(self) -> None:
        """Continue with the waiting requests."""
        self.moved_s = self._common.now_s()
        self._unread = False
        self._next()

    def connection_lost(self, _exc: Exception | None) -> None:
        self._gone(self.number)
        if self._transport is not None:
            self._transport = None
            self._waiting.clear()
            self._common.connections.leave(self)
            self._common.post(Hungup(connection=self.number))

    def get_buffer(self, _sizehint: int) -> memoryview:
        return self._splitter.room()

    def buffer_updated(self, nbytes: int) -> None:
        self.moved_s = self._common.now_s()
        self._turn = 0
        try:
            self._waiting.extend(self._splitter.came(nbytes))
        except WireError as error:
            self._end(error)
            return
        if self._splitter.wanted:
            self._short = not self._common.connections.memory.asks(self)
            if not self._short:
                self._splitter.grow()
        self._next()

    # --- requests ----------------------------------------------------------------------------------------
    def _next(self) -> None:
        while self._waiting and self._may_start():
            self._turn += 1
            if self._turn == TURN_REQUESTS_MAX:
                asyncio.get_running_loop().call_soon(self._next_turn)
            self._read(self._waiting.popleft())
        if self._transport is not None:
            self._hold()
            self._mute()

    def _may_start(self) -> bool:
        busy = self._current is not None or self._away is not None or self._unread
        return not busy and self._transport is not None and self._turn < TURN_REQUESTS_MAX

    def _next_turn(self) -> None:
        self._turn = 0
        self._next()

    def _hold(self) -> None:
        """Say how much memory the requests of this connection hold."""
        large = self._splitter.held + len(self._away or b"")
        small = 0
        for frame in self._waiting:
            if len(frame) > SMALL_BYTES:
                large += len(frame)
            else:
                small += len(frame)
        self._common.connections.memory.hold(self, large, small)

    def _mute(self) -> None:
        """Read no more while requests wait, here or for memory."""
        assert self._transport is not None, "a connection that ended reads nothing"
        muted = bool(self._waiting) or self._short
        if muted is not self._muted:
            self._muted = muted
            (self._transport.pause_reading if muted else self._transport.resume_reading)()

    def _read(self, frame: Payload) -> None:
        decode = partial(
            decode_request, frame, split_batches=self._split, rows=self._listener.rows, limits=self._common.limits
        )
        if len(frame) > FRAME_BYTES_MAX and int.from_bytes(frame[:2]) != PRODUCE:
            self._send_away(frame, decode, self._take)
            return
        try:
            incoming = decode(split_batches=partial(self._split, work_max=WORK_MAX))
        except HeavyError:
            self._send_away(frame, decode, self._take)
        except Exception as error:
            self._end(error)
        else:
            self._take(incoming)

    def _split(self, data: Payload, work_max: int | None = None) -> Any:
        return split_produced(data, limits=self._common.limits, work_max=work_max)

    def _take(self, incoming: Incoming) -> None:
        if self._transport is None:
            return
        meant_for = ANYBODY if self._listener.of_clients else receiver_of(incoming.client_id)
        if incoming.answer is not None and meant_for in (ANYBODY, self._common.broker_id):
            self._write([incoming.answer])
        elif incoming.answer is not None:  # the versions of this broker are not those of another
            self._common.post(Misdirected(connection=self.number, meant_for=meant_for))
        elif incoming.request is not None:
            self._count += 1
            # Its records are not needed for the answer, and may wait for long.
            self._current = replace(incoming, request=None) if incoming.expects_answer else None
            caller = Caller(connection=self.number, number=self._count)
            self._common.post(
                Received(
                    caller=caller,
                    request=incoming.request,
                    of_client=self._listener.of_clients,
                    meant_for=meant_for,
                )
            )

    # --- answers -----------------------------------------------------------------------------------------
    def answer(self, response: Response) -> None:
        """Send the answer to the current request, then start the next."""
        if self._current is None or self._transport is None:
            return
        encode = partial(encode_response, self._current, response)
        if _items(response) > ITEMS_MAX:
            self._send_away(b"", encode, self._answered)
            return
        try:
            pieces = encode()
        except Exception as error:
            self._end(error)
        else:
            self._answered(pieces)

    def _answered(self, pieces: Pieces) -> None:
        self._current = None
        if self._transport is not None:
            self._write(pieces)
            self._next()

    def _write(self, pieces: Pieces) -> None:
        """Write a frame: joined if its pieces are small, else piece by piece, uncopied."""
        assert self._transport is not None, "a connection that ended writes nothing"
        self.moved_s = self._common.now_s()
        if sum(map(len, pieces)) < len(pieces) * PIECE_BYTES_MIN:
            self._transport.write(b"".join(pieces))
        else:
            for piece in pieces:
                self._transport.write(piece)
        self._common.connections.memory.sent(self)

    # --- what takes long -----------------------------------------------------------------------------------
    def _send_away(self, frame: Payload, work: Callable[[], Any], then: Callable[[Any], None]) -> None:
        """Do work on the thread; this connection waits for it, and others do not."""
        self._away = frame
        future = asyncio.get_running_loop().run_in_executor(self._common.worker, work)
        future.add_done_callback(partial(self._came_back, then))

    def _came_back(self, then: Callable[[Any], None], future: asyncio.Future[Any]) -> None:
        self._away = None
        error = None if future.cancelled() else future.exception()
        if error is not None:
            self._end(error)
        elif not future.cancelled() and self._transport is not None:
            then(future.result())
            self._next()

    def _end(self, error: BaseException) -> None:
        """End this connection, and no other (as in Kafka): its bytes are wrong, or reading them failed."""
        if isinstance(error, WireError):
            log.warning("connection %d: %s; closing it", self.number, error)
        else:
            log.error("connection %d: closing it", self.number, exc_info=error)
        self.close()


def _items(response: Response) -> int:
    """Return how many entries an answer has; a Produce is bounded by its own records."""
    match response:
        case MetadataResponse(topics=topics):
            return len(topics) + sum(len(topic.partitions) for topic in topics)
        case TopicErrors(errors=errors):
            return len(errors)
        case (
            FetchResponse(results=results)
            | ListOffsetsResponse(results=results)
            | DeleteRecordsResponse(results=results)
        ):
            return len(results)
        case DescribeLogDirsResponse(logs=logs):
            return len(logs)
        case AlterConfigsResponse(results=results):
            return len(results)
        case DescribeConfigsResponse(results=results):
            return sum(1 + len(result.entries) for result in results)
        case OffsetForLeaderEpochResponse(answers=answers):
            return len(answers)
        case _:
            return 0
