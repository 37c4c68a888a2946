"""A step that cannot be applied now is recognised before it is tried."""

from __future__ import annotations

from contextlib import nullcontext
from types import SimpleNamespace
from typing import Any

import pytest

from harness.ability import OF_TARGETS, Ability
from harness.cluster.in_force import InForce
from harness.effect import Effect
from harness.model import UsageError
from harness.random_schedule.applicable import why_not
from harness.scenario.steps import Inject, Remove
from harness.scenario.words import MessageWords
from harness.target.metadata import Office
from harness.target.operator import lacking
from harness.workload.plan import Place
from targets.broker_target.target import TARGET
from tests.faults import NEMESES
from tests.scenario.words import step as read


class Links:
    """Links with one hold and one cut in force."""

    rules = (SimpleNamespace(ends=(("A", "B"),)),)

    def holds_back(self, src: str, dst: str) -> bool:
        return (src, dst) == ("D", "metadata")

    def hold_of(self, api: str, src: str, dst: str, direction: str) -> str:
        if (direction, api, src, dst) == ("answers", "fetch", "A", "B"):
            return "held"
        raise UsageError("no such hold")

    words = MessageWords(TARGET, TARGET.rules("kip101", ()))


OUT = SimpleNamespace(out=True)


def cluster(**state: Any) -> Any:
    """Return a cluster: A leads, B is in the ISR, C is not but is controller; a registered node has session 1."""
    found: dict[str, Any] = {"down": set(), "paused": set(), "zombies": {}, "services": None, **state}
    cut = found.pop("cut", frozenset())
    in_force = SimpleNamespace(
        nodes=lambda effects: cut if Effect.METADATA_LOST in effects else (), of=lambda *_: None
    )
    found.setdefault("in_force", in_force)
    found["leader"] = lambda: "A"
    isr, controller, ids = found.pop("in_sync", "AB"), found.pop("office", "C"), "ABCD"
    session = found.pop("office_session", 1)
    found |= {"isr": lambda: frozenset(isr), "ids": dict.fromkeys(ids), "replicas": ("A", "B", "C")}
    gone = {*found["down"], *found["zombies"]}
    wanted, moving = found.pop("wanted", "ABC"), found.pop("moving", False)
    found["metadata"] = SimpleNamespace(
        incarnation=lambda name: int(name not in gone),
        controller=lambda: controller,
        office=lambda: Office(node=controller, member=session, incarnation=1),
    )
    found["operator"] = SimpleNamespace(wanted=lambda *_: tuple(wanted))
    found.setdefault("lacks", lambda _: "")
    found["service_nodes"] = ("coordinator-1",)
    found.setdefault("host", SimpleNamespace(unfit=lambda *_: ""))
    found["naming"] = lambda _: nullcontext()
    found["named"] = SimpleNamespace(
        leader=found["leader"],
        isr=found["isr"],
        replicas=found["replicas"],
        place=("log", 0),
        is_moving=lambda: moving,
    )
    return SimpleNamespace(**found)


@pytest.mark.parametrize(("step", "state"), [
    ("kill A", {}),
    ("kill A", {"paused": {"A"}}),
    ("power-loss A B", {}),
    ("restart A", {"down": {"A"}}),
    ("pause A", {}),
    ("resume A", {"paused": {"A"}}),
    ("flush A", {}),
    ("expire A", {}),
    ("zombie A", {}),
    ("return A", {"zombies": {"A": None}}),
    ("elect B", {}),
    ("depose-controller C", {}),
    ("release answers fetch A -> B", {}),
    ("release all", {}),
    ("heal A -> B", {}),
    ("hold requests fetch A -> *", {}),
    ("produce m1 acks=all meanwhile", {"down": {"A", "B", "C"}}),
    ("pass 3ms", {"down": {"A"}}),
    ("move-away A", {}),
    ("move-away A", {"moving": True}),
    ("kill A", {"services": OUT}),
    ("partition-isolate A", {"services": OUT}),
    ("zookeeper-back A", {"services": OUT, "cut": {"A", "B", "C"}}),
    ("zookeeper-back A", {"cut": {"A"}}),
    ("zookeeper-back A", {"cut": {"A", "D"}}),
])  # fmt: skip
def test_step_makes_sense(step: str, state: dict[str, Any]) -> None:
    assert "" == why_not(read(step), cluster(**state), Links(), NEMESES)


