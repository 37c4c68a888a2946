"""
At the end every replica must be back in the ISR: equal logs are not enough, and who is missing is named.

The fault here is none of the table. It cuts a node from ZooKeeper for good and ends its session, as a network does
that no harness can heal. All processes run, and all logs end at one offset.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

import pytest

from checkers.judge import judge
from harness.cluster.cluster import Cluster
from harness.cluster.fault import Fault
from harness.cluster.interfaces import Links
from harness.effect import Band, Effect
from harness.environment.real import RealEnvironment
from harness.events import Healed
from harness.fabric.core.rules import METADATA
from harness.history.file import read_history
from harness.history.memory import MemoryHistory
from harness.hosts import HOSTS
from harness.launch import Address
from harness.model import Kind, OpType, Verdict, events_of
from harness.run.player import Player
from harness.run.result import RunResult
from harness.run.spec import RunSpec
from harness.run.store import create_suite
from harness.scenario.file import draw, parse
from harness.scenario.variant import Variant
from targets.broker_target.target import TARGET
from targets.simulator.broker.environment import SimEnvironment
from tests.faults import NEMESES
from tests.services import shared

STEPS = """\
produce m1 acks=all
lock-out B
await gone B
await isr = A
"""
_FILE = """\
title    A replica never comes back to the ISR
source   a test
nodes    A B replicas, C controller
records  m1 2, m2 1
settings heal_within_s=3
{steps}
expect kip380: none
"""


class Unhealing:
    """The links of a cluster, without the healing at the end of a run."""

    def __init__(self, links: Links) -> None:
        self._links = links

    def __getattr__(self, name: str) -> Any:
        return getattr(self._links, name)

    def heal_all(self) -> None:
        """Heal nothing."""


def _lock_out(cluster: Cluster, name: str) -> str:
    cluster.fabric.cut(name, METADATA, close=True)
    cluster.fabric = cast(Links, Unhealing(cluster.fabric))
    return cluster.operator.expire(name)


LOCK_OUT = Fault(
    name="lock-out",
    doc="cut the node from ZooKeeper for good, and end its session",
    inject=_lock_out,
    heal=None,
    effect=Effect.SESSION_ENDED,
    band=Band.MARK,
)
FAULTS = {**NEMESES, LOCK_OUT.name: LOCK_OUT}


def _spec(steps: str, host: str) -> RunSpec:
    scenario = parse("left-outside", _FILE.format(steps=steps), "this test", FAULTS)
    return RunSpec(
        target=TARGET.name,
        host=host,
        variant=Variant(protocol="kip380"),
        rules=TARGET.rules("kip380", ()),
        traits=TARGET.traits("kip380", ()),
        scenario=scenario,
        draw=draw(scenario, 1),
    )


def _simulated(steps: str) -> tuple[RunResult, list[Healed]]:
    """Return the judgement of the steps in the simulator, and what the runner said at the end."""
    spec, history = _spec(steps, "sim"), MemoryHistory(Path("T"))
    Player(environment=SimEnvironment("sim", TARGET), faults=FAULTS).play_into(history, spec, Path())
    return judge(spec, history.ops), [each for _, each in events_of(history.ops, Healed)]


def _is_hang_of_b(result: RunResult) -> None:
    (found,) = (each for each in result.anomalies if each.kind is Kind.STUCK)
    assert (Verdict.HANG, ("B",)) == (result.verdict, found.nodes)
    expected = "B is not in the ISR after healing: not seen within 3 s: B in the ISR, which is A; log ends "
    assert found.sentence.startswith(expected), found.sentence


def test_replica_that_never_returns_to_the_isr_is_a_hang_though_all_logs_are_equal() -> None:
    result, (healed,) = _simulated(STEPS)
    _is_hang_of_b(result)
    assert ("log-0 B",) == healed.outside


def test_replica_may_stay_outside_where_the_last_steps_require_so() -> None:
    result, (healed,) = _simulated(f"{STEPS}require isr = A\n")
    assert ("", None) == (healed.missing, healed.outside)
    assert Kind.STUCK not in {each.kind for each in result.anomalies}


@pytest.mark.parametrize("last", ["produce m2 acks=all\nawait isr = A", "require isr = A\nproduce m2 acks=all"])
def test_neither_an_await_nor_what_was_required_before_a_later_step_lets_a_replica_stay_outside(last: str) -> None:
    """A `require` before another step is about that moment, and an `await` waits for what passes."""
    result, _ = _simulated(f"{STEPS}{last}\n")
    assert [("B",)] == [each.nodes for each in result.anomalies if each.kind is Kind.STUCK]


def test_settle_names_the_isr_that_it_waits_for() -> None:
    result, _ = _simulated(f"{STEPS}settle\n")
    assert "B in the ISR, which is A; log ends {'A': 2, 'B': 2}" in result.reason


@pytest.mark.slow
def test_real_replica_that_never_returns_to_the_isr_is_a_hang(tmp_path: Path, zookeeper: Address) -> None:
    environment = RealEnvironment(
        "local", make_host=HOSTS["local"], target=TARGET, client="raw", shared=shared(zookeeper)
    )
    spec = _spec(STEPS, "local")
    run = create_suite(tmp_path, tmp_path.name).create_run("left-outside")
    Player(environment=environment, faults=FAULTS).play(spec, run)
    ops = read_history(run.history)
    _is_hang_of_b(judge(spec, ops))
    assert OpType.FAIL in {op.type for op, _ in events_of(ops, Healed)}
