"""What an operator has no method for, a target lacks; whoever asks for it all the same is refused."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from harness.ability import OF_TARGETS, Ability
from harness.model import PreconditionError
from harness.target.operator import REQUESTS, Operator, lacking, requests_of
from targets.kafka_family.zookeeper.view import RealZooKeeperView
from targets.simulator.broker.view import SimZooKeeperView


class Elects(Operator):
    """An operator that can be asked for elections alone."""

    def elect(self, topic: str, partition: int, name: str) -> str:
        """Say what was asked."""
        return f"{name} asked for, for {topic}-{partition}"


class Appoints(Operator):
    """An operator that makes a node the controller."""

    def appoint(self, name: str) -> str:
        """Say what was asked."""
        return f"{name} appointed"


def test_operator_appoints_a_controller_only_if_it_has_the_method() -> None:
    assert (False, False, True) == (Operator().appoints, Elects().appoints, Appoints().appoints)
    assert "A appointed" == Appoints().appoint("A")
    # Scenarios cannot ask for it: it is no ability.
    assert frozenset() == requests_of(Appoints)


def test_requests_are_the_methods_that_a_targets_own_operator_has() -> None:
    assert (frozenset(), {Ability.ELECT}) == (requests_of(Operator), requests_of(Elects))
    assert {*REQUESTS} == requests_of(RealZooKeeperView) == requests_of(SimZooKeeperView)


@pytest.mark.parametrize(("ask", "says"), [
    (lambda operator: operator.appoint("A"), "appoint A"),
    (lambda operator: operator.move("log", 0, ["A", "B"]), "move log-0 to A, B"),
    (lambda operator: operator.wanted("log", 0), "wanted nodes of log-0"),
    (lambda operator: operator.remove("log", [2]), r"remove partitions \[2\] of log"),
    (lambda operator: operator.expire("A"), "expire A"),
    (lambda operator: operator.depose(), "depose the controller"),
])  # fmt: skip
def test_request_that_is_lacking_is_refused(ask: Callable[[Operator], object], says: str) -> None:
    with pytest.raises(PreconditionError, match=f"^{says}: the target has no such request; expected one that has"):
        ask(Elects())
    assert None is Elects().elections_asked()


def test_reason_names_the_target_and_what_it_lacks_and_machines_are_asked_for_the_rest() -> None:
    assert "toy has no move" == lacking("toy", {Ability.ELECT}, Ability.MOVE)
    assert "" == lacking("toy", {Ability.ELECT}, Ability.ELECT)
    assert "" == lacking("toy", set(), Ability.BIT_ROT)
    assert {*REQUESTS} < OF_TARGETS
