"""Steps that remove partitions and add them again are drawn where a topic has such, and change no other step."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal

import pytest

from harness.random_schedule import generate
from harness.random_schedule.generate import draw_schedule
from harness.random_schedule.profile import DEFAULT, REAL
from harness.random_schedule.removals import ROUNDS, has_removals, may_go, with_removals
from harness.random_schedule.width import NARROW, Breadth
from harness.scenario.file import parse
from harness.scenario.steps import Act, Add, Pass, Remove
from harness.scenario.text import text_of
from harness.workload.plan import NO_CLIENTS, Clients, Place, ProducerPlan
from tests.faults import NEMESES

U0, U1, U2 = (Place("users", number) for number in range(3))
FURTHER = {Place("clicks", 0): ("A",), U0: ("A", "B"), U1: ("B", "C"), U2: ("C", "A")}
STEPS: list[Act] = [Pass(Decimal(ms)) for ms in range(1, 9)]
SEEDS = range(200)


def test_other_steps_stay_in_their_order_and_the_first_stays_first() -> None:
    for seed in SEEDS:
        found = with_removals(seed, STEPS, FURTHER)
        assert STEPS[0] == found[0]
        assert STEPS == [act for act in found if act in STEPS]


def test_what_is_removed_comes_again_but_for_the_last_now_and_then() -> None:
    rounds, removed = set(), set()
    for seed in SEEDS:
        found = [act for act in with_removals(seed, STEPS, FURTHER) if isinstance(act, Remove | Add)]
        assert {U2} >= {act.place for act in found if isinstance(act, Add)}
        gone = "".join(str(act.place.partition) if isinstance(act, Remove) else "+" for act in found)
        removed |= {*gone.split("+")}
        rounds.add(gone.count("+") + (not gone.endswith("+")))
    # Now and then more of them go before they are added again.
    assert ({"1", "2", "21"}, set(range(ROUNDS[0], ROUNDS[1] + 1))) == (removed - {""}, rounds)


@pytest.mark.parametrize(
    ("of", "going"),
    [
        ({}, [U1, U2]),
        ({U1: ("C",)}, [U2]),
        ({U2: ("A", "B", "C")}, []),
        ({U0: ("A",)}, []),
    ],
)
def test_partition_may_go_if_those_from_it_on_have_as_many_replicas_as_the_first(
    of: dict[Place, tuple[str, ...]], going: list[Place]
) -> None:
    """Kafka's CreatePartitions wants it: all partitions of a topic have one replication factor."""
    further = {**FURTHER, **of}
    assert going == [place for place in further if may_go(place, further)]
    if not going:
        assert STEPS == with_removals(0, STEPS, further)


def test_no_run_whose_clients_send_again_has_them_nor_one_that_apache_kafka_plays() -> None:
    producer = ProducerPlan(name="p1", places=(U0,))
    once, again = (Clients(producers=(replace(producer, retries=retries),)) for retries in (0, 3))
    having = [seed for seed in SEEDS if has_removals(seed, Breadth(), once)]
    assert 0 < len(having) < len(SEEDS)
    assert having == [seed for seed in SEEDS if has_removals(seed, Breadth(), NO_CLIENTS)]
    assert not any(has_removals(seed, Breadth(), again) for seed in SEEDS)
    assert not any(has_removals(seed, NARROW, once) for seed in SEEDS)
    assert not any(draw_schedule(seed, NEMESES, REAL).removed for seed in SEEDS)


def test_some_wide_runs_have_them_and_are_else_as_without() -> None:
    without = replace(DEFAULT, breadth=replace(DEFAULT.breadth, removals=0.0))
    found = [seed for seed in SEEDS if draw_schedule(seed, NEMESES).removed]
    assert 3 <= len(found) <= len(SEEDS) // 8
    for seed in found:
        drawn, other = draw_schedule(seed, NEMESES), draw_schedule(seed, NEMESES, without)
        left = [step.act for step in drawn.steps if not isinstance(step.act, Remove | Add)]
        # What a churner's commands are held for is drawn among all steps.
        assert [step.act for step in other.steps] == left or drawn.clients.churners
        assert (other.clients, other.further, other.settings) == (drawn.clients, drawn.further, drawn.settings)
        assert drawn == parse(drawn.name, text_of(drawn), "s.txt", NEMESES)


def test_seed_whose_clients_forbid_its_upgrade_has_its_removals(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where clients forbid the upgrade, the draw is as without one."""
    drawn = {seed: draw_schedule(seed, NEMESES) for seed in SEEDS}
    monkeypatch.setattr(generate, "has_upgrades", lambda _seed: True)
    forced = {seed: draw_schedule(seed, NEMESES) for seed in SEEDS}
    kept = [seed for seed, each in drawn.items() if each.removed and not forced[seed].upgrades]
    assert kept
    assert [drawn[seed] for seed in kept] == [forced[seed] for seed in kept]
