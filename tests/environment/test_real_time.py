"""Real time waits until a condition holds, and no longer than its machines live."""

from __future__ import annotations

import pytest

from harness.environment.real_time import RealTime
from harness.model import PreconditionError


def test_together_gives_what_each_gave_in_the_order_of_names() -> None:
    assert ["b!", "a!"] == RealTime().together(lambda name: f"{name}!", ["b", "a"])
    with pytest.raises(PreconditionError):
        RealTime().together(_fails_at_b, ["a", "b"])


def _fails_at_b(name: str) -> str:
    if name == "b":
        raise PreconditionError("b")
    return name


def test_until_is_true_at_once_and_false_in_time() -> None:
    assert (True, False) == (RealTime().until(lambda: True, 60), RealTime().until(lambda: False, 0))


def test_waiting_ends_at_once_when_a_machine_is_lost() -> None:
    waited: list[bool] = []

    def lost() -> None:
        if len(waited) == 2:
            raise PreconditionError("machine m2: lost")

    def condition() -> bool:
        waited.append(True)
        return False

    with pytest.raises(PreconditionError, match="machine m2: lost"):
        RealTime(lost).until(condition, 600)
    assert 2 == len(waited)
    assert RealTime().until(lambda: True, 600) is True
