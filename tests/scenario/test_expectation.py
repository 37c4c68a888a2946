"""An expectation is checked when its scenario is read; tests of checkers/verdict.py cover its meaning."""

from __future__ import annotations

import pytest

from harness.model import UsageError
from harness.scenario.expectation import check_expectation


@pytest.mark.parametrize("text", ["none", "hang", "lost m1, diverged 4-7 A B", "two-leaders A B epoch 3", "stuck"])
def test_expectation_about_what_the_scenario_has_is_right(text: str) -> None:
    check_expectation(text, ("A", "B"), ("m1",))


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("lost mm1", r"'mm1'; expected a group of records of the head: one of m1\. Did you mean 'm1'\?"),
        ("stuck C", "'C'; expected a node of the head: one of A, B"),
        ("diverge m1", r"'diverge' is not a kind; .*Did you mean 'diverged'\?"),
        ("lost", "lost needs offsets"),
    ],
)
def test_expectation_about_what_it_has_not_is_wrong(text: str, told: str) -> None:
    with pytest.raises(UsageError, match=told):
        check_expectation(text, ("A", "B"), ("m1",))
