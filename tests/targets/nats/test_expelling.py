"""A member is removed from a stream's group once there is room for another one, and the room is no move."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest

from harness.model import PreconditionError
from targets.nats import operating
from tests.targets.nats.operated import NO_QUORUM, PEER_REMOVE, UPDATE, Cluster, Room


def expelling(cluster: Cluster, nodes: str = "ABCD") -> Room:
    """Return a room with a stream on A, B and C, of so many nodes."""
    room = Room(cluster)
    room.ids = {name: number for number, name in enumerate(nodes)}
    return room


def test_member_is_removed_once_there_is_room_for_another_one() -> None:
    with expelling(Cluster()) as room:
        room.operator.create("log", [["A", "B", "C"]])
        said = room.operator.expel("log", 0, "B")
        assert "B is removed from the group of log-0, and D takes its place" == said
        assert ("A", "C", "D") == room.operator.wanted("log", 0)
    assert [["on-A-B-C-D"]] == [each["placement"]["tags"] for each in room.cluster.of(UPDATE)]
    assert [{"peer": "B"}] == room.cluster.of(PEER_REMOVE)


def test_member_that_was_moved_away_as_room_was_made_is_removed() -> None:
    with expelling(Cluster(not_a_member="B")) as room:
        room.operator.create("log", [["A", "B", "C"]])
        room.cluster.members = ("A", "C", "D")
        room.operator.expel("log", 0, "B")
        assert ("A", "C", "D") == room.operator.wanted("log", 0)


def test_stream_that_was_given_room_and_kept_its_member_has_strayed_if_it_used_the_room(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with expelling(Cluster()) as room:
        room.operator.create("log", [["A", "B", "C"]])
        monkeypatch.setattr(operating, "_LEADER_S_MAX", 0.0)
        room.cluster.refuses = [{"config": {}}, {"success": True}, NO_QUORUM]
        with pytest.raises(PreconditionError, match="temporarily unavailable"):
            room.operator.expel("log", 0, "B")
        assert not room.operator.strayed("log", 0)
        room.cluster.members = ("A", "B", "D")
        assert room.operator.strayed("log", 0)
        room.cluster.members = ("A", "D")
        assert not room.operator.strayed("log", 0)


def test_two_members_that_are_to_be_removed_at_once_are_removed_one_after_the_other() -> None:
    with expelling(Cluster(), "ABCDE") as room:
        room.operator.create("log", [["A", "B", "C"]])
        with ThreadPoolExecutor(2) as pool:
            assert 2 == len([*pool.map(lambda name: room.operator.expel("log", 0, name), "AB")])
        # Who was removed first may take the place of the other.
        assert {"C", "D"} < {*room.operator.wanted("log", 0)} < {*"ABCDE"}


@pytest.mark.parametrize(("nodes", "name"), [("ABC", "B"), ("ABCD", "D")])
def test_nobody_is_removed_for_whom_nobody_comes_or_who_is_none(nodes: str, name: str) -> None:
    with expelling(Cluster(), nodes) as room:
        room.operator.create("log", [["A", "B", "C"]])
        with pytest.raises(PreconditionError, match="expected a member, and a server that can take its place"):
            room.operator.expel("log", 0, name)
    assert [] == room.cluster.of(UPDATE, PEER_REMOVE)


# --- one replica, and all again ----------------------------------------------------------------------------------
def test_stream_is_scaled_to_one_replica_and_is_wanted_where_that_is_seen() -> None:
    config = {"name": "log-0", "num_replicas": 3, "placement": {"tags": ["on-A-B-C"]}}
    with Room(Cluster(configs={"log-0": config}, leaders={("log", 0): "B"}, members=("B",))) as room:
        assert "log-0 is on B alone" == room.operator.shrink("log", 0, "A")
        assert ("B",) == room.operator.wanted("log", 0)
    # Its placement stays: a move and a scale in one request are refused.
    assert [{**config, "num_replicas": 1}] == room.cluster.of(UPDATE)


def test_stream_that_is_not_seen_on_one_server_in_time_says_where_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(operating, "_LEADER_S_MAX", 0.0)
    with Room(Cluster(configs={"log-0": {}}, leaders={("log", 0): "B"})) as room:
        with pytest.raises(PreconditionError, match="it is on A, B, C; expected it on one server"):
            room.operator.shrink("log", 0, "A")
        assert not room.operator.strayed("log", 0)
        room.cluster.members = ("B",)
        vars(room.operator)["_moved"]["log", 0] = ("A", "B", "C")
        assert room.operator.strayed("log", 0)


def test_stream_that_is_on_the_one_that_was_to_lose_it_is_where_it_was_not_asked_to_be() -> None:
    # It was a follower when the request was made, and led when that was granted.
    with Room(Cluster(configs={"log-0": {}}, leaders={("log", 0): "B"}, members=("B",))) as room:
        vars(room.operator)["_moved"]["log", 0] = ("A", "B", "C")
        with pytest.raises(PreconditionError, match="log-0 to one replica: B leads by now"):
            room.operator.shrink("log", 0, "B")
        assert room.operator.strayed("log", 0)
        assert ("A", "B", "C") == room.operator.wanted("log", 0)
