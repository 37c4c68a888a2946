"""What a controller holds true of its brokers is one state of each queue of each topic that the harness made."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from functools import partial
from pathlib import Path

import pytest

from harness.events import Event, MetadataState
from harness.launch import Address
from harness.metadata.shown import problem_of
from harness.target.metadata import Look, PartitionTruth, TargetRun
from targets.rocketmq import asking
from targets.rocketmq.asking import Replica, Replicas
from targets.rocketmq.view import RocketView, look_of
from tests.targets.rocketmq.server import answers, controller, server, unless

NAMES = "ABC"
NODES = {name.lower(): name for name in NAMES}
BROKERS = {"a": 1, "b": 2, "c": 3}
TOPICS = {"log": 2}


def replica(number: int, host: str, *, alive: bool = True, in_sync: bool = True) -> Replica:
    return Replica(number=number, host=host, alive=alive, in_sync=in_sync)


THREE = [replica(number, host) for host, number in BROKERS.items()]


def look(replicas: list[Replica], master: int | None = 1, topics: Mapping[str, int] = TOPICS) -> Look:
    found = look_of(Replicas(master=master, epoch=3, set_epoch=7, replicas=replicas), NODES, topics)
    assert "" == problem_of(found, dict.fromkeys(NAMES, 1))
    return found


def truth(leader: str | None, *in_sync: str | None, epoch: int = 3) -> PartitionTruth:
    return PartitionTruth(leader=leader, epoch=epoch, in_sync=in_sync)


# --- one look --------------------------------------------------------------------------------------------------
def test_brokers_have_one_state_for_each_queue_of_each_topic() -> None:
    found = look(THREE, 2, {"log": 2, "orders": 1})
    places = [("log", 0), ("log", 1), ("orders", 0)]
    assert dict.fromkeys(places, truth("B", "A", "B", "C")) == found.states
    assert dict.fromkeys(places, ("A", "B", "C")) == found.assigned
    assert {*places} == {*found.said}
    assert ({}, None) == (found.members, found.office)


def test_without_a_topic_there_is_nothing_to_see() -> None:
    assert Look() == look(THREE, topics={})


def test_set_has_those_that_are_in_it_and_the_topic_all() -> None:
    found = look([replica(1, "a", in_sync=False), *THREE[1:]], 2)
    assert truth("B", "B", "C") == found.states["log", 0]
    assert ("A", "B", "C") == found.assigned["log", 0]


@pytest.mark.parametrize("replicas", [THREE, THREE[::-1], [THREE[1], THREE[2], THREE[0]]])
def test_state_does_not_depend_on_the_order_in_which_brokers_are_said(replicas: list[Replica]) -> None:
    assert look(THREE).states == look(replicas).states


@pytest.mark.parametrize("master", [None, 9])
def test_without_a_master_or_with_one_that_is_no_broker_nobody_leads(master: int | None) -> None:
    assert truth(None, "A", "B", "C") == look(THREE, master).states["log", 0]


def test_master_that_is_not_alive_leads_until_the_controller_says_another_one() -> None:
    found = look([replica(1, "a", alive=False), *THREE[1:]])
    assert truth("A", "A", "B", "C") == found.states["log", 0]


def test_broker_at_an_unknown_host_is_nobody() -> None:
    found = look([replica(1, "x"), *THREE[1:]])
    assert truth(None, None, "B", "C") == found.states["log", 0]
    assert {"B", "C"} == {*found.said["log", 0]}
    # There may be several.
    assert truth("C", None, None, "C") == look([replica(1, "x"), replica(2, ""), THREE[2]], 3).states["log", 0]


def test_group_without_brokers_has_a_state_without_members() -> None:
    assert truth(None) == look([]).states["log", 0]


@pytest.mark.parametrize(
    ("alive", "in_sync", "master", "says"),
    [
        (
            True,
            True,
            2,
            "is broker 1, alive to the controller and in the SyncStateSet, which B leads in epoch 3",
        ),
        (
            False,
            False,
            None,
            "is broker 1, not alive to the controller and not in the SyncStateSet, which nobody leads in epoch 3",
        ),
    ],
)
def test_controller_s_word_of_each_broker_is_said(
    alive: bool, in_sync: bool, master: int | None, says: str
) -> None:
    found = look([replica(1, "a", alive=alive, in_sync=in_sync), *THREE[1:]], master)
    assert [says, says] == [found.said[place]["A"] for place in (("log", 0), ("log", 1))]


# --- the view --------------------------------------------------------------------------------------------------
@pytest.fixture(autouse=True)
def _patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have no controller be late on a busy machine."""
    monkeypatch.setattr("targets.rocketmq.view.replicas_at", partial(asking.replicas_at, within_s=4.0))


@contextmanager
def viewing(tmp_path: Path, *controllers: Address) -> Iterator[tuple[RocketView, list[Event], list[Exception]]]:
    recorded: list[Event] = []
    lost: list[Exception] = []
    run = TargetRun(
        target="rocketmq",
        ids={name: number for number, name in enumerate(NAMES)},
        folder=tmp_path,
        record=recorded.append,
        give_up=lost.append,
        services=controllers,
    )
    with closing(RocketView(run)) as view:
        yield view, recorded, lost


def test_view_shows_and_records_what_the_controller_says_of_topics_that_were_made(tmp_path: Path) -> None:
    with (
        server(controller(BROKERS, master=3, in_sync={2: 0, 3: 0})) as served,
        viewing(tmp_path, served.address) as (view, recorded, lost),
    ):
        assert (None, {}) == (view.truth("log", 0), view.assignment("log"))
        view.made("log", 2)
        found = view.truth("log", 1)
        assert found is not None
        assert ("C", 3, ("B", "C")) == (found.leader, found.epoch, found.in_sync)
        assert None is view.truth("log", 2)
        view.watch([("log", 0)])
        assert [("C", 3, ("B", "C"))] == [
            (event.leader, event.epoch, event.isr) for event in recorded if isinstance(event, MetadataState)
        ]
        assert (None, 0) == (view.controller(), view.incarnation("A"))
        assert [] == lost
    assert not view.exact


def test_brokers_are_the_nodes_at_whose_hosts_they_are(tmp_path: Path) -> None:
    with server(controller({**BROKERS, "x": 9})) as served, viewing(tmp_path, served.address) as (view, _, _):
        found = view.brokers()
        assert found is not None
        assert ["A", "B", "C", None] == [view.node_of(each) for each in found.replicas]


def test_view_asks_another_controller_and_shows_what_it_saw_last_when_none_answers(tmp_path: Path) -> None:
    down = threading.Event()
    with (
        server(answers(2007)) as follower,
        server(unless(down, controller(BROKERS))) as leader,
        viewing(tmp_path, follower.address, leader.address) as (view, _, lost),
    ):
        view.made("log", 1)
        before = view.truth("log", 0)
        assert before is not None and before.leader == "A"
        down.set()
        assert before == view.truth("log", 0)
        assert view.brokers() is None
        assert [] == lost


def test_nonsense_of_a_controller_loses_no_observation(tmp_path: Path) -> None:
    with server(answers(body=b"[]")) as served, viewing(tmp_path, served.address) as (view, _, lost):
        view.made("log", 1)
        assert view.truth("log", 0) is None
        assert [] == lost
