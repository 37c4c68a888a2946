"""
The real driver: asyncio, files and kazoo around one core; it performs the core's effects in order.

A disk error ends the process (Kafka Replication Design V3, discussion 4: "I/O on local storage will affect the
whole broker").
"""

from __future__ import annotations

import asyncio
import logging
import os
import time
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from functools import partial
from itertools import groupby
from pathlib import PurePath

from targets.broker.checkpoints import Checkpoints
from targets.broker.config import Driver as Settings
from targets.broker.connections import Connections, Listener, brokers_listener, clients_listener
from targets.broker.coordination.client import Coordination
from targets.broker.core.broker import Broker
from targets.broker.core.events import (
    Answer,
    Arm,
    Effect,
    Event,
    Exit,
    Flush,
    Flushed,
    HangUp,
    Leave,
    Left,
    Observe,
    Received,
    Send,
    Start,
    Tick,
    WriteHighWatermarks,
    ZkAnswered,
    ZkAsk,
)
from targets.broker.core.log_port import LogPort
from targets.broker.core.messages import TopicPartition
from targets.broker.core.state import NS_PER_MS, Config, LogDir
from targets.broker.core.zookeeper import NodeError, ZkGet, ZkNode, broker_path, decode_registration
from targets.broker.files import share_files
from targets.broker.inbound import Common, Inbound
from targets.broker.log import LogInDoubtError
from targets.broker.log.data_dir import DataDir, open_data_dir
from targets.broker.log.doubt import reason_of
from targets.broker.memory import keep_freed_memory
from targets.broker.peers import Peers
from targets.broker.removals import Removals
from targets.broker.serving import BrokerExit
from targets.broker.wire.versions import client_rows, peer_rows
from targets.broker.witness import Witness

log = logging.getLogger("fencepost.broker")


# How often connections are looked at.
SWEEP_S = 1.0
BACKLOG = 512
# Characters of a request in the log.
REQUEST_SHOWN_MAX = 2_000
# Errors that leave open what the disk holds: the broker ends, as it could lose what it acknowledges next.
IN_DOUBT = (OSError, LogInDoubtError)


