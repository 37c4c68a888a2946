"""
Producers and consumers of a workload on Apache Kafka's Java clients; harness/clients/library.py records them.

Each is a process of its own (java/Client.java), a child of the run; its settings are here. What its errors prove
of a record that was sent once, as its code has it:

    given by send()            nothing was appended: the record is in no batch yet
    a code of the answer       what the broker's code proves
    TimeoutException           unknown: it gives the same error whether the batch was sent or not
    NETWORK_EXCEPTION          unknown: the connection was lost after the request was written

A batch that is too large it cuts in two and sends again, which counts as no retry: the broker took nothing of it.

Source:  Apache Kafka 3.9.1, KafkaProducer.doSend, Sender (sendProducerData, completeBatch, canRetry),
         FetchCollector (handleInitializeErrors), SubscriptionState.partitionLag.
"""

from __future__ import annotations

import time
from base64 import b64decode, b64encode
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from harness import limits
from harness.clients.children import Children
from harness.clients.jvm import Jvm
from harness.clients.library import LINGER_MS, POLL_RECORDS_MAX, REPORT_S_MAX, Came, Record, Report, refused_all
from harness.clients.outcome import Outcome
from harness.model import OpType, UsageError
from harness.workload.plan import ACKS_ALL, ConsumerPlan, Place, ProducerPlan
from harness.workload.script import Send
from targets.kafka_family.clients.java_home import java_home, lacks
from targets.kafka_family.clients.refusals import refused
from targets.kafka_family.clients.stack import Stack

# A request is given this time at least: the library asks who leads within it too.
REQUEST_MS_MIN: Final = 100
BATCH_BYTES_MAX: Final = 1_000_000
BUFFER_BYTES_MAX: Final = 16 * BATCH_BYTES_MAX
# How a line says that an error is none of a broker's.
_NO_CODE: Final = "-"


def settings_of(addresses: Iterable[str], process: str, request_ms: int) -> dict[str, Any]:
    """Return the settings of any client of the library."""
    return {
        "bootstrap.servers": ",".join(addresses),
        "client.id": process,
        "request.timeout.ms": request_ms,
        "socket.connection.setup.timeout.ms": 1_000,
        "socket.connection.setup.timeout.max.ms": 1_000,
        "reconnect.backoff.ms": 20,
        "reconnect.backoff.max.ms": 100,
        "retry.backoff.ms": 50,
        "retry.backoff.max.ms": 50,
        # All nodes are asked again once none is left of those that one answer named.
        "metadata.recovery.strategy": "rebootstrap",
        "enable.metrics.push": "false",
    }


def words_of(settings: Mapping[str, Any]) -> list[str]:
    """Return settings as the words of a line."""
    return [f"{key}={value}" for key, value in settings.items()]


class JavaSender:
    """A process that has a producer of the library for each acks and codec of the plan."""

    def __init__(
        self, plan: ProducerPlan, addresses: Iterable[str], process: str, children: Children | None
    ) -> None:
        self._plan = plan
        self._settings = settings_of(addresses, process, max(plan.within_ms, REQUEST_MS_MIN))
        self._jvm = _jvm(plan, children)
        self._made: set[str] = set()
        # Numbers are never used twice: a report may come when its record is not waited for any more.
        self._count = 0

    def send(self, records: Sequence[Record], send: Send, report: Report) -> None:
        """Send these records together; return when each outcome was reported, or when no more come in time."""
        words = ["send", self._producer(send.acks, send.codec)]
        missing: dict[str, str] = {}
        for record in records:
            self._count += 1
            missing[str(self._count)] = record.value
            value = b64encode(record.value.encode()).decode()
            place = record.place
            words += (str(self._count), place.topic, str(place.partition), str(record.time_ms), value)
        self._jvm.ask(*words)
        # It may wait for metadata first, and then for the batch.
        deadline = time.monotonic() + 2 * self._plan.within_ms / 1000 + REPORT_S_MAX
        while missing and (told := self._jvm.hear(deadline)) is not None:
            if (value_ := missing.pop(told[1], None)) is not None:
                report(value_, self._outcome(told, send.acks))

    def _outcome(self, told: Sequence[str], acks: int) -> Outcome:
        """Return the outcome that a line tells."""
        match told:
            case ["sent", _, offset]:
                # Without an answer there is no offset.
                return Outcome(type=OpType.OK, base=int(offset) if acks else None)
            case ["unsent", _, error]:
                return refused(None, error, acks, unsent=True)
            case ["failed", _, code, error]:
                number = None if code == _NO_CODE else int(code)
                return refused(number, error, acks, resends=bool(self._plan.retries))
        raise AssertionError(f"{told}: expected sent, unsent or failed")

    def _producer(self, acks: int, codec: str) -> str:
        """Return the name of a producer, which is made when it is needed first."""
        name = f"{acks}-{codec}"
        if name not in self._made:
            within_ms = self._settings["request.timeout.ms"]
            settings = {
                **self._settings,
                "acks": "all" if acks == ACKS_ALL else acks,
                "compression.type": codec,
                "retries": self._plan.retries,
                "enable.idempotence": str(self._plan.idempotent).lower(),
                "max.in.flight.requests.per.connection": 1,
                "linger.ms": LINGER_MS,
                "batch.size": BATCH_BYTES_MAX,
                "buffer.memory": BUFFER_BYTES_MAX,
                "max.block.ms": self._plan.within_ms,
                "delivery.timeout.ms": within_ms + LINGER_MS,
            }
            self._jvm.ask("producer", name, *words_of(settings))
            self._made.add(name)
        return name

    def close(self) -> None:
        """End the process; none of its records is waited for."""
        self._jvm.close()


