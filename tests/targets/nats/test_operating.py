"""What an operator asks a leader for: streams on their nodes, elections, moves, and the meta group's leader."""

from __future__ import annotations

import pytest

from harness.model import PreconditionError
from targets.nats import operating
from targets.nats.operating import NatsOperator
from tests.targets.nats.operated import (
    CREATE,
    META_STEPDOWN,
    NO_QUORUM,
    NO_SPACE,
    STEPDOWN,
    UPDATE,
    Cluster,
    Room,
    run_of,
)
from tests.targets.nats.server import (
    Serve,
    hangs_up,
    is_silent,
    knows_nobody,
    nobody,
    servers,
)


# --- streams ---------------------------------------------------------------------------------------------------
def test_stream_is_made_on_exactly_its_nodes_and_the_first_of_them_leads() -> None:
    with Room(Cluster()) as room:
        assert "streams of log on B A C" == room.operator.create("log", [["B", "A", "C"]])
    made = {
        "name": "log-0",
        "subjects": ["log-0"],
        "num_replicas": 3,
        "storage": "file",
        "placement": {"tags": ["on-A-B-C"]},
    }
    assert [made] == room.cluster.of(CREATE)
    assert [{"placement": {"preferred": "B"}}] == room.cluster.of(STEPDOWN)
    assert {("log", 0): "B"} == room.cluster.leaders
    # Each is asked of the account of all users.
    assert {""} == {user for *_, user in room.cluster.asked}


def test_every_partition_is_a_stream_of_its_own_and_one_that_leads_already_is_not_asked() -> None:
    with Room(Cluster()) as room:
        room.operator.create("log", [["A", "B"], ["C"], ["B", "C", "A"]])
    told = [(each["name"], each["num_replicas"], *each["placement"]["tags"]) for each in room.cluster.of(CREATE)]
    assert [("log-0", 2, "on-A-B"), ("log-1", 1, "on-C"), ("log-2", 3, "on-A-B-C")] == told
    assert {("log", 0): "A", ("log", 1): "C", ("log", 2): "B"} == room.cluster.leaders
    assert 2 == len(room.cluster.of(STEPDOWN))


def test_stream_is_asked_for_again_until_it_is_made_and_led_by_its_first() -> None:
    elected = iter(["C", "B", "A"])
    cluster = Cluster(refuses=[NO_QUORUM, NO_QUORUM], elects=lambda _: next(elected))
    with Room(cluster) as room:
        room.operator.create("log", [["A", "B", "C"]])
    assert 3 == len(room.cluster.of(CREATE))
    assert {("log", 0): "A"} == room.cluster.leaders


def test_stream_that_is_not_made_in_time_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(operating, "_LEADER_S_MAX", 0.0)
    with Room(Cluster(refuses=[NO_SPACE] * 9)) as room, pytest.raises(PreconditionError) as raised:
        room.operator.create("log", [["A"]])
    assert "create log-0: refused: 'no suitable peers for placement'" == str(raised.value)


