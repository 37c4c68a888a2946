"""Nodes of one world follow different protocols, on the same disks: what the steps say, and how it is judged."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from checkers.facts.view import rules_of, setup_of
from checkers.rules.whole import whole
from harness.events import Installed, Started
from harness.model import Kind, Op, UsageError, Verdict, events_of
from harness.random_schedule import generate
from harness.scenario.file import parse
from harness.scenario.variant import Variants
from harness.search.random_runs import RandomRuns
from harness.search.simulated import sim_player, simulate
from targets import VIRTUAL_HOST as SIM
from targets.broker.core import fetches, leader, questions
from targets.broker.core.messages import ErrorCode
from targets.broker.core.state import Replica
from targets.broker_target.target import TARGET
from tests.faults import NEMESES
from tests.nemesis.simulated import played
from workloads import SCENARIOS

RESTART = "stop {name}\nawait isr = {other}\ninstall {protocol} on {name}\nrestart {name}\nawait isr = A B\n"
DOWN_AND_UP = "produce m1 acks=all\n" + "".join(
    RESTART.format(name=name, other={"A": "B", "B": "A"}[name], protocol=protocol)
    for name, protocol in (("B", "@kip101"), ("A", "@kip101"), ("B", "own"), ("A", "own"))
)


def protocols(ops: list[Op]) -> list[tuple[str, str]]:
    return [(op.process, event.protocol) for op, event in events_of(ops, Started)]


def test_a_node_follows_what_was_installed_from_its_next_start_on() -> None:
    """Source: KIP-101, Compatibility, Deprecation, and Migration Plan, steps 1 and 2."""
    result, ops = played("rolling", DOWN_AND_UP + "produce m2 acks=all\n")
    assert (Verdict.VALID, ()) == (result.verdict, result.anomalies)
    later = [("B", "kip380@kip101"), ("A", "kip380@kip101"), ("B", "kip380"), ("A", "kip380")]
    assert later == protocols(list(ops))[3:]
    installed = [event for _, event in events_of(ops, Installed)]
    assert [event.protocol for event in installed] == [protocol for _, protocol in later]
    assert ["one_answer", "one_answer", "epoch_walk", "epoch_walk"] == [
        event.rules["truncate_to"] for event in installed
    ]


def test_a_leader_that_does_not_know_the_question_leaves_its_follower_to_the_high_watermark() -> None:
    """Source: KIP-101, Compatibility: else "the existing logic for High Watermark truncation will be used"."""
    steps = "produce m1 acks=all\n" + RESTART.format(name="B", other="A", protocol="kip101")
    result, ops = played("mixed", steps + "produce m2 acks=all\n", protocol="hw")
    assert (Verdict.VALID, ()) == (result.verdict, result.anomalies)
    assert not [op for op in ops if op.f == "epoch-question"]
    cuts = [op.event for op in ops if op.f == "truncate" and op.process == "B"]
    assert "high-watermark" in {cut.reason for cut in cuts[1:]}


@pytest.mark.parametrize(("steps", "says"), [
    ("install kip320 on A\n", "install kip320 on A: it runs; expected a node that is down"),
    ("stop A\ninstall kip101@nothing on A\n", "protocol 'kip101@nothing': 'nothing'; expected one of hw"),
    ("stop A\ninstall @kip380 on A\n", "protocol 'kip101@kip380': kip101 cannot speak kip380"),
])  # fmt: skip
def test_an_installation_that_cannot_be_made_proves_nothing(steps: str, says: str) -> None:
    result, _ = played("wrong", "produce m1 acks=all\n" + steps, protocol="kip101")
    assert Verdict.UNKNOWN is result.verdict
    assert any(says in each.sentence for each in result.anomalies)


def test_a_protocol_that_does_not_exist_is_refused_before_anything_starts() -> None:
    text = (
        (SCENARIOS / "upgrade.txt")
        .read_text(encoding="utf-8")
        .replace("install kip279 on B", "install kip27 on B")
    )
    path = Path("upgrade.txt")
    with pytest.raises(UsageError, match=r"upgrade.txt:\d+: .*'kip27'.*Did you mean 'kip279'"):
        parse(path.stem, text, str(path), NEMESES, Variants(protocols=TARGET.protocols(), change=TARGET.rules))


def test_a_node_that_starts_with_another_protocol_than_was_installed_makes_the_history_unknown() -> None:
    _, ops = played("rolling", DOWN_AND_UP)
    without = [op for op in ops if op.f != "installed"]
    sentences = [each.sentence for each in whole(without) if each.kind is Kind.UNCHECKED]
    assert any("B started with kip380@kip101" in each for each in sentences)
    assert not any("started with" in each.sentence for each in whole(list(ops)))


def test_nothing_is_certain_by_a_rule_that_an_upgrade_changed() -> None:
    _, ops = played("rolling", DOWN_AND_UP)
    setup, own = setup_of(ops), TARGET.rules("kip380", ())
    assert setup is not None
    changed = {rule for rule, value in TARGET.rules("kip380@kip101", ()).items() if own[rule] != value}
    assert {*own} - changed == {*setup.rules}
    first, *_ = [op.index for op, _ in events_of(ops, Installed)]
    assert ["no", "yes", "yes"] == [
        rules_of(ops, *each)["fence_fetch"] for each in (("B", first + 1), ("B", first), ("A", first + 1))
    ]


def refuse_without_epoch(replica: Replica, current: int) -> ErrorCode:
    """Fence as if every broker spoke KIP-320: also a request that has no epoch."""
    return ErrorCode.NONE if current == replica.leader_epoch else ErrorCode.FENCED_LEADER_EPOCH


def is_same_id(one: int, other: int) -> bool:
    """Compare topics as if every broker knew their ids (KIP-516)."""
    return one == other


@pytest.mark.parametrize(("name", "early"), [
    ("fence", refuse_without_epoch),
    ("is_same_topic", is_same_id),
])  # fmt: skip
@pytest.mark.slow
def test_broker_that_takes_all_others_for_upgraded_is_found_by_a_random_upgrade(
    monkeypatch: pytest.MonkeyPatch, name: str, early: Callable[..., Any]
) -> None:
    """Source: KIP-35; KIP-320, Compatibility: a request of an older version has no epoch, and is not fenced."""
    monkeypatch.setattr(generate, "has_upgrades", lambda _seed: True)
    runs = RandomRuns(target="broker", variant="kip380", host=SIM)
    spec = runs.spec(8001)
    assert spec.scenario.upgrades
    assert simulate(sim_player(TARGET), spec).verdict <= Verdict.PERMITTED
    for module in (fetches, leader, questions):
        monkeypatch.setattr(module, name, early)
    assert Verdict.HANG is simulate(sim_player(TARGET), spec).verdict
