"""Records of a commit log are told one from the other, and damage is said and never raised."""

from __future__ import annotations

import random
import struct
from collections.abc import Iterator
from itertools import product

import pytest

from targets.rocketmq.logs.commit_log import BYTES_MAX, Damage, Entry, entries
from tests.targets.rocketmq.records import (
    BORN_V6,
    MAGIC,
    MAGIC_LONG_TOPIC,
    REAL,
    STORED_V6,
    Says,
    blank,
    log_of,
    record,
)

ONE = record(b"one")
THREE = log_of(b"m0", b"m1", b"m2")


def sound(data: bytes) -> list[Entry]:
    """Return the records of a log without damage."""
    found = list(entries(data))
    assert [] == [each for each in found if isinstance(each, Damage)]
    return [each for each in found if isinstance(each, Entry)]


def damage(data: bytes) -> Damage:
    """Return the only thing that is in a log, which is none of its records."""
    (found,) = entries(data)
    assert isinstance(found, Damage)
    return found


# --- records ---------------------------------------------------------------------------------------------------
def test_record_that_a_broker_wrote_is_read_and_is_what_is_built_here() -> None:
    expected = Entry(at=0, size=221, position=221, topic="log", queue=0, queue_offset=1, value=b"m1.1")
    assert [expected] == sound(REAL)
    properties = REAL[REAL.index(b"MSG_REGION") :]
    built = record(b"m1.1", 221, 1, properties=properties)
    # But for two times and two hosts.
    assert (REAL[:40], REAL[72:]) == (built[:40], built[72:])


@pytest.mark.parametrize("flags", [0, BORN_V6, STORED_V6, BORN_V6 | STORED_V6, 1, 0x7FFFFFFF])
@pytest.mark.parametrize("magic", [MAGIC, MAGIC_LONG_TOPIC])
@pytest.mark.parametrize("value", [b"", b"m1.0", bytes(range(256)) * 300])
@pytest.mark.parametrize("properties", [b"", b"KEYS\x01a\x02"])
def test_record_of_any_form_is_read_whole(flags: int, magic: int, value: bytes, properties: bytes) -> None:
    data = record(value, 627, 5, topic="orders", queue=3, magic=magic, flags=flags, properties=properties)
    expected = Entry(at=0, size=len(data), position=627, topic="orders", queue=3, queue_offset=5, value=value)
    assert [expected] == sound(data)


def test_topic_of_the_longer_form_may_be_longer_than_a_byte_says() -> None:
    assert ["t" * 300] == [each.topic for each in sound(record(b"x", topic="t" * 300, magic=MAGIC_LONG_TOPIC))]


def test_topic_that_is_no_text_is_read_as_far_as_it_is() -> None:
    (found,) = sound(record(b"x", topic="log").replace(b"\x03log", b"\x03l\xffg"))
    assert "l\ufffdg" == found.topic


def test_records_follow_one_another_and_each_says_where_it_is() -> None:
    found = sound(log_of(b"m0", b"", b"m2" * 500, at=1000, offset=7))
    assert [(1000, 7, b"m0"), (1000 + found[1].at, 8, b""), (1000 + found[2].at, 9, b"m2" * 500)] == [
        (each.position, each.queue_offset, each.value) for each in found
    ]
    assert [0, *(each.at + each.size for each in found)][:3] == [each.at for each in found]


# --- the end ---------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("behind", [b"", bytes(1), bytes(7), bytes(8), bytes(5000), b"\0\0\0\0\xff\xff\xff\xff"])
def test_what_has_no_size_is_the_end(behind: bytes) -> None:
    assert sound(THREE) == sound(THREE + behind)
    assert [] == sound(behind)


@pytest.mark.parametrize("size", [8, 9, 200, 5000])
def test_blank_is_the_end_whatever_follows_it(size: int) -> None:
    assert sound(THREE) == sound(THREE + blank(size)) == sound(THREE + blank(size) + ONE)


def test_record_that_is_cut_is_left_out() -> None:
    size = len(ONE)
    for cut in range(size):
        assert [] == sound(ONE[:cut])
        assert sound(THREE) == sound(THREE + ONE[:cut])


# --- damage ----------------------------------------------------------------------------------------------------
def test_body_with_another_checksum_is_damage_of_its_size_and_the_rest_is_read() -> None:
    data = ONE + record(b"two", says=Says(crc=7)) + record(b"three")
    first, wrong, last = entries(data)
    assert isinstance(first, Entry) and isinstance(wrong, Damage) and isinstance(last, Entry)
    assert (b"one", b"three", len(ONE), len(ONE)) == (first.value, last.value, wrong.at, wrong.size)
    assert "its body has another checksum than it says" in wrong.why
    unchecked = [each.value if isinstance(each, Entry) else None for each in entries(data, checked=False)]
    assert [b"one", b"two", b"three"] == unchecked


