"""
Who may connect and who must go: places, addresses, idle connections, and the memory that connections hold.

One object for all connections of a broker. It knows limits and clocks' readings, and does no IO itself: whoever
must go is told by `close`.
Source:  Kafka's ConnectionQuotas (max.connections, max.connections.per.ip), Selector (connections.max.idle.ms),
         MemoryPool (KIP-72).
"""

from __future__ import annotations

import logging
from collections import Counter, deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final, Protocol

from targets.broker.limits import Limits
from targets.broker.wire.versions import Rows

log = logging.getLogger("fencepost.broker")

# How often refused connections are told in the log, whatever their number.
TELL_S: Final = 60.0


@dataclass(slots=True)
class Listener:
    """
    One of the broker's ports: its name, the APIs served there, the limit and the number of its connections.

    Attributes:
        of_clients: what only brokers may say is refused there.
    """

    name: str
    rows: Rows
    limit: int
    of_clients: bool
    open: int = 0


def clients_listener(rows: Rows, limits: Limits) -> Listener:
    """Return the port of clients, who may not speak as brokers."""
    return Listener("the clients' listener", rows, limits.connections_max, of_clients=True)


def brokers_listener(rows: Rows, limits: Limits) -> Listener:
    """Return the port of followers and controllers."""
    return Listener("the brokers' listener", rows, limits.internal_connections_max, of_clients=False)


class Connection(Protocol):
    """A connection as this module sees it."""

    number: int
    # When bytes last came or went, in seconds of the loop's clock.
    moved_s: float

    @property
    def unsent_bytes(self) -> int:
        """Return the bytes of answers that its peer has not taken yet."""

    @property
    def wanted_bytes(self) -> int:
        """Return the bytes that the large request needs to go on."""

    def resume(self) -> None:
        """Take that memory and go on."""

    def close(self) -> None:
        """End the connection."""


@dataclass(slots=True)
class _Refused:
    """Refused connections since they were last told."""

    count: int = 0
    told_s: float = field(default=-TELL_S)


class Connections:
    """
    All connections of a broker.

    Args:
        limits: those in force, where a process may open too few files already lowered.
        now_s: the loop's clock.
    """

    def __init__(self, limits: Limits, now_s: Callable[[], float]) -> None:
        self.memory = Memory(limits.memory_bytes_max, now_s)
        self._limits = limits
        self._now_s = now_s
        self._open: dict[int, tuple[Connection, Listener, str]] = {}
        self._addresses: Counter[str] = Counter()
        self._refused = _Refused()

    def enter(self, connection: Connection, listener: Listener, address: str) -> bool:
        """Take a new connection in, or return False: there is no place for it, and it must be closed."""
        most = self._limits.connections_per_address_max
        if listener.open >= listener.limit:
            self._refuse(
                f"{listener.name}: {listener.open} connections are open; expected at most {listener.limit}"
            )
            return False
        if self._addresses[address] >= most:
            self._refuse(
                f"{address} has {most} connections; expected at most as many (connections_per_address_max)"
            )
            return False
        self._open[connection.number] = connection, listener, address
        self._addresses[address] += 1
        listener.open += 1
        return True

    def leave(self, connection: Connection) -> None:
        """Give up the place of a connection that ended."""
        found = self._open.pop(connection.number, None)
        if found is None:
            return
        _, listener, address = found
        listener.open -= 1
        self._addresses[address] -= 1
        if not self._addresses[address]:
            del self._addresses[address]
        self.memory.forget(connection)

    def sweep(self) -> None:
        """Close connections that are idle, and those that hold memory others wait for; call it often."""
        now = self._now_s()
        idle_since = now - self._limits.connection_idle_ms_max / 1000
        for connection, _, _ in tuple(self._open.values()):
            if connection.moved_s <= idle_since:
                log.info("connection %d: idle; closing it", connection.number)
                connection.close()
        for connection in self.memory.in_the_way(now, self._limits.unread_answer_ms_max / 1000):
            log.warning("connection %d: holds memory that others wait for; closing it", connection.number)
            connection.close()

    def _refuse(self, text: str) -> None:
        self._refused.count += 1
        now = self._now_s()
        if now - self._refused.told_s >= TELL_S:
            log.warning("refused %d connections since the last such line; now %s", self._refused.count, text)
            self._refused = _Refused(told_s=now)


