"""
Producers and consumers of a workload on aiokafka; harness/clients/library.py records them.

It sends a batch again for as long as the batch may live, and has no setting for that: so a batch of a plan without
retries has no time to live, and one of a plan with retries is sent as often as its time allows.
What its errors prove of a record that was sent once, as its code has it:

    raised by send()           nothing was appended: the record is in no batch yet
    NodeNotReadyError          nothing: there was no connection to write the request to
    a code of the answer       what the broker's code proves; by NOT_LEADER_OR_FOLLOWER it also says that it knows
                               no leader
    a lost connection          unknown: it gives the same error whether the request was written or not

Source:  aiokafka 0.14.0, aiokafka/producer/sender.py (SendProduceReqHandler), message_accumulator.py
         (MessageBatch.expired, drain_by_nodes), aiokafka/client.py (send).
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, TypeVar

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from aiokafka import errors as theirs

from harness.clients.library import LINGER_MS, POLL_RECORDS_MAX, REPORT_S_MAX, Came, Record, Report, refused_all
from harness.clients.loop import Loop
from harness.clients.outcome import Outcome
from harness.keys import headers_of, key_bytes, value_bytes
from harness.model import OpType
from harness.workload.plan import ACKS_ALL, CODEC_NAMES, ConsumerPlan, Place, ProducerPlan
from harness.workload.script import Send
from targets.kafka_family.clients.python_libraries import came_of, reader_settings
from targets.kafka_family.clients.refusals import refused_by
from targets.kafka_family.clients.stack import Stack

T = TypeVar("T")

# What it says about lost connections is in the history.
logging.getLogger("aiokafka").addHandler(logging.NullHandler())

# A request is given this time at least: the library connects and asks who leads within it too.
REQUEST_MS_MIN: Final = 100
BATCH_BYTES_MAX: Final = 1_000_000
# How long a batch lives that is sent once: it is too old as soon as it was sent.
_NO_TIME: Final = -1.0


class AiokafkaSender:
    """A producer of the library for each acks and codec of the plan."""

    def __init__(
        self, plan: ProducerPlan, addresses: Iterable[str], process: str, _children: object = None
    ) -> None:
        self._plan = plan
        self._addresses = list(addresses)
        self._process = process
        self._loop = Loop(process)
        self._made: dict[tuple[int, str], Any] = {}

    def send(self, records: Sequence[Record], send: Send, report: Report) -> None:
        """Send these records together; return when each outcome was reported, or when no more come in time."""
        for value, outcome in self._loop.run(self._outcomes(records, send)).items():
            report(value, outcome)

    async def _outcomes(self, records: Sequence[Record], send: Send) -> dict[str, Outcome]:
        found: dict[str, Outcome] = {}
        under_way: dict[str, Any] = {}
        for record in records:
            try:
                producer = await self._producer(send.acks, send.codec)
                under_way[record.value] = await producer.send(
                    record.place.topic,
                    value_bytes(record.value),
                    key=key_bytes(record.value),
                    headers=headers_of(record.value) or None,
                    partition=record.place.partition,
                    timestamp_ms=record.time_ms,
                )
            except (theirs.KafkaError, AssertionError) as error:
                # An AssertionError: its metadata have no such partition.
                found[record.value] = self._refused(error, send.acks, unsent=True)
        if under_way:
            await asyncio.wait(under_way.values(), timeout=self._plan.within_ms / 1000 + REPORT_S_MAX)
        for value, future in under_way.items():
            if not future.done():
                future.add_done_callback(lambda late: late.cancelled() or late.exception())
            elif (why := future.exception()) is not None:
                found[value] = self._refused(why, send.acks)
            else:
                found[value] = Outcome(type=OpType.OK, base=future.result().offset if send.acks else None)
        if any(outcome.type is not OpType.OK for outcome in found.values()):
            await self._look_again(send)
        return found

    async def _look_again(self, send: Send) -> None:
        """Ask who leads, as the library does only before it tries again; replace a producer that has ended."""
        producer = self._made.get((send.acks, send.codec))
        if producer is None:
            return
        if producer._sender.sender_task.done():  # by an error that it does not expect, as of a socket with acks=0
            del self._made[send.acks, send.codec]
            await producer.stop()
        else:
            await producer.client.force_metadata_update()

    def _refused(self, error: BaseException, acks: int, *, unsent: bool = False) -> Outcome:
        return refused_by(theirs, error, acks, unsent=unsent, resends=bool(self._plan.retries))

    async def _producer(self, acks: int, codec: str) -> Any:
        if (acks, codec) not in self._made:
            made = AIOKafkaProducer(
                bootstrap_servers=self._addresses,
                client_id=self._process,
                acks="all" if acks == ACKS_ALL else acks,
                compression_type=None if codec == "none" else codec,
                enable_idempotence=self._plan.idempotent,
                linger_ms=LINGER_MS,
                max_batch_size=BATCH_BYTES_MAX,
                request_timeout_ms=max(self._plan.within_ms, REQUEST_MS_MIN),
                retry_backoff_ms=50,
            )
            if not self._plan.retries:
                made._message_accumulator._batch_ttl = _NO_TIME
            await _started(made)
            self._made[acks, codec] = made
        return self._made[acks, codec]

    def close(self) -> None:
        """Stop the library's producers, and its loop."""
        for producer in self._made.values():
            self._loop.run(producer.stop())
        self._made.clear()
        self._loop.close()


