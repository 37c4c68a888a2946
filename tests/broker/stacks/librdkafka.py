"""librdkafka, through confluent-kafka."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import confluent_kafka
import confluent_kafka.admin

from tests.broker.stacks.face import FETCH_BYTES, SECONDS, Place, Reader, Record, until


class Confluent:
    """confluent-kafka, the Python binding of librdkafka."""

    codecs: tuple[str, ...] = ("none", "gzip", "snappy", "lz4", "zstd")

    def __init__(self, bootstrap: Callable[[], Sequence[str]]) -> None:
        self._bootstrap = bootstrap

    def _config(self, **more: object) -> dict[str, object]:
        return {"bootstrap.servers": ",".join(self._bootstrap()), "log_level": 0, **more}

    def _admin(self) -> confluent_kafka.admin.AdminClient:
        return confluent_kafka.admin.AdminClient(self._config())

    def create(self, topic: str, partitions: int, replicas: int) -> str:
        new = confluent_kafka.admin.NewTopic(topic, num_partitions=partitions, replication_factor=replicas)
        return self._told(lambda admin: admin.create_topics([new])[topic])

    def delete(self, topic: str) -> str:
        return self._told(lambda admin: admin.delete_topics([topic])[topic])

    def _told(self, ask: Callable[[Any], Any]) -> str:
        admin = self._admin()  # keep a reference: a collected client never answers
        error = ask(admin).exception(SECONDS)
        return "" if error is None else str(error.args[0].name())

    def topics(self) -> set[str]:
        return set(self._admin().list_topics(timeout=SECONDS).topics)

    def describe(self, topic: str) -> dict[int, tuple[int, int, int]]:
        admin = self._admin()
        asked = admin.describe_topics(confluent_kafka.TopicCollection([topic]))
        return {
            part.id: (part.leader.id, len(part.replicas), len(part.isr))
            for part in asked[topic].result(SECONDS).partitions
        }

    def produce(
        self, place: Place, values: Mapping[int, bytes], *, acks: int, codec: str, singly: bool = False
    ) -> list[int]:
        config = {"acks": acks, "compression.type": codec, "linger.ms": 0 if singly else 100}
        producer = confluent_kafka.Producer(self._config(**config))
        offsets: list[int] = []

        def delivered(error: Any, message: Any) -> None:
            assert error is None, error
            offsets.append(message.offset())

        for timestamp, value in values.items():
            producer.produce(place[0], value, partition=place[1], timestamp=timestamp, on_delivery=delivered)
            if singly:
                producer.flush(SECONDS)
        assert 0 == producer.flush(SECONDS)
        assert len(values) == len(offsets)
        return sorted(offsets) if acks else []

    def bounds(self, place: Place) -> tuple[int, int]:
        with self._consumer() as consumer:
            low, high = consumer.get_watermark_offsets(confluent_kafka.TopicPartition(*place), timeout=SECONDS)
            return low, high

    def offset_at(self, place: Place, timestamp_ms: int) -> int | None:
        with self._consumer() as consumer:
            asked = [confluent_kafka.TopicPartition(*place, timestamp_ms)]
            (found,) = consumer.offsets_for_times(asked, timeout=SECONDS)
            assert found.error is None, found.error
            return None if found.offset < 0 else found.offset

    @contextmanager
    def _consumer(self) -> Iterator[confluent_kafka.Consumer]:
        consumer = confluent_kafka.Consumer(
            self._config(
                **{
                    "group.id": "none",
                    "enable.auto.commit": False,
                    "check.crcs": True,
                    "max.partition.fetch.bytes": FETCH_BYTES,
                    "reconnect.backoff.max.ms": 200,
                }
            )
        )
        try:
            yield consumer
        finally:
            consumer.close()

    @contextmanager
    def reader(self, *places: Place) -> Iterator[Reader]:
        with self._consumer() as consumer:
            consumer.assign([confluent_kafka.TopicPartition(*place, 0) for place in places])
            yield _ConfluentReader(consumer)


class _ConfluentReader:
    def __init__(self, consumer: confluent_kafka.Consumer) -> None:
        self._consumer = consumer

    def take(self, count: int) -> list[Record]:
        found: list[Record] = []

        def enough() -> bool:
            message = self._consumer.poll(0.1)
            if message is not None and message.error() is None:
                found.append((message.topic(), message.partition(), message.offset(), message.value()))
            return len(found) >= count

        until(enough)
        return found

    def seek(self, place: Place, offset: int) -> None:
        self._consumer.seek(confluent_kafka.TopicPartition(*place, offset))
