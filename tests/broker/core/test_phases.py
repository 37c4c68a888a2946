"""A follower's phases: the legal transitions; every other transition raises."""

from __future__ import annotations

import ast
from itertools import product
from pathlib import Path

import pytest

from targets.broker.core import phases
from targets.broker.core.epochs import EpochCache
from targets.broker.core.phases import MOVES, Turn, move
from targets.broker.core.rules import PROTOCOLS
from targets.broker.core.state import Phase, Replica
from tests.broker.core.memory import TP, log_of

CORE = Path(phases.__file__).parent


def follower(phase: Phase) -> Replica:
    """Return a replica in that phase."""
    return Replica(tp=TP, log=log_of(), epochs=EpochCache(PROTOCOLS["kip380"]), high_watermark=0, phase=phase)


@pytest.mark.parametrize(("phase", "turn"), list(product(Phase, Turn)))
def test_move_is_made_as_the_table_has_it_or_raises_with_phase_and_turn(phase: Phase, turn: Turn) -> None:
    replica = follower(phase)
    after = MOVES[phase].get(turn)
    if after is None:
        with pytest.raises(AssertionError, match=f"follower is {phase.name}, met {turn.name}; expected FOLLOW"):
            move(replica, turn)
        assert phase is replica.phase
    else:
        move(replica, turn)
        assert after is replica.phase


def test_new_leader_frees_a_follower_from_every_phase() -> None:
    """Source: KIP-320, "should await a new LeaderAndIsr"."""
    assert {Phase.TRUNCATING} == {moves[Turn.FOLLOW] for moves in MOVES.values()}
    assert MOVES.keys() == set(Phase)


def test_no_other_line_of_the_core_sets_a_phase() -> None:
    setters = [
        path.name
        for path in sorted(CORE.glob("*.py"))
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Assign)
        and any(isinstance(target, ast.Attribute) and target.attr == "phase" for target in node.targets)
    ]
    assert ["phases.py"] == setters
