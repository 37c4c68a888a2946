"""
A run's client, made of a target's plain one: append a value, read from an offset.

    produce   ok      acknowledged, with its offset
              fail    certainly not appended: every node that was asked refused it
              info    all else
    read      ok      every record from the log's start to where a read brings nothing more
              fail    it did not come to that; a read has no effect

Whatever a plain client has no method for is refused, with the reason.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, ClassVar, Final, TypeVar

from harness import limits
from harness.cleanup.process import until
from harness.clients.beside import Around, Beside
from harness.clients.children import Children
from harness.clients.clock import left
from harness.clients.in_thread import InThread
from harness.clients.library import LibraryConsumer, LibraryProducer, Reader, Sender, text_of
from harness.clients.plain_nodes import PATIENCE_OF_STEP_S, PATIENCE_S, PlainNodes, acks_of
from harness.clients.plain_work import PlainReader, PlainSender, impossible_of, produced, read_from, unsendable
from harness.clients.threads import Threads, Work
from harness.events import DeleteRecords, Produce, Read
from harness.history.file import History
from harness.launch import Address
from harness.model import OpType, PreconditionError, TargetError, UsageError
from harness.target.clients import Underway, Workload
from harness.target.log_client import Creates, Deletes, LogClient, MakeLogClient, Refused
from harness.workload.plan import Clients, ConsumerPlan, Place, ProducerPlan

T = TypeVar("T")

# One read brings so many records at most before it counts as one that never ends.
RECORDS_MAX: Final = 1_000_000


@dataclass(slots=True, kw_only=True)
class PlainClient:
    """
    The clients of one run; every call is one process of the history, client-1, client-2, ...

    Args:
        make: makes the target's plain client.
        target: the target's name.
        bootstrap: returns "host:port" of the running nodes; called again for each round of questions.
        beside: a library on which some clients of workloads stand.
        services: where each process of the target's services answers, by kind.
        children: starts processes of the run for the library.

    Raises:
        PreconditionError: the cluster does not do what the scenario needs.
        UsageError: the target's client cannot do what is asked.
    """

    make: MakeLogClient
    target: str = ""
    history: History
    bootstrap: Callable[[], Sequence[str]]
    beside: Beside | None = None
    services: Mapping[str, Sequence[Address]] = field(default_factory=dict)
    children: Children | None = None
    sends_once: ClassVar[bool] = True
    churns: ClassVar[bool] = False
    _numbers: itertools.count[int] = field(default_factory=lambda: itertools.count(1))

    def create_topic(self, topic: str, replicas: Sequence[int], *further: Sequence[int]) -> None:
        """Create the topic if the target's client can; if it cannot, topics are there from the start."""

        def create(client: LogClient) -> None:
            if isinstance(client, Creates):
                client.create([list(replicas), *map(list, further)])

        try:
            self._once(Place(topic, 0), create)
        except Exception as error:
            raise PreconditionError(f"create topic {topic}: {type(error).__name__}: {error}") from error

    def add_partitions(self, topic: str, first: int, *assignments: Sequence[str], ids: Mapping[str, int]) -> None:
        """Refuse: a plain client adds none."""
        del assignments, ids
        raise UsageError(f"add partitions of {topic} from {first} on: the target's client has no such call")

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
        Append the values in a batch, or each by a call of its own: when `singly`, or if the client has no batches.

        None is sent after one that was not acknowledged.
        """
        if why := unsendable(acks, codec, acks_of(self.make)) or ("an age" if age_ms is not None else ""):
            raise UsageError(f"produce {name} with {why}; the target's client cannot say it")
        process, place, offsets = self._process(), Place(topic, partition), list[int]()
        deadline = time.monotonic() + (limits.CLIENT_OPERATION_S_MAX if timeout_s is None else timeout_s)
        with closing(self._asked(via)) as nodes:
            together = nodes.batches and not singly
            for group in [list(values)] if together else [[value] for value in values]:
                sent = [
                    Produce(topic=topic, partition=partition, name=name, acks=acks, codec=codec, value=value)
                    for value in group
                ]
                for asked in sent:
                    self.history.record(process, OpType.INVOKE, asked)
                outcome = produced(nodes, place, group, left(deadline), acks)
                for at, asked in enumerate(sent):
                    ended = replace(asked, offset=outcome.offset(at), error=outcome.error)
                    self.history.record(process, outcome.type, ended)
                if outcome.base is None:
                    raise PreconditionError(
                        f"produce {name} acks={acks}: {len(offsets)} of {len(values)} records acknowledged; "
                        f"{outcome.error}"
                    )
                offsets += range(outcome.base, outcome.base + len(group))
        return offsets

    def begin_produce(
        self, topic: str, partition: int, name: str, values: Sequence[str], **options: Any
    ) -> Underway:
        """Send the values as `produce` does, in a thread of its own."""
        return InThread(lambda: self.produce(topic, partition, name, values, **options))

    def begin_workload(self, clients: Clients, seed: int, *, nodes: Mapping[str, str]) -> Workload:
        """Start each client in a thread of its own, as one process of the history."""
        for why in impossible_of(clients, acks_of(self.make), self.beside):
            raise UsageError(why)
        addresses = list(nodes.values())
        around = Around(nodes=nodes, services=self.services, children=self.children)

        def asking() -> PlainNodes:
            return PlainNodes(self.make, lambda: addresses, target=self.target)

        def produces(plan: ProducerPlan) -> Work:
            sender: Sender
            if self.beside is not None and self.beside.sends(plan, clients):
                sender = self.beside.sender(plan, around)
            else:
                sender = PlainSender(plan, asking())
            return LibraryProducer(
                plan, seed, process=self._process(), history=self.history, sender=sender, digest=_no_digest
            ).run

        def consumes(plan: ConsumerPlan) -> Work:
            reader: Reader
            if self.beside is not None and self.beside.reads(plan, clients):
                reader = self.beside.reader(plan, around)
            else:
                reader = PlainReader(plan, asking(), addresses)
            return LibraryConsumer(plan, seed, process=self._process(), history=self.history, reader=reader).run

        return Threads(
            self.history,
            producers={plan.name: produces(plan) for plan in clients.producers},
            consumers={plan.name: consumes(plan) for plan in clients.consumers},
        )

    def read_all(self, topic: str, partition: int, *, via: str = "") -> list[tuple[int, str]]:
        """Read from the log's start until a read brings nothing more; a final read of the history."""
        process, place = self._process(), Place(topic, partition)
        asked = Read(topic=topic, partition=partition)
        self.history.record(process, OpType.INVOKE, asked)
        saw, whole = ["no node was asked"], list[list[tuple[int, str]]]()

        def came() -> bool:
            with closing(self._asked(via)) as nodes:
                try:
                    whole.append(_read_on(nodes, place))
                except TargetError as error:
                    self.history.record(process, OpType.FAIL, replace(asked, error=str(error)))
                    self.history.give_up(error)
                    raise PreconditionError(str(error)) from error
                except Exception as error:  # it has no effect, whatever it was: another node may answer
                    saw.append(f"{type(error).__name__}: {error}")
            return bool(whole)

        if not until(came, limits.CLIENT_OPERATION_S_MAX):
            self.history.record(process, OpType.FAIL, replace(asked, error=saw[-1]))
            raise PreconditionError(f"read {place}: {saw[-1]}")
        (records,) = whole
        end = records[-1][0] + 1 if records else 0
        self.history.record(process, OpType.OK, replace(asked, records=tuple(records), high_watermark=end))
        return records

    def delete_records(self, topic: str, partition: int, before: int) -> int:
        """Delete the records before an offset, and return where the log starts then."""
        process, place = self._process(), Place(topic, partition)
        asked = DeleteRecords(topic=topic, partition=partition, before=before)

        if not self._can(Deletes, place):
            raise UsageError(f"delete records of {place}: the target's client has no delete_before")

        def delete(client: LogClient) -> int:
            assert isinstance(client, Deletes), "every client of a target is of one kind"
            return client.delete_before(before)

        self.history.record(process, OpType.INVOKE, asked)
        try:
            low = self._once(place, delete)
        except Exception as error:
            text = f"{type(error).__name__}: {error}"
            type_ = OpType.FAIL if isinstance(error, Refused) else OpType.INFO
            self.history.record(process, type_, replace(asked, error=text))
            raise PreconditionError(f"delete records of {place} before {before}: {text}") from error
        self.history.record(process, OpType.OK, replace(asked, low_watermark=low))
        return low

    def alter_topic(self, topic: str, setting: str, to: str) -> None:
        """Refuse: a plain client alters none."""
        raise UsageError(f"setting {setting}={to} of {topic}: the target's client has no such call")

    def _once(self, place: Place, question: Callable[[LogClient], T]) -> T:
        with closing(self._asked()) as nodes:
            return nodes.ask(place, limits.CLIENT_OPERATION_S_MAX, question)

    def _asked(self, via: str = "") -> PlainNodes:
        bootstrap = (lambda: [via]) if via else self.bootstrap
        return PlainNodes(self.make, bootstrap, PATIENCE_OF_STEP_S, target=self.target)

    def _can(self, ability: type[object], place: Place) -> bool:
        return isinstance(self.make("", place, PATIENCE_S), ability)

    def _process(self) -> str:
        return f"client-{next(self._numbers)}"


def _no_digest(value: str, time_ms: int) -> str:
    """Return "": a plain client gives its records no time, and what a log makes of a value is not known."""
    del value, time_ms
    return ""


def _read_on(nodes: PlainNodes, place: Place) -> list[tuple[int, str]]:
    """
    Read from the log's start until nothing more comes.

    Raises:
        TargetError: it never ends, or what it brings is no log.
    """
    records: list[tuple[int, str]] = []
    while True:
        first = records[-1][0] + 1 if records else 0
        question = partial(read_from, first, RECORDS_MAX + 1 - len(records), nodes.whose)
        more = nodes.ask(place, limits.CLIENT_OPERATION_S_MAX, question)
        if not more:
            return records
        records += [(offset, text_of(value, None)) for offset, value in more]
        if len(records) > RECORDS_MAX:
            raise TargetError(
                f"{nodes.whose}: reads bring more than {RECORDS_MAX} records; expected the log to end"
            )