@pytest.mark.parametrize(("step", "state", "reason"), [
    ("kill A", {"down": {"A"}}, "A is down"),
    ("power-loss A B", {"down": {"B"}}, "B is down"),
    ("restart A", {}, "A is not down"),
    ("move-away A", {"services": OUT}, "the metadata answer nobody"),
    ("move-away D", {}, "it is no replica of the partition, which has A, B, C"),
    ("restart A", {"down": {"A"}, "zombies": {"A": None}}, "A is cut from the metadata"),
    ("restart A", {"down": {"A"}, "cut": {"A"}}, "A is cut from the metadata"),
    ("zookeeper-back D", {"cut": {"A", "D"}}, "what D and the metadata tell each other is held"),
    ("return A", {"zombies": {"A": None}, "cut": {"A"}}, "A is cut from the metadata by another fault too"),
    ("restart D", {"down": {"D"}}, "what D and the metadata tell each other is held"),
    ("zookeeper-outage A", {"cut": {"A"}}, "A is metadata-lost already"),
    ("zookeeper-back A", {}, "A is not metadata-lost, metadata-weak"),
    ("restart A", {"down": {"A"}, "services": OUT}, "the metadata answer nobody"),
    ("elect B", {"services": OUT}, "the metadata answer nobody"),
    ("expire A", {"services": OUT}, "the metadata answer nobody"),
    ("zombie A", {"services": OUT}, "the metadata answer nobody"),
    ("zookeeper-leader-lost A", {"services": OUT}, "the metadata answer nobody"),
    ("pause A", {"paused": {"A"}}, "A is paused"),
    ("pause A", {"down": {"A"}}, "A is down"),
    ("resume A", {}, "A is not paused"),
    ("flush A", {"down": {"A"}}, "A is down"),
    ("expire A", {"down": {"A"}}, "A is not registered"),
    ("zombie A", {"zombies": {"A": None}}, "A is a zombie already"),
    ("zombie A", {"paused": {"A"}}, "A is paused"),
    ("return A", {}, "A is not a zombie"),
    ("return A", {"zombies": {"A": None}, "paused": {"A"}}, "A is paused"),
    ("elect A", {}, "A leads already"),
    ("elect C", {}, "C is not in the ISR"),
    ("depose-controller A", {}, "A is not the controller"),
    ("release requests fetch A -> B", {}, "there is no such hold"),
    ("heal B -> A", {}, "there is no such rule"),
])  # fmt: skip
def test_step_makes_none_and_says_why(step: str, state: dict[str, Any], reason: str) -> None:
    assert reason == why_not(read(step), cluster(**state), Links(), NEMESES)


def test_service_comes_back_though_the_metadata_answer_nobody_and_a_node_does_not() -> None:
    links: Any = Links()
    out = cluster(down={"A", "coordinator-1"}, services=OUT)
    assert "" == why_not(Inject("restart", ("coordinator-1",)), out, links, NEMESES)
    both = Inject("restart", ("coordinator-1", "A"))
    assert "the metadata answer nobody" == why_not(both, out, links, NEMESES)


def test_power_of_a_service_is_not_taken_where_a_shadow_copy_would_lose_what_it_flushed() -> None:
    links: Any = Links()
    poor = cluster(lacks=lambda ability: "no loop" if ability is Ability.SERVICE_POWER_LOSS else "")
    for fault in ("power-loss", "power-loss-torn"):
        act = Inject(fault, ("coordinator-1",))
        assert "no loop" == why_not(act, poor, links, NEMESES)
        assert "" == why_not(act, cluster(), links, NEMESES) == why_not(read(f"{fault} A"), poor, links, NEMESES)
    assert "coordinator-1 is down" == why_not(act, cluster(down={"coordinator-1"}), links, NEMESES)


