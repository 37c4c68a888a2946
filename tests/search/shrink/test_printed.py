"""A shrunk schedule is printed with what it showed, and each expectation in it can be read back."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from harness.scenario.file import parse
from harness.scenario.variant import Variant
from harness.search.shrink.printed import scenario_text
from harness.search.shrink.subject import Subject
from tests.faults import NEMESES
from tests.search.shrink.schedules import RANDOM, schedule_of

SUBJECT = Subject(variant=Variant(protocol="kip380"), seed=1, name="T")


def printed(monkeypatch: pytest.MonkeyPatch, found: str) -> list[str]:
    def run(*_: Any) -> tuple[Any, list[Any]]:
        return SimpleNamespace(found=found, anomalies=()), []

    monkeypatch.setattr(Subject, "run", run)
    text = scenario_text(schedule_of("settle\n", RANDOM), SUBJECT, "again")
    assert parse("T", text, "T", NEMESES).steps
    return [line for line in text.splitlines() if "expect " in line]


@pytest.mark.parametrize("record", ["settled1.last1", "orders-5.settled3.last1", "last1"])
def test_what_no_expectation_can_say_is_a_comment_and_is_claimed_of_no_other_protocol(
    monkeypatch: pytest.MonkeyPatch, record: str
) -> None:
    """A random run sends records of its own with each settle and at its end: a scenario has no names for them."""
    assert printed(monkeypatch, f"permitted {record}") == [f"# expect kip380: permitted {record}"]


def test_what_an_expectation_can_say_is_expected_of_every_protocol_that_showed_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    (line,) = printed(monkeypatch, "none")
    assert line.startswith("expect kip380, hw, kip101")
