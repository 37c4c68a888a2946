"""How nodes are started, with the first as the controller; and how long a cluster has to be whole at the end."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from harness.ability import OF_TARGETS, Ability
from harness.history.file import History, read_history
from harness.model import OpType, PreconditionError
from harness.scenario import runner
from harness.scenario.file import Draw, parse
from harness.scenario.runner import Play
from harness.target.operator import Operator
from tests.scenario.fakes import FakeClient, FakeCluster

SCENARIO = """title T
source S
nodes B A replicas, C controller
records m1 1
settings heal_within_s=HEAL
produce m1 acks=all
expect hw: none
"""


class Appoints(Operator):
    """An operator that makes a node the controller, and notes it among the calls of the cluster."""

    def __init__(self, cluster: FakeCluster, error: str = "") -> None:
        self._cluster, self._error = cluster, error

    def appoint(self, name: str) -> str:
        self._cluster.calls.append(("appoint", name))
        if self._error:
            raise PreconditionError(self._error)
        return "appointed"


def play(cluster: FakeCluster, heal_within_s: float = 40) -> FakeClient:
    client = FakeClient()
    Play(
        scenario=parse("s", SCENARIO.replace("HEAL", f"{heal_within_s:g}"), "s.txt", ()),
        draw=Draw(seed=1, ids=cluster.ids, counts={"m1": 1}),
        cluster=cluster,
        client=client,
        faults={},
    ).run()
    return client


def named_after(cluster: FakeCluster, looks: int, name: str = "C") -> None:
    """Have the metadata name a controller after so many looks, and note the first that does."""
    left = [looks]

    def controller() -> str | None:
        left[0] -= 1
        if left[0] == 0:
            cluster.calls.append(("named", name))
        return name if left[0] <= 0 else None

    vars(cluster.metadata)["controller"] = controller


# --- who starts when -------------------------------------------------------------------------------------------
def test_controller_starts_first_and_the_others_once_it_is_the_controller(cluster: FakeCluster) -> None:
    named_after(cluster, 3)
    client = play(cluster)
    first, named, *others = cluster.calls[:4]
    assert [("start", "C"), ("named", "C")] == [first, named]
    assert [("start", "A"), ("start", "B")] == sorted(others)
    assert "m1" in [each[0] for each in client.sent]


def test_all_nodes_start_before_the_operator_appoints_the_first_which_is_awaited(cluster: FakeCluster) -> None:
    cluster.operator = Appoints(cluster)
    named_after(cluster, 3)
    client = play(cluster)
    *started, appointed, named = cluster.calls[:5]
    assert [("start", name) for name in "ABC"] == sorted(started)
    assert [("appoint", "C"), ("named", "C")] == [appointed, named]
    assert 3 == len([call for call in cluster.calls if call[0] == "start"])
    assert "m1" in [each[0] for each in client.sent]


def test_controller_that_cannot_be_appointed_ends_the_run_before_its_first_step(
    cluster: FakeCluster, history: History
) -> None:
    cluster.operator = Appoints(cluster, "nobody leads")
    client = play(cluster)
    assert [("read",)] == client.sent
    failed = [op for op in read_history(history.path) if op.type is OpType.FAIL and op.f == "step"]
    assert [("set up", "nobody leads")] == [(op.value["text"], op.value["error"]) for op in failed]


@pytest.mark.parametrize("operator", [Appoints, lambda _: Operator()])
def test_system_whose_metadata_name_no_controller_is_not_asked_who_it_is(
    cluster: FakeCluster, operator: Callable[[FakeCluster], Operator]
) -> None:
    vars(cluster.target)["abilities"] = OF_TARGETS - {Ability.CONTROLLER}
    named_after(cluster, 10**6)
    cluster.operator = operator(cluster)
    client = play(cluster)
    assert {("start", name) for name in "ABC"} <= {*cluster.calls}
    assert "m1" in [each[0] for each in client.sent]


# --- how long it has to be whole -------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("own", "heal_within_s", "expected"),
    [
        ({}, 7.0, 7.0),
        ({"election_s": 20.0, "catch_up_s": 20.0}, 7.0, 40.0),
        ({"election_s": 20.0, "catch_up_s": 20.0}, 60.0, 60.0),
        ({"election_s": 9.0}, 7.0, 9.0),
        ({"catch_up_s": 9.0}, 7.0, 9.0),
    ],
)
def test_cluster_has_what_the_run_allows_or_what_the_system_takes_by_itself(
    cluster: FakeCluster,
    monkeypatch: pytest.MonkeyPatch,
    own: dict[str, Any],
    heal_within_s: float,
    expected: float,
) -> None:
    allowed: list[float] = []

    def relieved(*asked: Any) -> None:
        allowed.append(asked[-1])

    monkeypatch.setattr(runner, "await_relieved", relieved)
    cluster.traits = replace(cluster.traits, **own)
    play(cluster, heal_within_s)
    assert {expected} == {*allowed}
