"""The nature of a fault is read from its op, or looked up by the fault's name for an older run."""

from __future__ import annotations

from typing import Any

import pytest

from harness.effect import DOWN, ON_LINKS, ON_METADATA, RENAMED_FAULTS, Band, Effect, Nature, nature_of
from harness.events import Injection
from harness.events.codec import encode
from harness.model import HistoryError, Op, OpType, Source
from tests.events.filled import filled
from tests.faults import NEMESES


def op(f: str, **value: Any) -> Op:
    whole = filled(Source.NEMESIS, f, value)
    return Op(index=7, time_ns=0, source=Source.NEMESIS, process="nemesis", type=OpType.OK, f=f, value=whole)


def test_nature_reads_back_from_what_an_op_carries() -> None:
    nature = Nature(effect=Effect.CLOCK_WRONG, heals=DOWN, band=Band.IMPAIRED)
    skew = Injection(name="skew", nodes=("A",), **nature.as_fields())
    assert nature == nature_of(Op.of(skew, index=7, time_ns=0, process="nemesis", type=OpType.OK))
    assert nature == nature_of(op("skew", **encode(skew)))


# Faults that no history without effects has: they are younger.
NEWER = {
    *("disk-full", "flush-error", "lose-disk", "write-error", "read-error", "disk-read-only", "disk-slow"),
    *("mend-disk", "power-loss-torn", "client-crash", "zookeeper-multi-lost", "suspend", "wake"),
    *("bit-rot-closed", "bit-rot-active", "bit-rot-checkpoint", "move-away", "move-back"),
    *(name for name in NEMESES if name.startswith("clock-")),
}
NEWER |= {
    name
    for name, fault in NEMESES.items()
    if {fault.effect, *fault.heals} & (ON_LINKS | ON_METADATA | {Effect.PACKETS_IMPAIRED})
}


@pytest.mark.parametrize("name", [name for name in NEMESES if name not in NEWER])
def test_op_of_an_older_run_is_what_its_fault_is_now(name: str) -> None:
    older = {new: old for old, new in RENAMED_FAULTS.items()}
    assert NEMESES[name].nature == nature_of(op(older.get(name, name), nodes=["A"]))


def test_fault_of_an_older_run_that_nobody_knows_has_no_effect() -> None:
    assert Nature() == nature_of(op("dance"))


def test_effect_that_does_not_exist_is_a_malformed_history() -> None:
    with pytest.raises(HistoryError, match="op 7: skew: 'sideways' is not a valid Effect"):
        nature_of(op("skew", effect="sideways"))
