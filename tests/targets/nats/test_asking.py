"""Servers are asked side by side: who says nothing holds up nobody, and nonsense is told apart from silence."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from typing import Any

import pytest

from harness.launch import Address
from harness.model import TargetError
from targets.nats.asking import ANSWER_BYTES_MAX, LEADER, META, Servers, Told
from targets.nats.clients.connection import MESSAGE_BYTES_MAX
from targets.nats.streams import peer_of
from tests.targets.nats.groups import GROUP, NAMES, Node, both, leads, nodes, told
from tests.targets.nats.server import (
    Asked,
    Serve,
    Talk,
    answers,
    hangs_up,
    is_silent,
    knows_nobody,
    nobody,
    server,
    servers,
)


@contextmanager
def asking(addresses: Mapping[str, Address]) -> Iterator[Servers]:
    with closing(Servers(addresses)) as found:
        yield found


@pytest.fixture
def _patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have no server be late on a busy machine."""
    monkeypatch.setattr("targets.nats.asking.PATIENCE_S", 20.0)


@pytest.mark.usefixtures("_patient")
def test_server_says_its_groups_its_members_and_whose_they_are() -> None:
    words = leads("A", 3, "B", "C")
    with servers(nodes(words)) as addresses, asking(addresses) as found:
        expected = both(told(words), told(words, META))
        assert expected == found.all()


@pytest.mark.usefixtures("_patient")
def test_connection_is_kept_and_both_questions_are_asked_each_time() -> None:
    node = Node("A", leads("A", 3))
    with server(node) as served, asking({"A": served.address}) as found:
        for _ in range(3):
            found.all()
        assert (1, 6, 3) == (len(served.talks), node.asked.count("RAFTZ"), node.asked.count("JSZ"))


@pytest.mark.usefixtures("_patient")
def test_stream_with_one_replica_is_led_by_its_server_although_it_has_no_group() -> None:
    with server(Node("A", leads("A", 3), replicas=1)) as served, asking({"A": served.address}) as found:
        one = found.all()["A"].groups[GROUP]
    assert (LEADER, True, peer_of("A"), (peer_of("A"),)) == (one.state, one.is_alone, one.leader, one.members)


@pytest.mark.usefixtures("_patient")
def test_server_that_does_not_yet_know_the_group_of_a_stream_says_nothing_of_it() -> None:
    node = Node("A", leads("A", 3))
    node.streams = {"S-R3F-other": "log-1"}
    with server(node) as served, asking({"A": served.address}) as found:
        assert {GROUP, META} == found.all()["A"].groups.keys()


@pytest.mark.usefixtures("_patient")
def test_server_without_streams_or_jetstream_says_that_it_has_no_groups() -> None:
    starting = answers({"server": {"name": "A"}, "error": {"code": 503, "description": "not ready"}})
    for serve in (starting, answers({"server": {}, "data": {}}), answers({"data": None}), answers({})):
        with server(serve) as served, asking({"A": served.address}) as found:
            assert {"A": Told()} == found.all()


@pytest.mark.usefixtures("_patient")
@pytest.mark.parametrize("serve", [hangs_up, knows_nobody])
def test_server_that_ends_is_missing_and_is_asked_again_on_a_new_connection(serve: Serve) -> None:
    node, ends = Node("A", leads("A", 3)), [True]

    def answered(talk: Talk, asked: Asked) -> None:
        (serve if ends else node)(talk, asked)

    with server(answered) as served, asking({"A": served.address}) as found:
        assert {} == found.all()
        ends.clear()
        assert {"A"} == {*found.all()}
        assert 2 == len(served.talks)


@pytest.mark.usefixtures("_patient")
def test_server_that_refuses_is_missing_and_the_others_are_there() -> None:
    words = leads("A", 3, "B")
    with nobody() as gone, servers(nodes(words)) as addresses, asking({"C": gone, **addresses}) as found:
        assert ["A", "B"] == sorted(found.all())


def test_server_that_hangs_is_missing_and_the_others_are_there_at_every_look() -> None:
    words = leads("A", 3, "B")
    serves: dict[str, Serve] = {"hung": is_silent, **nodes(words)}
    with servers(serves) as addresses, asking(addresses) as found:
        looks = [found.all() for _ in range(4)]
        assert all("hung" not in look for look in looks)
        # A machine may be too busy for one look, but not for each.
        assert any({"A", "B"} == {*look} for look in looks)


@pytest.mark.usefixtures("_patient")
def test_servers_that_come_later_are_asked_side_by_side_too() -> None:
    """The first look may come before there is a server."""
    words = leads("A", 3, "B", "C")
    gate = threading.Barrier(len(words), timeout=20)

    def together(node: Node) -> Serve:
        def serve(talk: Talk, asked: Asked) -> None:
            if not asked.body:
                gate.wait()
            node(talk, asked)

        return serve

    addresses: dict[str, Address] = {}
    with (
        servers({name: together(node) for name, node in nodes(words).items()}) as there,
        asking(addresses) as found,
    ):
        assert {} == found.all()
        addresses.update(there)
        assert {*NAMES} == {*found.all()}


