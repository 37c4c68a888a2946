"""Broken requests, drawn from a seed: valid frames that are flipped, cut, extended or mislabelled, and noise."""

from __future__ import annotations

import random
import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Final

from targets.broker.wire import versions
from targets.broker.wire.entities import fill, item_type, request_type
from targets.broker.wire.frames import FRAME_BYTES_MAX
from targets.kafka_family.clients.batches import CODECS, write_batch
from tests.broker.wire.kio_side import ALL_VERSIONS, a_frame, request_frame

# These may delete data, and a flipped bit can turn one valid command into another.
COMMANDS: Final = (versions.LEADER_AND_ISR, versions.STOP_REPLICA, versions.DELETE_TOPICS)
FUZZ_VALUE: Final = "fuzz"


@dataclass(frozen=True, slots=True, kw_only=True)
class Shot:
    """
    The bytes sent over one connection before it is closed.

    Attributes:
        data: raw bytes, including the frames' lengths.
        patient: whether to wait for an answer or for the end of the connection.
    """

    kind: str
    data: bytes
    patient: bool


def shots(seed: int, count: int, topic: str) -> list[Shot]:
    """Draw that many shots; some produce to the topic's only partition."""
    rng = random.Random(seed)
    made = [rng.choice(_KINDS) for _ in range(count)]
    return [
        Shot(kind=kind.__name__.lstrip("_"), data=kind(rng, topic), patient=rng.random() < 0.5) for kind in made
    ]


def framed(body: bytes) -> bytes:
    """Return a body prefixed with its length."""
    return struct.pack(">i", len(body)) + body


def _sound(rng: random.Random, topic: str, *, commands: bool = False) -> bytes:
    """Draw a valid request; return its frame without the length."""
    if rng.random() < 0.3:
        return _produce(rng, topic)
    if rng.random() < 0.1:
        return _create(rng)
    key, version = rng.choice([served for served in ALL_VERSIONS if commands or served[0] not in COMMANDS])
    return a_frame(key, version)


def _produce(rng: random.Random, topic: str) -> bytes:
    version = rng.randint(3, 8)
    entity = request_type(versions.PRODUCE, version)
    of_topic = item_type(entity, "topic_data")
    batch = write_batch([FUZZ_VALUE.encode()] * rng.randint(1, 3), rng.choice(list(CODECS)))
    data = item_type(of_topic, "partition_data")(index=0, records=batch)
    sent = fill(
        entity,
        transactional_id=None,
        acks=rng.choice((-1, 0, 1)),
        timeout=timedelta(milliseconds=50),
        topic_data=(of_topic(name=topic, partition_data=(data,)),),
    )
    return request_frame(versions.PRODUCE, version, sent)


def _create(rng: random.Random) -> bytes:
    version = rng.randint(2, 4)
    entity = request_type(versions.CREATE_TOPICS, version)
    of_topic = item_type(entity, "topics")
    wanted = of_topic(
        name="fuzz",
        num_partitions=rng.choice((-1, 0, 1, 10_000, 10_001, 2**31 - 1)),
        replication_factor=rng.choice((-1, 0, 1, 2**15 - 1)),
        assignments=(),
        configs=(),
    )
    sent = entity(topics=(wanted,), timeout=timedelta(milliseconds=50), validate_only=True)
    return request_frame(versions.CREATE_TOPICS, version, sent)


# --- kinds ------------------------------------------------------------------------------------------------------
def _flipped(rng: random.Random, topic: str) -> bytes:
    frame = bytearray(_sound(rng, topic))
    for _ in range(rng.randint(1, 4)):
        frame[rng.randrange(len(frame))] ^= 1 << rng.randrange(8)
    return framed(bytes(frame))


def _overwritten(rng: random.Random, topic: str) -> bytes:
    """Overwrite four bytes, so that a count or length may become huge or negative."""
    frame = bytearray(_sound(rng, topic))
    at = rng.randrange(8, max(9, len(frame) - 3))
    frame[at : at + 4] = struct.pack(">i", rng.choice((-1, 0, 1, 2**31 - 1, -(2**31), 0x7FFF, 2**24)))
    return framed(bytes(frame))


def _cut(rng: random.Random, topic: str) -> bytes:
    frame = _sound(rng, topic, commands=True)
    return framed(frame[: rng.randrange(len(frame))])


def _grown(rng: random.Random, topic: str) -> bytes:
    frame = _sound(rng, topic, commands=True)
    at = rng.randrange(10, len(frame) + 1)
    return framed(frame[:at] + rng.randbytes(rng.randint(1, 64)) + frame[at:] + b"\x00")


def _misversioned(rng: random.Random, topic: str) -> bytes:
    frame = bytearray(_sound(rng, topic))
    struct.pack_into(">hh", frame, 0, rng.randint(-2, 70), rng.choice((-1, 0, 1, 2, 9, 12, 99, 2**15 - 1)))
    key, version = struct.unpack_from(">hh", frame)
    # A frame with another API's body is almost never valid; a frame that could be a command is not sent.
    return framed(b"" if key in COMMANDS and version >= 0 else bytes(frame))


def _half(rng: random.Random, topic: str) -> bytes:
    frame = framed(_sound(rng, topic, commands=True))
    return frame[: rng.randrange(1, len(frame))]


def _huge(rng: random.Random, topic: str) -> bytes:
    """An invalid length, or a very large valid one with few bytes after it."""
    length = rng.choice((-1, -(2**31), 2**31 - 1, FRAME_BYTES_MAX + 1, FRAME_BYTES_MAX, FRAME_BYTES_MAX // 2))
    return struct.pack(">i", length) + _sound(rng, topic)


def _noise(rng: random.Random, _topic: str) -> bytes:
    return rng.randbytes(rng.randint(1, 300))


def _framed_noise(rng: random.Random, _topic: str) -> bytes:
    return framed(rng.randbytes(rng.randint(0, 300)))


def _piled(rng: random.Random, topic: str) -> bytes:
    """Many valid requests at once, followed by a broken one."""
    return b"".join(framed(_sound(rng, topic)) for _ in range(rng.randint(2, 80))) + _flipped(rng, topic)


_KINDS: Final[Sequence[Callable[[random.Random, str], bytes]]] = (
    _flipped,
    _flipped,
    _overwritten,
    _overwritten,
    _cut,
    _grown,
    _misversioned,
    _half,
    _huge,
    _noise,
    _framed_noise,
    _piled,
)
