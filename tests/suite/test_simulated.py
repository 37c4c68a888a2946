"""The simulator plays every scenario under every protocol and mutant that it names, in milliseconds each."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.run.result import Status
from harness.run.store import create_suite
from harness.scenario.variant import Variant
from harness.target.found import target as target_of
from harness.target.target import Target
from targets.simulator.broker.environment import make_environment
from tests.kept import keep
from tests.suite.cells import names, spec_of, variants
from tests.suite.conftest import judged, play_in

TARGET: Target = target_of("broker")
CELLS = [(name, variant) for name in names() for variant in variants(name, TARGET)]
# Of each scenario the last mutant. CI plays every cell, with Spark: `make scenarios HOST=sim`.
KEPT = [f"{name}-{found[-1]}" for name in names() if (found := variants(name, TARGET))]
SEED = 5
# Rules that prevent a known bug.
RULES_WITH_A_BUG = {
    "truncate_to",
    "undefined_query",
    "below_first_epoch",
    "epoch_assigned_on_lead",
    "truncate_when_leader_unchanged",
    "join_isr_past_epoch_start",
    "drop_stale_answer",
    "fence_truncation_query",
    "fence_fetch",
    "fence_high_watermark",
    "fence_isr_join",
    "forget_follower_ends",
    "returning_leader",
    "fence_broker_epoch",
}


@pytest.mark.parametrize(
    ("scenario", "variant"),
    keep([pytest.param(*cell, id=f"{cell[0]}-{cell[1]}") for cell in CELLS], *KEPT),
)
def test_scenario_comes_out_as_expected_in_the_simulator(tmp_path: Path, scenario: str, variant: Variant) -> None:
    """Source: what the scenario's own file cites."""
    environment = make_environment("sim", target=TARGET, power_tier=None, ports=None)
    spec = spec_of(scenario, variant, TARGET, SEED)
    result = judged(play_in(environment, spec, create_suite(tmp_path, "suite")))
    assert Status.AS_EXPECTED == result.status, f"{result.found}: {result.reason}"


def test_every_rule_that_names_a_bug_has_a_scenario_that_holds_with_it_and_breaks_without() -> None:
    broken = {
        change.partition("=")[0]
        for name, mutant in CELLS
        for change in mutant.changes
        if (expected(name, Variant(protocol=mutant.protocol)) or "none") != expected(name, mutant)
    }
    assert set() == RULES_WITH_A_BUG - broken


def expected(scenario: str, variant: Variant) -> str | None:
    return spec_of(scenario, variant, TARGET, SEED).expectation
