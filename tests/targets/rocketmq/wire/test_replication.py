"""What a slave and its master say to each other, and how far the slave is by it in each queue."""

from __future__ import annotations

import random
import struct
import tracemalloc
from contextlib import suppress
from dataclasses import replace

import pytest

from harness.target.wire import Direction, NotFramedError, Word
from targets.rocketmq.wire.wire import WIRE
from tests.targets.rocketmq.records import BORN_V6, MAGIC_LONG_TOPIC, Says, blank, log_of, record
from tests.targets.rocketmq.wire.wire import (
    HANDSHAKE,
    LINK,
    READY,
    REPLICATION,
    SHUTDOWN,
    SUSPEND,
    TRANSFER,
    Guarded,
    asked,
    given,
    master_handshake,
    of_kind,
    report,
    slave_handshake,
    transfer,
)

QUESTION = Word.EPOCH_QUESTION.value
FETCH = Word.FETCH.value
SLAVE, MASTER = Direction.REQUEST, Direction.ANSWER
THREE = log_of(b"m0", b"m1", b"m2")
SIZE = len(THREE) // 3


@pytest.fixture
def connection() -> Guarded:
    return of_kind(REPLICATION)


def at(connection: Guarded, end: int) -> tuple[tuple[str, int], ...]:
    """Return how far a slave is that says that its log ends there."""
    found = connection.read(report(end), SLAVE)
    assert ("", asked(FETCH, *found.seen.offsets)) == (found.error, found.seen)
    return found.seen.offsets


# --- sizes -----------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("frame", "direction", "known"),
    [
        (slave_handshake(), SLAVE, 4),
        (report(627), SLAVE, 4),
        (master_handshake(0), MASTER, 8),
        (master_handshake(627, (1, 0), (2, 627)), MASTER, 8),
        (transfer(627), MASTER, 8),
        (transfer(627, THREE), MASTER, 8),
        (transfer(0, bytes(100_000)), MASTER, 8),
    ],
)
def test_size_is_known_by_the_state_and_the_size_of_the_body(
    connection: Guarded, frame: bytes, direction: Direction, known: int
) -> None:
    sizes = [connection.size(frame[:have], direction) for have in range(13)]
    assert [0] * known + [len(frame)] * (13 - known) == sizes
    behind = b"\xff" * 50
    assert len(frame) == connection.size(b"before" + frame + behind, direction, 6)
    assert 0 == connection.size(b"before" + frame[: known - 1], direction, 6)


@pytest.mark.parametrize("direction", Direction)
@pytest.mark.parametrize("state", [READY, SUSPEND, SHUTDOWN, -1, 2**31 - 1, 0x16030102, 0x47455420])
def test_state_in_which_nothing_is_said_is_no_frame(connection: Guarded, state: int, direction: Direction) -> None:
    with pytest.raises(NotFramedError, match=f"^state {state}; expected HANDSHAKE"):
        connection.size(struct.pack(">i", state) + bytes(40), direction)


@pytest.mark.parametrize(
    ("state", "size"), [(HANDSHAKE, -1), (HANDSHAKE, -(2**31)), (HANDSHAKE, 2**31 - 1), (TRANSFER, 2**31 - 1)]
)
def test_body_of_a_size_that_none_has_is_no_frame(connection: Guarded, state: int, size: int) -> None:
    head = struct.pack(">ii", state, size) + bytes(28)
    with pytest.raises(NotFramedError, match=f"^a body of {size} bytes; expected at most"):
        connection.size(head, MASTER)
    # A slave sends none.
    assert (16 if state == HANDSHAKE else 12) == connection.size(head, SLAVE)


@pytest.mark.parametrize("size", [-1, -221, -(2**31)])
def test_behind_a_size_below_zero_are_no_frames_and_the_slave_goes_on(connection: Guarded, size: int) -> None:
    """AutoSwitchHAConnection.transferToSlave, 5.5.0: the master has cut its log below what the slave has."""
    head = bytearray(transfer(SIZE))
    struct.pack_into(">i", head, 4, size)
    assert len(head) == connection.size(bytes(head) + THREE, MASTER)
    assert asked(FETCH) == replace(connection.read(bytes(head), MASTER).seen, direction=SLAVE, offsets=())
    assert len(THREE) == connection.size(bytes(head) + THREE, MASTER, len(head))
    assert () == connection.read(THREE, MASTER).seen.offsets
    assert 0 == connection.size(b"", MASTER)
    assert 12 == connection.size(report(SIZE), SLAVE)
    at(connection, SIZE)


@pytest.mark.parametrize("below", [0, 1, 20, 35, 36, 37])
def test_largest_frame_is_one_that_the_fabric_takes(connection: Guarded, below: int) -> None:
    """The guard raises AssertionError here for a size that no frame may have."""
    size = 128 * 1024 * 1024 - below
    with suppress(NotFramedError):
        assert 36 + size == connection.size(struct.pack(">ii", TRANSFER, size), MASTER)


