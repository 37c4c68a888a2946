"""aiokafka, a client on asyncio."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar

import aiokafka
import aiokafka.admin
import aiokafka.errors

from tests.broker.stacks.face import FETCH_BYTES, Place, Reader, Record, until

T = TypeVar("T")


class Aiokafka:
    """aiokafka; the event loop of each client runs only during a call."""

    codecs: tuple[str, ...] = ("none", "gzip", "snappy", "lz4", "zstd")

    def __init__(self, bootstrap: Callable[[], Sequence[str]]) -> None:
        self._bootstrap = bootstrap

    def _servers(self) -> str:
        return ",".join(self._bootstrap())

    def _with_admin(self, act: Callable[[Any], Coroutine[Any, Any, T]]) -> T:
        async def told() -> T:
            admin = aiokafka.admin.AIOKafkaAdminClient(bootstrap_servers=self._servers())
            await admin.start()
            try:
                return await act(admin)
            finally:
                await admin.close()

        return asyncio.run(told())

    def create(self, topic: str, partitions: int, replicas: int) -> str:
        new = aiokafka.admin.NewTopic(topic, num_partitions=partitions, replication_factor=replicas)
        response = self._with_admin(lambda admin: admin.create_topics([new]))
        return self._error(response.topic_errors[0][1])

    def delete(self, topic: str) -> str:
        response = self._with_admin(lambda admin: admin.delete_topics([topic]))
        return self._error(response.topic_error_codes[0][1])

    def _error(self, code: int) -> str:
        return "" if code == 0 else aiokafka.errors.for_code(code).__name__

    def topics(self) -> set[str]:
        return set(self._with_admin(lambda admin: admin.list_topics()))

    def describe(self, topic: str) -> dict[int, tuple[int, int, int]]:
        (told,) = self._with_admin(lambda admin: admin.describe_topics([topic]))
        return {
            part["partition"]: (part["leader"], len(part["replicas"]), len(part["isr"]))
            for part in told["partitions"]
        }

    def produce(
        self, place: Place, values: Mapping[int, bytes], *, acks: int, codec: str, singly: bool = False
    ) -> list[int]:
        async def told() -> list[int]:
            producer = aiokafka.AIOKafkaProducer(
                bootstrap_servers=self._servers(),
                acks="all" if acks == -1 else acks,
                compression_type=None if codec == "none" else codec,
                linger_ms=0 if singly else 100,
            )
            await producer.start()
            try:
                asked = []
                for timestamp, value in values.items():
                    sent = await producer.send(place[0], value, partition=place[1], timestamp_ms=timestamp)
                    asked.append(sent)
                    if singly:
                        await producer.flush()
                await producer.flush()
                return [(await sent).offset for sent in asked] if acks else []
            finally:
                await producer.stop()

        return asyncio.run(told())

    def _consumer(self, *places: Place) -> Any:
        consumer = aiokafka.AIOKafkaConsumer(
            bootstrap_servers=self._servers(),
            group_id=None,
            enable_auto_commit=False,
            auto_offset_reset="earliest",
            max_partition_fetch_bytes=FETCH_BYTES,
            check_crcs=True,
        )
        consumer.assign([aiokafka.TopicPartition(*place) for place in places])
        return consumer

    def _with_consumer(self, place: Place, act: Callable[[Any], Coroutine[Any, Any, T]]) -> T:
        async def told() -> T:
            consumer = self._consumer(place)
            await consumer.start()
            try:
                return await act(consumer)
            finally:
                await consumer.stop()

        return asyncio.run(told())

    def bounds(self, place: Place) -> tuple[int, int]:
        at = aiokafka.TopicPartition(*place)

        async def told(consumer: Any) -> tuple[int, int]:
            low, high = await consumer.beginning_offsets([at]), await consumer.end_offsets([at])
            return low[at], high[at]

        return self._with_consumer(place, told)

    def offset_at(self, place: Place, timestamp_ms: int) -> int | None:
        at = aiokafka.TopicPartition(*place)
        found = self._with_consumer(place, lambda consumer: consumer.offsets_for_times({at: timestamp_ms}))[at]
        return None if found is None else found.offset

    @contextmanager
    def reader(self, *places: Place) -> Iterator[Reader]:
        with asyncio.Runner() as runner:

            async def started() -> Any:
                consumer = self._consumer(*places)
                await consumer.start()
                return consumer

            consumer = runner.run(started())
            try:
                yield _AiokafkaReader(runner, consumer)
            finally:
                runner.run(consumer.stop())


class _AiokafkaReader:
    def __init__(self, runner: asyncio.Runner, consumer: Any) -> None:
        self._runner = runner
        self._consumer = consumer

    def take(self, count: int) -> list[Record]:
        found: list[Record] = []

        def enough() -> bool:
            asked = self._consumer.getmany(timeout_ms=100, max_records=count - len(found))
            polled = self._runner.run(asked)
            found.extend((r.topic, r.partition, r.offset, r.value) for part in polled.values() for r in part)
            return len(found) >= count

        until(enough)
        return found

    def seek(self, place: Place, offset: int) -> None:
        self._consumer.seek(aiokafka.TopicPartition(*place), offset)
