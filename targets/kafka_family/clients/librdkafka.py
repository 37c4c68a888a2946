"""
Clients on librdkafka (confluent-kafka): create a topic, produce and read, each an operation in the history.

Retries and idempotence are off: a retry hides from the history what happened to the first try. One kind of retry
cannot be switched off: a record refused by a broker that no longer leads is sent again to the new leader, and does
not count as a retry. So a log may hold it twice, and its ok is that of the last try.

Source:  librdkafka, rdkafka_request.c, rd_kafka_handle_Produce_error: metadata that are refreshed count no retry.
"""

from __future__ import annotations

import itertools
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Final

from confluent_kafka import (
    OFFSET_BEGINNING,
    Consumer,
    KafkaError,
    KafkaException,
    Message,
    Producer,
    TopicPartition,
)
from confluent_kafka.admin import AdminClient, ConfigResource, NewTopic

from harness import limits
from harness.cleanup.ledger import Ledger
from harness.cleanup.process import until
from harness.clients.clock import wall_ms
from harness.clients.in_thread import InThread
from harness.clients.library import text_of
from harness.events import AlterTopic, DeleteRecords, Produce, Read
from harness.history.file import History
from harness.kafka_errors import MOVED, surely_not_appended, surely_not_deleted
from harness.keys import headers_of, key_bytes, value_bytes
from harness.logs.record import sent_digest
from harness.model import OpType, PreconditionError, UsageError
from harness.target.clients import Underway, Workload
from harness.workload.plan import Clients, Library
from targets.kafka_family.clients.beginning import begin
from targets.kafka_family.clients.librdkafka_work import settings_of
from targets.kafka_family.clients.questions import shown

# Long enough that batches are sent when full or flushed, never because they waited.
LINGER_MS: Final = 2_000
POLL_S: Final = 0.05
METADATA_S_MAX: Final = 2.0