@pytest.mark.parametrize(("state", "reason"), [
    ({"in_sync": "ABC"}, ""),
    ({"in_sync": "ABC", "paused": {"B"}}, ""),
    ({"in_sync": "ABD", "wanted": "ABD"}, ""),
    ({"in_sync": "ABC", "wanted": "ABD"}, "D down, not registered or not in the ISR"),
    ({"in_sync": "AB"}, "C down, not registered or not in the ISR"),
    ({"in_sync": "ABC", "down": {"A"}, "office": "D"}, "A down, not registered or not in the ISR"),
    ({"in_sync": "ABC", "zombies": {"A": None}, "office": "D"}, "A down, not registered or not in the ISR"),
    ({"in_sync": "ABC", "office": None}, "controller None is not at work"),
    ({"in_sync": "ABC", "down": {"D"}, "office": "D"}, "controller D is not at work"),
    ({"in_sync": "ABC", "paused": {"D"}, "office": "D"}, "controller D is not at work"),
    ({"in_sync": "ABC", "zombies": {"D": None}, "office": "D"}, "controller D is not at work"),
    ({"in_sync": "ABC", "office_session": 7}, "C is controller in a session that is not its own any more"),
])  # fmt: skip
def test_election_makes_sense_for_all_where_apache_kafka_could_grant_it(
    state: dict[str, Any], reason: str
) -> None:
    """Source: Kafka's documentation, Operations: a reassignment ends when all its replicas are in the ISR."""
    links: Any = Links()
    assert reason == why_not(read("elect B"), cluster(**state), links, NEMESES, alike=True)
    if reason and "B" not in state.get("down", ()):
        assert "" == why_not(read("elect B"), cluster(**state), links, NEMESES)


@pytest.mark.parametrize("step", ["disk-full A", "flush-error A"])
def test_fault_is_not_applicable_where_machines_lack_what_it_needs(step: str) -> None:
    links: Any = Links()
    poor = cluster(lacks=lambda _: "host local has none")
    assert "host local has none" == why_not(read(step), poor, links, NEMESES)
    assert "" == why_not(read(step), cluster(), links, NEMESES)
    assert "A is paused" == why_not(read(step), cluster(paused={"A"}), links, NEMESES)


@pytest.mark.parametrize(("step", "ability"), [
    ("elect B", Ability.ELECT),
    ("move-away A", Ability.MOVE),
    ("expire A", Ability.EXPIRE),
    ("zombie A", Ability.EXPIRE),
    ("depose-controller C", Ability.DEPOSE),
    ("remove log/1", Ability.REMOVE),
])  # fmt: skip
def test_step_is_not_applicable_where_the_target_lacks_the_request_that_it_needs(
    step: str, ability: Ability
) -> None:
    links: Any = Links()
    act = Remove(Place("log", 1)) if step.startswith("remove") else read(step)
    toy = cluster(lacks=lambda asked: lacking("toy", OF_TARGETS - {ability}, asked))
    assert f"toy has no {ability.value}" == why_not(act, toy, links, NEMESES)
    assert "" == why_not(act, cluster(), links, NEMESES)


def test_clock_fault_is_not_applicable_to_a_process_that_was_started_with_other_clocks() -> None:
    links: Any = Links()
    host = SimpleNamespace(lacks=lambda _: "", unfit=lambda name, ability: f"{name} has no {ability.value}")
    assert "A has no clocks" == why_not(read("clock-fast A"), cluster(host=host), links, NEMESES)
    assert "A has no wall-clock" == why_not(read("clock-back A"), cluster(host=host), links, NEMESES)


def test_node_that_is_paused_and_not_suspended_cannot_wake() -> None:
    links: Any = Links()
    able = SimpleNamespace(unfit=lambda *_: "")
    paused = cluster(host=able, paused={"A"}, in_force=InForce())
    assert "A is not suspended" == why_not(read("wake A"), paused, links, NEMESES)


@pytest.mark.parametrize("step", ["move-away A", "move-back A"])
def test_second_move_waits_for_the_first_where_apache_kafka_would_not_read_it(step: str) -> None:
    moving = cluster(moving=True)
    links: Any = Links()
    assert "a move is in progress" == why_not(read(step), moving, links, NEMESES, alike=True)
    assert "a move is in progress" != why_not(read(step), moving, links, NEMESES)
