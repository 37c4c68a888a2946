"""What a client knows after each answer of a broker: it is acknowledged, certainly not written, or unknown."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress

import pytest

from harness.clients.plain_nodes import PlainNodes
from harness.clients.plain_work import produced
from harness.model import OpType
from harness.target.log_client import Batches, Closes, Leads, NotNow, Refused, Serves
from harness.workload.plan import Place
from targets.rocketmq.clients import client as module
from targets.rocketmq.clients.client import RocketClient
from targets.rocketmq.clients.connection import AnswerError
from targets.rocketmq.target import TARGET
from tests.targets.rocketmq.records import Says, log_of, record
from tests.targets.rocketmq.server import (
    Asked,
    Serve,
    Served,
    Talk,
    answers,
    by_code,
    epoch_cache,
    frame,
    hangs_up,
    in_turn,
    is_silent,
    nobody,
    says,
    server,
)

AT = Place("log", 2)
PATIENCE_S = 20.0
LITTLE_S = 0.05
SEND_OK = answers(fields={"msgId": "x", "queueId": "2", "queueOffset": "41"})
TOO_FEW = "in-sync replicas not enough"
NOT_FOUND, AGAIN, MOVED = 19, 20, 21
LEADS, FOLLOWS = (answers(body=epoch_cache(number, 627, (1, 0))) for number in (0, 2))


@pytest.fixture(autouse=True)
def _patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have no broker be late on a busy machine when it is asked whether it leads."""
    monkeypatch.setattr(module, "ASKED_S", PATIENCE_S)


@contextmanager
def opened(serve: Serve, patience_s: float = PATIENCE_S) -> Iterator[tuple[Served, RocketClient]]:
    with server(serve) as served:
        client = RocketClient(str(served.address), AT, patience_s)
        try:
            yield served, client
        finally:
            client.close()


def sends(serve: Serve, patience_s: float = PATIENCE_S) -> int:
    with opened(serve, patience_s) as (_, client):
        return client.produce(b"m1.0")


def outcome(serve: Serve, patience_s: float = PATIENCE_S) -> OpType:
    """Return what the history has of a value that is sent."""
    with opened(serve, patience_s) as (_, client):
        nodes = PlainNodes(lambda *_: client, lambda: [client.address])
        return produced(nodes, AT, ["m1.0"], 0.0).type


# --- produce ---------------------------------------------------------------------------------------------------
def test_value_is_sent_once_for_its_queue_and_its_offset_comes_back() -> None:
    with opened(SEND_OK) as (served, client):
        assert 41 == client.produce("m1.0 ü".encode())
    (asked,) = served.asked
    assert ("SendMessage", "m1.0 ü".encode()) == (asked.what, asked.body)
    fields = {"topic": "log", "queueId": "2", "batch": "false", "sysFlag": "0", "reconsumeTimes": "0"}
    assert fields == {name: asked.fields[name] for name in fields}
    assert asked.fields["bornTimestamp"].isdecimal()


def test_one_connection_asks_again_and_again() -> None:
    with opened(SEND_OK) as (served, client):
        assert [41, 41, 41] == [client.produce(b"m") for _ in range(3)]
        assert (1, [1, 2, 3]) == (len(served.talks), [each.number for each in served.asked])


@pytest.mark.parametrize(
    "code", [10, 11, 12], ids=["FLUSH_DISK_TIMEOUT", "SLAVE_NOT_AVAILABLE", "FLUSH_SLAVE_TIMEOUT"]
)
def test_record_that_is_written_and_not_acknowledged_is_no_refusal(code: int) -> None:
    serve = answers(code, {"queueOffset": "41"})
    with pytest.raises(AnswerError, match=f"^code {code}: ") as raised:
        sends(serve)
    assert not isinstance(raised.value, Refused)
    assert OpType.INFO is outcome(serve)


@pytest.mark.parametrize("remark", [TOO_FEW, f"x {TOO_FEW} y"])
def test_too_few_replicas_are_a_refusal_for_now(remark: str) -> None:
    with pytest.raises(NotNow, match=f"^code 1: .*{TOO_FEW}"):
        sends(answers(1, remark=remark))
    assert OpType.FAIL is outcome(answers(1, remark=remark))