def test_every_bit_of_the_body_is_covered_by_the_checksum() -> None:
    begins = ONE.index(b"one")
    for at, bit in product(range(begins, begins + 3), range(8)):
        changed = bytearray(ONE)
        changed[at] ^= 1 << bit
        assert len(ONE) == damage(bytes(changed)).size


@pytest.mark.parametrize("size", [-(2**31), -1, 1, 8, 40, BYTES_MAX + 1, 2**31 - 1])
def test_size_that_no_record_has_ends_the_log(size: int) -> None:
    found = list(entries(THREE + record(b"x", says=Says(size=size)) + ONE))
    assert [True, True, True, False] == [isinstance(each, Entry) for each in found]
    last = found[-1]
    assert isinstance(last, Damage)
    assert (len(THREE), 0) == (last.at, last.size)
    assert f"size {size}, magic daa320a7; expected a record" in last.why


def test_size_beyond_what_is_there_is_a_record_that_is_cut() -> None:
    assert sound(THREE) == sound(THREE + record(b"x", says=Says(size=BYTES_MAX)) + ONE)


@pytest.mark.parametrize("size", [41, 60, 90, len(ONE) - 1, len(ONE) + 1, len(ONE) + 9])
def test_size_that_its_parts_do_not_have_is_damage_of_that_size(size: int) -> None:
    found = next(entries(record(b"one", says=Says(size=size)) + bytes(100)))
    assert isinstance(found, Damage)
    assert (0, size) == (found.at, found.size)


@pytest.mark.parametrize("magic", [0, 1, MAGIC + 1, 0xBBCCDDEE, 0xFFFFFFFF])
def test_magic_that_no_record_has_ends_the_log(magic: int) -> None:
    assert (0, 0) == (damage(record(b"x", magic=magic) + ONE).at, damage(record(b"x", magic=magic)).size)


@pytest.mark.parametrize(
    "says",
    [
        *(Says(body=body) for body in (-(2**31), -1, 2, 4, 1000, 2**31 - 1)),
        *(Says(topic=topic) for topic in (0, 2, 4, 255)),
        *(Says(properties=length) for length in (0, len(ONE), 0xFFFF)),
    ],
)
@pytest.mark.parametrize("behind", [b"", ONE, bytes(300)])
def test_length_of_a_part_that_lies_is_damage_and_the_rest_is_read(says: Says, behind: bytes) -> None:
    lying = record(b"one", says=says)
    found = list(entries(lying + behind))
    assert isinstance(found[0], Damage)
    assert (0, len(ONE)) == (found[0].at, found[0].size)
    assert [b"one"] * (behind == ONE) == [each.value for each in found[1:] if isinstance(each, Entry)]


def test_body_of_less_than_nothing_is_damage_although_the_parts_have_the_size() -> None:
    """Its length ends with the byte that would be the length of the topic."""
    lying = record(b"", topic="t" * 254, properties=b"", says=Says(body=-1))
    assert len(lying) == damage(lying).size


# --- anything --------------------------------------------------------------------------------------------------
def bounded(data: bytes, found: Iterator[Entry | Damage]) -> list[Entry | Damage]:
    """Return what is found: pieces of the data, one behind the other, no more than there can be."""
    every: list[Entry | Damage] = []
    after = 0
    for each in found:
        every.append(each)
        assert after == each.at
        after = each.at + each.size
        assert after <= len(data)
        assert len(every) <= 1 + len(data) // 40
    assert all(each.size for each in every[:-1])
    return every


def test_random_bytes_raise_nothing_and_end() -> None:
    chance = random.Random(5)
    for _ in range(3000):
        data = chance.randbytes(chance.randrange(200))
        bounded(data, entries(data))


def test_random_bytes_in_a_record_s_head_raise_nothing_and_end() -> None:
    chance = random.Random(6)
    for _ in range(3000):
        size = chance.choice([41, 60, 91, 120, 160])
        magic = chance.choice([MAGIC, MAGIC_LONG_TOPIC])
        data = b"".join(
            struct.pack(">iI", size, magic) + chance.randbytes(size - 8) for _ in range(chance.randrange(4))
        )
        data += chance.randbytes(chance.randrange(100))
        bounded(data, entries(data, checked=chance.random() < 0.5))


def test_changed_bytes_of_a_log_raise_nothing_and_end() -> None:
    chance = random.Random(7)
    for _ in range(3000):
        data = bytearray(THREE + blank(50))
        for _ in range(chance.randrange(1, 6)):
            data[chance.randrange(len(data))] = chance.choice([0, 1, 0x7F, 0x80, 0xFF, chance.randrange(256)])
        bounded(bytes(data), entries(bytes(data)))


def test_log_that_is_cut_anywhere_has_its_whole_records() -> None:
    size = len(THREE) // 3
    for cut in range(len(THREE) + 1):
        assert cut // size == len(sound(THREE[:cut]))