@dataclass(slots=True)
class _Held:
    """The bytes that a connection holds, and since when: a request as a whole, an answer unchanged."""

    size: int
    since_s: float


class Memory:
    """
    The bytes that connections hold: large requests that come in or wait, and answers that nobody reads.

    When they reach the limit, only the oldest of the large requests goes on, so that one always ends; the others
    wait in the order in which they asked. Consumers then get one batch at a time, and none beyond twice the limit.
    """

    def __init__(self, bytes_max: int, now_s: Callable[[], float]) -> None:
        self._max = bytes_max
        self._now_s = now_s
        self._held: dict[Connection, _Held] = {}
        self._held_bytes = 0
        self._small: dict[Connection, int] = {}
        self._small_bytes = 0
        self._unread: dict[Connection, _Held] = {}
        self._queue: deque[Connection] = deque()

    def room(self) -> int:
        """Return how many bytes more may be held; 0 or less when memory is short."""
        return self._max - self._held_bytes - self._small_bytes - self._unread_bytes()

    def room_for_answers(self) -> int:
        """Return how many bytes of records the next answers may hold: 1 for one batch alone, 0 for none."""
        room = self.room()
        return room if room > 0 else int(room > -self._max)

    def asks(self, connection: Connection) -> bool:
        """Return True if the connection may take the memory that it wants now; else it is resumed when it may."""
        if next(iter(self._held), None) is connection or (not self._queue and self._allows(connection)):
            return True
        self._queue.append(connection)
        return False

    def hold(self, connection: Connection, size: int, small: int = 0) -> None:
        """
        Record the bytes that the connection's requests hold now.

        Args:
            size: of its large requests, which get their turn by age.
            small: of requests that came behind others; they count, and wait for no memory.
        """
        self._small_bytes += small - self._small.pop(connection, 0)
        if small:
            self._small[connection] = small
        held = self._held.get(connection)
        before = held.size if held is not None else 0
        self._held_bytes += size - before
        if not size:
            self._held.pop(connection, None)
        elif held is not None:
            held.size = size
        else:
            self._held[connection] = _Held(size, self._now_s())
        if size < before:
            self._resume()

    def sent(self, connection: Connection) -> None:
        """Note that an answer was written to the connection; what its peer has not taken counts until it has."""
        size = connection.unsent_bytes
        if size:
            self._unread[connection] = _Held(size, self._now_s())

    def forget(self, connection: Connection) -> None:
        """Drop everything about a connection that ended."""
        self._unread.pop(connection, None)
        self.hold(connection, 0)
        self._resume()

    def in_the_way(self, now_s: float, most_s: float) -> list[Connection]:
        """Return who has held memory for so long while it is short; and let those go on for whom there is some."""
        for connection, held in self._unread.items():
            size = connection.unsent_bytes
            if size < held.size:
                held.size, held.since_s = size, now_s
        self._resume()
        if not self._queue and self.room() > 0:
            return []
        holders = [*self._unread.items(), *self._held.items()]
        return [connection for connection, held in holders if held.since_s <= now_s - most_s]

    def _allows(self, connection: Connection) -> bool:
        return next(iter(self._held), connection) is connection or self.room() >= connection.wanted_bytes

    def _resume(self) -> None:
        """Let those go on for whom there is memory now, in their order."""
        while self._queue and self._allows(self._queue[0]):
            self._queue.popleft().resume()

    def _unread_bytes(self) -> int:
        total = 0
        for connection in tuple(self._unread):
            size = connection.unsent_bytes
            if not size:
                del self._unread[connection]
            total += size
        return total
