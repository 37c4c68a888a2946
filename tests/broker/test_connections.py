"""Places, idle connections, and the memory that connections hold."""

from __future__ import annotations

import logging
from dataclasses import dataclass, field

import pytest

from targets.broker.connections import TELL_S, Connections, Listener, Memory
from targets.broker.limits import Limits
from targets.broker.wire.versions import ROWS


@dataclass(eq=False)
class Peer:
    """A connection that does nothing by itself."""

    number: int = 1
    moved_s: float = 0.0
    unsent_bytes: int = 0
    wanted_bytes: int = 0
    closed: bool = False
    resumed: int = 0
    memory: Memory | None = field(default=None, repr=False)

    def resume(self) -> None:
        self.resumed += 1
        if self.memory is not None:
            self.memory.hold(self, self.wanted_bytes)

    def close(self) -> None:
        self.closed = True


@dataclass
class Door:
    """The connections of a broker, and their clock."""

    limits: Limits = field(default_factory=Limits)
    now: float = 1_000.0

    def __post_init__(self) -> None:
        self.keeper = Connections(self.limits, lambda: self.now)
        self.listener = Listener("clients", ROWS, self.limits.connections_max, of_clients=True)
        self.numbers = 0

    def enters(self, address: str = "127.0.0.1", listener: Listener | None = None) -> tuple[bool, Peer]:
        self.numbers += 1
        peer = Peer(self.numbers, self.now)
        return self.keeper.enter(peer, listener or self.listener, address), peer


# --- places ---------------------------------------------------------------------------------------------------
def test_connection_without_a_place_is_refused_until_one_leaves() -> None:
    """Source: Kafka, max.connections."""
    door = Door(Limits(connections_max=2))
    (first, one), (second, _), (third, _) = (door.enters() for _ in range(3))
    assert (True, True, False) == (first, second, third)
    door.keeper.leave(one)
    door.keeper.leave(one)
    assert [True, False] == [door.enters()[0] for _ in range(2)]


def test_address_has_its_own_limit() -> None:
    """Source: Kafka, max.connections.per.ip."""
    door = Door(Limits(connections_per_address_max=1))
    _, one = door.enters("10.0.0.1")
    assert [False, True] == [door.enters("10.0.0.1")[0], door.enters("10.0.0.2")[0]]
    door.keeper.leave(one)
    assert door.enters("10.0.0.1")[0]


def test_listeners_do_not_take_each_others_places() -> None:
    """Source: KIP-402: clients that take all places leave the brokers theirs."""
    door = Door(Limits(connections_max=1))
    brokers = Listener("brokers", ROWS, 1, of_clients=False)
    assert [True, False] == [door.enters()[0], door.enters()[0]]
    assert [True, False] == [door.enters(listener=brokers)[0], door.enters(listener=brokers)[0]]


def test_refused_connections_are_told_once_a_minute(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING)
    door = Door(Limits(connections_max=1))
    for _ in range(5):
        door.enters()
    assert [
        "refused 1 connections since the last such line; now clients: 1 connections are open; expected at most 1"
    ] == [record.getMessage() for record in caplog.records]
    door.now += TELL_S
    door.enters()
    assert "refused 4 connections since the last such line" in caplog.records[-1].getMessage()
    assert 2 == len(caplog.records)


# --- idle -----------------------------------------------------------------------------------------------------
def test_idle_connections_are_closed_and_others_are_not() -> None:
    """Source: Kafka, connections.max.idle.ms."""
    door = Door(Limits(connection_idle_ms_max=10_000))
    _, idle = door.enters()
    _, busy = door.enters()
    door.now += 9.9
    busy.moved_s = door.now
    door.keeper.sweep()
    assert (False, False) == (idle.closed, busy.closed)
    door.now += 0.1
    door.keeper.sweep()
    assert (True, False) == (idle.closed, busy.closed)


# --- memory ---------------------------------------------------------------------------------------------------
def memory_of(bytes_max: int) -> Memory:
    return Memory(bytes_max, lambda: 0.0)