@pytest.mark.parametrize("code", [2, 3, 13, 14, 16, 17, 26])
def test_code_of_what_was_not_begun_is_a_refusal(code: int) -> None:
    with pytest.raises(Refused, match=f"^code {code}: why$") as raised:
        sends(answers(code, remark="why"))
    assert not isinstance(raised.value, NotNow)
    assert OpType.FAIL is outcome(answers(code, remark="why"))


@pytest.mark.parametrize("code", [-1, 1, 4, 15, 19, 208, 215, 501, 2017, 9999])
@pytest.mark.parametrize("remark", ["why", "create mapped file failed, server is busy or broken.", None])
def test_any_other_code_leaves_it_unknown(code: int, remark: str | None) -> None:
    serve = answers(code, remark=remark)
    with pytest.raises(AnswerError, match=f"^code {code}: ") as raised:
        sends(serve)
    assert not isinstance(raised.value, Refused)
    assert OpType.INFO is outcome(serve)


def test_remark_of_too_few_replicas_counts_with_its_code_alone() -> None:
    assert OpType.INFO is outcome(answers(12, remark=TOO_FEW))


@pytest.mark.parametrize(
    "fields", [None, {}, {"queueId": "2"}, {"queueOffset": "x"}, {"queueOffset": None}, {"queueOffset": "-1"}]
)
def test_success_without_an_offset_acknowledges_nothing(fields: dict[str, object] | None) -> None:
    assert OpType.INFO is outcome(answers(fields=fields))


@pytest.mark.parametrize(
    "said",
    [
        b"\xff" * 100,
        b"HTTP/1.1 400 Bad Request\r\n\r\n",
        (3 * 1024**3).to_bytes(4) + bytes(100),
        b"\0\0\0\x0a\0\0\0\x07abcdef",
        frame(b"no JSON"),
        frame(b"{}"),
    ],
    ids=["bytes", "http", "3 GB", "a head beyond its frame", "no JSON", "no command"],
)
def test_answer_that_is_none_leaves_it_unknown(said: bytes) -> None:
    with pytest.raises(OSError, match=r"^answer of ") as raised:
        sends(says(said))
    assert not isinstance(raised.value, ConnectionRefusedError)
    assert OpType.INFO is outcome(says(said))


def test_broker_that_hangs_up_or_is_silent_leaves_it_unknown() -> None:
    with pytest.raises(ConnectionError, match=r"hung up|reset"):
        sends(hangs_up)
    with pytest.raises(TimeoutError):
        sends(is_silent, LITTLE_S)
    assert OpType.INFO is outcome(is_silent, LITTLE_S)


def test_connection_that_is_refused_is_a_refusal_and_is_tried_again() -> None:
    with nobody() as address:
        client = RocketClient(str(address), AT, PATIENCE_S)
        for _ in range(2):
            with pytest.raises(Refused, match=f"^{address}: .*refused; expected a connection$"):
                client.produce(b"m")
        with pytest.raises(Refused):
            client.read(0)
        assert (False, False) == (client.serves(), client.leads())
        assert not TARGET.clients.serves(str(address))
        assert not TARGET.clients.leads(str(address), "log", 2)


def test_connection_after_anything_but_an_answer_is_a_new_one() -> None:
    """The answer that did not come in time must not be taken for that of the next request."""
    serve = in_turn(is_silent, hangs_up, says(frame(b"{}")), SEND_OK, answers(12), SEND_OK)
    with opened(serve) as (served, client):
        client.patience_s = LITTLE_S
        with pytest.raises(TimeoutError):
            client.produce(b"m")
        client.patience_s = PATIENCE_S
        for _ in range(2):
            with pytest.raises(OSError, match=r"hung up|reset|answer of"):
                client.produce(b"m")
        assert (41, 4) == (client.produce(b"m"), len(served.talks))
        # An answer of any code is one.
        with pytest.raises(AnswerError):
            client.produce(b"m")
        assert (41, 4) == (client.produce(b"m"), len(served.talks))