class Driver:
    """One broker process's moving parts. Everything but kazoo's own threads runs in the event loop."""

    def __init__(self, config: Config, settings: Settings) -> None:
        self._config = config
        self._settings = settings
        self._witness = Witness(settings.node, settings.collector, settings.secret)
        self._events: deque[Event] = deque()
        self._stepping = False
        self._inbound: dict[int, Inbound] = {}
        self._next_connection = 0
        self._limits = config.limits
        self._connections = Connections(self._limits, time.monotonic)
        self._common: Common | None = None
        self._sweeper: asyncio.TimerHandle | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._resolving: dict[int, tuple[int, Callable[[tuple[str, int] | None], None]]] = {}
        self._known: dict[int, tuple[str, int]] = {}
        self._done: asyncio.Future[str] | None = None
        self._asked = ""  # why it is leaving
        self._data: DataDir | None = None
        self._checkpoints: Checkpoints | None = None
        self._broker = Broker(config, self)
        self._peer_rows = peer_rows(config.protocol, config.rules)
        self._client_rows = client_rows(config.protocol, config.rules)
        self._peers = Peers(config.broker_id, self._peer_rows, self.post, self._resolve)

    # --- life ------------------------------------------------------------------------------------------------
    async def run(self) -> str:
        """
        Serve until stopped; return the reason.

        Raises:
            OSError: from disk and sockets.
        """
        loop = asyncio.get_running_loop()
        keep_freed_memory()
        self._limits = share_files(self._config.limits)
        self._connections = Connections(self._limits, time.monotonic)
        self._done = loop.create_future()
        self._witness.emit(
            "started",
            {"id": self._config.broker_id, "pid": os.getpid(), "protocol": self._config.protocol},
        )
        removals = Removals(self._fail)
        opened = open_data_dir(
            self._settings.data_dir,
            segment_bytes=self._settings.segment_bytes,
            segment_ms=self._settings.segment_ms,
            on_durable=self._on_durable,
            files_open_max=self._limits.log_files_open_max,
            producers_max=self._limits.producers_max,
            remove=removals.begin,
            later=removals.do,
        )
        self._data = opened.data
        for note in opened.notes:
            log.warning("%s", note)
            self._witness.emit("note", {"text": note})
        coordination = Coordination(
            self._settings.zookeeper,
            self._settings.session_timeout_ms,
            lambda event: self._post_from_thread(loop, event),
        )
        self._coordination = coordination
        # Before any request can arrive: an earlier one would find no replica here.
        self.post(Start(logs=tuple(opened.logs.values())))
        listeners = (
            (clients_listener(self._client_rows, self._limits), self._settings.listen_client),
            (brokers_listener(self._peer_rows, self._limits), self._settings.listen_internal),
        )
        with (
            closing(removals),
            ThreadPoolExecutor(max_workers=1, thread_name_prefix="long-requests") as worker,
            ThreadPoolExecutor(max_workers=1, thread_name_prefix="checkpoints") as writer,
        ):
            self._checkpoints = Checkpoints(opened.data, writer, self._on_durable, self._fail)
            self._common = Common(
                broker_id=self._config.broker_id,
                post=self.post,
                connections=self._connections,
                limits=self._limits,
                now_s=time.monotonic,
                worker=worker,
            )
            return await self._serve(listeners, coordination)

    async def _serve(
        self, listeners: Sequence[tuple[Listener, tuple[str, int]]], coordination: Coordination
    ) -> str:
        assert self._done is not None, "served before it ran"
        loop = asyncio.get_running_loop()
        servers = [
            await loop.create_server(partial(self._accept, listener), *address, backlog=BACKLOG)
            for listener, address in listeners
        ]
        self._sweep()
        coordination.start()
        try:
            return await self._done
        finally:
            if self._sweeper is not None:
                self._sweeper.cancel()
            for server in servers:
                server.close()
            self._peers.close()
            for connection in tuple(self._inbound.values()):
                connection.close()
            coordination.stop()

    def stop(self, reason: str) -> bool:
        """End `run` with this reason, and stop serving now; return False if it ends for another one already."""
        if self._done is None or self._done.done():
            return False
        self._done.set_result(reason)
        return True

    def leave(self, reason: str) -> None:
        """End `run` with this reason once others lead what this broker leads; at once if it is asked twice."""
        if self._asked or not self._config.controlled_shutdown_ms:
            self.stop(reason)
        elif not self._stopped():
            self._asked = reason
            self.post(Leave())

    def _stopped(self) -> bool:
        return self._done is not None and self._done.done()

    def close_cleanly(self) -> None:
        """Flush and checkpoint everything and leave the marker of a clean shutdown."""
        assert self._data is not None, "closed before it ran"
        replicas = self._broker.state.replicas
        self._data.close_cleanly({tp: replica.high_watermark for tp, replica in replicas.items()})

    # --- the disk port -----------------------------------------------------------------------------------------
    @property
    def log_dir(self) -> LogDir:
        """Return where the logs are."""
        settings = self._settings
        return LogDir(str(settings.data_dir.absolute()), settings.segment_bytes, settings.segment_ms)

    def create(self, tp: TopicPartition, topic_id: int) -> LogPort:
        """Create a log for a new replica."""
        assert self._data is not None, "a replica before the disk is open"
        return self._data.create_log(tp, topic_id)

    def _on_durable(self, path: str | PurePath, length: int) -> None:
        self._witness.emit("flush", {"path": str(path), "length": length})

    # --- events ------------------------------------------------------------------------------------------------
    def _post_from_thread(self, loop: asyncio.AbstractEventLoop, event: Event) -> None:
        try:
            loop.call_soon_threadsafe(self.post, event)
        except RuntimeError:
            log.debug("the loop is closed; %r came too late", event)

    def post(self, event: Event) -> None:
        """Process an event, then the events that its effects cause, in order. Do nothing once stopped."""
        if self._stopped():
            return
        self._events.append(event)
        if self._stepping:
            return
        self._stepping = True
        try:
            while self._events:
                self._take(self._events.popleft())
        except Exception as error:
            self._fail(error)
        finally:
            self._stepping = False

    def _fail(self, error: BaseException) -> None:
        """End, as the broker cannot go on; why the core says so needs no traceback."""
        log.error("the broker cannot go on", exc_info=None if isinstance(error, BrokerExit) else error)
        self._witness.emit("ended", {"reason": reason_of(error)})
        self.stop(reason_of(error))

    def _take(self, event: Event) -> None:
        if isinstance(event, ZkAnswered) and event.tag in self._resolving:
            self._resolved(event)
            return
        assert self._data is not None, "a step before the disk is open"
        failed: Exception | None = None
        try:
            room, wall_ms = self._connections.memory.room_for_answers(), time.time_ns() // NS_PER_MS
            # What the step has promised is durable before any of its effects.
            with self._data.together():
                self._broker.step(time.monotonic_ns(), event, room, wall_ms=wall_ms)
        except IN_DOUBT:
            raise
        except Exception as error:
            if not isinstance(event, Received):
                raise
            failed = error
        self._obey_all(self._broker.effects)
        if failed is not None and isinstance(event, Received):
            self._give_up(event, failed)

    def _give_up(self, event: Received, error: Exception) -> None:
        """
        End the connection of a request whose handler raised: a bug here, but no reason to end the broker.

        What it did up to there stands, as if the answer had been lost.
        """
        text = repr(event.request)
        shown = text if len(text) <= REQUEST_SHOWN_MAX else f"{text[:REQUEST_SHOWN_MAX]}…"
        log.error("connection %d: request %s; closing it", event.caller.connection, shown, exc_info=error)
        if event.caller.connection in self._inbound:
            self._inbound[event.caller.connection].close()

    def _sweep(self) -> None:
        """Close connections that are idle or in the way, now and then."""
        self._connections.sweep()
        self._sweeper = asyncio.get_running_loop().call_later(SWEEP_S, self._sweep)

    # --- effects -----------------------------------------------------------------------------------------------
    def _obey_all(self, effects: Sequence[Effect]) -> None:
        """Perform effects in their order; events that follow each other are sent together."""
        for are_events, run in groupby(effects, lambda effect: isinstance(effect, Observe)):
            if are_events:
                self._witness.emit_all([(each.f, each.value) for each in run if isinstance(each, Observe)])
            else:
                for effect in run:
                    self._obey(effect)

    def _obey(self, effect: Effect) -> None:
        match effect:
            case Answer(to=to, response=response):
                if to.connection in self._inbound:
                    self._inbound[to.connection].answer(response)
            case HangUp(connection=connection, reason=reason):
                if connection in self._inbound:
                    self._inbound[connection].hang_up(reason)
            case Send(to=to, channel=channel, tag=tag, request=request):
                self._peers.ask(to, channel, tag, request)
            case ZkAsk(tag=tag, ops=ops):
                self._coordination.ask(tag, ops)
            case WriteHighWatermarks(high_watermarks=high_watermarks):
                assert self._checkpoints is not None, "a checkpoint before the disk is open"
                self._checkpoints.write(dict(high_watermarks))
            case Flush():
                self._flush(effect)
            case Arm(at_ns=at_ns):
                self._arm(at_ns)
            case Exit(reason=reason):
                raise BrokerExit(reason)
            case Left():
                self.stop(self._asked)

    def _arm(self, at_ns: int) -> None:
        if self._timer is not None:
            self._timer.cancel()
        delay_s = max(0, at_ns - time.monotonic_ns()) / 1e9
        self._timer = asyncio.get_running_loop().call_later(delay_s, self.post, Tick())

    def _flush(self, effect: Flush) -> None:
        """Make a log durable, on the thread that appends to it; the core gets a Flushed event."""
        assert self._data is not None, "a flush before the disk is open"
        found = self._data.logs.get(effect.tp)
        if found is not None and not found.deleted:
            found.flush(effect.upto)
            self.post(Flushed(tp=effect.tp, generation=effect.generation, upto=effect.upto))

    # --- connections -------------------------------------------------------------------------------------------
    def _accept(self, listener: Listener) -> Inbound:
        assert self._common is not None, "a connection before the broker serves"
        self._next_connection += 1
        connection = Inbound(self._next_connection, listener, self._common, self._hung_up)
        self._inbound[connection.number] = connection
        return connection

    def _hung_up(self, number: int) -> None:
        self._inbound.pop(number, None)

    def _resolve(self, broker_id: int, found: Callable[[tuple[str, int] | None], None]) -> None:
        """
        Read a broker's inter-broker address from its registration in ZooKeeper.

        Without ZooKeeper, use the last known address: a zombie's fetcher keeps running and reconnects to its
        leader after a broken connection, as Apache Kafka's does (KAFKA-6880).
        """
        if broker_id in self._known and not self._coordination.connected:
            found(self._known[broker_id])
            return
        # Negative tags are the driver's own; the core's are positive.
        tag = -1 - len(self._resolving)
        while tag in self._resolving:
            tag -= 1
        self._resolving[tag] = broker_id, found
        self._coordination.ask(tag, (ZkGet(path=broker_path(broker_id)),))

    def _resolved(self, event: ZkAnswered) -> None:
        (broker_id, found), node = self._resolving.pop(event.tag), event.results[0]
        if not isinstance(node, ZkNode):
            found(None)
            return
        try:
            registration = decode_registration(node.data)
        except NodeError as error:
            log.warning("%s: %s", broker_path(broker_id), error)
            found(None)
            return
        address = registration.internal_host, registration.internal_port
        self._known[broker_id] = address
        found(address)