class JavaReader:
    """A process that has a consumer of the library, without a group."""

    def __init__(
        self, plan: ConsumerPlan, addresses: Iterable[str], process: str, children: Children | None
    ) -> None:
        request_ms = 1_000 + plan.wait_ms
        self.settings: dict[str, Any] = {
            **settings_of(addresses, process, request_ms),
            "default.api.timeout.ms": request_ms,
            "enable.auto.commit": "false",
            "auto.offset.reset": "none",  # so that a position out of range is seen
            "check.crcs": "true",
            "allow.auto.create.topics": "false",
            "fetch.max.wait.ms": plan.wait_ms,
            "fetch.max.bytes": plan.max_bytes,
            "max.partition.fetch.bytes": plan.max_bytes,
            "max.poll.records": POLL_RECORDS_MAX,
        }
        self._wait_ms = max(plan.wait_ms, 1)
        self._jvm = _jvm(plan, children)
        self._is_made = False
        self._positions: Mapping[Place, int] = {}
        self._assigned = False
        self._high_watermarks: dict[Place, int] = {}

    def assign(self, positions: Mapping[Place, int]) -> None:
        """Read these partitions, and no others, from these offsets on; take no answer to an earlier question."""
        self._positions, self._assigned = dict(positions), False
        self._high_watermarks.clear()

    def poll(self) -> Came:
        """Return what has come, or what comes within the plan's time."""
        self._prepare()
        self._jvm.ask("poll", str(self._wait_ms))
        came = Came()
        deadline = time.monotonic() + self._wait_ms / 1000 + limits.CLIENT_OPERATION_S_MAX
        while True:
            match self._jvm.must_hear(deadline):
                case ["record", topic, partition, offset, value]:
                    came.add(Place(topic, int(partition)), int(offset), b64decode(value))
                case ["watermark", topic, partition, offset]:
                    self._high_watermarks[Place(topic, int(partition))] = int(offset)
                case ["refused", error, *where]:
                    # It may have dropped what it had of other partitions: all positions are assigned again.
                    places = {Place(topic, int(number)) for topic, number in zip(*[iter(where)] * 2, strict=True)}
                    came = refused_all(error, self._positions, places)
                case ["polled"]:
                    return came
                case told:
                    raise AssertionError(f"{told}: expected record, watermark, refused or polled")

    def _prepare(self) -> None:
        """Make the consumer, and assign to it what it is to read."""
        if not self._is_made:
            self._jvm.ask("consumer", *words_of(self.settings))
            self._is_made = True
        if not self._assigned:
            positions = ((*place, position) for place, position in self._positions.items())
            self._jvm.ask("assign", *(str(word) for each in positions for word in each))
            self._assigned = True

    def high_watermark(self, place: Place) -> int | None:
        """Return that of the answer that brought the last records, None if it is not known."""
        return self._high_watermarks.get(place)

    def close(self) -> None:
        """End the process."""
        self._jvm.close()


def _jvm(plan: ProducerPlan | ConsumerPlan, children: Children | None) -> Jvm:
    if children is None:
        raise UsageError(f"client java: {plan.name}: expected a run with a ledger, which has its process")
    return Jvm(plan.name, children, java_home().argv)


# The other codecs unpack a library of machine code into a folder for every process.
STACK: Final = Stack(
    sender=JavaSender, reader=JavaReader, codecs=("none", "gzip"), lacks=lacks, has_processes=True
)
