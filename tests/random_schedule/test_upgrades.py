"""A rolling downgrade and upgrade comes among the steps of a schedule, one broker after another."""

from __future__ import annotations

from decimal import Decimal

from harness.cluster.names import OWN
from harness.random_schedule.generate import draw_schedule
from harness.random_schedule.upgrades import OLDER, SHARE, has_upgrades, with_upgrades
from harness.scenario.steps import Act, Inject, Install, Pass, Settle
from nemesis import NEMESES

STEPS: list[Act] = [Pass(Decimal(ms)) for ms in range(1, 6)]
NODES = ["A", "B", "C"]
SEEDS = range(200)


def test_other_steps_stay_in_their_order() -> None:
    for seed in SEEDS:
        found = with_upgrades(seed, STEPS, NODES)
        assert STEPS[0] == found[0]
        assert STEPS == [act for act in found if act in STEPS]


def test_each_broker_that_goes_down_comes_up_again_and_the_cluster_is_whole_in_between() -> None:
    parts = set()
    for seed in SEEDS:
        found = with_upgrades(seed, STEPS, NODES)
        at = [number for number, act in enumerate(found) if isinstance(act, Install)]
        installed = [act for act in found if isinstance(act, Install)]
        down, up = installed[: len(installed) // 2], installed[len(installed) // 2 :]
        assert ({act.protocol for act in down} <= {*OLDER}, {act.protocol for act in up}) == (True, {OWN})
        assert {act.nodes for act in down} == {act.nodes for act in up}
        for number, act in zip(at, installed, strict=True):
            around = [Settle(), Inject("stop", act.nodes), act, Inject("restart", act.nodes), Settle()]
            assert around == [each for each in found[number - 3 : number + 3] if not isinstance(each, Pass)][-5:]
        parts.add(len(down))
    assert {1, 2, 3} == parts


def test_a_share_of_the_wide_runs_has_one_and_it_has_neither_keys_nor_churned_topics() -> None:
    drawn = [draw_schedule(seed, NEMESES) for seed in range(600)]
    upgraded = [each for each in drawn if each.upgrades]
    assert 0 < len(upgraded) < SHARE * len(drawn)
    assert all(each.further and not each.settings.keys and not each.clients.churners for each in upgraded)
    assert all(has_upgrades(int(each.name.removeprefix("seed-"))) for each in upgraded)
