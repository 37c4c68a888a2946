"""Steps about StopReplica come among the others of a schedule, some while the controller is deposed."""

from __future__ import annotations

from decimal import Decimal

from harness.random_schedule.stops import API, DEPOSE, with_stops
from harness.scenario.steps import Act, Hold, Inject, Pass, Release

STEPS: list[Act] = [Pass(Decimal(ms)) for ms in range(1, 9)]
SEEDS = range(200)


def drawn(seed: int, controller: str = "C") -> list[Act]:
    return with_stops(seed, STEPS, ["A", "B"], (0.001, 0.1), controller)


def test_other_steps_stay_in_their_order() -> None:
    for seed in SEEDS:
        passes = [act for act in drawn(seed) if act in STEPS]
        assert STEPS == passes
        assert STEPS[0] == drawn(seed)[0]


def test_controller_is_deposed_only_while_a_request_is_held() -> None:
    deposals = 0
    for seed in SEEDS:
        acts = drawn(seed)
        for at, act in enumerate(acts):
            if act == Inject(DEPOSE, ("C",)):
                deposals += 1
                held = [each.dst for each in acts[:at] if isinstance(each, Hold) and each.api == API]
                later = [each.dst for each in acts[at:] if isinstance(each, Release) and each.api == API]
                assert {*held} & {*later}
    assert deposals > 20


def test_no_controller_is_deposed_where_there_is_none_to_depose() -> None:
    assert not any(isinstance(act, Inject) for seed in SEEDS for act in drawn(seed, ""))
