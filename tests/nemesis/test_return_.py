"""`return`, the fault of the table that heals `zombie`; test_zombie.py tests it on real brokers."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

from harness.cluster.cluster import Cluster
from harness.cluster.fault import inject
from harness.cluster.in_force import FaultInForce, InForce
from harness.effect import Effect
from tests.faults import NEMESES


def test_return_heals_the_cut_that_made_the_zombie_and_forgets_it() -> None:
    healed: list[object] = []
    cut = object()
    made = SimpleNamespace(
        in_force=InForce(),
        down=set(),
        fabric=SimpleNamespace(heal=healed.append),
        metadata=SimpleNamespace(incarnation=lambda _: 255),
        await_=lambda condition, _saw: condition() or 1 / 0,
    )
    made.in_force.begin(FaultInForce(fault="zombie", effect=Effect.CUT_OFF, node="A", handle=cut))
    cluster = cast(Cluster, cast(Any, made))
    faults = {"return": NEMESES["return"]}
    assert "registered in session 0xff" == inject(cluster, faults, NEMESES["return"], "A")
    assert ([cut], []) == (healed, list(made.in_force))
