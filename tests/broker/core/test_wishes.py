"""What an operator asks for: written beside what others ask, read back whole, and read as far as it can be."""

from __future__ import annotations

import json

import pytest

from targets.broker.core.messages import TopicPartition
from targets.broker.core.wishes import Wishes, decode_wishes, encode_wishes, take_out
from targets.broker.core.zookeeper import ZkDelete, ZkNode, ZkSet

T0, T1, T2 = (TopicPartition("t", number) for number in range(3))
ALL = Wishes(elections={T0: 2}, moves={T1: (2, 3)}, leaving=frozenset({1, 4}), removals=(T2,))
PLACE = {"topic": "t", "partition": 0}


@pytest.mark.parametrize("wishes", [ALL, Wishes(), Wishes(moves={T0: (1,)}), Wishes(removals=(T1, T2))])
def test_wishes_are_read_as_they_were_written(wishes: Wishes) -> None:
    assert wishes == decode_wishes(encode_wishes(wishes))
    assert (wishes != Wishes()) is bool(wishes)


def test_what_others_ask_for_stays_and_the_newest_of_one_partition_counts() -> None:
    more = Wishes(elections={T0: 3}, moves={T0: (1,)}, leaving=frozenset({2}), removals=(T1, T2))
    expected = Wishes(
        elections={T0: 3}, moves={T0: (1,), T1: (2, 3)}, leaving=frozenset({1, 2, 4}), removals=(T1, T2)
    )
    assert expected == decode_wishes(more.beside(encode_wishes(ALL)))
    assert ALL == decode_wishes(ALL.beside(None))


@pytest.mark.parametrize("data", [None, b"", b"[]", b"3", b"null", b"{", b"\xff", b'"elections"', b"[" * 100_000])
def test_node_that_holds_something_else_asks_for_nothing(data: bytes | None) -> None:
    assert Wishes() == decode_wishes(data)


@pytest.mark.parametrize(
    ("kind", "wrong"),
    [
        ("elections", None),
        ("elections", [{"topic": "t"}]),
        ("elections", [{**PLACE, "leader": "two"}]),
        ("moves", 3),
        ("moves", [{**PLACE, "replicas": [-1]}]),
        ("leaving", [-1]),
        ("leaving", "x"),
        ("removals", {"t": 0}),
        ("removals", [{"topic": "t", "partition": "x"}]),
    ],
)
def test_kind_that_cannot_be_read_is_none_and_the_others_are_read(kind: str, wrong: object) -> None:
    raw = json.loads(encode_wishes(ALL))
    found = decode_wishes(json.dumps({**raw, kind: wrong}).encode())
    assert not getattr(found, kind)
    others = [each for each in ("elections", "moves", "leaving", "removals") if each != kind]
    assert [getattr(ALL, each) for each in others] == [getattr(found, each) for each in others]


def test_what_is_done_is_taken_out_and_the_node_goes_with_the_last() -> None:
    asked = ZkNode(data=encode_wishes(ALL), version=7, owner=0, czxid=1)
    left = take_out(asked, (T1,))
    assert isinstance(left, ZkSet)
    assert (7, Wishes(elections={T0: 2}, leaving=frozenset({1, 4}), removals=(T1,))) == (
        left.version,
        decode_wishes(left.data),
    )
    alone = ZkNode(data=encode_wishes(Wishes(moves={T1: (2, 3)}, removals=(T2,))), version=3, owner=0, czxid=1)
    assert isinstance(take_out(alone, ()), ZkDelete)
