"""
A client on plain sockets: create a topic, produce and read, each an operation in the history.

Every request with an effect is sent once; only metadata requests are repeated. So the history shows what happened
to the first try, and a record can be sent to a broker that metadata would not name.

    produce   ok      acknowledged, with its offset; with acks=0 only sent
              fail    certainly not appended: not sent, or refused before the append
              info    all else: no answer in time, or an error after the append
    read      ok      every record from 0 to the high watermark of the first answer
              fail    it did not reach that; a read has no effect
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Final

from harness import limits
from harness.cleanup.ledger import Ledger
from harness.cleanup.process import until
from harness.clients.clock import left, wall_ms
from harness.clients.in_thread import InThread
from harness.clients.outcome import Outcome
from harness.events import AddPartitions, AlterTopic, DeleteRecords, Produce, Read
from harness.history.file import History
from harness.kafka_errors import MOVED
from harness.logs.record import sent_digest
from harness.model import OpType, PreconditionError
from harness.target.clients import Underway, Workload
from harness.workload.plan import Clients, Library
from targets.kafka_family.clients import questions, topics
from targets.kafka_family.clients.batches import NO_TIME, write_batch
from targets.kafka_family.clients.beginning import begin
from targets.kafka_family.clients.connection import Connection, NoAnswer, NotSent
from targets.kafka_family.clients.producing import BROKERS_SHARE
from targets.kafka_family.clients.refusals import deleted_outcome, outcome_of, outcome_without
from targets.kafka_family.logs.codec import CodecError
from targets.kafka_family.logs.message_set import records_of, walk
from targets.kafka_family.logs.records import RecordError
from targets.kafka_family.wire.errors import ErrorCode

# After so many empty answers below the high watermark the read ends: the high watermark may lie inside a batch,
# which an Apache Kafka broker then does not return.
EMPTY_ANSWERS_MAX: Final = 6
# Timeout of one node's metadata answer, before the next node is asked: the node may be paused.
METADATA_S_MAX: Final = 2.0
_ADMIN: Final = "client-admin"


@dataclass(slots=True, kw_only=True)
class _Reading:
    """A read's progress: the next offset, its end (None while unknown), and the last error."""

    records: list[tuple[int, str]] = field(default_factory=list)
    start: int = 0
    position: int = 0
    end: int | None = None
    empty: int = 0
    saw: str = "no node was asked"

    def begin(self, start: int) -> None:
        """Begin anew, where the log starts now."""
        self.start = self.position = start
        self.end = None
        self.records.clear()


