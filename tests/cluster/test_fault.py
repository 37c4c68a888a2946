"""What the ops of a fault record depends on what the system does with its disk."""

from __future__ import annotations

import pytest

from harness.effect import Effect
from harness.target.traits import Traits
from nemesis import NEMESES

MAPPED, CALLED = Traits(maps_log=True), Traits()


@pytest.mark.parametrize("name", ["disk-full", "write-error", "read-error", "disk-read-only"])
def test_error_of_a_disk_takes_what_a_mapped_log_had_unflushed(name: str) -> None:
    fault = NEMESES[name]
    assert (Effect.DOWN, Effect.PAGES_LOST) == (fault.nature_in(CALLED).effect, fault.nature_in(MAPPED).effect)
    assert fault.nature_in(CALLED).band == fault.nature_in(MAPPED).band


@pytest.mark.parametrize(
    "name", ["kill", "stop", "power-loss", "disk-slow", "flush-error", "lose-disk", "restart"]
)
def test_any_other_fault_has_one_nature(name: str) -> None:
    fault = NEMESES[name]
    assert fault.nature == fault.nature_in(MAPPED) == fault.nature_in(CALLED)
