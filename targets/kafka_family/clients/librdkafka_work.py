"""
Producers and consumers of a workload on librdkafka (confluent-kafka); harness/clients/library.py records them.

Source:  librdkafka, CONFIGURATION.md, and rd_kafka_handle_Produce_error: a record refused by a broker that leads
         no more is sent again, which counts as no retry.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, Producer, TopicPartition

from harness import limits
from harness.clients.library import LINGER_MS, POLL_RECORDS_MAX, REPORT_S_MAX, Came, Record, Refusal, Report
from harness.clients.outcome import Outcome
from harness.kafka_errors import ACKS_ALL
from harness.keys import headers_of, key_bytes, value_bytes
from harness.model import OpType
from harness.workload.plan import CODEC_NAMES, ConsumerPlan, Place, ProducerPlan
from harness.workload.script import Send
from targets.kafka_family.clients.refusals import refused
from targets.kafka_family.clients.stack import Stack

POLL_S: Final = 0.05
_OUT_OF_RANGE: Final = (KafkaError._AUTO_OFFSET_RESET, KafkaError.OFFSET_OUT_OF_RANGE)


def settings_of(addresses: Iterable[str]) -> dict[str, Any]:
    """Return the settings of any client of the library."""
    return {
        "bootstrap.servers": ",".join(addresses),
        "socket.timeout.ms": int(limits.CLIENT_OPERATION_S_MAX * 1000),
        "topic.metadata.refresh.fast.interval.ms": 50,
        "reconnect.backoff.ms": 20,
        "reconnect.backoff.max.ms": 100,
        "broker.address.family": "v4",
        "allow.auto.create.topics": False,
        "log_level": 0,
    }


class LibrdkafkaSender:
    """A producer of the library for each acks and codec of the plan."""

    def __init__(
        self, plan: ProducerPlan, addresses: Iterable[str], process: str, _children: object = None
    ) -> None:
        del process  # each of its clients has a name of its own
        self._plan = plan
        self._settings = settings_of(addresses)
        self._made: dict[tuple[int, str], Producer] = {}

    def send(self, records: Sequence[Record], send: Send, report: Report) -> None:
        """Send these records together; return when each outcome was reported, or when no more come in time."""
        producer = self._producer(send.acks, send.codec)
        missing = {record.value for record in records}
        for record in records:
            producer.produce(
                record.place.topic,
                value=value_bytes(record.value),
                key=key_bytes(record.value),
                headers=headers_of(record.value) or None,
                partition=record.place.partition,
                timestamp=record.time_ms,
                on_delivery=self._delivered(record.value, send.acks, missing, report),
            )
        deadline = time.monotonic() + self._plan.within_ms / 1000 + REPORT_S_MAX
        while missing and time.monotonic() < deadline:
            producer.poll(POLL_S)

    def _delivered(
        self, value: str, acks: int, missing: set[str], report: Report
    ) -> Callable[[KafkaError | None, Message], None]:
        def delivered(error: KafkaError | None, message: Message) -> None:
            missing.discard(value)
            if error is None:
                report(value, Outcome(type=OpType.OK, base=message.offset()))
                return
            # After a retry the last error says nothing about the tries before; with acks=all it may follow one.
            resends = bool(self._plan.retries) or acks == ACKS_ALL
            report(value, refused(error.code(), error.name(), acks, resends=resends))

        return delivered

    def _producer(self, acks: int, codec: str) -> Producer:
        if (acks, codec) not in self._made:
            plan = self._plan
            self._made[acks, codec] = Producer(
                {
                    **self._settings,
                    "acks": acks,
                    "compression.codec": codec,
                    "retries": plan.retries,
                    "enable.idempotence": plan.idempotent,
                    "max.in.flight.requests.per.connection": 1,
                    "linger.ms": LINGER_MS,
                    "message.timeout.ms": max(plan.within_ms, LINGER_MS + 1),
                    "request.timeout.ms": plan.within_ms,
                    "socket.timeout.ms": max(1_000, plan.within_ms),
                }
            )
        return self._made[acks, codec]

    def close(self) -> None:
        """Drop the library's producers."""
        self._made.clear()


class LibrdkafkaReader:
    """A consumer of the library; its group is only a name, to which it commits nothing."""

    def __init__(
        self, plan: ConsumerPlan, addresses: Iterable[str], process: str, _children: object = None
    ) -> None:
        self.settings = {
            **settings_of(addresses),
            "group.id": process,
            "enable.auto.commit": False,
            "enable.auto.offset.store": False,
            "auto.offset.reset": "error",  # so that a position out of range is seen
            "check.crcs": True,
            "fetch.wait.max.ms": plan.wait_ms,
            "max.partition.fetch.bytes": plan.max_bytes,
            "queued.min.messages": 1,  # as little as possible is fetched ahead
            "socket.timeout.ms": 1_000 + plan.wait_ms,
        }
        self._wait_s = max(plan.wait_ms, 1) / 1000
        self._consumer: Consumer | None = None

    def assign(self, positions: Mapping[Place, int]) -> None:
        """Read these partitions, and no others, from these offsets on; take no answer to an earlier question."""
        if self._consumer is None:
            self._consumer = Consumer(self.settings)
        self._consumer.assign([TopicPartition(*place, position) for place, position in positions.items()])

    def poll(self) -> Came:
        """Return what comes within the plan's time: the library waits for all of it, or for that many records."""
        came = Came()
        assert self._consumer is not None, "expected assign before poll"
        for message in self._consumer.consume(POLL_RECORDS_MAX, self._wait_s):
            place, error = Place(message.topic() or "", message.partition()), message.error()
            if error is None:
                came.add(place, message.offset(), message.value(), message.headers())
            else:
                came.refused[place] = Refusal(why=error.name(), out_of_range=error.code() in _OUT_OF_RANGE)
        return came

    def high_watermark(self, place: Place) -> int | None:
        """Return that of the last answer that the library has, None if it has none."""
        assert self._consumer is not None, "expected assign before high_watermark"
        try:
            known = self._consumer.get_watermark_offsets(TopicPartition(*place), cached=True)
        except KafkaException:
            return None
        return known[1] if known is not None and known[1] >= 0 else None

    def close(self) -> None:
        """Close the library's consumer."""
        if self._consumer is not None:
            self._consumer.close()


STACK: Final = Stack(sender=LibrdkafkaSender, reader=LibrdkafkaReader, codecs=tuple(CODEC_NAMES))
