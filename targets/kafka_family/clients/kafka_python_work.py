"""
Producers and consumers of a workload on kafka-python; harness/clients/library.py records them.

What its errors prove of a record, as its code has it:

    raised by send()           nothing was appended: the record is in no batch yet
    NodeNotReadyError          nothing: there was no connection to write the request to
    a code of the answer       what the broker's code proves: the library tries again only as often as it is told
    a lost connection, or the  unknown: it gives the same error whether the request was written or not
    time of the batch is over

Source:  kafka-python 3.0.12, kafka/producer/sender.py (_dispatch_error, _can_retry, _send_producer_data),
         kafka/net/manager.py (send), kafka/net/connection.py (send_request).
"""

from __future__ import annotations

import logging
import time
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any, Final

from harness.clients.clock import left
from harness.clients.library import LINGER_MS, POLL_RECORDS_MAX, REPORT_S_MAX, Came, Record, Report, refused_all
from harness.clients.outcome import Outcome
from harness.keys import headers_of, key_bytes, value_bytes
from harness.model import OpType
from harness.workload.plan import ACKS_ALL, ConsumerPlan, Place, ProducerPlan
from harness.workload.script import Send
from targets.kafka_family.clients.python_libraries import came_of, reader_settings
from targets.kafka_family.clients.refusals import refused_by
from targets.kafka_family.clients.stack import Stack

with warnings.catch_warnings():
    # It reads its own files through an API that Python has deprecated.
    warnings.filterwarnings("ignore", "(read|open)_text is deprecated", DeprecationWarning)
    from kafka import KafkaConsumer, KafkaProducer, TopicPartition
    from kafka import errors as theirs
    from kafka.net.compat import KafkaNetClient as KafkaClient

# What it says about lost connections is in the history.
logging.getLogger("kafka").addHandler(logging.NullHandler())

# How long it looks for a node that answers, before a send or a poll fails.
BOOTSTRAP_MS: Final = 1_000
# A request is given this time at least: the library connects within it too.
REQUEST_MS_MIN: Final = 100
CLOSE_S_MAX: Final = 1.0
BATCH_BYTES_MAX: Final = 1_000_000


def settings_of(addresses: Iterable[str], process: str, request_ms: int) -> dict[str, Any]:
    """Return the settings of any client of the library."""
    return {
        "bootstrap_servers": list(addresses),
        "bootstrap_timeout_ms": BOOTSTRAP_MS,
        "client_id": process,
        "request_timeout_ms": request_ms,
        "reconnect_backoff_ms": 20,
        "reconnect_backoff_max_ms": 100,
        "retry_backoff_ms": 50,
        "metrics_enabled": False,
    }


class KafkaPythonSender:
    """A producer of the library for each acks and codec of the plan."""

    def __init__(
        self, plan: ProducerPlan, addresses: Iterable[str], process: str, _children: object = None
    ) -> None:
        self._plan = plan
        self._settings = settings_of(addresses, process, max(plan.within_ms, REQUEST_MS_MIN))
        self._made: dict[tuple[int, str], Any] = {}

    def send(self, records: Sequence[Record], send: Send, report: Report) -> None:
        """Send these records together; return when each outcome was reported, or when no more come in time."""
        under_way: dict[str, Any] = {}
        for record in records:
            try:
                producer = self._producer(send.acks, send.codec)
                under_way[record.value] = producer.send(
                    record.place.topic,
                    value=value_bytes(record.value),
                    key=key_bytes(record.value),
                    headers=headers_of(record.value) or None,
                    partition=record.place.partition,
                    timestamp_ms=record.time_ms,
                )
            except (theirs.KafkaError, ValueError) as error:
                # A ValueError: its metadata have no such partition.
                report(record.value, self._refused(error, send.acks, unsent=True))
        deadline = time.monotonic() + self._plan.within_ms / 1000 + REPORT_S_MAX
        for value, future in under_way.items():
            try:
                offset = future.get(left(deadline)).offset
            except theirs.KafkaError as error:
                if future.is_done:
                    report(value, self._refused(error, send.acks))
            else:
                # Without an answer there is no offset, whatever the library says.
                report(value, Outcome(type=OpType.OK, base=offset if send.acks else None))

    def _refused(self, error: Exception, acks: int, *, unsent: bool = False) -> Outcome:
        return refused_by(theirs, error, acks, unsent=unsent, resends=bool(self._plan.retries))

    def _producer(self, acks: int, codec: str) -> Any:
        if (acks, codec) not in self._made:
            plan, request_ms = self._plan, self._settings["request_timeout_ms"]
            self._made[acks, codec] = _made(
                KafkaProducer,
                self._settings,
                acks="all" if acks == ACKS_ALL else acks,
                compression_type=None if codec == "none" else codec,
                retries=plan.retries,
                enable_idempotence=plan.idempotent,
                max_in_flight_requests_per_connection=1,
                linger_ms=LINGER_MS,
                batch_size=BATCH_BYTES_MAX,
                max_block_ms=plan.within_ms,
                delivery_timeout_ms=request_ms + LINGER_MS,
                allow_auto_create_topics=False,
            )
        return self._made[acks, codec]

    def close(self) -> None:
        """Close the library's producers; none of their records is waited for long."""
        for producer in self._made.values():
            with suppress(theirs.KafkaError):
                producer.close(CLOSE_S_MAX)
        self._made.clear()