# --- read ------------------------------------------------------------------------------------------------------
class Pulls:
    """A broker that leads, and answers each pull with the next of these."""

    def __init__(self, *pulls: Serve) -> None:
        self._pulls = iter(pulls)
        self.firsts: list[int] = []

    def __call__(self, talk: Talk, asked: Asked) -> None:
        by_code({"GetEpochCache": LEADS, "PullMessage": self._pulled})(talk, asked)

    def _pulled(self, talk: Talk, asked: Asked) -> None:
        self.firsts.append(int(asked.fields["queueOffset"]))
        next(self._pulls)(talk, asked)


def pulled(body: bytes = b"", following: int | None = None, code: int = 0) -> Serve:
    fields = {} if following is None else {"nextBeginOffset": str(following), "minOffset": "0", "maxOffset": "9"}
    return answers(code, fields, body)


def found(serve: Pulls, first: int = 0) -> list[tuple[int, bytes]]:
    with opened(serve) as (_, client):
        return [(each.offset, each.value) for each in client.read(first)]


def test_read_pulls_round_after_round_until_nothing_is_found() -> None:
    pulls = Pulls(
        pulled(log_of(b"m0", b"m1"), 2),
        pulled(log_of(b"m2", at=500, offset=2), 3),
        pulled(following=3, code=NOT_FOUND),
    )
    assert [(0, b"m0"), (1, b"m1"), (2, b"m2")] == found(pulls)
    assert [0, 2, 3] == pulls.firsts


def test_read_asks_for_its_queue_from_its_offset_and_neither_waits_nor_commits() -> None:
    with opened(Pulls(pulled(following=7, code=NOT_FOUND))) as (served, client):
        assert [] == client.read(7)
    asked = served.asked[-1]
    fields = {"topic": "log", "queueId": "2", "queueOffset": "7", "suspendTimeoutMillis": "0", "subscription": "*"}
    assert fields == {name: asked.fields[name] for name in fields}
    # Of the flags: 1 commits, 2 waits, 4 says what is wanted.
    assert 4 == int(asked.fields["sysFlag"]) & 7


def test_records_before_the_offset_are_left_out() -> None:
    assert [(2, b"m2")] == found(Pulls(pulled(log_of(b"m1", b"m2", offset=1), 3), pulled(code=NOT_FOUND)), 2)


def test_record_that_an_index_shows_again_is_left_out() -> None:
    """An index that lacks an entry of a disk that failed shows each later record at an earlier place."""
    pulls = Pulls(
        pulled(log_of(b"m5", b"m6", offset=5) + log_of(b"m6", at=500, offset=6), 7),
        pulled(log_of(b"m6", b"m7", at=500, offset=6), 9),
        pulled(code=NOT_FOUND),
    )
    assert [(5, b"m5"), (6, b"m6"), (7, b"m7")] == found(pulls, 4)


@pytest.mark.parametrize("code", [AGAIN, MOVED])
def test_read_goes_on_where_the_broker_says(code: int) -> None:
    pulls = Pulls(pulled(following=5, code=code), pulled(log_of(b"m5", offset=5), 6), pulled(code=NOT_FOUND))
    assert ([(5, b"m5")], [0, 5, 6]) == (found(pulls), pulls.firsts)


@pytest.mark.parametrize(
    "last",
    [pulled(), pulled(following=0), pulled(code=AGAIN), pulled(following=0, code=MOVED), pulled(code=NOT_FOUND)],
)
def test_broker_that_does_not_go_forward_is_asked_no_more(last: Serve) -> None:
    pulls = Pulls(last)
    assert ([], 1) == (found(pulls), len(pulls.firsts))


def test_broker_that_always_goes_forward_is_not_asked_without_end() -> None:
    pulls = Pulls(*(pulled(following=number, code=MOVED) for number in range(1, 1000)))
    assert [] == found(pulls)
    assert len(pulls.firsts) < 100


