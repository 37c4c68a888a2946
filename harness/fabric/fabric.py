"""
The fabric: programmable links between nodes, behind calls that any thread may make.

Every broker advertises the fabric's address on its inter-broker listener, and reaches ZooKeeper through its
own link, so that a test can stop, lose or delay any message between nodes at an exact point. Brokers need no
change: the fabric finds a link's source in what Kafka's brokers write into their requests.

harness/fabric/core/verbs.py has the calls.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import TypeVar

from harness.fabric.core.effects import Effect
from harness.fabric.core.links import LinkCore
from harness.fabric.core.rules import ANY, CLIENTS, METADATA, UNKNOWN, ZOOKEEPER_API, Pattern
from harness.fabric.core.verbs import LinkVerbs
from harness.fabric.holds import Hold
from harness.fabric.limits import LISTEN_BACKLOG
from harness.fabric.proxy import Exchange, Pipe
from harness.fabric.side import Side
from harness.fabric.thread import LoopThread
from harness.launch import Address
from harness.model import UsageError
from harness.registry import pick
from targets.kafka_family.wire.frames import API_NAMES
from targets.kafka_family.wire.reading import ClientReading, KafkaReading, Reading, ZooKeeperReading
from targets.kafka_family.wire.witness import Recorder, Witness

T = TypeVar("T")


class Fabric(LinkVerbs[Hold]):
    """
    All links, in a thread of their own; calls are synchronous and take effect before they return.

    Args:
        record: Records an event of the fabric; it is called in the fabric's thread.
        commands: True if LeaderAndIsr has Apache Kafka's layout. The fabric then records its answers, and
            followers' answered fetches.

    Raises:
        UsageError: A name is unknown, or the address is not one of this machine.
        RuntimeError: The fabric's own thread has failed, which is a bug in Fencepost.
    """

    def __init__(self, bind_address: str, record: Recorder, *, commands: bool = False) -> None:
        self._nodes = {name: name for name in (METADATA, CLIENTS, ANY, UNKNOWN)}
        super().__init__(LinkCore(), self._nodes, (*API_NAMES.values(), ZOOKEEPER_API, UNKNOWN))
        self._topics: dict[str, str] | None = {} if commands else None
        self._bind_address = bind_address
        self._record = record
        self._names: dict[int, str] = {}
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
        self._exchange = Exchange(
            loop=self._thread.loop, record=self._record, core=self.core, witness=Witness(self._record)
        )

    def close(self) -> None:
        """Close every connection and listener, and end the thread; safe to call twice."""
        exchange, self._exchange = self._exchange, None
        if exchange is not None and self._thread is not None:
            self._thread.end(self._shut(exchange))

    def add_broker(self, name: str, broker_id: int, upstream: Address) -> Address:
        """Open and return the inter-broker address that this broker advertises; it forwards to upstream."""
        if name in self._nodes or broker_id in self._names:
            raise UsageError(
                f"fabric: broker {name!r} with id {broker_id} already exists, or is a reserved name; "
                f"expected a name not in {sorted(self._nodes)} and an id not in {sorted(self._names)}"
            )
        self._names[broker_id] = name
        self._nodes[name] = name
        witness = self._here.witness
        return self._listen(name, lambda: KafkaReading(name, self._names, witness, self._topics), upstream)

    def add_zookeeper_link(self, name: str, upstream: Address) -> Address:
        """Open and return this broker's address of ZooKeeper: link (name, "zookeeper"), api "ZooKeeper"."""
        pick("node", self._nodes, name)
        return self._listen(name, lambda: ZooKeeperReading((name, METADATA)), upstream)

    def add_client_link(self, name: str, upstream: Address) -> Address:
        """Open and return the address of this broker that clients are given: link ("clients", name)."""
        pick("node", self._nodes, name)
        return self._listen(name, lambda: ClientReading(name), upstream)

    # --- the core's driver ------------------------------------------------------------------------------------
    def run(self, function: Callable[[], T]) -> T:
        """Call the function in the fabric's thread, and return its result."""
        return self._running.call(function)

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

    def _listen(self, name: str, reading: Callable[[], Reading], upstream: Address) -> Address:
        exchange = self._here

        def down() -> Side:
            return Pipe(exchange, reading(), upstream).down

        async def listen() -> Address:
            server = await exchange.loop.create_server(down, self._bind_address, 0, backlog=LISTEN_BACKLOG)
            self._servers.append(server)
            host, port = server.sockets[0].getsockname()[:2]
            return Address(host=host, port=port)

        try:
            return self._running.wait(listen())
        except OSError as error:
            raise UsageError(
                f"fabric: cannot listen on {self._bind_address} for {name}: {error}; "
                "expected an address of this machine"
            ) from error
