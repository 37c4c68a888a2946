"""
The fabric: programmable links between nodes, behind calls that any thread may make.

Every broker advertises the fabric's address on its inter-broker listener, and reaches ZooKeeper through a
link of its own, so that a test can stop, lose or delay any message between nodes at an exact point. Nothing
in a broker knows of it: a link is told by what Kafka's brokers write into their requests.

    a frame waits      hold, then release (goes on, in order) or drop (thrown away, connection reset)
    a frame is lost    cut, then heal; a connection that lost bytes is reset when its cut heals
    a frame is late    delay, then heal
    a request is sent twice, and the second answer swallowed    double, then heal
    a connection ends  close_links

A link is (from, to) in the direction of its requests. "*" stands for any name; "?" is who does not say.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final

from harness import events
from harness.fabric.frames import ANY, API_NAMES, FETCH, UNKNOWN, ZOOKEEPER_API
from harness.fabric.lane import Exchange
from harness.fabric.limits import LISTEN_BACKLOG
from harness.fabric.proxy import Pipe, Side
from harness.fabric.reading import KafkaReading, Reading, ZooKeeperReading
from harness.fabric.rules import Cut, Delay, Direction, Double, Hold, Link, Pattern, Rules, link_matches
from harness.fabric.thread import LoopThread
from harness.fabric.witness import Record, Witness
from harness.hosts.base import Address
from harness.model import UsageError
from harness.parts import Held
from harness.registry import pick

ZOOKEEPER: Final = "zookeeper"
_APIS: Final = {name: name for name in (*API_NAMES.values(), ZOOKEEPER_API, UNKNOWN, ANY)}
_DIRECTIONS: Final = {direction.value: direction for direction in Direction}


class Fabric:
    """
    Own a thread with all links in it; calls are synchronous and take effect before they return.

    Shapes:  record(event) writes one fabric op of docs/history.md; it is called in the fabric's thread.
             commands: nodes' LeaderAndIsr is Apache Kafka's, and is told of, as are answered fetches.
    Raises:  UsageError for a name that is none, or an address that cannot be listened on. RuntimeError when
             the fabric's own thread has failed, which is a bug of ours.
    """

    def __init__(self, bind_address: str, record: Record, *, commands: bool = False) -> None:
        self._topics: dict[str, str] | None = {} if commands else None
        self._bind_address = bind_address
        self._record = record
        self._names: dict[int, str] = {}
        self._ends = {name: name for name in (ZOOKEEPER, ANY, UNKNOWN)}
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
        """Start the thread; no link is there yet."""
        assert self._thread is None, "a fabric is started once"
        self._thread = LoopThread("fabric")
        self._record = self._thread.guard(self._record)
        self._exchange = Exchange(
            loop=self._thread.loop, record=self._record, rules=Rules(), witness=Witness(self._record)
        )

    def close(self) -> None:
        """End every connection, listener and the thread; safe to call twice."""
        exchange, self._exchange = self._exchange, None
        if exchange is not None and self._thread is not None:
            self._thread.end(self._shut(exchange))

    def add_broker(self, name: str, broker_id: int, upstream: Address) -> Address:
        """Make the inter-broker address that this broker advertises; connections to it go to upstream."""
        if name in self._ends or broker_id in self._names:
            raise UsageError(
                f"fabric: broker {name!r} with id {broker_id} is there already, or is a reserved name; "
                f"expected a name beside {sorted(self._ends)} and an id beside {sorted(self._names)}"
            )
        self._names[broker_id] = name
        self._ends[name] = name
        witness = self._here.witness
        return self._listen(name, lambda: KafkaReading(name, self._names, witness, self._topics), upstream)

    def add_zookeeper_link(self, name: str, upstream: Address) -> Address:
        """Make this broker's own way to ZooKeeper: link (name, "zookeeper"), api "ZooKeeper"."""
        pick("node", self._ends, name)
        return self._listen(name, lambda: ZooKeeperReading((name, ZOOKEEPER)), upstream)

    # --- holding ------------------------------------------------------------------------------------------
    def hold(
        self,
        api: str,
        src: str,
        dst: str,
        direction: str,
        from_offset: int | None = None,
        *,
        topic: str | None = None,
    ) -> Hold:
        """Stop every such frame from now on, and all behind it; a Fetch's answer is known by its request."""
        hold = Hold(self._pattern(api, src, dst, direction, from_offset=from_offset, topic=topic))

        def place() -> Hold:
            self._here.rules.holds.append(hold)
            self._record(events.Hold(**hold.pattern.value()))
            return hold

        return self._running.call(place)

    def release(self, hold: Held) -> None:
        """Let held frames go on, in order; to a connection that has died, they are dropped."""
        self._running.call(lambda: self._release(hold))

    def release_all(self) -> None:
        """Release every hold, oldest first."""
        self._running.call(self._release_every)

    def drop(self, hold: Held) -> None:
        """Throw held frames away and reset their connections."""

        def drop() -> None:
            if not self._remove_hold(hold):
                return
            for pipe in list(self._here.pipes):
                if hold is pipe.requests.stopped_by or hold is pipe.answers.stopped_by:
                    self._record(events.Close(link=pipe.link, connections=1))
                    pipe.reset("its hold was dropped")
            self._pump()

        self._running.call(drop)

    # --- cutting ------------------------------------------------------------------------------------------
    def cut(self, src: str, dst: str, *, both_ways: bool = False, close: bool = False) -> Cut:
        """
        Lose all that is sent on the link (both_ways: on dst -> src too), requests and answers alike.

        Connections stay open and nobody is told, as when a network is partitioned; with close they are reset
        at once, and every later one at its first frame.
        """
        links = ((src, dst), (dst, src)) if both_ways else ((src, dst),)
        return self._cut(links, close)

    def cut_node(self, name: str, *, zookeeper: bool = True, close: bool = False) -> Cut:
        """Cut every link from and to a node; `zookeeper`: its own way to ZooKeeper as well."""
        others = (ANY,) if zookeeper else tuple(n for n in self._names.values() if n != name)
        out = tuple((name, other) for other in others)
        return self._cut((*out, (ANY, name)), close)

    def delay(self, api: str, src: str, dst: str, direction: str, seconds: float) -> Delay:
        """Hand every such frame on that much later than it came, and nothing before it."""
        delay = Delay(pattern=self._pattern(api, src, dst, direction), seconds=seconds)

        def place() -> Delay:
            self._here.rules.delays.append(delay)
            self._record(events.Delay(**delay.pattern.value(), seconds=seconds))
            return delay

        return self._running.call(place)

    def double(self, api: str, src: str, dst: str) -> Double:
        """Deliver every such request twice from now on; its sender sees one answer, the first."""
        double = Double(pattern=self._pattern(api, src, dst, Direction.REQUEST))

        def place() -> Double:
            self._here.rules.doubles.append(double)
            self._record(events.Double(**double.pattern.value()))
            return double

        return self._running.call(place)

    def heal(self, rule: object) -> None:
        """Undo a cut, a delay or a doubling; connections that lost bytes to a cut are reset."""
        self._running.call(lambda: self._heal(rule))

    def heal_all(self) -> None:
        """Undo every cut, delay and doubling, and release every hold."""

        def heal_all() -> None:
            for cut in list(self._here.rules.cuts):
                self._heal(cut)
            for rule in (*self._here.rules.delays, *self._here.rules.doubles):
                self._heal(rule)
            self._release_every()

        self._running.call(heal_all)

    def close_links(self, src: str, dst: str) -> int:
        """Reset the link's connections once; give how many there were."""
        self._check_ends(src, dst)

        def close() -> int:
            pipes = [pipe for pipe in self._here.pipes if link_matches((src, dst), pipe.link)]
            self._record(events.Close(link=(src, dst), connections=len(pipes)))
            for pipe in pipes:
                pipe.reset("its link was closed")
            return len(pipes)

        return self._running.call(close)

    def connections(self, src: str, dst: str) -> int:
        """Count the link's connections that are open now."""
        self._check_ends(src, dst)
        return self._running.call(
            lambda: sum(not p.over and link_matches((src, dst), p.link) for p in self._here.pipes)
        )

    # --- in the fabric's thread ---------------------------------------------------------------------------
    def _release(self, hold: Held) -> None:
        if self._remove_hold(hold):
            self._pump()

    def _release_every(self) -> None:
        for hold in list(self._here.rules.holds):
            self._release(hold)

    def _remove_hold(self, hold: Held) -> bool:
        holds = self._here.rules.holds
        if not isinstance(hold, Hold) or hold not in holds:
            return False
        holds.remove(hold)
        hold.note_over()
        self._record(events.Release(**hold.pattern.value()))
        return True

    def _cut(self, links: tuple[Link, ...], close: bool) -> Cut:
        for src, dst in links:
            self._check_ends(src, dst)
        cut = Cut(links=links, close=close)

        def place() -> Cut:
            self._here.rules.cuts.append(cut)
            for link in links:
                self._record(events.Cut(link=link, close=close))
            for pipe in [pipe for pipe in self._here.pipes if close and cut.covers(pipe.link)]:
                self._here.note_lost(cut, pipe.link)
                pipe.reset("its link is cut")
            return cut

        return self._running.call(place)

    def _heal(self, rule: object) -> None:
        rules = self._here.rules
        if isinstance(rule, Delay) and rule in rules.delays:
            rules.delays.remove(rule)
            self._record(events.Heal(**rule.pattern.value()))
            self._pump()
        elif isinstance(rule, Double) and rule in rules.doubles:
            rules.doubles.remove(rule)
            self._record(events.Heal(**rule.pattern.value()))
        elif isinstance(rule, Cut) and rule in rules.cuts:
            rules.cuts.remove(rule)
            for link in rule.links:
                self._record(events.Heal(link=link))
            for pipe in list(self._here.pipes):
                if rule.covers(pipe.link) and rules.cut_of(pipe.link) is None:
                    pipe.healed()

    def _pump(self) -> None:
        for pipe in list(self._here.pipes):
            pipe.pump()

    async def _shut(self, exchange: Exchange) -> None:
        exchange.closing = True
        for hold in exchange.rules.holds:
            hold.note_over()
        # asyncio leaks a socket that it has accepted when its task is cancelled, or its server closed, before
        # it has made a transport: so accept no more (nodes that live on dial again and again), let those tasks
        # run, and close the servers last.
        for server in self._servers:
            for listener in server.sockets:
                exchange.loop.remove_reader(listener)
        this = asyncio.current_task()
        while exchange.pipes or asyncio.all_tasks() - {this}:
            for pipe in list(exchange.pipes):
                pipe.reset("the fabric was closed")
            await asyncio.sleep(0)
        for server in self._servers:
            server.close()
        # A socket that was cancelled while it connected, or refused above, closes in the loop's next rounds.
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

    def _pattern(
        self,
        api: str,
        src: str,
        dst: str,
        direction: str,
        *,
        from_offset: int | None = None,
        topic: str | None = None,
    ) -> Pattern:
        self._check_ends(src, dst)
        pick("api", _APIS, api)
        if (from_offset, topic) != (None, None) and api not in (API_NAMES[FETCH], ANY):
            raise UsageError(
                f"fabric: {api} with from_offset={from_offset}, topic={topic!r}; expected neither: "
                "only a Fetch is known by its offsets"
            )
        return Pattern(
            api=api,
            src=src,
            dst=dst,
            direction=pick("direction", _DIRECTIONS, direction),
            from_offset=from_offset,
            topic=topic,
        )

    def _check_ends(self, src: str, dst: str) -> None:
        pick("node", self._ends, src)
        pick("node", self._ends, dst)

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