def test_read_brings_so_many_records_and_no_more() -> None:
    bodies = [log_of(*[b"m"] * 200, at=1, offset=200 * number) for number in range(9)]
    pulls = Pulls(*(pulled(body, 200 * number + 200) for number, body in enumerate(bodies)))
    assert [*range(600)] == [offset for offset, _ in found(pulls)]


def test_broker_that_says_that_it_does_not_lead_is_not_read() -> None:
    says_it = r": it says that it does not lead; expected one that does$"
    with opened(FOLLOWS) as (served, client), pytest.raises(Refused, match=says_it):
        client.read(0)
    assert ["GetEpochCache"] == [each.what for each in served.asked]


@pytest.mark.parametrize("serve", [hangs_up, answers(1), answers(body=b"no JSON")])
def test_broker_that_does_not_say_whether_it_leads_is_not_read(serve: Serve) -> None:
    with opened(serve) as (_, client), pytest.raises(Refused, match="does not lead"):
        client.read(0)


@pytest.mark.parametrize(("code", "error"), [(1, AnswerError), (14, Refused), (16, Refused), (17, Refused)])
def test_pull_that_is_no_success_is_an_error(code: int, error: type[Exception]) -> None:
    with pytest.raises(error, match=f"^code {code}: "):
        found(Pulls(pulled(log_of(b"m0"), 1), answers(code)))


@pytest.mark.parametrize(
    "serve", [hangs_up, says(b"\xff" * 50), says(frame(b"{}")), answers(fields={"nextBeginOffset": "x"})]
)
def test_pull_whose_answer_is_none_is_an_error_of_the_system(serve: Serve) -> None:
    with pytest.raises((OSError, ValueError), match=r"hung up|reset|answer of|invalid literal"):
        found(Pulls(serve))


@pytest.mark.parametrize("body", [b"\xff" * 300, bytes(300), log_of(b"m0") + b"\xff" * 50, log_of(b"m0")[:-1]])
def test_body_of_a_pull_may_be_anything(body: bytes) -> None:
    with suppress(OSError):  # no record: then what was read is unknown
        for offset, value in found(Pulls(pulled(body, 1), pulled(code=NOT_FOUND))):
            assert (0, b"m0") == (offset, value)


def test_record_with_another_checksum_is_never_handed_over() -> None:
    body = log_of(b"m0") + record(b"m1", 1, 1, says=Says(crc=7))
    with pytest.raises(OSError, match="its body has another checksum than it says"):
        found(Pulls(pulled(body, 2), pulled(code=NOT_FOUND)))


# --- what a broker says of itself ------------------------------------------------------------------------------
def test_calls_are_those_that_plain_clients_look_for() -> None:
    client = RocketClient("127.0.0.1:1", AT, 1.0)
    for protocol in (Closes, Leads, Serves):
        assert isinstance(client, protocol)
    assert not isinstance(client, Batches)
    client.close()
    client.close()
    assert TARGET.clients.creates


@pytest.mark.parametrize(
    ("serve", "serves", "leads"),
    [
        (LEADS, True, True),
        (FOLLOWS, True, False),
        (answers(body=epoch_cache(0, 0)), True, True),
        (answers(1), False, False),
        (answers(body=b"{}"), False, False),
        (answers(body=b"[]"), False, False),
        (hangs_up, False, False),
        (says(b"\xff" * 50), False, False),
    ],
)
def test_broker_serves_and_leads_as_it_says_itself(serve: Serve, serves: bool, leads: bool) -> None:
    with opened(serve) as (served, client):
        assert (serves, leads) == (
            TARGET.clients.serves(client.address),
            TARGET.clients.leads(client.address, "log", 2),
        )
        assert (serves, leads) == (client.serves(), client.leads())
    assert {"GetEpochCache"} == {each.what for each in served.asked}


def test_broker_that_is_silent_neither_serves_nor_leads() -> None:
    with opened(is_silent, LITTLE_S) as (_, client):
        assert (False, False) == (client.serves(), client.leads())