def test_stream_whose_first_node_does_not_come_to_lead_says_whose(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(operating, "_LEADER_S_MAX", 0.0)
    with Room(Cluster(elects=lambda _: "C")) as room, pytest.raises(PreconditionError) as raised:
        room.operator.create("log", [["A", "B"]])
    assert "create log-0: A does not lead it; expected it to" == str(raised.value)


def test_streams_of_removed_partitions_are_deleted_and_made_again_where_they_are_added() -> None:
    with Room(Cluster()) as room:
        room.operator.create("log", [["A"], ["B"], ["A"]])
        assert "deleted log-1, log-2" == room.operator.remove("log", [1, 2])
        assert {("log", 0)} == {*room.cluster.leaders}
        assert ["A"] == [*room.operator.wanted("log", 0)]
        assert () == room.operator.wanted("log", 1)
        room.operator.add("log", 1, [["B", "A"], ["A"]])
    assert {("log", 0): "A", ("log", 1): "B", ("log", 2): "A"} == room.cluster.leaders
    assert ["on-A", "on-B", "on-A", "on-A-B", "on-A"] == [
        each["placement"]["tags"][0] for each in room.cluster.of(CREATE)
    ]


def test_stream_that_is_not_deleted_says_why() -> None:
    with Room(Cluster(refuses=[NO_QUORUM])) as room, pytest.raises(PreconditionError) as raised:
        room.operator.remove("log", [1])
    assert "delete log-1: refused: 'JetStream system temporarily unavailable'" == str(raised.value)


def test_stream_is_moved_by_the_tag_of_its_new_nodes_and_all_else_of_it_stays() -> None:
    config = {"name": "log-1", "subjects": ["log-1"], "num_replicas": 3, "storage": "file", "max_msgs": 7}
    cluster = Cluster(configs={"log-1": {**config, "placement": {"tags": ["on-A-B-C"]}}})
    with Room(cluster) as room:
        assert "log-1 is to be on D, B" == room.operator.move("log", 1, ["D", "B"])
    assert [{**config, "num_replicas": 2, "placement": {"tags": ["on-B-D"]}}] == cluster.of(UPDATE)


def test_move_is_asked_for_again_while_another_one_goes_on() -> None:
    going_on = {"error": {"code": 400, "description": "stream move already in progress"}}
    cluster = Cluster(refuses=[{"config": {"name": "log-0"}}, going_on, going_on], configs={"log-0": {}})
    with Room(cluster) as room:
        assert "log-0 is to be on B, C" == room.operator.move("log", 0, ["B", "C"])
    assert [{"name": "log-0", "num_replicas": 2, "placement": {"tags": ["on-B-C"]}}] * 3 == cluster.of(UPDATE)


# --- elections -------------------------------------------------------------------------------------------------
def test_election_names_the_node_that_is_preferred() -> None:
    with Room(Cluster(leaders={("log", 3): "A"})) as room:
        assert "the leader of log-3 stepped down for B" == room.operator.elect("log", 3, "B")
        assert [("A", f"{STEPDOWN}.log-3", {"placement": {"preferred": "B"}}, "")] == room.cluster.asked
        assert "B leads log-3 already" == room.operator.elect("log", 3, "B")
        assert 1 == len(room.cluster.asked)


def test_leader_steps_down_for_nobody_in_particular() -> None:
    with Room(Cluster(leaders={("log", 3): "A"}, elects=lambda preferred: preferred or "B")) as room:
        room.operator.step_down("log", 3)
    assert {("log", 3): "B"} == room.cluster.leaders
    assert [{}] == room.cluster.of(STEPDOWN)


def test_stream_without_a_leader_is_asked_all_the_same() -> None:
    with Room(Cluster(leaders={("log", 0): None})) as room:
        room.operator.elect("log", 0, "B")
        room.operator.elect("log", 7, "B")
    assert [f"{STEPDOWN}.log-0", f"{STEPDOWN}.log-7"] == [subject for _, subject, *_ in room.cluster.asked]


# --- the meta group --------------------------------------------------------------------------------------------
def test_appointed_node_leads_the_meta_group_then() -> None:
    with Room(Cluster()) as room:
        assert room.operator.appoints
        assert "B leads the meta group" == room.operator.appoint("B")
        assert "B leads the meta group" == room.operator.appoint("B")
    assert [("A", META_STEPDOWN, {"placement": {"preferred": "B"}}, "sys")] == room.cluster.asked


def test_node_is_appointed_again_until_the_metadata_name_it() -> None:
    elected = iter(["C", None, "A"])
    cluster = Cluster(refuses=[NO_QUORUM], elects=lambda preferred: next(elected, preferred))

    def controller() -> str | None:
        # An election ends by itself.
        cluster.controller = cluster.controller or "A"
        return cluster.controller

    with Room(cluster) as room:
        vars(room.operator)["_metadata"].controller = controller
        assert "B leads the meta group" == room.operator.appoint("B")
    assert ({"placement": {"preferred": "B"}}, True) == (cluster.of(META_STEPDOWN)[-1], len(cluster.asked) > 3)


def test_nobody_is_asked_while_there_is_no_meta_leader(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(operating, "_LEADER_S_MAX", 0.02)
    with Room(Cluster(controller=None)) as room, pytest.raises(PreconditionError) as raised:
        room.operator.appoint("B")
    assert ([], "appoint B: the meta leader is None") == (room.cluster.asked, str(raised.value))


def test_node_that_does_not_come_to_lead_the_meta_group_says_who_does(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(operating, "_LEADER_S_MAX", 0.0)
    with Room(Cluster(elects=lambda _: "C")) as room, pytest.raises(PreconditionError) as raised:
        room.operator.appoint("B")
    assert "appoint B: the meta leader is C" == str(raised.value)


def test_deposed_meta_leader_that_stepped_down_for_a_dead_server_is_waited_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The others know of no other leader until they hold an election, which takes up to 9 s."""
    waited: list[float] = []
    monkeypatch.setattr(operating, "until", lambda _, within_s: waited.append(within_s))
    with Room(Cluster()) as room:
        room.operator.depose()
    (within_s,) = waited
    assert within_s > 9


def test_deposed_meta_leader_steps_down_for_anybody() -> None:
    with Room(Cluster()) as room:
        assert "A stepped down" == room.operator.depose()
        assert "the meta leader stepped down" == room.operator.depose()
    assert [(META_STEPDOWN, {}, "sys")] * 2 == [tuple(each[1:]) for each in room.cluster.asked]


def test_deposed_office_is_seen_gone_before_the_request_returns() -> None:
    offices = iter(["of A", "of A", "of A", "of B"])
    with Room(Cluster()) as room:
        vars(room.operator)["_metadata"].office = lambda: next(offices)
        room.operator.depose()
    assert [] == list(offices)


def test_stream_is_wanted_where_it_was_moved_to_last_else_where_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(operating, "_MOVING_S_MAX", 0.0)
    with Room(Cluster()) as room:
        room.operator.create("log", [["A", "B", "C"], ["A", "B", "C"]])
        assert [("A", "B", "C")] * 2 == [room.operator.wanted("log", number) for number in (0, 1)]
        room.operator.move("log", 0, ["A", "B", "D"])
        assert [("A", "B", "D"), ("A", "B", "C")] == [room.operator.wanted("log", number) for number in (0, 1)]
        room.cluster.refuses = [{"config": {}}, NO_SPACE]
        with pytest.raises(PreconditionError, match="no suitable peers"):
            room.operator.move("log", 0, ["B", "C", "D"])
        assert ("A", "B", "D") == room.operator.wanted("log", 0)


def test_stream_that_is_moved_by_a_refused_request_has_strayed_until_it_is_moved_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The answer may be that of a leader that is none any more, and the request is granted later."""
    monkeypatch.setattr(operating, "_MOVING_S_MAX", 0.0)
    with Room(Cluster()) as room:
        room.operator.create("log", [["A", "B", "C"]])
        there = ("A", "B", "C")
        vars(room.operator)["_metadata"].assignment = lambda _: {0: there}
        room.cluster.refuses = [{"config": {}}, NO_QUORUM]
        with pytest.raises(PreconditionError, match="temporarily unavailable"):
            room.operator.move("log", 0, ["A", "B", "D"])
        assert not room.operator.strayed("log", 0)
        there = ("D", "B", "A")
        assert room.operator.strayed("log", 0)
        assert ("A", "B", "C") == room.operator.wanted("log", 0)
        room.operator.move("log", 0, ["A", "B", "C"])
        assert not room.operator.strayed("log", 0)


# --- what goes wrong -------------------------------------------------------------------------------------------
def refused(room: Room) -> str:
    with pytest.raises(PreconditionError) as raised:
        room.operator.elect("log", 0, "B")
    text = str(raised.value)
    assert (1, True) == (len(text.splitlines()), len(text) < 400)
    return text


@pytest.mark.parametrize(
    ("said", "says"),
    [
        (NO_QUORUM, "refused: 'JetStream system temporarily unavailable'"),
        ({"error": {"description": "x\ny" * 999}}, "refused: 'x\\nyx"),
        ({"error": {"code": 7}}, "refused: None"),
        ({"error": "an old form"}, "refused: 'an old form'"),
        (b"no\nJSON", "answer b'no\\nJSON'; expected JSON"),
        (b"[]", "answer b'[]'; expected JSON"),
        (b"", "answer b''; expected JSON"),
        (b"[" * 100_000, "answer b'[["),
    ],
)
def test_answer_that_grants_nothing_is_refused_with_what_it_says(said: object, says: str) -> None:
    with Room(Cluster(refuses=[said])) as room:
        assert refused(room).startswith(f"elect B for log-0: {says}")
        # It was answered: no other server is asked.
        assert 1 == len(room.cluster.asked)


@pytest.mark.parametrize("first", [knows_nobody, hangs_up, is_silent], ids=["nobody", "hangs up", "silent"])
def test_server_that_brings_no_answer_is_passed_over(monkeypatch: pytest.MonkeyPatch, first: Serve) -> None:
    monkeypatch.setattr(operating, "_PATIENCE_S", 0.3 if first is is_silent else 20.0)
    with Room(Cluster(), first=first) as room:
        room.operator.elect("log", 0, "B")
        assert ["A"] == [name for name, *_ in room.cluster.asked]


def test_cluster_without_a_server_says_so() -> None:
    operator = NatsOperator(run_of({}), Cluster().metadata)
    with pytest.raises(PreconditionError, match=r"^elect B for log-0: no server runs; expected an answer$"):
        operator.elect("log", 0, "B")
    with (
        nobody() as address,
        pytest.raises(PreconditionError, match=f"^depose .*: {address}: .*refused; expected"),
    ):
        NatsOperator(run_of({"A": address, "B": address}), Cluster().metadata).depose()


def test_servers_that_all_know_nobody_say_so() -> None:
    with servers({"A": knows_nobody, "B": knows_nobody}) as nodes:
        operator = NatsOperator(run_of(nodes), Cluster().metadata)
        with pytest.raises(PreconditionError, match="no responders; expected an answer"):
            operator.elect("log", 0, "B")
