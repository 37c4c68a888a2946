"""
The fabric: programmable links between nodes, behind calls that any thread may make.

Every node reaches the others, and its metadata, through addresses of the fabric, so that a test can stop, lose or
delay any message between nodes at an exact point. Nodes need no change: the target's wire (harness/target/wire.py)
says by what a link's source is found, where its frames end, and what they say.

harness/fabric/core/verbs.py has the calls.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Final, TypeVar

from harness.fabric.core.effects import Effect
from harness.fabric.core.links import LinkCore
from harness.fabric.core.rules import Pattern
from harness.fabric.core.verbs import LinkVerbs
from harness.fabric.guard import Guard
from harness.fabric.holds import Hold
from harness.fabric.limits import LISTEN_BACKLOG, WIRE_CALL_S_MAX
from harness.fabric.no_wire import NO_WIRE
from harness.fabric.proxy import Exchange, Pipe
from harness.fabric.side import Side
from harness.fabric.thread import LoopThread
from harness.fabric.witness import Recorder, Witness
from harness.late import Watch
from harness.launch import Address
from harness.model import PreconditionError, UsageError
from harness.registry import pick
from harness.target.wire import (
    ANY,
    CLIENTS,
    METADATA,
    UNKNOWN,
    Between,
    Direction,
    Hearing,
    Link,
    LinkKind,
    NotFramedError,
    Reading,
    Seen,
    Sender,
    Wire,
    words_of,
)

T = TypeVar("T")
LOOPBACK_PREFIX: Final = "127."


class Fabric(LinkVerbs[Hold]):
    """
    All links, in a thread of their own; calls are synchronous and take effect before they return.

    Args:
        record: Records an event of the fabric; it is called in the fabric's thread.
        target: The name of the target, for what its wire does wrong.
        wire: How its connections are read; None: they are not, and cuts alone apply to them.

    Raises:
        UsageError: A name is unknown, the wire has no such link, or the address is not one of this machine.
        PreconditionError: The target's wire does not return.
        RuntimeError: The fabric's own thread has failed, which is a bug in Fencepost.
    """

    def __init__(
        self,
        bind_address: str,
        record: Recorder,
        *,
        target: str,
        wire: Wire | None,
        wire_call_s: float = WIRE_CALL_S_MAX,
    ) -> None:
        self._wire = NO_WIRE if wire is None else wire
        self._nodes = {name: name for name in (METADATA, CLIENTS, ANY, UNKNOWN)}
        super().__init__(LinkCore(), self._nodes, (*words_of(self._wire), UNKNOWN))
        self._bind_address = bind_address
        self._record = record
        self._target = target
        self._watch = Watch(wire_call_s)
        self._names: dict[int, str] = {}
        self._hearing: Hearing | None = None
        self._servers: list[asyncio.Server] = []
        self._exchange: Exchange | None = None
        self._thread: LoopThread | None = None

    def __enter__(self) -> Fabric:
        self.start()
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    # --- life ---------------------------------------------------------------------------------------------
    def start(self) -> None:
        """Start the thread; there are no links yet."""
        assert self._thread is None, "a fabric is started once"
        self._thread = LoopThread("fabric")
        self._record = self._thread.guard(self._record)
        self._watch.start(self._thread.id)
        witness = Witness(self._record)

        def note(failure: str) -> None:
            seen = Seen(link=(UNKNOWN, UNKNOWN), api=UNKNOWN, direction=Direction.REQUEST)
            witness.unreadable(seen, failure)

        self._exchange = Exchange(
            loop=self._thread.loop,
            record=self._record,
            core=self.core,
            witness=witness,
            guard=Guard(self._target, self._watch, note),
        )

    def close(self) -> None:
        """Close every connection and listener, and end the thread; safe to call twice."""
        exchange, self._exchange = self._exchange, None
        if exchange is not None and self._thread is not None:
            try:
                self._thread.end(self._shut(exchange))
            finally:
                self._watch.close()

    def add_node(self, name: str, number: int) -> None:
        """Let links name a node, which is this number in what frames say."""
        if name in self._nodes or number in self._names:
            raise UsageError(
                f"fabric: node {name!r} with number {number} already exists, or is a reserved name; "
                f"expected a name not in {sorted(self._nodes)} and a number not in {sorted(self._names)}"
            )
        self._names[number] = name
        self._nodes[name] = name

    def add_end(self, name: str) -> None:
        """Let links name a service's process, which no frame names by a number."""
        if name in self._nodes:
            raise UsageError(
                f"fabric: end {name!r} already exists; expected another name than {sorted(self._nodes)}"
            )
        self._nodes[name] = name

    def sender(self, between: Between) -> Sender | None:
        """Return by what the senders of the first kind of links between these ends are found; None for no link."""
        return next((kind.sender for kind in self.kinds(between)), None)

    def kinds(self, between: Between) -> Sequence[LinkKind]:
        """Return each kind of link between these ends that the wire has."""
        return [kind for kind in self._wire.links if kind.between is between]

    def host_of(self, src: str, dst: str) -> str:
        """Return the address of loopback to which one end resolves another one's host; each pair has its own."""
        if not self._bind_address.startswith(LOOPBACK_PREFIX):
            raise UsageError(
                f"target {self._target}: its nodes find each other by hosts that resolve to loopback, and these "
                f"listen on {self._bind_address}; expected the host `local`"
            )
        ends = list(self._nodes)
        return f"{LOOPBACK_PREFIX}1.{ends.index(src)}.{ends.index(dst)}"

    def add_link(
        self,
        between: Between,
        upstream: Address,
        *,
        dst: str,
        src: str = UNKNOWN,
        listener: str = "",
        at: Address | None = None,
    ) -> Address:
        """
        Open and return an address of a link, which forwards to upstream.

        Args:
            src: The node that is given the address, METADATA and CLIENTS being nodes here; UNKNOWN for all of
                them, if the frames say who sent them.
            listener: Which of the wire's links between these ends; "" for the first.
            at: The address to open; None for any port of the fabric's own.
        """
        for name in (src, dst):
            pick("node", self._nodes, name)
        kinds = [kind for kind in self.kinds(between) if listener in ("", kind.name)]
        if not kinds or (kinds[0].sender is Sender.FRAMES) != (src == UNKNOWN):
            known = ", ".join(f"{kind.name} {kind.between}, by {kind.sender}" for kind in self._wire.links)
            raise UsageError(
                f"fabric: link {listener or between} from {src} to {dst}; expected one of target {self._target}: "
                f"{known}"
            )
        return self._listen(kinds[0], (src, dst), upstream, at or Address(host=self._bind_address, port=0))

    # --- the core's driver ------------------------------------------------------------------------------------
    def run(self, function: Callable[[], T]) -> T:
        """Call the function in the fabric's thread, and return its result."""
        try:
            return self._running.call(function)
        except TimeoutError as error:
            if self._watch.busy:
                text = f"target {self._target}, wire: a call does not return; expected one within seconds"
                raise PreconditionError(text) from error
            raise

    def obey(self, effects: Sequence[Effect]) -> None:
        """Carry out the core's effects, in their order."""
        self._here.obey(effects)

    def make_hold(self, pattern: Pattern) -> Hold:
        """Make a hold on which any thread can wait."""
        return Hold(pattern)

    async def _shut(self, exchange: Exchange) -> None:
        exchange.closing = True
        for hold in exchange.core.rules.holds:
            hold.note_over()
        # asyncio leaks an accepted socket if its task is cancelled, or its server closed, before it has made a
        # transport. So stop accepting first (living nodes dial again and again), let those tasks run, and
        # close the servers last.
        for server in self._servers:
            for listener in server.sockets:
                exchange.loop.remove_reader(listener)
        this = asyncio.current_task()
        while (pipes := exchange.pipes()) or asyncio.all_tasks() - {this}:
            for pipe in pipes:
                pipe.conclude()
                pipe.reset("the fabric was closed")
            await asyncio.sleep(0)
        for server in self._servers:
            server.close()
        # Sockets that were cancelled while connecting, or refused above, close in the loop's next iterations.
        await asyncio.sleep(0)
        await asyncio.sleep(0)

    # --- from any thread ----------------------------------------------------------------------------------
    @property
    def _here(self) -> Exchange:
        assert self._exchange is not None, "the fabric is started, and not yet closed, when it is used"
        return self._exchange

    @property
    def _running(self) -> LoopThread:
        assert self._thread is not None and self._exchange is not None, "a fabric is started before it is used"
        return self._thread

    def _reading(self, guard: Guard, kind: LinkKind, link: Link) -> Reading | None:
        """Return the wire's reading of a new connection; None if it has none, or has failed."""
        try:
            if self._hearing is None:
                self._hearing = guard.call(self._wire.hear, self._names)
            return guard.call(self._hearing.reading, kind, link)
        except NotFramedError:
            return None

    def _listen(self, kind: LinkKind, link: Link, upstream: Address, at: Address) -> Address:
        exchange = self._here

        def down() -> Side:
            reading = self._reading(exchange.guard, kind, link)
            return Pipe(exchange, link, reading, upstream, shared=kind.either_dials).down

        async def listen() -> Address:
            server = await exchange.loop.create_server(down, at.host, at.port, backlog=LISTEN_BACKLOG)
            self._servers.append(server)
            host, port = server.sockets[0].getsockname()[:2]
            return Address(host=host, port=port)

        try:
            return self._running.wait(listen())
        except OSError as error:
            raise UsageError(
                f"fabric: cannot listen on {at.host} for {' -> '.join(link)}: {error}; "
                "expected an address of this machine"
            ) from error
