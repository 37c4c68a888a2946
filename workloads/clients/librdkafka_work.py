"""
Producers and consumers of a workload on librdkafka (confluent-kafka), which decides much by itself.

    producer   it makes batches of what is sent together, and asks who leads; one send is under way at a time
    consumer   it fetches from the leaders in the background: a poll says what came, and not from which node

A record that a poll brings was fetched before the poll ended, perhaps before it began. A poll that brings nothing
fails: the library does not say whether a node answered.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, Producer, TopicPartition

from harness.events import Poll, Produce
from harness.history.file import History
from harness.kafka_errors import surely_not_appended
from harness.logdir.records import sent_digest
from harness.model import OpType
from harness.workload.plan import ConsumerPlan, Place, ProducerPlan
from harness.workload.script import Ask, ConsumerScript, ProducerScript, Send

# Long enough that what is sent together is one batch, as a rule.
LINGER_MS: Final = 5
POLL_S: Final = 0.05
# How long a delivery report is waited for, beyond the time of its record: the library looks once a second.
REPORT_S_MAX: Final = 3.0
# So many records at most come with one poll.
POLL_RECORDS_MAX: Final = 500
NOTHING: Final = "nothing came"
NS_PER_MS: Final = 1_000_000


class LibrdkafkaProducer:
    """
    One producer; it has a producer of the library for each acks and codec of its plan.

    Args:
        settings: of the library, with the nodes to connect to.
    """

    def __init__(
        self, plan: ProducerPlan, seed: int, *, process: str, history: History, settings: Mapping[str, Any]
    ) -> None:
        self._plan = plan
        self._script = ProducerScript(plan, seed)
        self._process = process
        self._history = history
        self._settings = settings
        self._made: dict[tuple[int, str], Producer] = {}

    def run(self, leave: threading.Event) -> None:
        """Send until it is to leave."""
        while not leave.wait(self._script.pause_ms() / 1000):
            self._send(self._script.next())

    def _send(self, send: Send) -> None:
        """Send a batch to each partition, and wait for the outcome of every record."""
        producer = self._producer(send.acks, send.codec)
        open_: dict[str, Produce] = {}
        for place, values in send.parts:
            for value in values:
                event = Produce(
                    topic=place.topic,
                    partition=place.partition,
                    name=self._plan.name,
                    acks=send.acks,
                    codec=send.codec,
                    value=value,
                )
                # The library would set the time by itself, and the history could not say which.
                now_ms = time.time_ns() // NS_PER_MS
                digest = sent_digest(value, now_ms)
                self._history.record(self._process, OpType.INVOKE, replace(event, digest=digest))
                open_[value] = event
                producer.produce(
                    place.topic,
                    value=value.encode(),
                    partition=place.partition,
                    timestamp=now_ms,
                    on_delivery=self._delivered(event, open_),
                )
        deadline = time.monotonic() + self._plan.within_ms / 1000 + REPORT_S_MAX
        while open_ and time.monotonic() < deadline:
            producer.poll(POLL_S)
        for event in open_.values():
            self._history.record(self._process, OpType.INFO, replace(event, error="no report"))
        open_.clear()  # a report that still comes finds nothing to end

    def _delivered(
        self, event: Produce, open_: dict[str, Produce]
    ) -> Callable[[KafkaError | None, Message], None]:
        def report(error: KafkaError | None, message: Message) -> None:
            if open_.pop(event.value, None) is None:
                return
            if error is None:
                self._history.record(self._process, OpType.OK, replace(event, offset=message.offset()))
                return
            # After a retry the last error says nothing about the tries before.
            surely_not = not self._plan.retries and surely_not_appended(error.code(), event.acks, resends=True)
            type_ = OpType.FAIL if surely_not else OpType.INFO
            self._history.record(self._process, type_, replace(event, error=error.name()))

        return report

    def _producer(self, acks: int, codec: str) -> Producer:
        if (acks, codec) not in self._made:
            plan = self._plan
            self._made[acks, codec] = Producer(
                {
                    **self._settings,
                    "acks": acks,
                    "compression.codec": codec,
                    "retries": plan.retries,
                    "enable.idempotence": False,
                    "max.in.flight.requests.per.connection": 1,
                    "linger.ms": LINGER_MS,
                    "message.timeout.ms": max(plan.within_ms, LINGER_MS + 1),
                    "request.timeout.ms": plan.within_ms,
                    "socket.timeout.ms": max(1_000, plan.within_ms),
                }
            )
        return self._made[acks, codec]


class LibrdkafkaConsumer:
    """
    One consumer, which assigns its partitions and commits nothing.

    Args:
        settings: of the library, with the nodes to connect to.
    """

    def __init__(
        self, plan: ConsumerPlan, seed: int, *, process: str, history: History, settings: Mapping[str, Any]
    ) -> None:
        self._plan = plan
        self._script = ConsumerScript(plan, seed)
        self._process = process
        self._history = history
        self._settings = {
            **settings,
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
        # Where the library reads on.
        self._at: dict[Place, int] = {}

    def run(self, leave: threading.Event) -> None:
        """Poll until it is to leave."""
        consumer = Consumer(self._settings)
        try:
            while not leave.wait(self._script.pause_ms() / 1000):
                self._poll(consumer, self._script.asks())
        finally:
            consumer.close()

    def _poll(self, consumer: Consumer, asks: Sequence[Ask]) -> None:
        """Poll once for all partitions, and record for each what came."""
        if any(self._at.get(ask.place) != ask.position for ask in asks):
            consumer.assign([TopicPartition(*ask.place, ask.position) for ask in asks])
            self._at = {ask.place: ask.position for ask in asks}
        polls = {ask.place: _event(ask) for ask in asks}
        for event in polls.values():
            self._history.record(self._process, OpType.INVOKE, event)
        records: dict[Place, list[tuple[int, str]]] = {ask.place: [] for ask in asks}
        errors: dict[Place, KafkaError] = {}
        # It waits for as many records as are asked for, or for the whole time.
        for message in consumer.consume(POLL_RECORDS_MAX, max(self._plan.wait_ms, 1) / 1000):
            place = Place(message.topic() or "", message.partition())
            if message.error() is None:
                records[place].append((message.offset(), (message.value() or b"").decode(errors="replace")))
            elif place in polls:
                errors[place] = message.error()
        for ask in asks:
            self._end(consumer, ask, polls[ask.place], records[ask.place], errors.get(ask.place))

    def _end(
        self,
        consumer: Consumer,
        ask: Ask,
        poll: Poll,
        records: Sequence[tuple[int, str]],
        error: KafkaError | None,
    ) -> None:
        """Record what came of one partition; records that came before an error are those of an answer."""
        if records:
            next_offset = records[-1][0] + 1
            high_watermark = _high_watermark(consumer, ask.place)
            # What the library knows may be of a later answer, from a leader that is behind.
            known = high_watermark if high_watermark is not None and high_watermark >= next_offset else None
            self._history.record(
                self._process, OpType.OK, replace(poll, records=tuple(records), high_watermark=known)
            )
            self._script.took(ask, records, next_offset)
            self._at[ask.place] = next_offset
        else:
            why = NOTHING if error is None else error.name()
            self._history.record(self._process, OpType.FAIL, replace(poll, error=why))
        if error is not None:
            self._at.pop(ask.place, None)  # it reads no further by itself
            if error.code() in (KafkaError._AUTO_OFFSET_RESET, KafkaError.OFFSET_OUT_OF_RANGE):
                self._script.out_of_range(ask)


def _event(ask: Ask) -> Poll:
    return Poll(
        topic=ask.place.topic, partition=ask.place.partition, node="", position=ask.position, sought=ask.sought
    )


def _high_watermark(consumer: Consumer, place: Place) -> int | None:
    """Return the high watermark of the last answer that the library has, None if it has none."""
    try:
        known = consumer.get_watermark_offsets(TopicPartition(*place), cached=True)
    except KafkaException:
        return None
    return known[1] if known is not None and known[1] >= 0 else None