class AiokafkaReader:
    """A consumer of the library, without a group."""

    def __init__(
        self, plan: ConsumerPlan, addresses: Iterable[str], process: str, _children: object = None
    ) -> None:
        self._settings = {
            "bootstrap_servers": list(addresses),
            "client_id": process,
            **reader_settings(plan),
            "request_timeout_ms": 1_000 + plan.wait_ms,
            "retry_backoff_ms": 50,
        }
        self._wait_ms = max(plan.wait_ms, 1)
        self._loop = Loop(process)
        self._consumer: Any = None
        self._positions: Mapping[Place, int] = {}
        self._assigned = False

    def assign(self, positions: Mapping[Place, int]) -> None:
        """Read these partitions, and no others, from these offsets on; take no answer to an earlier question."""
        self._positions, self._assigned = dict(positions), False

    def poll(self) -> Came:
        """Return what has come, or what comes within the plan's time."""
        try:
            polled = self._loop.run(self._polled())
        except theirs.KafkaError as error:
            # It may have dropped what it had of other partitions: all positions are assigned again.
            guilty = error.args[0] if isinstance(error, theirs.OffsetOutOfRangeError) else ()
            return refused_all(type(error).__name__, self._positions, {Place(*where) for where in guilty})
        return came_of(polled)

    async def _polled(self) -> Any:
        if self._consumer is None:
            made = AIOKafkaConsumer(**self._settings)
            await _started(made)
            self._consumer = made
        if not self._assigned:
            # Nothing else runs in the loop between the two, so that it never looks for a position by itself.
            self._consumer.assign([TopicPartition(*place) for place in self._positions])
            for place, position in self._positions.items():
                self._consumer.seek(TopicPartition(*place), position)
            self._assigned = True
        return await self._consumer.getmany(timeout_ms=self._wait_ms, max_records=POLL_RECORDS_MAX)

    def high_watermark(self, place: Place) -> int | None:
        """Return that of the last answer that the library has, None if it has none."""
        known: int | None = self._consumer.highwater(TopicPartition(*place))
        return known

    def close(self) -> None:
        """Stop the library's consumer, and its loop."""
        if self._consumer is not None:
            self._loop.run(self._consumer.stop())
        self._loop.close()


async def _started(client: Any) -> None:
    """Start a client of the library, or leave nothing of it behind."""
    try:
        await client.start()
    except BaseException:
        await client.stop()
        raise


STACK: Final = Stack(sender=AiokafkaSender, reader=AiokafkaReader, codecs=tuple(CODEC_NAMES))
