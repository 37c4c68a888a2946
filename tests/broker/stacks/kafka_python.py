"""kafka-python, a client in pure Python."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from typing import Any

from tests.broker.stacks.face import FETCH_BYTES, SECONDS, Place, Record, until

with warnings.catch_warnings():
    # It reads its own files through an API that Python has deprecated.
    warnings.filterwarnings("ignore", "(read|open)_text is deprecated", DeprecationWarning)
    import kafka
    import kafka.admin
    from kafka.errors import KafkaError


class KafkaPython:
    """kafka-python; codecs other than gzip need further packages."""

    codecs: tuple[str, ...] = ("none", "gzip")

    def __init__(self, bootstrap: Callable[[], Sequence[str]]) -> None:
        self._bootstrap = bootstrap

    @contextmanager
    def _admin(self) -> Iterator[Any]:
        with closing(kafka.admin.KafkaAdminClient(bootstrap_servers=list(self._bootstrap()))) as admin:
            yield admin

    def create(self, topic: str, partitions: int, replicas: int) -> str:
        wish = {"num_partitions": partitions, "replication_factor": replicas}
        with self._admin() as admin:
            return self._error(lambda: admin.create_topics({topic: wish}))

    def delete(self, topic: str) -> str:
        with self._admin() as admin:
            return self._error(lambda: admin.delete_topics([topic]))

    def _error(self, act: Callable[[], object]) -> str:
        try:
            act()
        except KafkaError as error:
            return type(error).__name__
        return ""

    def topics(self) -> set[str]:
        with self._admin() as admin:
            return set(admin.list_topics())

    def describe(self, topic: str) -> dict[int, tuple[int, int, int]]:
        with self._admin() as admin:
            (told,) = admin.describe_topics([topic])
        return {
            part["partition_index"]: (part["leader_id"], len(part["replica_nodes"]), len(part["isr_nodes"]))
            for part in told["partitions"]
        }

    def produce(
        self, place: Place, values: Mapping[int, bytes], *, acks: int, codec: str, singly: bool = False
    ) -> list[int]:
        made = kafka.KafkaProducer(
            bootstrap_servers=list(self._bootstrap()),
            acks="all" if acks == -1 else acks,
            compression_type=None if codec == "none" else codec,
            enable_idempotence=False,
            linger_ms=0 if singly else 100,
        )
        with closing(made) as producer:
            asked = []
            for timestamp, value in values.items():
                asked.append(producer.send(place[0], value, partition=place[1], timestamp_ms=timestamp))
                if singly:
                    producer.flush(SECONDS)
            producer.flush(SECONDS)
            told = [future.get(SECONDS) for future in asked]
        return [record.offset for record in told] if acks else []

    @contextmanager
    def _consumer(self) -> Iterator[Any]:
        made = kafka.KafkaConsumer(
            bootstrap_servers=list(self._bootstrap()),
            group_id=None,
            auto_offset_reset="earliest",
            max_partition_fetch_bytes=FETCH_BYTES,
            check_crcs=True,
        )
        with closing(made) as consumer:
            yield consumer

    def bounds(self, place: Place) -> tuple[int, int]:
        at = kafka.TopicPartition(*place)
        with self._consumer() as consumer:
            return consumer.beginning_offsets([at])[at], consumer.end_offsets([at])[at]

    def offset_at(self, place: Place, timestamp_ms: int) -> int | None:
        at = kafka.TopicPartition(*place)
        with self._consumer() as consumer:
            found = consumer.offsets_for_times({at: timestamp_ms})[at]
        return None if found is None else found.offset

    @contextmanager
    def reader(self, *places: Place) -> Iterator[_KafkaPythonReader]:
        with self._consumer() as consumer:
            consumer.assign([kafka.TopicPartition(*place) for place in places])
            yield _KafkaPythonReader(consumer)


class _KafkaPythonReader:
    def __init__(self, consumer: Any) -> None:
        self._consumer = consumer

    def take(self, count: int) -> list[Record]:
        found: list[Record] = []

        def enough() -> bool:
            polled = self._consumer.poll(timeout_ms=100, max_records=count - len(found))
            found.extend((r.topic, r.partition, r.offset, r.value) for part in polled.values() for r in part)
            return len(found) >= count

        until(enough)
        return found

    @property
    def sessions(self) -> Mapping[int, Any]:
        """The library's own account of its fetch sessions, by broker."""
        sessions: Mapping[int, Any] = self._consumer._fetcher._session_handlers
        return sessions

    def seek(self, place: Place, offset: int) -> None:
        self._consumer.seek(kafka.TopicPartition(*place), offset)
