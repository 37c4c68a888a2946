"""
A node's connections to others, as the broker's own driver has them: requests out, requests in.

There is one connection for each (broker, channel), opened when first needed, to the address registered then. An
inbound connection has one request in progress at a time, so that answers leave in the order of their requests.
A request without an answer is given up with its connection, after ANSWER_NS_MAX at the latest.
Source:  targets/broker/peers.py.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from targets.broker.core.events import Answered, Caller, Event, Hungup, Received
from targets.broker.core.messages import ProduceRequest, Request, Response
from targets.broker.core.rounds import FETCHER_CHANNELS
from targets.simulator.broker.versions import Answered as AtOnce
from targets.simulator.broker.versions import Carrier
from targets.simulator.broker.wire import WirePipe
from targets.simulator.engine.clock import NS_PER_S, Clock
from targets.simulator.engine.network import Network
from targets.simulator.engine.pipe import ANSWERS, REQUESTS, Frame, Pipe

ANSWER_NS_MAX: Final = 30 * NS_PER_S


@dataclass(slots=True)
class _Inbound:
    """One inbound connection: the current request with its sender's tag, and the requests behind it."""

    of_client: bool
    meant_for: int
    current: tuple[int, Request] | None = None
    waiting: deque[tuple[int, Request]] = field(default_factory=deque)
    count: int = 0


class Inbounds:
    """All inbound connections."""

    def __init__(self, network: Network, carrier: Carrier, post: Callable[[Event], None]) -> None:
        self._network = network
        self._carrier = carrier
        self._post = post
        self._open: dict[int, _Inbound] = {}

    def on_frame(self, pipe: Pipe, frame: Frame) -> None:
        """Start a request, now or once those before it are answered."""
        inbound = self._open.get(pipe.number)
        if inbound is None:
            assert isinstance(pipe, WirePipe), f"{pipe.link}: expected a connection of the broker's wire"
            inbound = self._open[pipe.number] = _Inbound(of_client=pipe.outside, meant_for=pipe.meant_for)
        inbound.waiting.append(frame.body)
        self._next(pipe.number, inbound)

    def _next(self, number: int, inbound: _Inbound) -> None:
        while inbound.current is None and inbound.waiting:
            incoming = inbound.waiting.popleft()
            request = incoming[1]
            inbound.count += 1
            if not (isinstance(request, ProduceRequest) and request.acks == 0):
                inbound.current = incoming
            self._post(
                Received(
                    caller=Caller(connection=number, number=inbound.count),
                    request=request,
                    of_client=inbound.of_client,
                    meant_for=inbound.meant_for,
                )
            )

    def answer(self, to: Caller, response: Response) -> None:
        """Send the answer to the current request, then start the next."""
        inbound, pipe = self._open.get(to.connection), self._network.pipes.get(to.connection)
        if inbound is None or inbound.current is None:
            return
        (tag, request), inbound.current = inbound.current, None
        if pipe is not None:
            if self._carrier.mixed and not pipe.outside:
                response = self._carrier.response(pipe.link, response)
            self._network.send(pipe, ANSWERS, (tag, response), request, tag=tag)
        self._next(to.connection, inbound)

    def hang_up(self, number: int) -> None:
        """Close a connection from this side: what waits there is not answered."""
        pipe = self._network.pipes.get(number)
        if pipe is not None and number in self._open:
            self._network.hang_up(pipe, ANSWERS)
            self.on_end(pipe)

    def on_end(self, pipe: Pipe) -> None:
        """Report to the core that the connection is closed."""
        self._open.pop(pipe.number, None)
        self._post(Hungup(connection=pipe.number))


@dataclass(slots=True)
class _Lane:
    """A channel to one broker: connected, or resolving with requests that wait for it; tag -> time sent."""

    pipe: Pipe | None = None
    waiting: list[tuple[int, Request]] = field(default_factory=list)
    asked: dict[int, int] = field(default_factory=dict)
    watched: bool = False