@pytest.mark.usefixtures("_patient")
@pytest.mark.parametrize(
    ("said", "says"),
    [
        (b"no JSON", "RAFTZ answered b'no JSON'"),
        (b"", "RAFTZ answered b''"),
        (b"[]", r"RAFTZ answered b'\[\]'"),
        (b"[" * 100_000, r"RAFTZ answered b'\[\["),
        (b"\xff" * 999, "RAFTZ answered b'"),
        ({"data": [1]}, r"RAFTZ answered \[1\]"),
        ({"data": {"$G": 7}}, "RAFTZ answered {'"),
        ({"data": {"$G": {GROUP: 7}}}, "RAFTZ answered {'"),
        ({"data": {"$G": {GROUP: {"state": LEADER, "id": "x"}}}}, "RAFTZ answered {'"),
        ({"data": {"$G": {GROUP: {"state": LEADER, "id": "x", "term": "high"}}}}, "RAFTZ answered {'"),
        ({"data": {"$G": {GROUP: {"state": LEADER, "id": "x", "term": 1, "peers": 7}}}}, "RAFTZ answered {'"),
    ],
)
def test_answer_that_no_server_gives_is_an_error_of_the_target_in_one_line(said: object, says: str) -> None:
    with (
        server(answers(said)) as served,
        asking({"A": served.address}) as found,
        pytest.raises(TargetError, match=f"^{says}.*; expected what a server of NATS answers$") as raised,
    ):
        found.all()
    assert len(str(raised.value)) < 400


@pytest.mark.usefixtures("_patient")
@pytest.mark.parametrize(
    "data",
    [
        [1],
        {"account_details": 7},
        {"account_details": [7]},
        {"account_details": [{"stream_detail": [7]}]},
        {"account_details": [{"stream_detail": [{"stream_raft_group": GROUP}]}]},
    ],
)
def test_nonsense_about_streams_is_an_error_of_the_target(data: object) -> None:
    node = Node("A", leads("A", 3))

    def serve(talk: Talk, asked: Asked) -> None:
        talk.tell(asked, {"data": data if asked.what == "JSZ" else node.answer(asked)})

    with (
        server(serve) as served,
        asking({"A": served.address}) as found,
        pytest.raises(TargetError, match=r"^JSZ answered .*; expected what a server of NATS answers$"),
    ):
        found.all()


@pytest.mark.usefixtures("_patient")
def test_answer_that_is_too_long_is_an_error_of_the_target() -> None:
    with (
        server(answers(b"x" * (ANSWER_BYTES_MAX + 1))) as served,
        asking({"A": served.address}) as found,
        pytest.raises(TargetError, match=f"RAFTZ of {ANSWER_BYTES_MAX + 1} bytes; expected at most"),
    ):
        found.all()


@pytest.mark.usefixtures("_patient")
@pytest.mark.parametrize("said", [str(MESSAGE_BYTES_MAX + 1), str(2**40), "9" * 5000, "x", ""])
def test_server_that_announces_more_than_there_can_be_is_missing(said: str) -> None:
    def serve(talk: Talk, asked: Asked) -> None:
        talk.send(f"MSG {asked.reply} 1 {said}\r\n".encode(), bytes(1000))

    with server(serve) as served, asking({"A": served.address}) as found:
        assert {} == found.all()


@pytest.mark.usefixtures("_patient")
def test_what_a_server_says_later_is_heard_at_a_later_look(monkeypatch: pytest.MonkeyPatch) -> None:
    node, gate = Node("A", leads("A", 3)), threading.Event()

    def serve(talk: Talk, asked: Asked) -> None:
        gate.wait(20)
        node(talk, asked)

    with server(serve) as served, asking({"A": served.address}) as found:
        with monkeypatch.context() as late:
            late.setattr("targets.nats.asking.wait", lambda futures, _within_s: _Done(futures))
            assert {} == found.all()
        gate.set()
        assert {"A"} == {*found.all()}
        assert ["RAFTZ", "RAFTZ", "JSZ"] == node.asked


class _Done:
    """What is done already."""

    def __init__(self, futures: Any) -> None:
        self.done = {each for each in futures if each.done()}


def test_end_without_a_question_and_a_second_end_are_nothing() -> None:
    found = Servers({})
    found.close()
    found.close()


@pytest.mark.usefixtures("_patient")
@pytest.mark.parametrize(("state", "behind"), [(LEADER, ("B", "C")), ("FOLLOWER", "")])
def test_member_says_how_far_its_log_goes_and_a_leader_who_is_behind(state: str, behind: tuple[str, ...]) -> None:
    node = Node("A", {"A": (state, 3, "A")})
    node.more = {"pindex": 12, "committed": 6, "wal": {"first_seq": 5, "last_seq": 12}}
    node.replicated = {"B": 11, "D": 12}
    with server(node) as served, asking({"A": served.address}) as found:
        one = found.all()["A"].groups[GROUP]
    # Who never answered has nothing of it.
    assert (12, 6, tuple(sorted(map(peer_of, behind)))) == (one.last, one.committed, one.behind)
    assert 5 == one.first
