"""
Write clients' requests, by hand, in the oldest versions that have record batch v2.

Every release since 0.11 knows those versions, so a client need not ask for versions first. A question is a request
together with the reader of its answer.

Source:  Apache Kafka, clients/src/main/resources/common/message/*Request.json.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Generic, TypeVar

from harness.workload.plan import Place
from targets.kafka_family.wire import answers
from targets.kafka_family.wire.cursor import Cursor
from targets.kafka_family.wire.errors import ErrorCode
from targets.kafka_family.wire.frames import API_NAMES, Unreadable, answer_correlation

T_co = TypeVar("T_co", covariant=True)

PRODUCE, FETCH, LIST_OFFSETS, METADATA, API_VERSIONS = 0, 1, 2, 3, 18
CREATE_TOPICS, DELETE_TOPICS, DELETE_RECORDS, INIT_PRODUCER_ID = 19, 20, 21, 22
ALTER_CONFIGS, CREATE_PARTITIONS = 33, 37

# The versions that know zstd (KIP-110), and those before them.
PRODUCE_VERSION: Final = 3
PRODUCE_ZSTD_VERSION: Final = 7
FETCH_VERSION: Final = 5
FETCH_ZSTD_VERSION: Final = 10
EARLIEST: Final = -2
_CONSUMER: Final = -1
_READ_UNCOMMITTED: Final = 0
_TOPIC: Final = 2  # Kafka's number of a resource that is a topic
_NULL: Final = -1

_HEADER: Final = struct.Struct(">hhi")
_BYTE: Final = struct.Struct(">b")
_SHORT: Final = struct.Struct(">h")
_INT: Final = struct.Struct(">i")
_LONG: Final = struct.Struct(">q")


@dataclass(frozen=True, slots=True, kw_only=True)
class Question(Generic[T_co]):
    """
    One request, and the reader of its answer.

    Attributes:
        api: the api key.
        body: what follows the header.
    """

    api: int
    version: int
    body: bytes
    reader: Callable[[Cursor, int], T_co]

    def frame(self, correlation: int, client_id: str) -> bytes:
        """Return the request with its length and header."""
        request = _HEADER.pack(self.api, self.version, correlation) + _text(client_id) + self.body
        return _INT.pack(len(request)) + request

    def answer(self, frame: bytes, correlation: int) -> T_co:
        """
        Read the answer, whose length has been taken off.

        Raises:
            Unreadable: it is not an answer to this request, or does not have its layout.
        """
        found, size = answer_correlation(frame, 0)
        if found != correlation:
            raise Unreadable(f"answer {found}; expected {correlation}")
        cursor = Cursor(frame, size, flexible=False)
        try:
            value = self.reader(cursor, self.version)
            if self.api != API_VERSIONS:
                cursor.end()
        except Unreadable as error:
            raise Unreadable(f"{error}, of a sound answer to {API_NAMES[self.api]} v{self.version}") from error
        return value


def api_versions() -> Question[ErrorCode]:
    """Ask which versions a broker has."""
    return Question(api=API_VERSIONS, version=0, body=b"", reader=answers.api_versions)


def metadata(topics: Sequence[str], version: int = 4) -> Question[answers.Metadata]:
    """Ask for all brokers and these topics; from version 4 on a missing topic is not created."""
    body = _array(map(_text, topics)) + (_bool(False) if version >= 4 else b"")
    return Question(api=METADATA, version=version, body=body, reader=answers.metadata)


def produce(
    batches: Mapping[Place, bytes], *, acks: int, timeout_s: float, version: int
) -> Question[dict[Place, answers.Produced]]:
    """Send a batch to each of these partitions."""
    body = _text(None) + _SHORT.pack(acks) + _ms(timeout_s)
    body += _by_topic({at: _INT.pack(at.partition) + _data(batch) for at, batch in batches.items()})
    return Question(api=PRODUCE, version=version, body=body, reader=answers.produced)


def fetch(
    offsets: Mapping[Place, int], *, wait_ms: int, max_bytes: int, version: int
) -> Question[dict[Place, answers.Fetched]]:
    """Ask for the records from an offset of each of these partitions on, outside of any fetch session."""
    body = struct.pack(">iiiib", _CONSUMER, wait_ms, 1, max_bytes, _READ_UNCOMMITTED)
    if version >= 7:
        body += struct.pack(">ii", 0, -1)
    no_epoch = _INT.pack(-1) if version >= 9 else b""
    no_start = _LONG.pack(-1)
    body += _by_topic(
        {
            at: _INT.pack(at.partition) + no_epoch + _LONG.pack(offset) + no_start + _INT.pack(max_bytes)
            for at, offset in offsets.items()
        }
    )
    if version >= 7:
        body += _array(())
    return Question(api=FETCH, version=version, body=body, reader=answers.fetched)


def list_offsets(place: Place, time: int) -> Question[dict[Place, answers.Listed]]:
    """Ask for the offset of a time in milliseconds, or of EARLIEST."""
    asked = _by_topic({place: _INT.pack(place.partition) + _LONG.pack(time)})
    return Question(api=LIST_OFFSETS, version=1, body=_INT.pack(_CONSUMER) + asked, reader=answers.listed)


def producer_id(transaction_s: float) -> Question[answers.ProducerId]:
    """Ask for an idempotent producer's id."""
    body = _text(None) + _ms(transaction_s)
    return Question(api=INIT_PRODUCER_ID, version=0, body=body, reader=answers.producer_id)


