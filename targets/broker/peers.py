"""
A broker's connections to other brokers: requests out, answers in.

A new connection first asks the peer for its versions, and both use the newest common one: a cluster may be
upgraded or downgraded one broker at a time.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass, field

from targets.broker.core.events import Answered, Event
from targets.broker.core.messages import (
    EpochAnswer,
    ErrorCode,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
    Payload,
    Request,
    Response,
)
from targets.broker.core.rounds import FETCHER_CHANNELS
from targets.broker.log import split_stored
from targets.broker.wire.addressing import client_id_of
from targets.broker.wire.codec import decode_response, encode_request, key_of
from targets.broker.wire.frames import FrameSplitter
from targets.broker.wire.handshake import ask_versions, common_version, read_versions
from targets.broker.wire.scalars import WireError
from targets.broker.wire.versions import NOT_KNOWN, Rows

log = logging.getLogger("fencepost.broker")

CONNECT_S_MAX = 5.0
ANSWER_S_MAX = 30.0
# Not a request's: the core's tags rise from 1.
HANDSHAKE_CORRELATION_ID = 0


@dataclass(slots=True)
class _Question:
    """A request in flight to another broker."""

    tag: int
    request: Request
    version: int
    deadline: asyncio.TimerHandle | None = None


class Outbound(asyncio.BufferedProtocol):
    """
    One connection to another broker: its versions first, then requests in order, answers by correlation id.

    Args:
        rows: the APIs that this broker knows; a request in a version that the peer does not know is not sent.
    """

    def __init__(
        self, client_id: str, rows: Rows, post: Callable[[Event], None], gone: Callable[[], None]
    ) -> None:
        self._client_id = client_id
        self._rows = rows
        self._post = post
        self._gone = gone
        self._splitter = FrameSplitter()
        self._theirs: dict[int, tuple[int, int]] | None = None
        self._waiting: list[tuple[int, Request]] = []
        self._asked: dict[int, _Question] = {}
        self._transport: asyncio.Transport | None = None
        self._handshake: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport), f"{transport!r} cannot be written to"
        self._transport = transport
        self._handshake = asyncio.get_running_loop().call_later(ANSWER_S_MAX, self.close)
        transport.write(ask_versions(HANDSHAKE_CORRELATION_ID, self._client_id))

    def connection_lost(self, _exc: Exception | None) -> None:
        self._transport = None
        self._end_handshake()
        self._gone()
        asked, self._asked = self._asked, {}
        for question in asked.values():
            self._finish(question, None)
        waiting, self._waiting = self._waiting, []
        for tag, _ in waiting:
            self._post(Answered(tag=tag, response=None))

    def get_buffer(self, _sizehint: int) -> memoryview:
        return self._splitter.room()

    def buffer_updated(self, nbytes: int) -> None:
        try:
            for frame in self._splitter.came(nbytes):
                if self._theirs is None:
                    self._learn(read_versions(frame, HANDSHAKE_CORRELATION_ID))
                else:
                    self._take(frame)
            if self._splitter.wanted:
                self._splitter.grow()
        except WireError as error:
            log.warning("peer: %s; closing the connection", error)
            self.close()

    def _learn(self, theirs: dict[int, tuple[int, int]]) -> None:
        self._theirs = theirs
        self._end_handshake()
        waiting, self._waiting = self._waiting, []
        for tag, request in waiting:
            self.ask(tag, request)

    def _end_handshake(self) -> None:
        if self._handshake is not None:
            self._handshake.cancel()
            self._handshake = None

    def _take(self, frame: Payload) -> None:
        correlation_id = int.from_bytes(frame[:4], "big")
        question = self._asked.get(correlation_id)
        if question is None:
            raise WireError(f"answer {correlation_id}: no such request in flight")
        response = self._decode(question, frame, correlation_id)
        # Not earlier: if the answer cannot be read, the request is answered with None when the connection ends.
        del self._asked[correlation_id]
        self._finish(question, response)

    def _decode(self, question: _Question, frame: Payload, correlation_id: int) -> Response:
        return decode_response(
            frame,
            question.request,
            version=question.version,
            correlation_id=correlation_id,
            split_batches=split_stored,
        )

    def ask(self, tag: int, request: Request) -> None:
        """Send a request; an Answered event follows, with None if the connection ends first."""
        if self._transport is None:
            self._post(Answered(tag=tag, response=None))
            return
        if self._theirs is None:
            self._waiting.append((tag, request))
            return
        version = common_version(key_of(request), self._rows, self._theirs)
        if version == NOT_KNOWN:
            self._post(Answered(tag=tag, response=_unsupported(request)))
            return
        try:
            frame = encode_request(request, version=version, correlation_id=tag, client_id=self._client_id)
        except WireError as error:
            # A peer that was restarted with an older protocol: the core does not go on with the session any more.
            log.warning("peer: %s; not asking", error)
            self._post(Answered(tag=tag, response=None))
            return
        question = _Question(tag, request, version)
        question.deadline = asyncio.get_running_loop().call_later(ANSWER_S_MAX, self.close)
        self._asked[tag] = question
        self._transport.write(frame)

    def _finish(self, question: _Question, response: Response | None) -> None:
        if question.deadline is not None:
            question.deadline.cancel()
        self._post(Answered(tag=question.tag, response=response))

    def close(self) -> None:
        """End the connection at once."""
        if self._transport is not None:
            self._transport.abort()


def _unsupported(request: Request) -> Response | None:
    """Return the answer to use for a peer that does not know the API (KIP-101, compatibility), None for none."""
    if not isinstance(request, OffsetForLeaderEpochRequest):
        return None
    answers = [EpochAnswer(tp=asked.tp, error=ErrorCode.UNSUPPORTED_VERSION) for asked in request.questions]
    return OffsetForLeaderEpochResponse(answers=tuple(answers))


@dataclass(slots=True)
class _Lane:
    """A channel to one broker: connected, or connecting with requests that wait for it."""

    protocol: Outbound | None = None
    waiting: list[tuple[int, Request]] = field(default_factory=list)
    address: tuple[str, int] | None = None


class Peers:
    """
    Connections to other brokers, opened when first needed: one for each (broker, channel).

    Args:
        rows: the APIs that this broker uses with others.
        resolve: returns a broker's inter-broker address as registered now, None when it is not registered.
    """

    def __init__(
        self,
        broker_id: int,
        rows: Rows,
        post: Callable[[Event], None],
        resolve: Callable[[int, Callable[[tuple[str, int] | None], None]], None],
    ) -> None:
        self._broker_id = broker_id
        self._rows = rows
        self._post = post
        self._resolve = resolve
        self._lanes: dict[tuple[int, str], _Lane] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    def ask(self, to: int, channel: str, tag: int, request: Request) -> None:
        """Send a request to a broker; an Answered event always follows."""
        key = (to, channel)
        lane = self._lanes.get(key)
        if lane is None:
            made = self._lanes[key] = _Lane(waiting=[(tag, request)])
            address = self._connected_to(to, channel)
            if address is None:
                self._resolve(to, lambda address: self._connect(key, made, address))
            else:
                self._connect(key, made, address)
        elif lane.protocol is None:
            lane.waiting.append((tag, request))
        else:
            lane.protocol.ask(tag, request)

    def _connected_to(self, to: int, channel: str) -> tuple[str, int] | None:
        """Return the address to which the other channel of the same fetcher is connected, None if it is not."""
        lanes = (self._lanes.get((to, other)) for other in FETCHER_CHANNELS if channel in FETCHER_CHANNELS)
        return next((lane.address for lane in lanes if lane is not None and lane.protocol is not None), None)

    def _connect(self, key: tuple[int, str], lane: _Lane, address: tuple[str, int] | None) -> None:
        if address is None:
            self._fail(key, lane)
            return
        lane.address = address
        task = asyncio.get_running_loop().create_task(self._open(key, lane, address))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _open(self, key: tuple[int, str], lane: _Lane, address: tuple[str, int]) -> None:
        loop = asyncio.get_running_loop()
        client_id = client_id_of(self._broker_id, channel=key[1], receiver=key[0])
        try:
            async with asyncio.timeout(CONNECT_S_MAX):
                _, lane.protocol = await loop.create_connection(
                    lambda: Outbound(client_id, self._rows, self._post, lambda: self._forget(key, lane)), *address
                )
        except (OSError, TimeoutError, ValueError) as error:
            # ValueError: a host that no name can be, as of a registration that somebody wrote by hand.
            log.debug("broker %d at %s:%d: %r", key[0], *address, error)
            self._fail(key, lane)
            return
        waiting, lane.waiting = lane.waiting, []
        for tag, request in waiting:
            lane.protocol.ask(tag, request)

    def _forget(self, key: tuple[int, str], lane: _Lane) -> None:
        # Another lane may have replaced it by now; its requests must not be dropped here.
        if self._lanes.get(key) is lane:
            del self._lanes[key]

    def _fail(self, key: tuple[int, str], lane: _Lane) -> None:
        self._forget(key, lane)
        waiting, lane.waiting = lane.waiting, []
        for tag, _ in waiting:
            self._post(Answered(tag=tag, response=None))

    def close(self) -> None:
        """End every connection."""
        for task in tuple(self._tasks):
            task.cancel()
        for lane in tuple(self._lanes.values()):
            if lane.protocol is not None:
                lane.protocol.close()
