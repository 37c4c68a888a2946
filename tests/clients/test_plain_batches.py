"""A target's plain client that sends batches: what goes in one call, with what acks, and what is known of each."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, ClassVar

import pytest

from harness.clients.library import Record
from harness.clients.outcome import Outcome
from harness.clients.plain_nodes import PlainNodes
from harness.clients.plain_part import PlainClients
from harness.clients.plain_work import PlainSender
from harness.history.file import History, read_history
from harness.model import OpType, PreconditionError, UsageError
from harness.target.clients import Client
from harness.target.log_client import AtNode, Found, Refused, clients_of
from harness.workload.plan import Clients, Place, ProducerPlan
from harness.workload.script import Send

AT, BESIDE = Place("log", 0), Place("log", 1)
NODES = ("a:1", "b:1")


@dataclass
class Log:
    """What was asked for, in which call, and what the next calls return or raise."""

    calls: list[tuple[str, str, list[bytes], int]] = field(default_factory=list)
    answers: list[object] = field(default_factory=list)

    def ask(self, address: str, place: Place, values: Sequence[bytes], acks: int) -> Any:
        if address == "a:1":
            raise Refused("not the leader")
        self.calls.append((address, str(place), list(values), acks))
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer


LOGS: dict[str, Log] = {}


class Single(AtNode):
    """One that sends a value at a time."""

    def produce(self, value: bytes) -> int:
        found: int = LOGS["log"].ask(self.address, self.place, [value], -1)
        return found

    def read(self, first: int) -> Sequence[Found]:
        return []


class Batching(Single):
    """One that sends several, and may wait for the leader alone."""

    acks: ClassVar[Collection[int]] = (-1, 1)

    def produce_batch(self, values: Sequence[bytes], acks: int) -> int:
        found: int = LOGS["log"].ask(self.address, self.place, values, acks)
        return found


@pytest.fixture
def log() -> Iterator[Log]:
    LOGS["log"] = Log()
    yield LOGS["log"]
    LOGS.clear()


def client_of(history: History, kind: type[Single] = Batching) -> Client:
    return PlainClients(make_one=kind, target="toy").make("plain", history=history, bootstrap=lambda: NODES)


def told(history: History) -> list[tuple[OpType, str, object]]:
    """Return type, value and offset of each op."""
    return [(op.type, op.value["value"], op.value.get("offset")) for op in read_history(history.path)]


# --- a group of a scenario -------------------------------------------------------------------------------------
@pytest.mark.parametrize("acks", [-1, 1])
def test_group_is_one_call_and_each_record_has_its_own_offset(log: Log, history: History, acks: int) -> None:
    log.answers = [41]
    assert [41, 42, 43] == client_of(history).produce("log", 0, "m1", ["m1.0", "m1.1", "m1.2"], acks=acks)
    assert [("b:1", "log-0", [b"m1.0", b"m1.1", b"m1.2"], acks)] == log.calls
    values = ["m1.0", "m1.1", "m1.2"]
    # Nothing is acknowledged before all were sent.
    assert [
        *((OpType.INVOKE, value, None) for value in values),
        *((OpType.OK, value, 41 + at) for at, value in enumerate(values)),
    ] == told(history)
    assert {acks} == {op.value["acks"] for op in read_history(history.path)}
    assert 1 == len({op.process for op in read_history(history.path)})


@pytest.mark.parametrize(("kind", "singly"), [(Batching, True), (Single, False), (Single, True)])
def test_group_goes_one_by_one_if_it_must_or_if_the_client_has_no_batches(
    log: Log, history: History, kind: type[Single], singly: bool
) -> None:
    log.answers = [5, 9]
    assert [5, 9] == client_of(history, kind).produce("log", 0, "m1", ["m1.0", "m1.1"], acks=-1, singly=singly)
    assert [("b:1", "log-0", [b"m1.0"], -1), ("b:1", "log-0", [b"m1.1"], -1)] == log.calls
    assert [OpType.INVOKE, OpType.OK, OpType.INVOKE, OpType.OK] == [type_ for type_, *_ in told(history)]


def test_value_alone_says_what_it_waits_for(log: Log, history: History) -> None:
    log.answers = [5]
    client_of(history).produce("log", 0, "m1", ["m1.0"], acks=1, singly=True)
    assert [("b:1", "log-0", [b"m1.0"], 1)] == log.calls


@pytest.mark.parametrize(
    ("answer", "type_"), [(Refused("no"), OpType.FAIL), (TimeoutError("late"), OpType.INFO), (-1, OpType.INFO)]
)
def test_batch_that_is_not_acknowledged_is_known_alike_of_every_record(
    log: Log, history: History, answer: object, type_: OpType
) -> None:
    log.answers = [answer, *([Refused("no")] * 100_000 if type_ is OpType.FAIL else [])]
    with pytest.raises(PreconditionError, match="produce m1 acks=1: 0 of 2 records acknowledged"):
        client_of(history).produce("log", 0, "m1", ["m1.0", "m1.1"], acks=1, timeout_s=0.01)
    assert [(type_, "m1.0", None), (type_, "m1.1", None)] == told(history)[2:]
    if type_ is OpType.INFO:
        assert 1 == len(log.calls)  # what may be appended is not sent again


def test_none_is_sent_after_one_that_was_not_acknowledged(log: Log, history: History) -> None:
    log.answers = [5, TimeoutError("late"), 7]
    with pytest.raises(PreconditionError, match="1 of 3 records acknowledged; TimeoutError: late"):
        client_of(history).produce("log", 0, "m1", ["m1.0", "m1.1", "m1.2"], acks=-1, singly=True)
    assert (2, [7]) == (len(log.calls), log.answers)


@pytest.mark.parametrize(("kind", "acks"), [(Batching, 0), (Single, 1), (Single, 0)])
def test_acks_that_the_client_cannot_wait_for_are_refused_before_anything_is_sent(
    log: Log, history: History, kind: type[Single], acks: int
) -> None:
    assert f"acks={acks}" == PlainClients(make_one=kind).unsendable(acks, "none")
    with pytest.raises(UsageError, match=f"produce m1 with acks={acks}; the target's client cannot say it"):
        client_of(history, kind).produce("log", 0, "m1", ["m1.0"], acks=acks)
    assert ([], []) == (log.calls, read_history(history.path))


# --- a workload's ----------------------------------------------------------------------------------------------
PLAN = ProducerPlan(name="p1", places=(AT, BESIDE), within_ms=10)


def sent(kind: type[Single], records: Sequence[tuple[Place, str]], acks: int = -1) -> list[tuple[str, Outcome]]:
    """Send these records with a producer; return what was reported, in its order."""
    reported: list[tuple[str, Outcome]] = []
    sender = PlainSender(PLAN, PlainNodes(kind, lambda: NODES))
    report: Callable[[str, Outcome], None] = lambda value, outcome: reported.append((value, outcome))  # noqa: E731
    sender.send(
        [Record(place=place, value=value, time_ms=0) for place, value in records],
        Send(parts=(), acks=acks, codec="none"),
        report,
    )
    sender.close()
    return reported


OK = partial(Outcome, type=OpType.OK)
MIXED = [(AT, "p1.0"), (BESIDE, "p1.1"), (AT, "p1.2"), (AT, "p1.3")]


def test_producer_sends_a_batch_for_each_partition_and_reports_each_record_s_own_offset(log: Log) -> None:
    log.answers = [10, 3]
    assert {"p1.0": OK(base=10), "p1.2": OK(base=11), "p1.3": OK(base=12), "p1.1": OK(base=3)} == dict(
        sent(Batching, MIXED, acks=1)
    )
    assert [
        ("b:1", "log-0", [b"p1.0", b"p1.2", b"p1.3"], 1),
        ("b:1", "log-1", [b"p1.1"], 1),
    ] == log.calls


def test_producer_without_batches_sends_one_after_the_other(log: Log) -> None:
    log.answers = [10, 3, 12, 15]
    assert [("p1.0", 10), ("p1.1", 3), ("p1.2", 12), ("p1.3", 15)] == [
        (value, outcome.base) for value, outcome in sent(Single, MIXED)
    ]
    assert [[b"p1.0"], [b"p1.1"], [b"p1.2"], [b"p1.3"]] == [values for _, _, values, _ in log.calls]


def test_batch_that_fails_is_unknown_as_a_whole_and_another_partition_s_is_not(log: Log) -> None:
    log.answers = [TimeoutError("late"), 3]
    found = dict(sent(Batching, MIXED))
    late = Outcome(type=OpType.INFO, error="TimeoutError: late")
    assert {"p1.0": late, "p1.2": late, "p1.3": late, "p1.1": OK(base=3)} == found


def test_no_value_of_a_partition_is_sent_after_one_that_was_not_acknowledged(log: Log) -> None:
    """Each would wait as long again, of a batch of hundreds."""
    log.answers = [TimeoutError("late"), 3]
    late, unsent = "TimeoutError: late", "not sent: p1.0 was not acknowledged"
    assert [
        ("p1.0", OpType.INFO, late),
        ("p1.1", OpType.OK, ""),
        ("p1.2", OpType.FAIL, unsent),
        ("p1.3", OpType.FAIL, unsent),
    ] == [(value, outcome.type, outcome.error) for value, outcome in sent(Single, MIXED)]
    assert ([[b"p1.0"], [b"p1.1"]], []) == ([values for _, _, values, _ in log.calls], log.answers)


@pytest.mark.parametrize(("kind", "kept"), [(Batching, (1, -1)), (Single, (-1,))])
def test_workload_keeps_the_acks_that_the_client_can_wait_for(kind: type[Single], kept: tuple[int, ...]) -> None:
    part = PlainClients(make_one=kind)
    plans = Clients(producers=(replace(PLAN, acks=(0, 1, -1)),))
    fit = part.fit(plans)
    assert kept == fit.producers[0].acks
    assert [] == [*part.impossible(fit, "plain")]
    assert any("acks=0" in why for why in part.impossible(plans, "plain"))
    assert (-1,) == part.fit(Clients(producers=(replace(PLAN, acks=(0,)),))).producers[0].acks


# --- who makes topics ------------------------------------------------------------------------------------------
class Creating(Single):
    """One that makes topics itself."""

    def create(self, assignments: Sequence[Sequence[int]]) -> None:
        """Do nothing."""


@pytest.mark.parametrize(
    ("kind", "operator", "creates"),
    [(Single, False, False), (Single, True, True), (Creating, False, True), (Creating, True, True)],
)
def test_topics_are_made_by_the_client_or_by_the_operator(
    kind: type[Single], operator: bool, creates: bool
) -> None:
    assert creates is clients_of(kind, creates_topics=operator).creates