class KafkaPythonReader:
    """A consumer of the library, without a group."""

    def __init__(
        self, plan: ConsumerPlan, addresses: Iterable[str], process: str, _children: object = None
    ) -> None:
        self._settings = {
            **settings_of(addresses, process, 1_000 + plan.wait_ms),
            **reader_settings(plan),
            "allow_auto_create_topics": False,
            "enable_incremental_fetch_sessions": False,  # so that each fetch says all that it asks
        }
        self._wait_ms = max(plan.wait_ms, 1)
        self._consumer: Any = None
        self._positions: Mapping[Place, int] = {}
        self._assigned = False

    def assign(self, positions: Mapping[Place, int]) -> None:
        """Read these partitions, and no others, from these offsets on; take no answer to an earlier question."""
        self._positions, self._assigned = dict(positions), False

    def poll(self) -> Came:
        """Return what has come, or what comes within the plan's time."""
        try:
            polled = self._connected().poll(timeout_ms=self._wait_ms, max_records=POLL_RECORDS_MAX)
        except theirs.KafkaError as error:
            # It may have dropped what it had of other partitions: all positions are assigned again.
            return refused_all(type(error).__name__, self._positions, _out_of_range(error))
        return came_of(polled)

    def _connected(self) -> Any:
        if self._consumer is None:
            self._consumer = _made(KafkaConsumer, self._settings)
        if not self._assigned:
            self._consumer.assign([TopicPartition(*place) for place in self._positions])
            for place, position in self._positions.items():
                self._consumer.seek(TopicPartition(*place), position)
            self._assigned = True
        return self._consumer

    def high_watermark(self, place: Place) -> int | None:
        """Return that of the last answer that the library has, None if it has none."""
        known: int | None = self._consumer.highwater(TopicPartition(*place))
        return known

    def close(self) -> None:
        """Close the library's consumer."""
        if self._consumer is not None:
            self._consumer.close(autocommit=False)


def _made(kind: Callable[..., Any], settings: Mapping[str, Any], **more: Any) -> Any:
    """Make a client of the library; close its connections if it finds no node, which it leaves open."""
    clients: list[Any] = []

    def client(**their_settings: Any) -> Any:
        clients.append(KafkaClient(**their_settings))
        return clients[-1]

    try:
        return kind(**settings, **more, kafka_client=client)
    except BaseException:
        for each in clients:
            each.close()
        raise


def _out_of_range(error: theirs.KafkaError) -> set[Place]:
    """Return the partitions whose logs end below the position: now, or when an epoch ended (KIP-320)."""
    if isinstance(error, theirs.LogTruncationError):
        return {Place(*where) for where in error.divergent_offsets}
    return {Place(*where) for where in error.args[0]} if isinstance(error, theirs.OffsetOutOfRangeError) else set()


# The other codecs need packages that are not installed.
STACK: Final = Stack(sender=KafkaPythonSender, reader=KafkaPythonReader, codecs=("none", "gzip"))
