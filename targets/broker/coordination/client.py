"""
kazoo behind the core's asks: operations out, results, watches and sessions back, in ZooKeeper's own order.

kazoo passes watches and results to two threads, which loses the order that ZooKeeper promises: a watch fires
before its change can be read, and after the read that set it. One queue restores the order; session changes go
through the same queue. Every ask is answered exactly once, also over a lost connection, and never blocks.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from kazoo.client import KazooClient
from kazoo.exceptions import (
    BadVersionError,
    ConnectionClosedError,
    ConnectionLoss,
    KazooException,
    NodeExistsError,
    NoNodeError,
    RolledBackError,
    RuntimeInconsistency,
    SessionExpiredError,
)
from kazoo.protocol.states import Callback, EventType, KazooState, WatchedEvent, ZnodeStat
from kazoo.retry import KazooRetry

from targets.broker.coordination.handler import OneQueueHandler, rest
from targets.broker.coordination.multi_read import READS_TOGETHER_MAX, read_together
from targets.broker.coordination.multi_write import write_together
from targets.broker.core.events import Event, ZkAnswered, ZkFired, ZkSession
from targets.broker.core.zookeeper import (
    ZkChildren,
    ZkCreate,
    ZkDone,
    ZkError,
    ZkExists,
    ZkGet,
    ZkMulti,
    ZkNames,
    ZkNode,
    ZkOp,
    ZkResult,
    ZkSync,
)

log = logging.getLogger("fencepost.zookeeper")

# Do not wait for a server that is gone: the ephemerals go when the session expires.
STOP_S_MAX = 5.0
STOP_LOOK_S = 0.005
RETRY_DELAY_S = 0.05
RETRY_DELAY_S_MAX = 0.5


@dataclass(slots=True, eq=False)
class _Ask:
    """An ask in flight: results so far, results still to come, sessions that were lost before it was sent."""

    tag: int
    results: list[ZkResult | None]
    left: int
    sessions_lost: int


class Coordination:
    """
    The broker's connection to ZooKeeper.

    Args:
        post: called on kazoo's thread with ZkSession, ZkAnswered and ZkFired events, in order; it must pass
            them to the core's own thread.
    """

    def __init__(self, hosts: str, session_timeout_ms: int, post: Callable[[Event], None]) -> None:
        self._post = post
        retry = KazooRetry(
            max_tries=-1, delay=RETRY_DELAY_S, backoff=2, max_delay=RETRY_DELAY_S_MAX, sleep_func=rest
        )
        self._client = KazooClient(
            hosts=hosts,
            timeout=session_timeout_ms / 1000,
            handler=OneQueueHandler(),
            connection_retry=retry,
            logger=log,
        )
        self._session = 0
        self._sessions_lost = 0
        self._under_way: set[_Ask] = set()
        self._watchers: dict[str, Callable[[WatchedEvent], None]] = {}
        self._client.add_listener(self._on_state)

    @property
    def connected(self) -> bool:
        """True while ZooKeeper is connected; asks made otherwise wait for a connection."""
        return bool(self._client.connected)

    def start(self) -> None:
        """Start to connect; the first ZkSession event reports success."""
        self._client.start_async()

    def stop(self) -> None:
        """End the session, so that its ephemerals go at once; without a server, let it expire after STOP_S_MAX."""
        ending = threading.Thread(target=self._end, name="zookeeper-end", daemon=True)
        ending.start()
        # No join with a timeout: a lock's timed wait never ends where a preloaded libfaketime sets the monotonic
        # clock, since it waits for a time of that clock by the kernel's own.
        waited_s = 0.0
        while ending.is_alive() and waited_s < STOP_S_MAX:
            rest(STOP_LOOK_S)
            waited_s += STOP_LOOK_S

    def _end(self) -> None:
        self._client.stop()
        self._client.close()

    def _on_state(self, state: str) -> None:
        # Called on the connection's thread: only queue it, behind earlier reads.
        session = int(self._client.client_id[0] or 0) if state == KazooState.CONNECTED else 0
        if state == KazooState.LOST:
            self._sessions_lost += 1
        if state != KazooState.SUSPENDED:
            self._client.handler.dispatch_callback(Callback("state", self._announce, (session,)))

    def _announce(self, session: int) -> None:
        if session == self._session:
            return
        if session:
            self._answer_forgotten()
        self._session = session
        self._post(ZkSession(session=session))

    def _answer_forgotten(self) -> None:
        # When a session ends kazoo answers all requests, then creates a new queue; a request that comes in between
        # is in neither. Every other request of the old session has its answer by now.
        for ask in list(self._under_way):
            if ask.sessions_lost < self._sessions_lost:
                self._finish(ask)

    # --- asking ----------------------------------------------------------------------------------------------
    def ask(self, tag: int, ops: Sequence[ZkOp]) -> None:
        """Send the operations, pipelined; one ZkAnswered follows, with a result for each."""
        # An empty ask reads something too, so that it keeps its place in the order.
        sent = ops or (ZkExists(path="/"),)
        ask = _Ask(tag, [None] * len(ops), len(sent), self._sessions_lost)
        self._under_way.add(ask)
        for place, part in _parts(sent):
            with self._client.handler.linked(
                lambda outcome, place=place, part=part: self._done(ask, place, _results(part, outcome))
            ):
                if len(part) > 1:
                    read_together(self._client, [op.path for op in part if isinstance(op, ZkGet)])
                else:
                    self._start(part[0])

    def _done(self, ask: _Ask, place: int, results: Sequence[ZkResult]) -> None:
        if ask.results:
            ask.results[place : place + len(results)] = results
        ask.left -= len(results)
        if ask.left == 0:
            self._finish(ask)

    def _finish(self, ask: _Ask) -> None:
        if ask in self._under_way:
            self._under_way.discard(ask)
            results = tuple(ZkError.LOST if result is None else result for result in ask.results)
            self._post(ZkAnswered(tag=ask.tag, session=self._session, results=results))

    def _start(self, op: ZkOp) -> None:
        match op:
            case ZkGet(path=path):
                self._client.get_async(path)
            case ZkExists(path=path, watch=watch):
                self._client.exists_async(path, watch=self._watch(path) if watch else None)
            case ZkChildren(path=path, watch=watch):
                self._client.get_children_async(path, watch=self._watch(path) if watch else None)
            case ZkSync(path=path):
                self._client.sync_async(path)
            case ZkCreate():
                # kazoo's own create passes its answer through the queue twice, behind later reads.
                write_together(self._client, (op,))
            case ZkMulti(ops=parts):
                write_together(self._client, parts)

    def _watch(self, path: str) -> Callable[[WatchedEvent], None]:
        """Return one callback for each path: kazoo then recognises a watch that is set and fires it once."""
        if path not in self._watchers:
            self._watchers[path] = self._watcher(path)
        return self._watchers[path]

    def _watcher(self, path: str) -> Callable[[WatchedEvent], None]:
        def fired(event: WatchedEvent) -> None:
            # kazoo forgets watches when the connection is lost (NONE): reading again sets them again.
            if event.type != EventType.NONE or self._session:
                self._post(ZkFired(path=path))

        return fired


def _parts(ops: Sequence[ZkOp]) -> Iterator[tuple[int, Sequence[ZkOp]]]:
    """Yield the operations with their places: reads that stand side by side together, all others alone."""
    place = 0
    for is_read, run in groupby(ops, lambda op: isinstance(op, ZkGet)):
        most, found = READS_TOGETHER_MAX if is_read else 1, tuple(run)
        for first in range(0, len(found), most):
            yield place + first, found[first : first + most]
        place += len(found)


def _results(part: Sequence[ZkOp], outcome: Any) -> Sequence[ZkResult]:
    if len(part) == 1:
        return (_result(part[0], outcome),)
    if outcome.exception is not None:
        return (_error(outcome.exception),) * len(part)
    if len(outcome.value) != len(part):
        log.error("ZooKeeper answered %d of %d reads", len(outcome.value), len(part))
        return (ZkError.LOST,) * len(part)
    return [_error(read) if isinstance(read, Exception) else _node(*read) for read in outcome.value]


def _result(op: ZkOp, outcome: Any) -> ZkResult:
    if outcome.exception is not None:
        return _error(outcome.exception)
    value = outcome.value
    match op:
        case ZkGet():
            data, stat = value
            return _node(data, stat)
        case ZkExists():
            return ZkError.NO_NODE if value is None else _node(b"", value)
        case ZkChildren():
            return ZkNames(names=tuple(sorted(value)))
        case ZkSync():
            return ZkDone()
        case ZkCreate() | ZkMulti():
            failed = [part for part in value if isinstance(part, Exception)]
            said = [part for part in failed if not isinstance(part, RolledBackError | RuntimeInconsistency)]
            return _error((said or failed)[0]) if failed else ZkDone()


def _node(data: bytes, stat: ZnodeStat) -> ZkNode:
    return ZkNode(data=data, version=stat.version, owner=stat.ephemeralOwner, czxid=stat.czxid, mzxid=stat.mzxid)


def _error(error: Exception) -> ZkError:
    match error:
        case NoNodeError():
            return ZkError.NO_NODE
        case NodeExistsError():
            return ZkError.NODE_EXISTS
        case BadVersionError():
            return ZkError.BAD_VERSION
        case ConnectionLoss() | SessionExpiredError() | ConnectionClosedError():
            return ZkError.LOST
        case KazooException():
            return ZkError.REFUSED
    return ZkError.LOST  # a failure inside kazoo does not show what the server did
