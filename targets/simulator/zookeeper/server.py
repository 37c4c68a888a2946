"""
A ZooKeeper server in virtual time: sessions over connections, in front of the tree.

A session lives as long as the server hears from it within its timeout, over any connection.
Watches and results leave in one order on one connection; a watch that a write fires leaves before the results of
later reads.
A lost connection leaves open whether operations in flight were performed.
Source:  Apache ZooKeeper's programmer's guide: "ZooKeeper Sessions"; kazoo, for a client's behaviour.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from harness.fabric.core.rules import METADATA
from targets.simulator.engine.clock import NS_PER_MS, Clock
from targets.simulator.engine.network import Network
from targets.simulator.engine.pipe import ANSWERS, Frame, Pipe
from targets.simulator.zookeeper.ops import Create, Multi, Op, Result
from targets.simulator.zookeeper.pipe import MULTI
from targets.simulator.zookeeper.tree import Tree

# Large, as real session ids are, so that small numbers are never taken for one.
SESSION_FIRST: Final = 0x1000_0000_0000_0001

CONNECT: Final = "connect"
CONNECTED: Final = "connected"
ASK: Final = "ask"
DONE: Final = "done"
FIRED: Final = "fired"
PING: Final = "ping"
PONG: Final = "pong"
CLOSE: Final = "close"


@dataclass(slots=True, kw_only=True)
class Session:
    """A client's session: its owner, its current connection (0: none), and when the server last heard from it."""

    number: int
    owner: str
    pipe: int
    heard_ns: int


@dataclass(slots=True, kw_only=True)
class Ending:
    """
    What ends a node's session, or only its connection.

    Attributes:
        left: after how many more asks; the last one is still answered.
        writes: only asks that write count.
        session: whether the session ends too.
        part: if only the connection ends, how much of the last ask is still answered: its operations come one
            after another, and it may end between any two.
        silent: whether the last ask is done and not answered at all.
    """

    left: int
    writes: bool = False
    session: bool = True
    part: float = 1.0
    silent: bool = False

    def counts(self, ops: Sequence[Op]) -> bool:
        """Count an ask; return True if it is the last."""
        self.left -= not self.writes or any(map(_writes, ops))
        return self.left <= 0

    def answered(self, ops: tuple[Op, ...]) -> tuple[Op, ...]:
        """Return those operations of the last ask that are still answered, one at least."""
        return ops if self.session else ops[: max(1, round(self.part * len(ops)))]


