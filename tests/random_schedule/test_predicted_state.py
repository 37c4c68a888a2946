"""PredictedState follows the drawn steps."""

from __future__ import annotations

from harness.random_schedule.predicted_state import PredictedState
from tests.faults import NEMESES
from tests.scenario.words import step as read


def after(*steps: str) -> PredictedState:
    predicted = PredictedState(leader="A", before="B", faults=NEMESES)
    for step in steps:
        predicted.note(read(step))
    return predicted


def test_election_makes_a_leader_and_remembers_the_one_before() -> None:
    assert ("C", "A") == (after("elect C").leader, after("elect C").before)


def test_who_is_away_is_not_up_until_it_is_back() -> None:
    assert not after("kill A").is_up("A")
    assert not after("power-loss A B").is_up("B")
    assert after("kill A", "restart A").is_up("A")
    assert not after("zombie A").is_up("A")
    assert after("zombie A", "return A").is_up("A")
    assert not after("pause A").is_up("A")
    assert after("pause A", "resume A").is_up("A")


def test_kill_ends_a_pause() -> None:
    assert after("pause A", "kill A", "restart A").is_up("A")


def test_holds_stand_until_they_are_released() -> None:
    hold = "requests Fetch A -> *"
    assert [read(f"hold {hold}")] == after(f"hold {hold}").holds
    assert [] == after(f"hold {hold}", f"release {hold}").holds
    assert [] == after(f"hold {hold}", "hold answers fetch A -> B", "release all").holds


def test_rules_are_known_by_their_link() -> None:
    assert [read("heal A -> B")] == after("cut A <-> B close").rules
    assert [read("heal A -> B")] == after("delay answers fetch A -> B 0.02", "double fetch A -> B").rules
    assert [read("heal * -> B")] == after("double command * -> B").rules
    assert [] == after("cut A -> B", "heal A -> B").rules


def test_step_that_changes_nobody_is_no_matter() -> None:
    assert after() == after(
        "pass 3ms", "produce m1 acks=all meanwhile", "flush A", "expire B", "depose-controller A"
    )
