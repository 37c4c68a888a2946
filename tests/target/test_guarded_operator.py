"""The operator of a target of one's own, guarded: it makes topics if the one behind it does, and says so."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from harness.model import PreconditionError
from harness.target.guarded import BrokenPartError, guarded
from harness.target.metadata import TargetRun
from harness.target.operator import Operator

RUN = TargetRun(
    target="toy", ids={"A": 1, "B": 2}, folder=Path("/run"), record=lambda _: None, give_up=lambda _: None
)


class Makes(Operator):
    """One that makes topics."""

    def __init__(self, answer: object = "made") -> None:
        self.answer, self.asked = answer, list[tuple[str, Sequence[Sequence[str]]]]()

    def create(self, topic: str, assignments: Sequence[Sequence[str]]) -> str:
        self.asked.append((topic, assignments))
        if isinstance(self.answer, Exception):
            raise self.answer
        found: Any = self.answer
        return str(found) if isinstance(found, str) else found  # type: ignore[no-any-return]


def behind(operator: Operator, lost: list[Exception] | None = None) -> Operator:
    """Return the guarded operator of a target with this one."""
    target: Any = SimpleNamespace(name="toy", operator=lambda run, metadata: operator)
    metadata: Any = SimpleNamespace()
    run = TargetRun(
        target="toy",
        ids=RUN.ids,
        folder=RUN.folder,
        record=RUN.record,
        give_up=([] if lost is None else lost).append,
    )
    return guarded(target).operator(run, metadata)


def test_operator_makes_no_topics_unless_it_has_the_method() -> None:
    assert (False, True) == (Operator().creates, Makes().creates)
    assert (False, True) == (behind(Operator()).creates, behind(Makes()).creates)


def test_topic_is_asked_for_of_the_operator_behind_it() -> None:
    made = Makes("table log")
    assert "table log" == behind(made).create("log", [["A", "B"], ["B"]])
    assert [("log", [["A", "B"], ["B"]])] == made.asked


class Appoints(Operator):
    """One that makes a node the controller."""

    def __init__(self, answer: object = "appointed") -> None:
        self.answer = answer

    def appoint(self, name: str) -> str:
        found: Any = self.answer
        return found  # type: ignore[no-any-return]


def test_operator_appoints_a_controller_if_the_one_behind_it_does() -> None:
    assert (False, True) == (behind(Operator()).appoints, behind(Appoints()).appoints)
    assert "appointed" == behind(Appoints()).appoint("A")
    lost: list[Exception] = []
    with pytest.raises(BrokenPartError, match="target toy, operator: appoint: 7; expected one line"):
        behind(Appoints(7), lost).appoint("A")
    assert 1 == len(lost)


def test_operator_without_the_method_refuses() -> None:
    said = r"create log on \[\['A'\]\]: the target has no such request; expected one that has"
    for operator in (Operator(), behind(Operator())):
        with pytest.raises(PreconditionError, match=said):
            operator.create("log", [["A"]])


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (7, "target toy, operator: create: 7; expected one line"),
        (None, "target toy, operator: create: None; expected one line"),
        (ZeroDivisionError("a bug"), "target toy, operator: create: ZeroDivisionError: a bug"),
    ],
)
def test_what_it_may_not_do_makes_the_run_unknown_and_names_target_and_part(answer: object, said: str) -> None:
    lost: list[Exception] = []
    with pytest.raises(BrokenPartError, match=said):
        behind(Makes(answer), lost).create("log", [["A"]])
    assert [True] == [str(each).startswith(said) for each in lost]


def test_topic_that_is_not_made_now_is_no_fault_of_the_target() -> None:
    lost: list[Exception] = []
    with pytest.raises(PreconditionError, match=r"^no leaders$"):
        behind(Makes(PreconditionError("no leaders")), lost).create("log", [["A"]])
    assert [] == lost
