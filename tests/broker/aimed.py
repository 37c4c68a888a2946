"""
Aimed requests, drawn from a seed: counts, repeats, overlaps, sizes at limits, many names, many connections.

Random bytes rarely get past a broker's first check; these are well-formed up to the check that each is aimed at.
They are written by hand, byte by byte, so that they can say what no client would.
"""

from __future__ import annotations

import gzip
import random
import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Final

import cramjam
from crc32c import crc32c

from tests.broker.fuzz import COMMANDS, framed
from tests.broker.log.batches import varint
from tests.broker.wire.kio_side import ALL_VERSIONS, a_frame

CLIENT: Final = b"aimed"
LYING_COUNTS: Final = (2**31 - 1, 2**30, 2**24, 100_000, -1, -2, -(2**31))
FETCH_WAIT_MS: Final = 60_000
# A batch of a producer may have so many bytes (Kafka's message.max.bytes).
BATCH_BYTES_MAX: Final = 1_048_588
# What the bombs open to: 64 of these.
BOMB_PART: Final = bytes(16 * 1024 * 1024)


@dataclass(frozen=True, slots=True, kw_only=True)
class Aimed:
    """
    The bytes that are sent over one connection.

    Attributes:
        frames: how many requests they are.
        lingers: the connection is left open, and nothing is read from it.
    """

    kind: str
    data: bytes
    frames: int = 1
    lingers: bool = False


def aimed(rng: random.Random, topic: str, only: Sequence[str] = ()) -> Aimed:
    """Draw one, of these kinds if any are named; `topic` has one partition."""
    weights = [
        0 if only and kind.__name__ not in only else weight for kind, weight in zip(KINDS, WEIGHTS, strict=True)
    ]
    return rng.choices(KINDS, weights)[0](rng, topic.encode())


# --- bytes ----------------------------------------------------------------------------------------------------
def request(key: int, version: int, body: bytes) -> bytes:
    """Return a whole frame with its header."""
    return framed(struct.pack(">hhih", key, version, 7, len(CLIENT)) + CLIENT + body)


def text(data: bytes) -> bytes:
    """Return a string."""
    return struct.pack(">h", len(data)) + data


def array(items: Sequence[bytes]) -> bytes:
    """Return an array."""
    return struct.pack(">i", len(items)) + b"".join(items)


def fetch(places: bytes, *, max_bytes: int = 1, wait_ms: int = 0, min_bytes: int = 0) -> bytes:
    """Return a Fetch v4 of these topics, an array."""
    return request(1, 4, struct.pack(">iiiib", -1, wait_ms, min_bytes, max_bytes, 0) + places)


def place(partition: int, offset: int, max_bytes: int) -> bytes:
    """Return a partition of a Fetch v4."""
    return struct.pack(">iqi", partition, offset, max_bytes)


def produce(topic: bytes, records: bytes, acks: int = 1) -> bytes:
    """Return a Produce v3 of these bytes to partition 0."""
    data = struct.pack(">ii", 0, len(records)) + records
    return request(0, 3, struct.pack(">hhi", -1, acks, 1_000) + array([text(topic) + array([data])]))


def batch(records: bytes, *, count: int, delta: int, codec: int = 0) -> bytes:
    """Return a record batch whose CRC holds, whatever else does."""
    after_crc = struct.pack(">hiqqqhii", codec, delta, 0, 0, -1, -1, -1, count) + records
    head = struct.pack(">ibI", -1, 2, crc32c(after_crc)) + after_crc
    return struct.pack(">qi", 0, len(head)) + head


def record(value: bytes) -> bytes:
    """Return a record of a value, with offset delta 0."""
    body = b"\0\0\0" + varint(-1) + varint(len(value)) + value + b"\0"
    return varint(len(body)) + body


