"""RocketMQ's own client beside the plain one: what its process is asked, and what its answers prove."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from harness.cleanup.ledger import Ledger
from harness.clients.beside import Around
from harness.clients.children import Children
from harness.clients.jvm import Jvm
from harness.clients.library import Came, Record, Refusal
from harness.clients.outcome import Outcome
from harness.clients.plain_part import PlainClients
from harness.launch import Address
from harness.model import OpType, PreconditionError, UsageError
from harness.workload.plan import Clients, ConsumerPlan, Library, Place, ProducerPlan, Via
from harness.workload.script import Send
from targets.rocketmq.clients import library, process
from targets.rocketmq.clients.library import JavaClient, Reader, Sender
from targets.rocketmq.clients.process import Process, hosts_of
from targets.rocketmq.target import TARGET
from tests.clients.java_child import Child, starting
from tests.needs import needs
from tests.targets.rocketmq.server import nobody

AT, OTHER = Place("log", 0), Place("log", 1)
AROUND = Around(nodes={"A": "127.0.0.1:18001", "B": "127.0.0.2:18002"})
Start = Callable[..., "list[str]"]


def producer(**more: Any) -> ProducerPlan:
    return ProducerPlan(name="p", places=(AT, OTHER), **{"within_ms": 10_000, "retries": 3, **more})


def consumer(**more: Any) -> ConsumerPlan:
    return ConsumerPlan(name="c", places=(AT, OTHER), **more)


def word(text: str) -> str:
    return b64encode(text.encode()).decode()


@pytest.fixture(autouse=True)
def _hurried(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(library, "_AGAIN_S", 0.001)


@pytest.fixture
def tells(monkeypatch: pytest.MonkeyPatch) -> Iterator[Start]:
    """Have each process tell these lines, one to each question, where {} is its number; return what is asked."""
    with starting() as start:

        def told(*answers: str) -> list[str]:
            left = iter(answers)

            def answer(words: list[str]) -> Sequence[str]:
                said = next(left, "")
                return ["END"] if said == "END" else [f"{said.format(words[0])}\n"] if said else []

            child, jvm = start(answer)
            monkeypatch.setattr(process, "started", lambda *_: jvm)
            return cast(Child, child).asked

        yield told


def sent(*values: str, places: Mapping[str, Place] | None = None, **plan: Any) -> dict[str, Outcome]:
    """Return the outcome of each value; all are sent together."""
    found: dict[str, Outcome] = {}
    records = [Record(place=(places or {}).get(value, AT), value=value, time_ms=0) for value in values]
    sender = Sender(producer(**plan), Process("p", "producer", AROUND))
    sender.send(records, Send(parts=(), acks=-1, codec="none"), found.__setitem__)
    return found


# --- which clients stand on it ---------------------------------------------------------------------------------
@pytest.fixture
def here(monkeypatch: pytest.MonkeyPatch) -> JavaClient:
    monkeypatch.setattr(library, "_lacks", lambda: "")
    return JavaClient()


def test_producer_that_sends_again_stands_on_it_unless_it_is_to_be_known_again(here: JavaClient) -> None:
    for plan, stands in (
        (producer(), True),
        (producer(retries=0), False),
        (producer(retries=0, idempotent=True), False),
        (producer(idempotent=True), False),
    ):
        assert stands is here.sends(plan, Clients(producers=(plan,)))


def test_consumer_that_only_goes_on_stands_on_it_beside_such_a_producer(here: JavaClient) -> None:
    again, once = producer(), producer(retries=0)
    for plan, producers, stands in (
        (consumer(), (again,), True),
        (consumer(), (once, again), True),
        (consumer(), (once,), False),
        (consumer(via=Via.EVERY), (again,), False),
        (consumer(seek=0.5), (again,), False),
    ):
        assert stands is here.reads(plan, Clients(producers=producers, consumers=(plan,)))


def test_idempotent_producer_of_a_workload_only_sends_again(here: JavaClient) -> None:
    raw = producer(idempotent=True, client=Library.RAW)
    fitted = PlainClients(make_one=cast(Any, None), beside=here).fit(Clients(producers=(raw,)))
    assert producer() == fitted.producers[0]
    assert () == fitted.idempotent
    assert here.sends(fitted.producers[0], fitted)


def test_outcomes_of_its_producers_have_offsets(here: JavaClient) -> None:
    assert () == TARGET.clients.untold(Clients(producers=(producer(),)))


def test_machine_that_lacks_it_has_the_plain_client_and_the_reason(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(library, "find_java", lambda: None)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    library._lacks.cache_clear()
    try:
        found = JavaClient()
        assert "jars are not in" in found.why_not()
        assert found.why_not().endswith("; `fencepost fetch rocketmq:5.5.0` brings it")
        assert not found.sends(producer(), Clients(producers=(producer(),)))
    finally:
        library._lacks.cache_clear()


def test_machine_without_a_java_has_the_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    def no_java() -> object:
        raise UsageError("Java: none found; expected one")

    monkeypatch.setattr(library, "find_java", no_java)
    assert "Java: none found; expected one" == library._lacks.__wrapped__()


# --- what it sends ---------------------------------------------------------------------------------------------
def test_record_goes_to_its_queue_and_has_half_of_the_time(tells: Start) -> None:
    asked = tells("{} sent SEND_OK 41", "{} sent SEND_OK 7")
    found = sent("p.0", "p.1", places={"p.1": OTHER})
    assert {"p.0": Outcome(type=OpType.OK, base=41), "p.1": Outcome(type=OpType.OK, base=7)} == found
    first, second = (line.split(" ") for line in asked)
    assert (["1", "send", "log", "0"], word("p.0")) == (first[:4], first[5])
    assert (["2", "send", "log", "1"], word("p.1")) == (second[:4], second[5])
    assert 4000 < int(first[4]) <= 5000


@pytest.mark.parametrize(
    ("told", "type_", "why"),
    [
        ("sent FLUSH_SLAVE_TIMEOUT 41", OpType.INFO, "FLUSH_SLAVE_TIMEOUT"),
        ("sent SLAVE_NOT_AVAILABLE 41", OpType.INFO, "SLAVE_NOT_AVAILABLE"),
        (f"refused 16 {word('no permission')}", OpType.FAIL, "code 16: no permission"),
        (f"refused 1 {word('in-sync replicas not enough')}", OpType.FAIL, "code 1: in-sync replicas not enough"),
        (f"refused 1 {word('store  putMessage')}", OpType.INFO, "code 1: store putMessage"),
        (f"unsent MQClientException {word('no broker')}", OpType.FAIL, "MQClientException: no broker"),
        (f"failed RemotingTimeoutException {word('5 ms')}", OpType.INFO, "RemotingTimeoutException: 5 ms"),
    ],
)
def test_record_failed_only_if_it_surely_was_not_written(tells: Start, told: str, type_: OpType, why: str) -> None:
    asked = tells(*[f"{{}} {told}"] * 3)
    assert {"p.0": Outcome(type=type_, error=why)} == sent("p.0", retries=2)
    assert 3 == len(asked)


def test_record_that_was_perhaps_written_once_is_unknown_whatever_comes_later(tells: Start) -> None:
    surely = f"{{}} unsent MQClientException {word('no broker')}"
    tells("{} sent FLUSH_DISK_TIMEOUT 3", surely)
    assert OpType.INFO is sent("p.0", retries=1)["p.0"].type


def test_record_is_sent_again_until_it_is_acknowledged_and_the_next_ones_not_before(tells: Start) -> None:
    again = f"{{}} failed RemotingTimeoutException {word('late')}"
    asked = tells(again, "{} sent FLUSH_SLAVE_TIMEOUT 4", "{} sent SEND_OK 5", *[again] * 4, "{} sent SEND_OK 9")
    found = sent("p.0", "p.1", "p.2", "p.3", places={"p.3": OTHER}, retries=3)
    assert Outcome(type=OpType.OK, base=5) == found["p.0"]
    assert Outcome(type=OpType.INFO, error="RemotingTimeoutException: late") == found["p.1"]
    assert Outcome(type=OpType.FAIL, error="not sent: p.1 was not acknowledged") == found["p.2"]
    assert [word("p.0")] * 3 + [word("p.1")] * 4 == [line.split(" ")[5] for line in asked[:7]]
    assert word("p.3") == asked[7].split(" ")[5]


def test_library_that_hangs_leaves_records_unknown_and_its_late_answer_counts_for_none(
    tells: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(library, "REPORT_S_MAX", 0.05)
    asked = tells("", "1 sent SEND_OK 7\n{} sent SEND_OK 8")
    assert {"p.0": Outcome(type=OpType.OK, base=8)} == sent("p.0", within_ms=400, retries=1)
    assert 2 == len(asked)
    tells()
    unknown = Outcome(type=OpType.INFO, error="no answer of the library in time")
    assert {"p.0": unknown} == sent("p.0", within_ms=100, retries=1)


NONSENSE = [
    "",
    " ",
    "Picked up JAVA_TOOL_OPTIONS",
    "{}",
    "{} polled",
    "{} sent",
    "{} sent SEND_OK x",
    "{} sent SEND_OK 1 2",
    "{} refused x y",
    "{} unsent Error =!=",
    "99 sent SEND_OK 1",
    "-1 sent SEND_OK 1",
]


@pytest.mark.parametrize("told", [f"\n{each}" if not each.strip() else each for each in NONSENSE])
def test_producer_whose_process_tells_nonsense_ends_and_says_so(tells: Start, told: str) -> None:
    tells(told)
    with pytest.raises(PreconditionError, match=r"client p: its process told '.*'; expected an answer to quest"):
        sent("p.0")


def test_process_that_dies_ends_its_client_and_says_so(tells: Start) -> None:
    tells("END")
    with pytest.raises(PreconditionError, match="its process ended with exit code 1; expected it to live"):
        sent("p.0")


# --- what it reads ---------------------------------------------------------------------------------------------
def reader() -> Reader:
    return Reader(consumer(wait_ms=30, max_bytes=512), Process("c", "consumer", AROUND))


def test_consumer_is_assigned_once_and_then_polls_on(tells: Start) -> None:
    records = f"{{}} polled log 0 4 {word('a')} log 1 0 {word('b')} log 0 5 "
    asked = tells("{} assigned", records, "{} polled", "{} assigned", "{} polled")
    found = reader()
    found.assign({AT: 4, OTHER: 0})
    assert Came(records={AT: [(4, "a"), (5, "")], OTHER: [(0, "b")]}) == found.poll()
    assert Came() == found.poll()
    assert None is found.high_watermark(AT)
    found.assign({AT: 1})
    found.poll()
    assert [
        "1 assign log 0 4 log 1 0",
        "2 poll 30 512",
        "3 poll 30 512",
        "4 assign log 0 1",
        "5 poll 30 512",
    ] == asked


def test_consumer_that_cannot_be_assigned_is_refused_and_begins_anew_if_no_broker_has_its_offset(
    tells: Start,
) -> None:
    illegal = "Seek offset illegal, seek offset = 9, max offset = 5"
    asked = tells(
        f"{{}} failed MQClientException {word('no route')}", f"{{}} failed MQClientException {word(illegal)}"
    )
    found = reader()
    found.assign({AT: 9})
    assert Came(refused={AT: Refusal(why="MQClientException: no route")}) == found.poll()
    assert Came(refused={AT: Refusal(why=f"MQClientException: {illegal}", out_of_range=True)}) == found.poll()
    assert ["1 assign log 0 9", "2 assign log 0 9"] == asked


def test_consumer_that_goes_back_by_itself_is_refused_where_it_did(tells: Start) -> None:
    tells("{} assigned", f"{{}} polled log 0 4 {word('a')}", f"{{}} polled log 0 2 {word('x')}")
    found = reader()
    found.assign({AT: 4, OTHER: 1})
    found.poll()
    why = "the library went back to 2, from 5"
    assert Came(refused={AT: Refusal(why=why, out_of_range=True), OTHER: Refusal(why=why)}) == found.poll()


def test_poll_that_has_no_answer_in_time_is_refused(tells: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(library, "CLIENT_OPERATION_S_MAX", 0.1)
    asked = tells("{} assigned", "", "{} assigned", "{} polled")
    found = reader()
    found.assign({AT: 4})
    assert Came(refused={AT: Refusal(why="no answer of the library in time")}) == found.poll()
    assert Came() == found.poll()
    assert "3 assign log 0 4" == asked[2]


@pytest.mark.parametrize(
    "told",
    [
        "{} sent SEND_OK 1",
        "{} assigned",
        "{} polled log",
        "{} polled log 0 x YQ==",
        "{} polled log 0 4 =",
        "{} polled log 7 4 YQ==",
        "{} polled other 0 4 YQ==",
        "{} failed",
        "{} failed Error =!=",
        "polled",
    ],
)
def test_consumer_whose_process_tells_nonsense_ends_and_says_so(tells: Start, told: str) -> None:
    tells("{} assigned", told)
    found = reader()
    found.assign({AT: 4})
    with pytest.raises(PreconditionError, match=r"client c: its process told '.*'; expected an answer to quest"):
        found.poll()


# --- its process -----------------------------------------------------------------------------------------------
def test_client_without_a_ledger_or_a_name_server_is_refused(tmp_path: Path) -> None:
    expected = "client p: expected a run with a ledger, which has its process, and a name server"
    with pytest.raises(UsageError, match=expected):
        sent("p.0")
    with closing(Ledger.open(tmp_path, root=tmp_path / "ledgers")) as ledger:
        children = Children(ledger=ledger, folder=tmp_path)
        with pytest.raises(UsageError, match=expected):
            Process("p", "producer", Around(nodes={}, children=children)).ask("poll", within_s=1, expects=())


def test_client_that_was_asked_nothing_has_no_process_to_end() -> None:
    JavaClient().sender(producer(), AROUND).close()
    JavaClient().reader(consumer(), AROUND).close()


def test_process_finds_brokers_by_a_file_of_its_own_and_has_a_small_heap(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found: list[Sequence[str]] = []

    def jvm(name: str, children: Children, argv: Callable[[int, int], Sequence[str]]) -> Jvm:
        found.append(argv(5, 6))
        return cast(Jvm, None)

    monkeypatch.setattr(process, "Jvm", jvm)
    monkeypatch.setattr(process, "find_java", lambda: SimpleNamespace(executable=Path("java")))
    monkeypatch.setattr(process, "class_path", lambda _: (Path("/classes"), Path("/a.jar")))
    children = Children(ledger=cast(Ledger, None), folder=tmp_path / "clients")
    servers = (Address(host="127.0.0.1", port=18009),)
    process.started("p", "producer", Around(nodes=AROUND.nodes, services={"namesrv": servers}, children=children))
    (argv,) = found
    folder = tmp_path / "clients" / "p-conf"
    assert ("Client", "producer", "p", "127.0.0.1:18009", "brokers", "5", "6") == tuple(argv[-7:])
    assert {"-Xmx64m", f"-Djdk.net.hosts.file={folder}/hosts", f"-Duser.home={folder}"} <= {*argv}
    assert f"{folder}:/classes:/a.jar" in argv
    assert hosts_of(AROUND) == (folder / "hosts").read_text()
    assert "127.0.0.1 localhost\n127.0.0.1 a\n127.0.0.2 b\n" == hosts_of(AROUND)


# --- with the real library -------------------------------------------------------------------------------------
@pytest.mark.slow
@needs("rocketmq-5.5.0", "java")
def test_real_library_that_reaches_nobody_sent_nothing_and_showed_nothing_and_ends(tmp_path: Path) -> None:
    with nobody() as address, closing(Ledger.open(tmp_path, root=tmp_path / "ledgers")) as ledger:
        host, _, port = str(address).rpartition(":")
        around = Around(
            nodes=AROUND.nodes,
            services={"namesrv": (Address(host=host, port=int(port)),)},
            children=Children(ledger=ledger, folder=tmp_path / "clients"),
        )
        found: dict[str, Outcome] = {}
        with closing(JavaClient().sender(producer(retries=1, within_ms=60_000), around)) as sender:
            record = Record(place=AT, value="p.0", time_ms=0)
            sender.send([record], Send(parts=(), acks=-1, codec="none"), found.__setitem__)
        assert OpType.FAIL is found["p.0"].type, found
        assert found["p.0"].error.startswith("IllegalStateException: ")
        with closing(JavaClient().reader(consumer(), around)) as reading:
            reading.assign({AT: 0})
            refused = reading.poll().refused
            assert 1 == len(ledger._entries)
        assert str(address) in refused[AT].why
        assert not refused[AT].out_of_range
        assert {} == ledger._entries