# --- words -----------------------------------------------------------------------------------------------------
def test_handshake_asks_where_epochs_begin(connection: Guarded) -> None:
    assert asked(QUESTION) == connection.read(slave_handshake(3, 0x00010001), SLAVE).seen
    for frame in (master_handshake(0), master_handshake(900, (1, 0), (2, 627))):
        found = connection.read(frame, MASTER)
        assert (given(QUESTION), "", ()) == (found.seen, found.error, found.events)


def test_transfer_fetches_from_where_the_slave_s_log_ends(connection: Guarded) -> None:
    assert asked(FETCH) == connection.read(report(0), SLAVE).seen
    assert given(FETCH, ("log", 0)) == connection.read(transfer(0, log_of(b"m0")), MASTER).seen
    assert asked(FETCH, ("log", 1)) == connection.read(report(SIZE), SLAVE).seen
    assert given(FETCH, ("log", 1)) == connection.read(transfer(SIZE, THREE[SIZE:]), MASTER).seen
    assert asked(FETCH, ("log", 3)) == connection.read(report(3 * SIZE), SLAVE).seen
    # A heartbeat has no bytes.
    assert given(FETCH, ("log", 3)) == connection.read(transfer(3 * SIZE), MASTER).seen


def test_no_frame_of_it_is_doubled(connection: Guarded) -> None:
    assert -1 == connection.read(report(0), SLAVE).seen.correlation
    with pytest.raises(AssertionError, match="expected none of replication to be doubled"):
        connection.reading.sent_again(1)


# --- offsets ---------------------------------------------------------------------------------------------------
def test_position_is_the_offset_after_the_last_record_before_it(connection: Guarded) -> None:
    connection.read(transfer(1000, log_of(b"m0", b"m1", b"m2", at=1000, offset=7)), MASTER)
    ends = [1000, 1000 + SIZE - 1, 1000 + SIZE, 1000 + 2 * SIZE - 1, 1000 + 2 * SIZE, 1000 + 3 * SIZE, 2**60]
    assert [0, 0, 8, 8, 9, 10, 10] == [dict(at(connection, end))["log"] for end in ends]
    assert (("log", 0),) == at(connection, 0)


def test_each_queue_of_each_topic_has_an_offset_of_its_own(connection: Guarded) -> None:
    data = log_of(b"a0", b"a1") + log_of(b"b0", at=2 * SIZE, queue=1) + log_of(b"c0", at=3 * SIZE, topic="etc")
    connection.read(transfer(0, data), MASTER)
    assert [("log", 2), ("log", 1), ("etc", 0)] == [*at(connection, 3 * SIZE)]
    assert [("log", 2), ("log", 1), ("etc", 1)] == [*at(connection, 4 * SIZE)]


@pytest.mark.parametrize("form", [{"flags": BORN_V6}, {"magic": MAGIC_LONG_TOPIC}, {"says": Says(crc=7)}])
def test_record_of_any_form_counts_whatever_its_checksum_is(connection: Guarded, form: dict[str, object]) -> None:
    arguments: dict[str, object] = {"topic": "log", **form}
    data = record(b"value", 0, 4, **arguments)  # type: ignore[arg-type]
    connection.read(transfer(0, data), MASTER)
    assert (("log", 5),) == at(connection, len(data))