@dataclass(slots=True, kw_only=True)
class RawClient:
    """
    The clients of one run; every call is one process of the history, client-1, client-2, ...

    Args:
        ledger: the run's, for clients in processes of their own; None: there are none.
        bootstrap: returns "host:port" of the running nodes; called again for every metadata request.
        timeout_s: for one call with all its requests.

    Raises:
        PreconditionError: the cluster does not do what the scenario needs.
    """

    history: History
    bootstrap: Callable[[], Sequence[str]]
    timeout_s: float = limits.CLIENT_OPERATION_S_MAX
    ledger: Ledger | None = None
    sends_once: ClassVar[bool] = True
    churns: ClassVar[bool] = True
    _numbers: itertools.count[int] = field(default_factory=lambda: itertools.count(1))

    def create_topic(self, topic: str, replicas: Sequence[int], *further: Sequence[int]) -> None:
        """Create a topic with a partition on each of these groups of brokers; return when that was answered."""
        assignments = [list(replicas), *map(list, further)]
        deadline = time.monotonic() + self.timeout_s
        try:
            controller = self._find(_ADMIN, deadline, topic, 0, lambda found: found.controller)
            with Connection(controller, _ADMIN, deadline) as connection:
                within_s = left(deadline) * BROKERS_SHARE
                refusal = topics.create(connection, topic, assignments, within_s).refusal
        except (NotSent, NoAnswer) as error:
            refusal = str(error)
        if refusal:
            raise PreconditionError(f"create topic {topic} on {questions.shown(assignments)}: {refusal}")

    def add_partitions(self, topic: str, first: int, *assignments: Sequence[str], ids: Mapping[str, int]) -> None:
        """Add partitions to a topic, asked of the controller once; return when that was answered."""
        process, deadline = self._process(), time.monotonic() + self.timeout_s
        asked = AddPartitions(topic=topic, first=first, assignments=tuple(map(tuple, assignments)))
        self.history.record(process, OpType.INVOKE, asked)
        brokers = [[ids[name] for name in names] for names in assignments]
        try:
            controller = self._find(process, deadline, topic, 0, lambda found: found.controller)
            with Connection(controller, process, deadline) as connection:
                within_s = left(deadline) * BROKERS_SHARE
                answer = topics.add(connection, topic, first + len(brokers), brokers, within_s)
        except (NotSent, NoAnswer) as why:
            outcome = outcome_without(why)
            type_, error = outcome.type, outcome.error
        else:
            doubtful = answer.error in topics.DOUBTFUL
            type_ = OpType.OK if not answer.refusal else OpType.INFO if doubtful else OpType.FAIL
            error = answer.refusal
        self.history.record(process, type_, replace(asked, error=error))
        if type_ is not OpType.OK:
            raise PreconditionError(f"add partitions of {topic} from {first} on: {error}")

    # --- produce ---------------------------------------------------------------------------------------------
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

        Args:
            via: "host:port" of the broker to send to, leader or not; "" for the leader that metadata names.
            timeout_s: for this call; None for the default.
            age_ms: how long before now the records' time is; None: they have none.

        Raises:
            PreconditionError: one of them was not acknowledged. The history has all that were sent; none is sent
                after one that was not acknowledged.
        """
        process = self._process()
        deadline = time.monotonic() + (self.timeout_s if timeout_s is None else timeout_s)
        offsets: list[int] = []
        time_ms = NO_TIME if age_ms is None else wall_ms() - age_ms
        for group in [[value] for value in values] if singly else [list(values)]:
            sent = [
                Produce(topic=topic, partition=partition, name=name, acks=acks, codec=codec, value=value)
                for value in group
            ]
            for record in sent:
                asked = replace(record, digest=sent_digest(record.value, time_ms))
                self.history.record(process, OpType.INVOKE, asked)
            outcome = self._send(process, deadline, sent, via, time_ms)
            for at, record in enumerate(sent):
                known = replace(record, offset=outcome.offset(at), error=outcome.error)
                self.history.record(process, outcome.type, known)
            if outcome.type is not OpType.OK:
                raise PreconditionError(
                    f"produce {name} acks={acks}: {len(offsets)} of {len(values)} records acknowledged; "
                    f"{outcome.error}"
                )
            if outcome.base is not None:
                offsets += range(outcome.base, outcome.base + len(group))
        return offsets

    def _send(self, process: str, deadline: float, sent: Sequence[Produce], via: str, time_ms: int) -> Outcome:
        """Find the leader, connect, and send the batch once."""
        topic, partition, acks, codec = sent[0].topic, sent[0].partition, sent[0].acks, sent[0].codec
        batch = write_batch([record.value.encode() for record in sent], codec, time_ms=time_ms)
        try:
            leader = via or self._find(process, deadline, topic, partition, lambda found: found.leader)
            with Connection(leader, process, deadline) as connection:
                produced = questions.produce(
                    connection,
                    topic,
                    partition,
                    batch,
                    acks=acks,
                    timeout_s=left(deadline) * BROKERS_SHARE,
                    zstd=codec == "zstd",
                )
        except (NotSent, NoAnswer) as error:
            return outcome_without(error)
        return outcome_of(produced, acks)

    def begin_produce(
        self, topic: str, partition: int, name: str, values: Sequence[str], **options: Any
    ) -> Underway:
        """Send the values as `produce` does, in a thread of its own."""
        return InThread(lambda: self.produce(topic, partition, name, values, **options))

    # --- workload --------------------------------------------------------------------------------------------
    def begin_workload(self, clients: Clients, seed: int, *, nodes: Mapping[str, str]) -> Workload:
        """Start each client in a thread or a process of its own, as a process of the history."""
        return begin(
            clients,
            seed,
            own=Library.RAW,
            process=self._process,
            history=self.history,
            nodes=nodes,
            ledger=self.ledger,
        )

    # --- read ------------------------------------------------------------------------------------------------
    def read_all(self, topic: str, partition: int, *, via: str = "") -> list[tuple[int, str]]:
        """Read from the log's start to the high watermark, as a consumer does; a final read of the history."""
        process = self._process()
        asked = Read(topic=topic, partition=partition)
        self.history.record(process, OpType.INVOKE, asked)
        deadline = time.monotonic() + self.timeout_s
        reading = _Reading()
        try:
            if not until(lambda: self._read_on(process, deadline, asked, reading, via), left(deadline)):
                raise PreconditionError(f"{reading.saw}; came to {reading.position} of {reading.end}")
        except PreconditionError as error:
            position = None if reading.end is None else reading.position
            failed = replace(asked, position=position, high_watermark=reading.end, error=str(error))
            self.history.record(process, OpType.FAIL, failed)
            raise PreconditionError(f"read {topic}-{partition}: {error}") from error
        records, start = tuple(reading.records), reading.start or None
        read = replace(asked, records=records, start=start, high_watermark=reading.end)
        self.history.record(process, OpType.OK, read)
        return reading.records

    def _read_on(self, process: str, deadline: float, asked: Read, reading: _Reading, via: str) -> bool:
        """Read from the current leader up to the end; return False if the leader must be found again."""
        topic, partition = asked.topic, asked.partition
        try:
            leader = via or self._find(process, deadline, topic, partition, lambda found: found.leader)
            with Connection(leader, process, deadline) as connection:
                while reading.end is None or reading.position < reading.end:
                    fetched = questions.fetch(connection, topic, partition, reading.position)
                    if fetched.error.value in MOVED:
                        reading.saw = f"{leader}: {fetched.error.name} at {reading.position}"
                        return False
                    if fetched.error is ErrorCode.OFFSET_OUT_OF_RANGE:
                        start = questions.earliest(connection, topic, partition)
                        if start > reading.position:  # begin anew: what was there has been deleted
                            reading.begin(start)
                            continue
                    if fetched.error is not ErrorCode.NONE:
                        raise PreconditionError(f"{leader}: {fetched.error.name} at {reading.position}")
                    reading.end = fetched.high_watermark if reading.end is None else reading.end
                    before = reading.position
                    _take(fetched.records, reading)
                    reading.empty = 0 if reading.position > before else reading.empty + 1
                    if reading.empty == EMPTY_ANSWERS_MAX and reading.position < reading.end:
                        came = f"came to {reading.position} of {reading.end}"
                        raise PreconditionError(f"{leader}: {reading.empty} answers in a row are empty; {came}")
        except (NotSent, NoAnswer) as error:
            reading.saw = str(error)
            return False
        return True

    # --- delete records --------------------------------------------------------------------------------------
    def delete_records(self, topic: str, partition: int, before: int) -> int:
        """
        Delete the records before an offset (-1: all that are committed), and return the low watermark.

        Raises:
            PreconditionError: the deletion was refused, or was not answered in time; the history has which.
        """
        process = self._process()
        deadline = time.monotonic() + self.timeout_s
        asked = DeleteRecords(topic=topic, partition=partition, before=before)
        self.history.record(process, OpType.INVOKE, asked)
        try:
            leader = self._find(process, deadline, topic, partition, lambda found: found.leader)
            with Connection(leader, process, deadline) as connection:
                deleted = questions.delete_records(
                    connection, topic, partition, before, timeout_s=left(deadline) * BROKERS_SHARE
                )
        except (NotSent, NoAnswer) as error:
            type_, error_text = outcome_without(error).type, str(error)
        else:
            error_text = "" if deleted.error is ErrorCode.NONE else deleted.error.name
            type_ = deleted_outcome(deleted.error)
        if type_ is not OpType.OK:
            self.history.record(process, type_, replace(asked, error=error_text))
            raise PreconditionError(f"delete records of {topic}-{partition} before {before}: {error_text}")
        self.history.record(process, type_, replace(asked, low_watermark=deleted.low_watermark))
        return deleted.low_watermark

    def alter_topic(self, topic: str, setting: str, to: str) -> None:
        """
        Give a topic this setting, and no other of its own; its leader is asked, as any broker could be.

        Raises:
            PreconditionError: the change was refused, or was not answered in time; the history has which.
        """
        process = self._process()
        deadline = time.monotonic() + self.timeout_s
        asked = AlterTopic(topic=topic, setting=setting, to=to)
        self.history.record(process, OpType.INVOKE, asked)
        type_, text = OpType.OK, ""
        try:
            leader = self._find(process, deadline, topic, 0, lambda found: found.leader)
            with Connection(leader, process, deadline) as connection:
                answer = questions.alter_topic(connection, topic, setting, to)
        except (NotSent, NoAnswer) as lost:
            type_, text = outcome_without(lost).type, str(lost)
        else:
            if answer.error is not ErrorCode.NONE:
                type_ = OpType.INFO if answer.error is ErrorCode.REQUEST_TIMED_OUT else OpType.FAIL
                text = f"{answer.error.name} {answer.text}".strip()
        self.history.record(process, type_, replace(asked, error=text))
        if type_ is not OpType.OK:
            raise PreconditionError(f"setting {setting}={to} of {topic}: {text}")

    # --- who is asked ----------------------------------------------------------------------------------------
    def _find(
        self,
        client_id: str,
        deadline: float,
        topic: str,
        partition: int,
        pick: Callable[[questions.Metadata], str],
    ) -> str:
        """
        Ask node after node until one names the wanted broker.

        Raises:
            NotSent: none named it in time.
        """
        found: list[str] = []
        saw = ["no node runs"]

        def looked() -> bool:
            for address in self.bootstrap():
                try:
                    soon = min(deadline, time.monotonic() + METADATA_S_MAX)
                    with Connection(address, client_id, soon) as connection:
                        known = questions.metadata(connection, topic, partition)
                except (NotSent, NoAnswer) as error:
                    saw.append(str(error))
                    continue
                if pick(known):
                    found.append(pick(known))
                    return True
                saw.append(f"{address}: {known.why or 'no controller'}")
            return False

        if not until(looked, left(deadline)):
            raise NotSent(f"{saw[-1]}; expected its address")
        return found[0]

    def _process(self) -> str:
        return f"client-{next(self._numbers)}"


def _take(records: bytes, reading: _Reading) -> None:
    """Add the records between the read's position and its end."""
    found = walk(records)
    if found.stopped and not found.headers:
        raise PreconditionError(f"records at {reading.position}: {found.stopped}")
    for header in found.headers:
        try:
            opened = () if header.control else records_of(header)
        except (CodecError, RecordError) as error:
            raise PreconditionError(f"batch at {header.base_offset}: {error}") from error
        reading.records += [
            (record.offset, record.value_text or "")
            for record in opened
            if reading.position <= record.offset < (reading.end or 0)
        ]
        reading.position = max(reading.position, header.last_offset + 1)


CLIENT: Final = RawClient