class Outbounds:
    """
    All outbound connections.

    Args:
        resolve: looks up a broker's node as registered now; the result comes to `resolved`.
    """

    def __init__(
        self,
        *,
        name: str,
        life: int,
        clock: Clock,
        network: Network,
        carrier: Carrier,
        post: Callable[[Event], None],
        resolve: Callable[[tuple[int, str]], None],
    ) -> None:
        self._name = name
        self._life = life
        self.clock = clock
        self._network = network
        self._carrier = carrier
        self._post = post
        self._resolve = resolve
        self._lanes: dict[tuple[int, str], _Lane] = {}
        self._of_pipe: dict[int, tuple[int, str]] = {}

    def ask(self, to: int, channel: str, tag: int, request: Request) -> None:
        """Send a request to a broker; an Answered event always follows."""
        key = (to, channel)
        lane = self._lanes.get(key)
        if lane is None:
            self._lanes[key] = _Lane(waiting=[(tag, request)])
            node = self._connected_to(to, channel)
            if node is None:
                self._resolve(key)
            else:
                self.resolved(key, node)
        elif lane.pipe is None:
            lane.waiting.append((tag, request))
        else:
            self._send(lane, tag, request)

    def _connected_to(self, to: int, channel: str) -> str | None:
        """Return the node to which the other channel of the same fetcher is connected, None if it is not."""
        lanes = (self._lanes.get((to, other)) for other in FETCHER_CHANNELS if channel in FETCHER_CHANNELS)
        return next((lane.pipe.dst for lane in lanes if lane is not None and lane.pipe is not None), None)

    def resolved(self, key: tuple[int, str], node: str | None) -> None:
        """Connect to the registered node; a broker without a registration cannot answer."""
        lane = self._lanes[key]
        if node is None:
            del self._lanes[key]
            self._give_up([tag for tag, _ in lane.waiting])
            return
        pipe = lane.pipe = self._network.dial(self._name, node, key[1], WirePipe)
        pipe.meant_for = key[0]
        self._of_pipe[pipe.number] = key
        waiting, lane.waiting = lane.waiting, []
        for tag, request in waiting:
            self._send(lane, tag, request)

    def _send(self, lane: _Lane, tag: int, request: Request) -> None:
        assert lane.pipe is not None, "a question is sent on a connection"
        if self._carrier.mixed:
            found = self._carrier.request(lane.pipe.link, request)
            if isinstance(found, AtOnce):
                self._post(Answered(tag=tag, response=found.response))
                return
            request = found
        lane.asked[tag] = self.clock.now_ns
        self._network.send(lane.pipe, REQUESTS, (tag, request), request, tag=tag)
        if not lane.watched:
            lane.watched = True
            self.clock.after(ANSWER_NS_MAX, ("late", self._name, self._life, lane.pipe.number))

    def on_late(self, number: int) -> None:
        """Give up a connection whose oldest request has waited too long."""
        key = self._of_pipe.get(number)
        if key is None:
            return
        lane = self._lanes[key]
        assert lane.pipe is not None, "a connection that was dialled has a pipe"
        oldest = next(iter(lane.asked.values()), None)
        if oldest is None:
            lane.watched = False
        elif oldest + ANSWER_NS_MAX <= self.clock.now_ns:
            self._network.hang_up(lane.pipe, REQUESTS)
            self.on_end(lane.pipe)
        else:
            self.clock.at(oldest + ANSWER_NS_MAX, ("late", self._name, self._life, number))

    def on_frame(self, pipe: Pipe, frame: Frame) -> None:
        """Pass an answer to the core, with its request's tag."""
        tag, response = frame.body
        key = self._of_pipe.get(pipe.number)
        if key is not None and self._lanes[key].asked.pop(tag, None) is not None:
            self._post(Answered(tag=tag, response=response))

    def on_end(self, pipe: Pipe) -> None:
        """Answer all requests of a closed connection with None."""
        key = self._of_pipe.pop(pipe.number, None)
        if key is not None:
            self._give_up(list(self._lanes.pop(key).asked))

    def _give_up(self, tags: list[int]) -> None:
        for tag in tags:
            self._post(Answered(tag=tag, response=None))
