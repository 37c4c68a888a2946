"""Faults of services come among the other steps of a schedule, for systems whose services are a run's own."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from harness.cluster.aims import SERVICE
from harness.random_schedule.generate import draw_schedule
from harness.random_schedule.service_faults import WEIGHTS, counts_of, with_service_faults
from harness.scenario.file import Scenario, parse
from harness.scenario.steps import Act, Cut, Heal, Hold, Inject, Release
from harness.scenario.text import text_of
from harness.suite.scenario_files import faults_on
from harness.target.found import target
from harness.target.services import Service

SEEDS = range(60)
FAULTS = faults_on("rocketmq")
TARGET = target("rocketmq")
SERVICES = TARGET.services
MESSAGES = TARGET.wire.messages if TARGET.wire is not None else ()
PROCESSES = ("namesrv-1", "controller-1", "controller-2", "controller-3")


def drawn(seed: int, nemeses: tuple[str, ...] = ("all",)) -> Scenario:
    return with_service_faults(draw_schedule(seed, FAULTS), seed, TARGET, FAULTS, nemeses)


def on_links(scenario: Scenario) -> list[Act]:
    """Return the steps about links to services, or of messages with names of the target's own."""
    acts: list[Act] = [step.act for step in scenario.steps]
    return [act for act in acts if {*str(act).split()} & {*PROCESSES, *MESSAGES}]


def hits(scenario: Scenario) -> list[Inject]:
    acts: list[Act] = [step.act for step in scenario.steps]
    return [act for act in acts if isinstance(act, Inject) and SERVICE in act.nodes]


def test_other_steps_stay_in_their_order() -> None:
    for seed in SEEDS:
        scenario = drawn(seed)
        added = [*hits(scenario), *on_links(scenario)]
        others = [step.act for step in scenario.steps if step.act not in added]
        assert [step.act for step in draw_schedule(seed, FAULTS).steps] == others
        assert others[0] == scenario.steps[0].act


def test_each_is_drawn_and_mostly_undone() -> None:
    names = [act.fault for seed in SEEDS for act in hits(drawn(seed))]
    assert {*WEIGHTS, "restart", "resume", "reconnect"} == {*names}
    undone = sum(FAULTS[name].heals != frozenset() for name in names)
    assert 0.6 < undone / (len(names) - undone) < 1.0


def test_links_are_cut_and_messages_held_and_mostly_undone() -> None:
    acts = [act for seed in SEEDS for act in on_links(drawn(seed))]
    kinds = Counter(type(act) for act in acts)
    assert {Cut, Heal, Hold, Release} == {*kinds}
    assert 0.4 * kinds[Cut] < kinds[Heal] < kinds[Cut]
    assert 0.4 * kinds[Hold] < kinds[Release] < kinds[Hold]
    assert {act.dst for act in acts if isinstance(act, Cut)} <= {*PROCESSES}


def test_half_have_several_controllers() -> None:
    counts = [counts_of(seed, SERVICES) for seed in range(400)]
    assert {"namesrv": 1, "controller": 3} in counts
    assert 160 < sum(each["controller"] == 3 for each in counts) < 240


def test_text_reads_as_the_same_schedule() -> None:
    for seed in SEEDS:
        scenario = drawn(seed)
        assert scenario == parse(scenario.name, text_of(scenario), scenario.name, FAULTS)


def test_chosen_nemeses_come_alone() -> None:
    assert {"kill", "restart"} == {act.fault for seed in SEEDS for act in hits(drawn(seed, ("kill", "elect")))}
    assert not any(hits(drawn(seed, ("elect",))) for seed in SEEDS)


def test_services_that_runs_may_share_are_left_alone() -> None:
    for name in ("broker", "kafka", "fluss", "nats"):
        scenario = draw_schedule(1, faults_on(name))
        assert scenario is with_service_faults(scenario, 1, target(name), faults_on(name))


def test_a_service_past_the_links_is_not_hit() -> None:
    past = tuple(replace(each, linked=False) if each.holds_metadata else each for each in SERVICES)
    assert all(isinstance(each, Service) for each in past)
    assert {} == counts_of(1, past)
