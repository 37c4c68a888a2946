"""
A node's side of ZooKeeper: asks out; results, watches and sessions back, as the real client delivers them.

Every ask is answered once, with LOST if the connection was lost before its results came.
An ask without a connection waits for one, and is lost with the session if that has expired.
When the connection is lost but the session lives, every watch fires, since it is no longer set.
Source:  kazoo.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, TypeAlias

from harness.fabric.core.rules import METADATA
from targets.simulator.engine.clock import NS_PER_MS, Clock
from targets.simulator.engine.network import Network
from targets.simulator.engine.pipe import REQUESTS, Frame, Pipe
from targets.simulator.zookeeper.ops import Children, Error, Exists, Node, Op, Result
from targets.simulator.zookeeper.pipe import ZkPipe
from targets.simulator.zookeeper.server import ASK, CLOSE, CONNECT, CONNECTED, DONE, FIRED, PING, PONG
from targets.simulator.zookeeper.tree import CHILDREN, DATA

RETRY_NS: Final = 50 * NS_PER_MS
RETRY_NS_MAX: Final = 500 * NS_PER_MS
# How often a random world splits an ask, so that another client's write may come in between.
SPLIT_SHARE: Final = 0.2
# How long what a process hears of ZooKeeper waits in it at most, in a random world in which it does.
LATE_NS_MAX: Final = 60 * NS_PER_MS


@dataclass(frozen=True, slots=True, kw_only=True)
class Answered:
    """All results of an ask, with the session in which they came."""

    tag: int
    session: int
    results: tuple[Result, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Fired:
    """A watch of a path fired."""

    path: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Announced:
    """A session has begun, or none is left (0)."""

    session: int


Heard: TypeAlias = Answered | Fired | Announced


@dataclass(slots=True, kw_only=True)
class _Ask:
    """An ask in flight and its results so far."""

    ops: tuple[Op, ...]
    results: list[Result | None]
    left: int


class ZkClient:
    """
    The connection of one process to ZooKeeper.

    Args:
        late_share: how often an answer or a watch waits in the process, and all behind it, while the news of
            another session do not: every answer has the session in which it was made.
        post: receives what is heard.
    """

    def __init__(
        self,
        *,
        name: str,
        life: int,
        clock: Clock,
        network: Network,
        timeout_ms: int,
        is_random: bool,
        late_share: float = 0.0,
        post: Callable[[Heard], None],
    ) -> None:
        self.announced = 0
        self._name = name
        self._life = life
        self.clock = clock
        self._network = network
        # A ping is sent after a third of the timeout, and counts as missed after two thirds.
        self._ping_ns = timeout_ms * NS_PER_MS // 3
        self._is_random = is_random
        self._late_share = late_share
        self._late: list[Heard] = []
        # The session until whose successor's announcement all that is heard waits, 0 for none.
        self._behind = 0
        self._post_now = post
        self._pipe: Pipe | None = None
        self._session = 0
        self._connected = False
        self._asks: dict[int, _Ask] = {}
        self._waiting: list[int] = []
        self._watches: dict[tuple[str, str], None] = {}
        self._pinged = False
        self._retry_ns = RETRY_NS

    # --- connecting ------------------------------------------------------------------------------------------
    @property
    def connected(self) -> bool:
        """True while ZooKeeper is connected; asks made otherwise wait for a connection."""
        return self._connected

    def connect(self) -> None:
        """Connect, and continue the previous session if there was one."""
        if self._pipe is None:
            self._pipe = self._network.dial(self._name, METADATA, METADATA, ZkPipe)
            self._network.send(self._pipe, REQUESTS, (CONNECT, self._session))
            self._plan_ping()

    def close(self) -> None:
        """End the session at once."""
        if self._pipe is not None:
            self._network.send(self._pipe, REQUESTS, (CLOSE,))

    def _plan_ping(self) -> None:
        assert self._pipe is not None, "a ping needs a connection"
        self._pinged = False
        self.clock.after(self._ping_ns, ("ping", self._name, self._life, self._pipe.number))

    def on_ping_due(self, pipe: int) -> None:
        """Send a ping, or drop the connection if the last one was not answered."""
        if self._pipe is None or self._pipe.number != pipe:
            return
        if self._pinged or not self._connected:
            self._network.hang_up(self._pipe, REQUESTS)
            self._lost()
            return
        self._network.send(self._pipe, REQUESTS, (PING,))
        self._pinged = True
        self.clock.after(self._ping_ns, ("ping", self._name, self._life, pipe))

    def on_end(self, pipe: Pipe) -> None:
        """Process a closed connection."""
        if self._pipe is pipe:
            self._lost()

    def _lost(self) -> None:
        self._pipe = None
        if self._connected:
            self._connected = False
            self._lose_asks()
            watches, self._watches = self._watches, {}
            for kind in (CHILDREN, DATA):
                for path in [path for of_kind, path in watches if of_kind == kind]:
                    if self.announced:
                        self._post(Fired(path=path))
        self.clock.after(self._retry_ns, ("redial", self._name, self._life))
        self._retry_ns = min(2 * self._retry_ns, RETRY_NS_MAX)

    def _lose_asks(self) -> None:
        asks, self._asks = self._asks, {}
        self._waiting.clear()
        for tag, ask in asks.items():
            results = tuple(Error.LOST if result is None else result for result in ask.results)
            self._post(Answered(tag=tag, session=self.announced, results=results))

    def _on_connected(self, session: int) -> None:
        self._retry_ns = RETRY_NS
        if session:
            self._connected, self._session = True, session
            self._announce(session)
            waiting, self._waiting = self._waiting, []
            for tag in waiting:
                self._send(tag)
            return
        # The session has expired and nothing of it is left; the next one begins on a new connection.
        assert self._pipe is not None, "an answer needs a connection"
        self._network.hang_up(self._pipe, REQUESTS)
        self._pipe, self._session = None, 0
        self._watches.clear()
        self._announce(0)
        self._lose_asks()
        self.connect()

    def _announce(self, session: int) -> None:
        if session != self.announced:
            self.announced = session
            self._post_now(Announced(session=session))
            if self._behind and session not in (0, self._behind):
                self._catch_up_later()

    def _post(self, event: Answered | Fired) -> None:
        """Pass an answer or a watch on, or let it wait behind others."""
        if self._late or self._behind:
            self._late.append(event)
        elif self._late_share and self.clock.random.random() < self._late_share:
            self._late.append(event)
            self._catch_up_later()
        else:
            self._post_now(event)

    def _catch_up_later(self) -> None:
        delay_ns = int(self.clock.random.random() * LATE_NS_MAX)
        self.clock.after(delay_ns, ("heard", self._name, self._life))

    def fall_behind(self) -> None:
        """Let all that is heard wait until the next session is announced, and a while longer."""
        self._behind = self.announced

    def on_late(self) -> None:
        """Pass on all that waits, in order."""
        if self._behind and self.announced in (0, self._behind):
            return  # the next session is still to come
        self._behind = 0
        late, self._late = self._late, []
        for event in late:
            self._post_now(event)

    # --- asking ----------------------------------------------------------------------------------------------
    def ask(self, tag: int, ops: tuple[Op, ...]) -> None:
        """Send the operations in order; one Answered follows, with a result for each."""
        # An empty ask reads something too, so that it keeps its place in the order.
        sent = ops or (Exists(path="/"),)
        self._asks[tag] = _Ask(ops=sent, results=[None] * len(ops), left=len(sent))
        if self._connected:
            self._send(tag)
        else:
            self._waiting.append(tag)

    def _send(self, tag: int) -> None:
        assert self._pipe is not None, "an ask is sent on a connection"
        ops = self._asks[tag].ops
        cut = len(ops)
        if self._is_random and cut > 1 and self.clock.random.random() < SPLIT_SHARE:
            cut = self.clock.random.randrange(1, cut)
        for first, part in ((0, ops[:cut]), (cut, ops[cut:])):
            if part:
                self._network.send(self._pipe, REQUESTS, (ASK, tag, first, part))

    def on_frame(self, pipe: Pipe, frame: Frame) -> None:
        """Process a frame of the server, unless its connection was dropped."""
        if pipe is not self._pipe:
            return
        what, *rest = frame.body
        if what == CONNECTED:
            self._on_connected(*rest)
        elif what == DONE:
            self._on_done(*rest)
        elif what == FIRED:
            kind, path = rest
            if (kind, path) in self._watches:
                del self._watches[kind, path]
                self._post(Fired(path=path))
        elif what == PONG:
            self._pinged = False

    def _on_done(self, tag: int, first: int, results: tuple[Result, ...]) -> None:
        ask = self._asks[tag]
        for place, (op, result) in enumerate(zip(ask.ops[first:], results, strict=False), start=first):
            self._note_watch(op, result)
            if ask.results:
                ask.results[place] = result
            ask.left -= 1
        if ask.left == 0:
            del self._asks[tag]
            found = tuple(Error.LOST if result is None else result for result in ask.results)
            self._post(Answered(tag=tag, session=self.announced, results=found))

    def _note_watch(self, op: Op, result: Result) -> None:
        if isinstance(op, Exists) and op.watch and (isinstance(result, Node) or result is Error.NO_NODE):
            self._watches[DATA, op.path] = None
        elif isinstance(op, Children) and op.watch and not isinstance(result, Error):
            self._watches[CHILDREN, op.path] = None