# --- kinds ----------------------------------------------------------------------------------------------------
def announced(rng: random.Random, _topic: bytes) -> Aimed:
    """Let a sound request of any API announce more than it holds."""
    key, version = rng.choice([served for served in ALL_VERSIONS if served[0] not in COMMANDS])
    frame = bytearray(a_frame(key, version))
    at = rng.randrange(8, max(9, len(frame) - 3))
    frame[at : at + 4] = struct.pack(">i", rng.choice(LYING_COUNTS))
    return Aimed(kind="announced", data=framed(bytes(frame)))


def repeated(rng: random.Random, topic: bytes) -> Aimed:
    """Fetch one partition again and again, where one batch is allowed to be larger than what is asked for."""
    places = [place(0, rng.choice((0, 0, 1, 5)), 1) for _ in range(rng.choice((2, 75, 1_000)))]
    return Aimed(kind="repeated", data=fetch(array([text(topic) + array(places)])))


def overlapping(rng: random.Random, topic: bytes) -> Aimed:
    """Fetch the whole log in one request, more than once, as different topics' entries."""
    entries = [text(topic) + array([place(0, offset, 2**31 - 1)]) for offset in range(rng.randint(2, 40))]
    return Aimed(kind="overlapping", data=fetch(array(entries), max_bytes=2**31 - 1))


def unread(rng: random.Random, topic: bytes) -> Aimed:
    """Ask for the whole log again and again, and read nothing."""
    one = fetch(array([text(topic) + array([place(0, 0, 2**31 - 1)])]), max_bytes=2**31 - 1)
    many = rng.randint(2, 20)
    return Aimed(kind="unread", data=one * many, frames=many, lingers=True)


def polling(rng: random.Random, topic: bytes) -> Aimed:
    """Wait for more than will ever come."""
    offset = rng.choice((0, 3, rng.randrange(1_000)))
    one = fetch(
        array([text(topic) + array([place(0, offset, 2**31 - 1)])]),
        max_bytes=2**31 - 1,
        wait_ms=FETCH_WAIT_MS,
        min_bytes=2**31 - 1,
    )
    return Aimed(kind="polling", data=one, lingers=True)


@cache
def _many(kind: str, count: int, topic: bytes) -> bytes:
    match kind:
        case "metadata":
            return request(3, 1, array([text(b"n%d" % number) for number in range(count)]))
        case "delete":
            body = array([text(b"n%d" % number) for number in range(count)]) + struct.pack(">i", 1_000)
            return request(20, 1, body)
        case "create":
            one = text(b"many") + struct.pack(">ih", -1, -1)
            assigned = array(
                [struct.pack(">i", number) + array([struct.pack(">i", 1)]) for number in range(count)]
            )
            return request(19, 2, array([one + assigned + array([])]) + struct.pack(">ib", 1_000, 1))
        case "offsets":
            entries = [struct.pack(">iq", number, -1) for number in range(count)]
            return request(2, 1, struct.pack(">i", -1) + array([text(topic) + array(entries)]))
        case _:
            return fetch(array([text(topic) + array([place(number, 0, 1) for number in range(count)])]))


def many(rng: random.Random, topic: bytes) -> Aimed:
    """Name many topics or partitions in one request, up to the limit, or far beyond it."""
    kind = rng.choice(("metadata", "delete", "create", "offsets", "fetch"))
    count = rng.choice((100, 100, 1_000, 9_000 if kind in ("offsets", "fetch") else 2_000, 100_000, 300_000))
    return Aimed(kind=f"many {kind}", data=_many(kind, count, topic))


def lying(rng: random.Random, topic: bytes) -> Aimed:
    """Produce a batch whose count, offsets and records disagree."""
    count = rng.choice((0, 2, 2**31 - 1, -1))
    delta = rng.choice((count - 1, 0, 2**31 - 1, -1)) if count > -(2**31) + 1 else 0
    one = batch(record(b"lie") if rng.random() < 0.7 else b"", count=count, delta=max(-1, min(delta, 2**31 - 1)))
    return Aimed(kind="lying", data=produce(topic, one * rng.choice((1, 1, 3, 1_000)), rng.choice((-1, 0, 1))))