class ZooKeeper:
    """
    The server, an end of pipes named "zookeeper".

    Attributes:
        losing: by node, the fate of its next write: True performs it, False does not; both lose its connection,
            so that the node cannot know.
        ending: by node, what ends its session or connection; a part of a split ask counts as an ask.
        on_ending: called with the node and its session when that ends so.
        out: whether its servers are frozen: what arrives waits, and no session ends.
        electing: whether its servers have no leader: nobody is connected, and no session ends.
        held: the nodes whose server is slow: what they ask waits, and their sessions live.
        ended: the number of ended sessions.
        dropped: the number of connections that ended within an ask.
    """

    def __init__(self, clock: Clock, network: Network, session_timeout_ms: int) -> None:
        self.tree = Tree(self._fire)
        self.sessions: dict[int, Session] = {}
        self.losing: dict[str, bool] = {}
        self.ending: dict[str, Ending] = {}
        self.on_ending: Callable[[str, int], None] = lambda _name, _session: None
        self.out = False
        self.electing = False
        self.held: dict[str, None] = {}
        self.ended = 0
        self.dropped = 0
        self._clock = clock
        self._network = network
        self._timeout_ns = session_timeout_ms * NS_PER_MS
        self._given = 0
        self._of_pipe: dict[int, int] = {}
        # What waits, in the order in which it arrived: a frame, or None for the end of a connection.
        self._waiting: list[tuple[Pipe, Frame | None]] = []

    @property
    def listening(self) -> bool:
        """Return True if it accepts connections: a frozen server's kernel does, one without a leader does not."""
        return not self.electing

    # --- from clients ----------------------------------------------------------------------------------------
    def on_frame(self, pipe: Pipe, _direction: int, frame: Frame) -> None:
        """Process a client's frame, or let it wait."""
        session = self.sessions.get(self._of_pipe.get(pipe.number, 0))
        if self.out or pipe.src in self.held:
            self._waiting.append((pipe, frame))
            if session is not None and not self.out:
                session.heard_ns = self._clock.now_ns
            return
        what, *rest = frame.body
        if what == CONNECT:
            self._connect(pipe, *rest)
            return
        if session is None:
            return  # its session has ended; the connection's end is in flight
        session.heard_ns = self._clock.now_ns
        if what == ASK:
            self._ask(pipe, session, *rest)
        elif what == PING:
            self._network.send(pipe, ANSWERS, (PONG,))
        elif what == CLOSE:
            self._end(session)

    def on_end(self, pipe: Pipe) -> None:
        """Keep the session; the connection's watches go."""
        if self.out or pipe.src in self.held:
            self._waiting.append((pipe, None))
            return
        number = self._of_pipe.pop(pipe.number, 0)
        self.tree.forget(pipe.number)
        if number in self.sessions and self.sessions[number].pipe == pipe.number:
            self.sessions[number].pipe = 0

    def _connect(self, pipe: Pipe, number: int) -> None:
        """Start a session (0), or continue one; the answer for an expired one is 0."""
        session = self.sessions.get(number)
        if number == 0:
            session = Session(
                number=SESSION_FIRST + self._given, owner=pipe.src, pipe=pipe.number, heard_ns=self._clock.now_ns
            )
            self._given += 1
            self.sessions[session.number] = session
            self._clock.after(self._timeout_ns, ("session", session.number))
        if session is not None:
            if session.pipe not in (0, pipe.number) and session.pipe in self._network.pipes:
                self._hang_up(self._network.pipes[session.pipe])
            session.pipe, session.heard_ns = pipe.number, self._clock.now_ns
            self._of_pipe[pipe.number] = session.number
        self._network.send(pipe, ANSWERS, (CONNECTED, 0 if session is None else session.number))

    def _ask(self, pipe: Pipe, session: Session, tag: int, first: int, ops: tuple[Op, ...]) -> None:
        lost = self.losing.pop(session.owner, None) if any(map(_writes, ops)) else None
        if lost is False:
            self._network.reset(pipe, "the connection is lost before a write")
            return
        ending = self.ending.get(session.owner)
        ends = ending is not None and ending.counts(ops)
        if ending is not None and ends:
            ops = ending.answered(ops)
        results: tuple[Result, ...] = tuple(self.tree.do(op, session.number, pipe.number) for op in ops)
        if lost is not None:
            self._network.reset(pipe, "the connection is lost after a write")
        elif not (ending is not None and ends and ending.silent):
            number = MULTI if any(isinstance(op, Multi) for op in ops) else -1
            self._network.send(pipe, ANSWERS, (DONE, tag, first, results), tag=number)
        if ending is not None and ends:
            del self.ending[session.owner]
            self._end_by(ending, pipe, session)

    def _end_by(self, ending: Ending, pipe: Pipe, session: Session) -> None:
        if ending.session:
            self.on_ending(session.owner, session.number)
            self._end(session)
        else:
            self.dropped += 1
            session.pipe = 0
            self._hang_up(pipe)

    def _fire(self, watcher: int, kind: str, path: str) -> None:
        pipe = self._network.pipes.get(watcher)
        if pipe is not None:
            self._network.send(pipe, ANSWERS, (FIRED, kind, path))

    # --- session ends ----------------------------------------------------------------------------------------
    def on_session_due(self, number: int) -> None:
        """End a session that was silent too long, or check again later."""
        session = self.sessions.get(number)
        if session is None:
            return
        if self.out or self.electing:  # its time stands still
            session.heard_ns = self._clock.now_ns
        until = session.heard_ns + self._timeout_ns
        if until <= self._clock.now_ns:
            self._end(session)
        else:
            self._clock.at(until, ("session", number))

    # --- outages ---------------------------------------------------------------------------------------------
    def halt(self) -> None:
        """Freeze the servers: their connections stay open, and nobody is answered."""
        self.out = True

    def go_on(self) -> None:
        """Let the servers go on, with all that arrived; a new leader gives each session its whole time."""
        self.out = False
        self._renew()
        self._resume()

    def hold(self, name: str) -> None:
        """Let what a node asks wait: the server that it is connected to is slow, and others serve the others."""
        self.held[name] = None

    def release(self, name: str) -> None:
        """Let what a node has asked go on, in order, also what it asked on connections that it has given up."""
        del self.held[name]
        self._resume(also_of=name)

    def _resume(self, *, also_of: str = "") -> None:
        """Process what waits; what is still to wait does so in the same order."""
        waiting, self._waiting = self._waiting, []
        for pipe, frame in waiting:
            if frame is None:
                self.on_end(pipe)
            elif not pipe.over or pipe.src == also_of:
                self.on_frame(pipe, 0, frame)

    def lose_leader(self) -> None:
        """End all connections, as servers without a leader do, and serve nobody until `lead_again`."""
        self.electing = True
        for pipe in [pipe for pipe in self._network.pipes.values() if pipe.dst == METADATA and not pipe.over]:
            self._network.reset(pipe, "ZooKeeper has no leader")

    def lead_again(self) -> None:
        """Serve again: a new leader has the sessions of the old one, and gives each its whole time."""
        self.electing = False
        self._renew()

    def _renew(self) -> None:
        for session in self.sessions.values():
            session.heard_ns = self._clock.now_ns

    def expire(self, number: int) -> None:
        """End a session from outside, as a client that knows its id and password can."""
        session = self.sessions.get(number)
        if session is not None:
            self._end(session)

    def _end(self, session: Session) -> None:
        self.ended += 1
        del self.sessions[session.number]
        pipe = self._network.pipes.get(session.pipe)
        self.tree.forget(session.pipe)
        self.tree.end_session(session.number)
        if pipe is not None:
            self._hang_up(pipe)

    def _hang_up(self, pipe: Pipe) -> None:
        self._of_pipe.pop(pipe.number, None)
        self.tree.forget(pipe.number)
        self._network.hang_up(pipe, ANSWERS)

    def session_of(self, path: str) -> int:
        """Return the session that holds an ephemeral node, 0 for none."""
        node = self.tree.nodes.get(path)
        return 0 if node is None else node.owner


def _writes(op: Op) -> bool:
    return isinstance(op, Create | Multi)