@dataclass(slots=True, kw_only=True)
class LibrdkafkaClient:
    """
    The clients of one run; every call is one process of the history, client-1, client-2, ...

    Args:
        ledger: the run's, for clients in processes of their own; None: there are none.
        bootstrap: returns "host:port" of the running nodes; called again for each call.

    Raises:
        PreconditionError: the cluster does not do what the scenario needs.
    """

    history: History
    bootstrap: Callable[[], Sequence[str]]
    ledger: Ledger | None = None
    churns: ClassVar[bool] = False  # churners are on plain sockets, with requests that its brokers may not know
    sends_once: ClassVar[bool] = False  # after NOT_LEADER it sends again, whatever `retries` is
    _numbers: itertools.count[int] = field(default_factory=lambda: itertools.count(1))

    def create_topic(self, topic: str, replicas: Sequence[int], *further: Sequence[int]) -> None:
        """Create a topic with a partition on each of these groups of brokers; return when that was answered."""
        assignments = [list(replicas), *map(list, further)]
        about = f"create topic {topic} on {shown(assignments)}"
        admin = AdminClient(self._config())
        # A node may know no controller yet, and librdkafka asks it again only when a connection changes.
        if not until(lambda: _knows_controller(admin), limits.CLIENT_OPERATION_S_MAX):
            raise PreconditionError(f"{about}: no node names a controller")
        created = admin.create_topics(
            [NewTopic(topic, num_partitions=len(assignments), replica_assignment=assignments)],
            operation_timeout=limits.CLIENT_OPERATION_S_MAX,
            request_timeout=limits.CLIENT_OPERATION_S_MAX,
        )
        try:
            created[topic].result(timeout=limits.CLIENT_OPERATION_S_MAX)
        except (KafkaException, TimeoutError) as error:
            why = str(error) or f"no answer within {limits.CLIENT_OPERATION_S_MAX:g} s"
            raise PreconditionError(f"{about}: {why}") from error

    def produce(
        self,
        topic: str,
        partition: int,
        name: str,
        values: Sequence[str],
        *,
        acks: int,
        codec: str = "none",
        singly: bool = False,
        via: str = "",
        timeout_s: float | None = None,
        age_ms: int | None = None,
    ) -> list[int]:
        """
        Send the values in one batch, or each in its own when `singly`; return their offsets.

        With acks=0 brokers return no offsets: the result is [], and the history's ok means only sent.

        Raises:
            PreconditionError: one of them was not acknowledged; the history has them all.
            UsageError: via is set, which librdkafka does not support.
        """
        self._refuse(via)
        wait_s = limits.CLIENT_OPERATION_S_MAX if timeout_s is None else timeout_s
        timeout_ms = int(wait_s * 1000)
        process = f"client-{next(self._numbers)}"
        settings = {
            "acks": acks,
            "retries": 0,
            "enable.idempotence": False,
            "linger.ms": min(LINGER_MS, timeout_ms - 1),  # the library wants less than the record's own time
            "batch.num.messages": 1 if singly else len(values),
            "max.in.flight.requests.per.connection": 1,
            "compression.codec": codec,
            "message.timeout.ms": timeout_ms,
        }
        producer = Producer({**self._config(), **settings})
        outcomes: dict[str, int | str | None] = {}
        sent = [
            Produce(topic=topic, partition=partition, name=name, acks=acks, codec=codec, value=value)
            for value in values
        ]
        for record in sent:
            value = record.value
            # The library would set the time by itself, and the history could not say which.
            now_ms = wall_ms() - (age_ms or 0)
            self.history.record(process, OpType.INVOKE, replace(record, digest=sent_digest(value, now_ms)))
            producer.produce(
                topic,
                value=value_bytes(value),
                key=key_bytes(value),
                headers=headers_of(value) or None,
                partition=partition,
                timestamp=now_ms,
                on_delivery=self._delivered(process, record, outcomes),
            )
            if singly:
                self._await(producer, (value,), outcomes, wait_s)
        self._await(producer, values, outcomes, wait_s)
        for record in sent:
            if record.value not in outcomes:
                outcomes[record.value] = "no answer"
                self.history.record(process, OpType.INFO, replace(record, error="no answer"))
        errors = [outcome for outcome in outcomes.values() if isinstance(outcome, str)]
        if errors:
            raise PreconditionError(
                f"produce {name} acks={acks}: {len(values) - len(errors)} of {len(values)} records acknowledged; "
                f"{sorted(set(errors))}"
            )
        offsets = [outcome for outcome in outcomes.values() if isinstance(outcome, int)]
        return sorted(offsets)

    def _await(
        self,
        producer: Producer,
        values: Sequence[str],
        outcomes: Mapping[str, int | str | None],
        wait_s: float,
    ) -> None:
        """
        Serve delivery reports until these records have theirs, or the time is over.

        Not flush(): it sends records as soon as one is queued, while others of their batch are still on their way
        to the queue, and so splits the batch in two.
        """

        def delivered() -> bool:
            producer.poll(0)
            return outcomes.keys() >= set(values)

        until(delivered, wait_s)

    def _delivered(
        self, process: str, record: Produce, outcomes: dict[str, int | str | None]
    ) -> Callable[[KafkaError | None, Message], None]:
        def report(error: KafkaError | None, message: Message) -> None:
            if error is None:
                offset = message.offset()
                outcomes[record.value] = offset
                self.history.record(process, OpType.OK, replace(record, offset=offset))
                return
            outcomes[record.value] = error.name()
            surely_not = surely_not_appended(error.code(), record.acks, resends=True)
            type_ = OpType.FAIL if surely_not else OpType.INFO
            self.history.record(process, type_, replace(record, error=error.name()))

        return report

    def begin_produce(
        self, topic: str, partition: int, name: str, values: Sequence[str], **options: Any
    ) -> Underway:
        """Send the values as `produce` does, in a thread of its own."""
        return InThread(lambda: self.produce(topic, partition, name, values, **options))

    def begin_workload(self, clients: Clients, seed: int, *, nodes: Mapping[str, str]) -> Workload:
        """
        Start each producer and consumer in a thread or a process of its own, as a process of the history.

        Raises:
            UsageError: a consumer asks every node, which librdkafka does not support.
        """
        return begin(
            clients,
            seed,
            own=Library.LIBRDKAFKA,
            process=lambda: f"client-{next(self._numbers)}",
            history=self.history,
            nodes=nodes,
            ledger=self.ledger,
        )

    def read_all(self, topic: str, partition: int, *, via: str = "") -> list[tuple[int, str]]:
        """Read from the log's start to the high watermark, as a consumer does; a final read of the history."""
        self._refuse(via)
        process = f"client-{next(self._numbers)}"
        asked = Read(topic=topic, partition=partition)
        self.history.record(process, OpType.INVOKE, asked)
        deadline = time.monotonic() + limits.CLIENT_OPERATION_S_MAX
        while True:
            try:
                records, start, end = self._read(process, TopicPartition(topic, partition))
            except KafkaException as error:
                # The broker led a moment ago, or does not know the new leader yet: ask again, as a consumer does.
                if error.args[0].code() in MOVED and time.monotonic() < deadline:
                    continue
                self.history.record(process, OpType.FAIL, replace(asked, error=str(error)))
                raise PreconditionError(f"read {topic}-{partition}: {error}") from error
            read = replace(asked, records=tuple(records), start=start or None, high_watermark=end)
            self.history.record(process, OpType.OK, read)
            return records

    def add_partitions(self, topic: str, first: int, *assignments: Sequence[str], ids: Mapping[str, int]) -> None:
        """Refuse: its target, Apache Kafka before 0.11, cannot remove the partitions that would be added again."""
        del assignments, ids
        raise UsageError(f"add partitions of {topic} from {first} on: not by librdkafka; expected the client raw")

    def delete_records(self, topic: str, partition: int, before: int) -> int:
        """
        Delete the records before an offset (-1: all that are committed), and return the low watermark.

        Raises:
            PreconditionError: the deletion was refused, or was not answered in time; the history has which.
        """
        process = f"client-{next(self._numbers)}"
        asked = DeleteRecords(topic=topic, partition=partition, before=before)
        self.history.record(process, OpType.INVOKE, asked)
        place = TopicPartition(topic, partition, before)
        within_s = limits.CLIENT_OPERATION_S_MAX
        try:
            found = AdminClient(self._config()).delete_records(
                [place], request_timeout=within_s, operation_timeout=within_s
            )
            low = int(found[place].result(timeout=within_s).low_watermark)
        except (KafkaException, TimeoutError) as error:
            code = error.args[0].code() if isinstance(error, KafkaException) else KafkaError._TIMED_OUT
            type_ = OpType.FAIL if surely_not_deleted(code) else OpType.INFO
            self.history.record(process, type_, replace(asked, error=str(error)))
            raise PreconditionError(f"delete records of {topic}-{partition} before {before}: {error}") from error
        self.history.record(process, OpType.OK, replace(asked, low_watermark=low))
        return low

    def alter_topic(self, topic: str, setting: str, to: str) -> None:
        """
        Give a topic this setting, and no other of its own.

        Raises:
            PreconditionError: the change was refused, or was not answered in time; the history has which.
        """
        process = f"client-{next(self._numbers)}"
        asked = AlterTopic(topic=topic, setting=setting, to=to)
        self.history.record(process, OpType.INVOKE, asked)
        resource = ConfigResource(ConfigResource.Type.TOPIC, topic, set_config={setting: to})
        admin = AdminClient(self._config())
        within_s = limits.CLIENT_OPERATION_S_MAX
        try:
            with warnings.catch_warnings():
                # The one that it recommends is a request of 2.3 (KIP-339), which older releases do not know.
                warnings.simplefilter("ignore", DeprecationWarning)
                answers = admin.alter_configs([resource], request_timeout=within_s)
            answers[resource].result(timeout=within_s)
        except (KafkaException, TimeoutError) as error:
            self.history.record(process, OpType.INFO, replace(asked, error=str(error)))
            raise PreconditionError(f"setting {setting}={to} of {topic}: {error}") from error
        self.history.record(process, OpType.OK, asked)

    def _read(self, group: str, place: TopicPartition) -> tuple[list[tuple[int, str]], int, int]:
        consumer = Consumer({**self._config(), "group.id": group, "enable.auto.commit": False})
        try:
            end = consumer.get_watermark_offsets(place, timeout=limits.CLIENT_OPERATION_S_MAX)[1]
            start = _start_of(consumer, place)
            consumer.assign([TopicPartition(place.topic, place.partition, start)])
            return self._read_to(consumer, end), start, end
        except KafkaException:
            # An immediate retry would get the same error; the poll lets the library learn the new leader.
            consumer.poll(POLL_S)
            raise
        finally:
            consumer.close()

    def _read_to(self, consumer: Consumer, end: int) -> list[tuple[int, str]]:
        records: list[tuple[int, str]] = []
        polls = int(limits.CLIENT_OPERATION_S_MAX / POLL_S)
        while polls and (records[-1][0] + 1 if records else 0) < end:
            message = consumer.poll(POLL_S)
            if message is None:
                polls -= 1
            elif message.error() is not None:
                raise KafkaException(message.error())
            else:
                records.append((message.offset(), text_of(message.value(), message.headers())))
        return records

    def _refuse(self, via: str) -> None:
        if via:
            raise UsageError(
                f"client librdkafka: via {via}; expected a client that can choose the broker to send to: raw"
            )

    def _config(self) -> dict[str, Any]:
        addresses = self.bootstrap()
        if not addresses:
            raise PreconditionError("client: no node runs; expected one to connect to")
        return settings_of(addresses)


def _knows_controller(admin: AdminClient) -> bool:
    """Return True if the node that answers names a controller."""
    try:
        listed = admin.list_topics(timeout=METADATA_S_MAX)
    except KafkaException:
        return False
    return listed.controller_id in listed.brokers


def _start_of(consumer: Consumer, place: TopicPartition) -> int:
    """
    Return where a log starts; raise KafkaException.

    By a request of its own: of both watermarks together, one may be the other's when only that was answered.
    """
    asked = TopicPartition(place.topic, place.partition, OFFSET_BEGINNING)
    (found,) = consumer.offsets_for_times([asked], timeout=limits.CLIENT_OPERATION_S_MAX)
    if found.error is not None:
        raise KafkaException(found.error)
    return int(found.offset)


CLIENT: Final = LibrdkafkaClient