def create_topic(
    topic: str, assignments: Sequence[Sequence[int]], timeout_s: float
) -> Question[dict[str, answers.Changed]]:
    """Create a topic with a partition on each of these groups of brokers."""
    parts = (_INT.pack(at) + _ids(ids) for at, ids in enumerate(assignments))
    creatable = _text(topic) + _INT.pack(-1) + _SHORT.pack(-1) + _array(parts) + _array(())
    body = _array([creatable]) + _ms(timeout_s) + _bool(False)
    return Question(api=CREATE_TOPICS, version=2, body=body, reader=answers.created)


def create_partitions(
    topic: str, count: int, assignments: Sequence[Sequence[int]], timeout_s: float
) -> Question[dict[str, answers.Changed]]:
    """Have a topic have so many partitions, the new ones on each of these groups of brokers."""
    asked = _text(topic) + _INT.pack(count) + _array(map(_ids, assignments))
    body = _array([asked]) + _ms(timeout_s) + _bool(False)
    return Question(api=CREATE_PARTITIONS, version=0, body=body, reader=answers.created)


def delete_topic(topic: str, timeout_s: float) -> Question[dict[str, answers.Changed]]:
    """Delete a topic."""
    body = _array([_text(topic)]) + _ms(timeout_s)
    return Question(api=DELETE_TOPICS, version=1, body=body, reader=answers.deleted_topics)


def delete_records(place: Place, before: int, timeout_s: float) -> Question[dict[Place, answers.Deleted]]:
    """Delete the records before an offset, -1 for all that are committed."""
    body = _by_topic({place: _INT.pack(place.partition) + _LONG.pack(before)}) + _ms(timeout_s)
    return Question(api=DELETE_RECORDS, version=0, body=body, reader=answers.deleted_records)


def alter_topic(topic: str, setting: str, to: str) -> Question[dict[str, answers.Changed]]:
    """Give a topic this setting, and no other of its own."""
    resource = _BYTE.pack(_TOPIC) + _text(topic) + _array([_text(setting) + _text(to)])
    body = _array([resource]) + _bool(False)
    return Question(api=ALTER_CONFIGS, version=0, body=body, reader=answers.altered)


def _by_topic(parts: Mapping[Place, bytes]) -> bytes:
    """Write an array of topics, in the order of each one's first partition, each with an array of partitions."""
    found: dict[str, list[bytes]] = {}
    for place, part in parts.items():
        found.setdefault(place.topic, []).append(part)
    return _array(_text(topic) + _array(of_topic) for topic, of_topic in found.items())


def _array(items: Iterable[bytes]) -> bytes:
    written = list(items)
    return _INT.pack(len(written)) + b"".join(written)


def _ids(ids: Sequence[int]) -> bytes:
    return _array(map(_INT.pack, ids))


def _text(text: str | None) -> bytes:
    if text is None:
        return _SHORT.pack(_NULL)
    data = text.encode()
    return _SHORT.pack(len(data)) + data


def _data(data: bytes) -> bytes:
    return _INT.pack(len(data)) + data


def _ms(seconds: float) -> bytes:
    return _INT.pack(round(1000 * seconds))


def _bool(value: bool) -> bytes:
    return _BYTE.pack(value)
