"""A step about a rule or record that no earlier step made is an error; one about a rule undone since is not."""

from __future__ import annotations

import pytest

from harness.model import UsageError
from harness.scenario.step_order import check_order
from tests.scenario.words import step


def check(*texts: str) -> None:
    check_order([(f"s.txt:{line}", step(text)) for line, text in enumerate(texts, start=1)])


def test_what_was_made_may_be_undone_twice_since_it_may_still_stand_under_another_variant() -> None:
    check("hold answers fetch A -> B", "release all", "release fetch A -> B", "drop fetch A -> B")
    check("cut A <-> B", "heal all", "heal B -> A", "await lost B -> A")
    check("delay answers fetch A -> B 1", "double question A -> B", "heal A -> B", "await doubled question A -> B")
    check("produce m1 acks=all meanwhile", "await acked m1", "require one-batch m1")


@pytest.mark.parametrize(
    ("made", "text"),
    [
        ("hold answers fetch A -> B", "release requests fetch A -> B"),
        ("hold answers fetch A -> B", "await held fetch B -> A"),
        ("hold answers question A -> B", "drop fetch A -> B"),
        ("cut A -> B", "heal B -> A"),
        ("cut A -> B", "await delayed fetch A -> B"),
        ("delay answers fetch A -> B 1", "await doubled fetch A -> B"),
        ("produce m1 acks=all", "await acked m1"),
        ("produce m1 acks=all", "require one-batch m2"),
    ],
)
def test_step_about_what_was_never_made_is_wrong(made: str, text: str) -> None:
    with pytest.raises(UsageError, match=r"s.txt:2: no step above "):
        check(made, text)
    with pytest.raises(UsageError, match="expected a step that does so before it"):
        check(text)
