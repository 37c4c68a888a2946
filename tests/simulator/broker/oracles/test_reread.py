"""A controller that decides by an ISR which it must have read again is named."""

from __future__ import annotations

from typing import Any

import pytest

from targets.broker.core import controller
from targets.broker.core.state import Core
from targets.broker.core.wishes import Wishes, encode_wishes
from targets.broker.core.zookeeper import ELECTIONS, broker_path
from targets.simulator.broker.oracles import Oracles, Rule
from targets.simulator.broker.world import World
from targets.simulator.zookeeper import ops
from tests.simulator.broker.oracles.planted import patch, sentence_of, watched
from tests.simulator.worlds import TP, WAIT_S, boot, cluster, state


def _only_unknown(_original: Any, core: Core, *asked: Any) -> tuple[tuple[Any, ...], bool]:
    """Read the states of partitions that were never read, and no others."""
    return tuple(tp for tp in asked[1] if tp not in core.state.controller.seen), False


def _kill(world: World, name: str) -> None:
    world.nodes[name].kill()
    world.zookeeper.expire(world.zookeeper.session_of(broker_path(world.ids[name])))


@pytest.mark.parametrize("forgets", [False, True])
def test_isr_to_which_a_broker_came_before_it_went_must_be_known(
    monkeypatch: pytest.MonkeyPatch, *, forgets: bool
) -> None:
    world, oracles = watched()
    _kill(world, "B")
    assert world.until(lambda: world.ids["B"] not in state(world).isr, WAIT_S)
    boot(world, "B")
    assert world.until(lambda: world.ids["B"] in state(world).isr, WAIT_S)
    world.run(0.5)
    if forgets:
        patch(monkeypatch, controller, "to_read", _only_unknown)
    _kill(world, "B")
    world.run(0.5)
    says = "C does not know that broker 2, which it has read to be gone, is in log-0's ISR"
    assert forgets is (says in sentence_of(oracles, Rule.OFFICE))


@pytest.mark.parametrize("forgets", [False, True])
def test_isr_that_a_move_waits_for_must_be_known(monkeypatch: pytest.MonkeyPatch, *, forgets: bool) -> None:
    world = cluster("kip380", replicas=("A", "B"))
    oracles = Oracles(world, [TP])
    if forgets:
        patch(monkeypatch, controller, "to_read", _only_unknown)
    ask = ops.Create(path=ELECTIONS, data=encode_wishes(Wishes(moves={TP: (1, 3)})))
    world.zookeeper.tree.write((ask,), 0)
    world.run(3.0)
    assert forgets is ("for the ISR of log-0, whose move waits for it" in sentence_of(oracles, Rule.OFFICE))
