"""NATS's own faults: one for each file of a replica that keeps no record."""

from __future__ import annotations

import pytest

from harness.ability import Ability
from harness.bit_rot import Where
from harness.effect import Effect
from nemesis import faults_of
from targets.nats.target import TARGET

STATES = [where for where in Where if where.is_state]


@pytest.mark.parametrize("where", STATES)
def test_file_of_each_state_has_a_fault_that_says_how_it_is_probed(where: Where) -> None:
    fault = faults_of(TARGET)[f"bit-rot-{where.value}"]
    assert (f"bit-rot-{where.value}", Effect.BIT_ROT, 0.0) == (fault.name, fault.effect, fault.weight)
    assert (Ability.BIT_ROT,) == fault.needs
    assert "probe" in (fault.inject.__doc__ or "")