@pytest.mark.parametrize("pieces", [1, 7, 20, 100])
def test_record_that_comes_in_several_frames_counts_once_it_is_whole(pieces: int) -> None:
    connection = of_kind(REPLICATION)
    for begin in range(0, len(THREE), pieces):
        connection.read(transfer(begin, THREE[begin : begin + pieces]), MASTER)
        have = min(begin + pieces, len(THREE))
        assert (have // SIZE) == dict(at(connection, have)).get("log", 0)


def test_record_that_is_cut_at_any_byte_counts_with_its_rest() -> None:
    for cut in range(SIZE, 2 * SIZE):
        connection = of_kind(REPLICATION)
        connection.read(transfer(0, THREE[:cut]), MASTER)
        assert (("log", 1),) == at(connection, 3 * SIZE)
        connection.read(transfer(cut, THREE[cut:]), MASTER)
        assert (("log", 3),) == at(connection, 3 * SIZE)


def test_heartbeat_within_a_record_changes_nothing(connection: Guarded) -> None:
    connection.read(transfer(0, THREE[:50]), MASTER)
    connection.read(transfer(50), MASTER)
    connection.read(transfer(50, THREE[50:]), MASTER)
    assert (("log", 3),) == at(connection, 3 * SIZE)


def test_frame_from_another_byte_forgets_what_had_begun(connection: Guarded) -> None:
    connection.read(transfer(0, THREE[: SIZE + 50]), MASTER)
    connection.read(transfer(SIZE, log_of(b"other", at=SIZE, offset=1)), MASTER)
    assert (("log", 2),) == at(connection, 2 * SIZE + 3)


def test_rest_of_a_record_whose_beginning_was_not_seen_is_passed_over(connection: Guarded) -> None:
    connection.read(transfer(50, THREE[50:]), MASTER)
    assert () == at(connection, 3 * SIZE)
    more = log_of(b"m3", at=3 * SIZE, offset=3)
    connection.read(transfer(3 * SIZE, more), MASTER)
    assert [("log", 4)] == [*at(connection, 4 * SIZE)][-1:]


def test_frame_of_which_only_the_beginning_is_there_says_what_that_has(connection: Guarded) -> None:
    whole = transfer(0, THREE + bytes(1_000_000))
    connection.read(whole[: 64 * 1024], MASTER)
    assert (("log", 3),) == at(connection, 3 * SIZE)


@pytest.mark.parametrize("spare", [8, 60, 5000])
def test_records_of_the_next_file_count_after_the_blank_of_the_last_one(connection: Guarded, spare: int) -> None:
    """A master sends the blank as it sends all bytes of its log, and no frame has bytes of two files."""
    begins = 3 * SIZE + spare
    connection.read(transfer(0, THREE), MASTER)
    rest = blank(spare)
    for cut in range(0, spare, 2000):
        connection.read(transfer(3 * SIZE + cut, rest[cut : cut + 2000]), MASTER)
    assert (("log", 3),) == at(connection, begins)
    connection.read(transfer(begins, log_of(b"m3", b"m4", at=begins, offset=3)), MASTER)
    assert [(("log", 4),), (("log", 5),)] == [at(connection, begins + count * SIZE) for count in (1, 2)]


def test_what_no_record_begins_with_is_not_kept(connection: Guarded) -> None:
    piece = b"\xff" * 65_536
    tracemalloc.start()
    try:
        for number in range(40):
            connection.read(transfer(number * len(piece), piece), MASTER)
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert most < 10 * len(piece)


# --- several connections ---------------------------------------------------------------------------------------
def test_connections_of_a_run_share_what_they_heard() -> None:
    hearing = WIRE.hear({})
    one, other = hearing.reading(REPLICATION, LINK), hearing.reading(REPLICATION, ("C", "A"))
    assert one is not None and other is not None
    one.read(transfer(0, THREE), MASTER)
    seen = other.read(report(2 * SIZE), SLAVE).seen
    assert (("C", "A"), (("log", 2),)) == (seen.link, seen.offsets)


def test_record_of_a_later_master_takes_the_place_of_the_one_before() -> None:
    hearing = WIRE.hear({})
    old, new = hearing.reading(REPLICATION, LINK), hearing.reading(REPLICATION, ("B", "C"))
    assert old is not None and new is not None
    old.read(transfer(0, log_of(b"x0", b"x1")), MASTER)
    new.read(transfer(SIZE, log_of(b"r7", at=SIZE, offset=7)), MASTER)
    assert (("log", 8),) == new.read(report(2 * SIZE), SLAVE).seen.offsets


# --- anything --------------------------------------------------------------------------------------------------
def test_random_bytes_raise_nothing_but_that_they_are_not_framed() -> None:
    chance = random.Random(1)
    for _ in range(2000):
        connection = of_kind(REPLICATION)
        data = struct.pack(">i", chance.choice([HANDSHAKE, TRANSFER, TRANSFER, chance.randrange(9)]))
        data += chance.choice([b"", struct.pack(">i", chance.randrange(60))]) + chance.randbytes(
            chance.randrange(120)
        )
        with suppress(NotFramedError):
            connection.stream(data, chance.choice([SLAVE, MASTER]))


def test_random_bodies_and_positions_raise_nothing() -> None:
    chance = random.Random(2)
    connection = of_kind(REPLICATION)
    for _ in range(2000):
        position = chance.choice([0, 1, SIZE, 2 * SIZE, -1, -(2**63), 2**63 - 1, chance.randrange(3 * SIZE)])
        body = bytearray(chance.choice([THREE, THREE[: chance.randrange(len(THREE))], chance.randbytes(90), b""]))
        for _ in range(chance.randrange(3) if body else 0):
            body[chance.randrange(len(body))] = chance.randrange(256)
        connection.read(transfer(position, bytes(body)), MASTER)
        connection.read(report(position), SLAVE)


def test_stream_of_frames_is_read_frame_by_frame(connection: Guarded) -> None:
    sent = master_handshake(627, (1, 0)) + transfer(0, THREE) + transfer(3 * SIZE)
    expected = [given(QUESTION), given(FETCH, ("log", 0)), given(FETCH, ("log", 3))]
    assert expected == [each.seen for each in connection.stream(sent, MASTER)]
    sent = slave_handshake() + report(0) + report(SIZE)
    expected = [asked(QUESTION), asked(FETCH, ("log", 0)), asked(FETCH, ("log", 1))]
    assert expected == [each.seen for each in connection.stream(sent, SLAVE)]