@cache
def _bomb(codec: int) -> bytes:
    """Return a megabyte and less that opens to a gigabyte."""
    if codec == 1:
        return gzip.compress(BOMB_PART, 9) * 64
    if codec == 2:
        return bytes(cramjam.snappy.compress_raw(bytes(20_000_000)))
    if codec == 3:
        return bytes(cramjam.lz4.compress(BOMB_PART * 8))
    return bytes(cramjam.zstd.compress(BOMB_PART * 64))


def bombs(rng: random.Random, topic: bytes) -> Aimed:
    """Produce a small batch that opens to very much."""
    codec = rng.randint(1, 4)
    count = rng.choice((1, 1_000, 9_000_000))
    records = _bomb(codec)[: BATCH_BYTES_MAX - 61]
    return Aimed(kind="bomb", data=produce(topic, batch(records, count=count, delta=count - 1, codec=codec)))


@cache
def _sized(size: int) -> bytes:
    value = bytes(size)
    return batch(record(value), count=1, delta=0)


def sized(rng: random.Random, topic: bytes) -> Aimed:
    """Produce one batch of about the largest size."""
    around = BATCH_BYTES_MAX - 61 - 12
    return Aimed(kind="sized", data=produce(topic, _sized(around + rng.choice((-9, -1, 0, 1, 9, 50)))))


def partitions(rng: random.Random, _topic: bytes) -> Aimed:
    """Create topics with impossible numbers of partitions, twice in one request, or delete them."""
    name = text(rng.choice((b"storm-a", b"storm-b", b"../evil", b"", b"x" * 249)))
    if rng.random() < 0.3:
        return Aimed(kind="partitions", data=request(20, 1, array([name, name]) + struct.pack(">i", 1_000)))
    number = rng.choice((0, -5, 1, 3, 10_001, 2**31 - 1))
    one = name + struct.pack(">ih", number, rng.choice((1, 1, 0, 7, 2**15 - 1))) + array([]) + array([])
    topics = [one] * rng.choice((1, 1, 2))
    return Aimed(
        kind="partitions", data=request(19, 2, array(topics) + struct.pack(">ib", 1_000, rng.random() < 0.8))
    )


def commanding(rng: random.Random, topic: bytes) -> Aimed:
    """Command the broker as if one were its controller, at the clients' port."""
    name = text(rng.choice((b"../../evil", topic, b"", b"..")))
    state = name + struct.pack(">iiii", 0, 1, 99, 1) + struct.pack(">iqii", 1, 0, 1, 1)
    leader = struct.pack(">ibii", 1_000, rng.choice((0, 1)), 1, 2**31 - 1) + array([state])
    stop = struct.pack(">iii", 1_000, 1, 2**31 - 1) + array([name + struct.pack(">i", 0)])
    key, body = rng.choice(((4, leader), (5, stop)))
    return Aimed(kind="commanding", data=request(key, 0, body))


def piled(rng: random.Random, topic: bytes) -> Aimed:
    """Send many small requests at once."""
    offsets = request(2, 1, struct.pack(">i", -1) + array([text(topic) + array([struct.pack(">iq", 0, -1)])]))
    count = rng.randint(2, 50)
    return Aimed(kind="piled", data=offsets * count, frames=count)


def idle(rng: random.Random, _topic: bytes) -> Aimed:
    """Send nothing, or half a request, and stay."""
    half = struct.pack(">i", rng.choice((50, 70_000, 50_000_000))) + bytes(rng.choice((0, 10, 70_000)))
    return Aimed(kind="idle", data=rng.choice((b"", half)), lingers=True)


KINDS: Final[Sequence[Callable[[random.Random, bytes], Aimed]]] = (
    announced,
    repeated,
    overlapping,
    unread,
    polling,
    many,
    lying,
    bombs,
    sized,
    partitions,
    commanding,
    piled,
    idle,
)
WEIGHTS: Final = (40, 20, 6, 2, 10, 2, 30, 1, 1, 8, 10, 8, 10)