def holding(memory: Memory, size: int, number: int = 1) -> Peer:
    peer = Peer(number, memory=memory)
    memory.hold(peer, size)
    return peer


def wanting(memory: Memory, size: int, number: int = 9) -> Peer:
    return Peer(number, wanted_bytes=size, memory=memory)


def test_room_is_what_requests_and_unread_answers_leave() -> None:
    memory = memory_of(100)
    one = holding(memory, 30)
    reader = Peer(2, unsent_bytes=50)
    memory.sent(reader)
    assert 20 == memory.room()
    reader.unsent_bytes = 0
    memory.hold(one, 10)
    assert 90 == memory.room()
    memory.hold(one, 0)
    assert 100 == memory.room()


def test_who_finds_no_room_waits_in_line() -> None:
    memory = memory_of(100)
    one, two = holding(memory, 60, 1), holding(memory, 30, 2)
    third, fourth = wanting(memory, 40, 3), wanting(memory, 5, 4)
    assert [False, False] == [memory.asks(third), memory.asks(fourth)]  # the fourth does not overtake
    memory.hold(two, 0)
    assert (1, 0, 0) == (third.resumed, fourth.resumed, memory.room())
    memory.hold(one, 0)
    assert (1, 1) == (third.resumed, fourth.resumed)


def test_the_oldest_goes_on_beyond_the_limit_so_that_one_always_ends() -> None:
    memory = memory_of(100)
    oldest, other = holding(memory, 60, 1), holding(memory, 40, 2)
    oldest.wanted_bytes, other.wanted_bytes = 120, 80
    assert [True, False] == [memory.asks(oldest), memory.asks(other)]
    memory.hold(oldest, 120)
    assert 0 == other.resumed
    memory.forget(oldest)
    assert 1 == other.resumed


def test_small_requests_that_wait_count_and_hold_up_no_large_one() -> None:
    memory = memory_of(100)
    pipelining = Peer(1)
    memory.hold(pipelining, 0, 90)
    assert 10 == memory.room()
    assert memory.asks(wanting(memory, 50))
    memory.hold(pipelining, 0, 40)
    assert 60 == memory.room()
    memory.forget(pipelining)
    assert 100 == memory.room()


def test_first_large_request_is_taken_even_when_answers_fill_the_memory() -> None:
    memory = memory_of(100)
    memory.sent(Peer(1, unsent_bytes=500))
    assert memory.asks(wanting(memory, 10))


def test_consumers_get_one_batch_when_memory_is_short_and_none_when_it_is_twice() -> None:
    memory = memory_of(100)
    reader = Peer(unsent_bytes=99)
    memory.sent(reader)
    found = []
    for reader.unsent_bytes in (99, 100, 199, 200):
        found.append(memory.room_for_answers())
    assert [1, 1, 1, 0] == found


def test_who_holds_memory_for_long_while_it_is_short_is_closed_and_nobody_else() -> None:
    door = Door(Limits(memory_bytes_max=100, unread_answer_ms_max=5_000))
    memory = door.keeper.memory
    peers = [door.enters()[1] for _ in range(5)]
    holder, slow, stuck, waiter, _quiet = peers
    memory.hold(holder, 60)
    slow.unsent_bytes = stuck.unsent_bytes = 60
    memory.sent(slow)
    memory.sent(stuck)
    waiter.wanted_bytes, waiter.memory = 10, memory
    assert not memory.asks(waiter)
    door.now += 4
    slow.unsent_bytes = 59
    door.keeper.sweep()
    holder.moved_s = door.now  # a byte came: no matter
    door.now += 1
    door.keeper.sweep()
    assert [True, False, True, False, False] == [peer.closed for peer in peers]
    door.keeper.leave(holder)
    assert 1 == waiter.resumed


def test_nobody_is_closed_while_there_is_memory() -> None:
    door = Door(Limits(memory_bytes_max=100, unread_answer_ms_max=5_000))
    _, reader = door.enters()
    reader.unsent_bytes = 60
    door.keeper.memory.sent(reader)
    door.now += 60
    door.keeper.sweep()
    assert not reader.closed
