"""What is asked of a Java client through its pipe, with a thread in place of the process."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from harness.clients.jvm import Jvm
from harness.clients.library import Came, Record, Refusal
from harness.clients.outcome import Outcome
from harness.model import OpType, UsageError
from harness.workload.plan import ConsumerPlan, Place, ProducerPlan
from harness.workload.script import Send
from targets.kafka_family.clients import java_work
from targets.kafka_family.clients.java_home import JavaHome
from targets.kafka_family.clients.java_work import JavaReader, JavaSender
from tests.clients.java_child import Child, starting

LOG, ORDERS = Place("log", 0), Place("orders", 2)
HOME = JavaHome(java=Path("java"), class_path=(Path("classes"), Path("a.jar")))


@pytest.fixture
def started() -> Iterator[Callable[..., tuple[Child, Jvm]]]:
    """Start children that are closed when the test ends."""
    with starting() as start:
        yield start


def test_command_line_has_the_class_path_and_the_handles() -> None:
    java, *_, path, program, asked, told = HOME.argv(5, 6)
    assert ("java", "classes:a.jar", "Client", "5", "6") == (java, path, program, asked, told)


# --- producer ---------------------------------------------------------------------------------------------------
def outcomes(
    monkeypatch: pytest.MonkeyPatch,
    started: Any,
    acks: int,
    tell: Callable[[str], str],
    retries: int = 0,
    **more: bool,
) -> tuple[dict[str, Outcome], list[str]]:
    """Send two records; return their outcomes, of which the child tells those of `tell`, and what was asked."""

    def answer(words: list[str]) -> Sequence[str]:
        # Its numbers may be those of an earlier send, whose reports come late.
        return [f"sent 999 5\n{tell(words[2])}\nsent {words[7]} 8\n"] if words[0] == "send" else ()

    child, jvm = started(answer)
    monkeypatch.setattr(java_work, "_jvm", lambda *_: jvm)
    plan = ProducerPlan(name="p1", places=(LOG,), within_ms=600, retries=retries, **more)
    sender = JavaSender(plan, ["a:1", "b:2"], "client-1", None)
    found: dict[str, Outcome] = {}
    records = [Record(place=LOG, value="p1.0", time_ms=11), Record(place=ORDERS, value="p1.1", time_ms=12)]
    sender.send(records, Send(parts=(), acks=acks, codec="gzip"), found.__setitem__)
    return found, child.asked


def test_producer_says_all_that_a_record_is_and_how_it_is_sent(
    monkeypatch: pytest.MonkeyPatch, started: Any
) -> None:
    found, (made, sent) = outcomes(monkeypatch, started, -1, lambda number: f"sent {number} 3")
    assert {"p1.0": Outcome(type=OpType.OK, base=3), "p1.1": Outcome(type=OpType.OK, base=8)} == found
    assert "send -1-gzip 1 log 0 11 cDEuMA== 2 orders 2 12 cDEuMQ==" == sent
    words = made.split(" ")
    assert ["producer", "-1-gzip"] == words[:2]
    assert {
        "bootstrap.servers=a:1,b:2",
        "client.id=client-1",
        "acks=all",
        "compression.type=gzip",
        "retries=0",
        "enable.idempotence=false",
        "max.in.flight.requests.per.connection=1",
        "max.block.ms=600",
        "request.timeout.ms=600",
        "delivery.timeout.ms=605",
    } <= {*words}


@pytest.mark.parametrize(
    ("acks", "retries", "told", "type_", "error"),
    [
        (1, 0, "failed {} 6 NotLeaderOrFollowerException", OpType.FAIL, "NOT_LEADER_OR_FOLLOWER"),
        (-1, 0, "failed {} 6 NotLeaderOrFollowerException", OpType.INFO, "NOT_LEADER_OR_FOLLOWER"),
        (-1, 0, "failed {} 19 NotEnoughReplicasException", OpType.FAIL, "NOT_ENOUGH_REPLICAS"),
        (-1, 2, "failed {} 19 NotEnoughReplicasException", OpType.INFO, "NOT_ENOUGH_REPLICAS"),
        (1, 0, "failed {} - TimeoutException", OpType.INFO, "TimeoutException"),
        (1, 0, "failed {} 13 NetworkException", OpType.INFO, "NETWORK_EXCEPTION"),
        (-1, 2, "unsent {} TimeoutException", OpType.FAIL, "TimeoutException"),
    ],
)
def test_record_failed_only_if_it_surely_was_not_appended(
    monkeypatch: pytest.MonkeyPatch, started: Any, *, acks: int, retries: int, told: str, type_: OpType, error: str
) -> None:
    found, _ = outcomes(monkeypatch, started, acks, told.format, retries)
    assert Outcome(type=type_, error=error) == found["p1.0"]


def test_idempotent_producer_is_one_of_the_library(monkeypatch: pytest.MonkeyPatch, started: Any) -> None:
    _, (made, _) = outcomes(monkeypatch, started, -1, lambda number: f"sent {number} 3", 4, idempotent=True)
    assert {"acks=all", "retries=4", "enable.idempotence=true"} <= {*made.split(" ")}


def test_record_has_no_offset_without_an_answer(monkeypatch: pytest.MonkeyPatch, started: Any) -> None:
    found, _ = outcomes(monkeypatch, started, 0, lambda number: f"sent {number} -1")
    assert {Outcome(type=OpType.OK)} == {*found.values()}


# --- consumer ---------------------------------------------------------------------------------------------------
def reader_of(monkeypatch: pytest.MonkeyPatch, started: Any, *polls: str) -> tuple[JavaReader, Child]:
    """Return a reader to whose polls a child tells these lines."""
    told = iter(polls)
    child, jvm = started(lambda words: [f"{next(told)}polled\n"] if words[0] == "poll" else ())
    monkeypatch.setattr(java_work, "_jvm", lambda *_: jvm)
    plan = ConsumerPlan(name="c1", places=(LOG, ORDERS), wait_ms=30, max_bytes=512)
    return JavaReader(plan, ["a:1"], "client-2", None), child


def test_consumer_is_assigned_once_and_then_polls_on(monkeypatch: pytest.MonkeyPatch, started: Any) -> None:
    polls = ("record log 0 4 YQ==\nrecord log 0 5 \nwatermark log 0 9\n", "")
    reader, child = reader_of(monkeypatch, started, *polls)
    reader.assign({LOG: 4, ORDERS: 0})
    assert [Came(records={LOG: [(4, "a"), (5, "")]}), Came()] == [reader.poll(), reader.poll()]
    assert (9, None) == (reader.high_watermark(LOG), reader.high_watermark(ORDERS))
    made, *then = child.asked
    assert ["assign log 0 4 orders 2 0", "poll 30", "poll 30"] == then
    assert made.startswith("consumer ")
    assert {"auto.offset.reset=none", "enable.auto.commit=false", "fetch.max.bytes=512"} <= {*made.split(" ")}
    assert "group.id" not in made


def test_consumer_that_was_refused_is_assigned_anew(monkeypatch: pytest.MonkeyPatch, started: Any) -> None:
    reader, child = reader_of(monkeypatch, started, "refused OffsetOutOfRangeException orders 2\n", "")
    reader.assign({LOG: 4, ORDERS: 7})
    why = "OffsetOutOfRangeException"
    refusals = {LOG: Refusal(why=why), ORDERS: Refusal(why=why, out_of_range=True)}
    assert Came(refused=refusals) == reader.poll()
    reader.assign({LOG: 4, ORDERS: 0})
    reader.poll()
    assert ["assign log 0 4 orders 2 7", "poll 30", "assign log 0 4 orders 2 0", "poll 30"] == child.asked[1:]


def test_client_without_a_ledger_is_refused() -> None:
    with pytest.raises(UsageError, match="client java: p1: expected a run with a ledger"):
        JavaSender(ProducerPlan(name="p1", places=(LOG,)), ["a:1"], "client-1", None)
