"""`return`: the line of the table that undoes `zombie`; what it does is told in test_zombie.py."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

from harness.cluster import Cluster
from nemesis import NEMESES


def test_return_heals_the_cut_that_made_the_zombie_and_forgets_it() -> None:
    healed: list[object] = []
    cut = object()
    made = SimpleNamespace(
        zombies={"A": cut},
        down=set(),
        fabric=SimpleNamespace(heal=healed.append),
        observer=SimpleNamespace(registered=lambda _: 255),
        await_=lambda condition, _saw: condition() or 1 / 0,
    )
    assert "registered in session 0xff" == NEMESES["return"].inject(cast(Cluster, cast(Any, made)), "A")
    assert ([cut], {}) == (healed, made.zombies)
