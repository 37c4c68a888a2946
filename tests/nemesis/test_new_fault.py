"""A new fault is one object in the table: it is drawn, played, probed, healed, shaded and counted as usual."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from checkers.facts.activity import activity_of
from checkers.facts.outages import outages
from checkers.judge import check_in_process
from checkers.rules.vacuous import vacuous
from checkers.verdict import verdict_of
from harness.cluster.cluster import Cluster
from harness.cluster.fault import Fault
from harness.effect import Band, Effect
from harness.history.memory import MemoryHistory
from harness.model import Op, OpType, PreconditionError, Source, Verdict
from harness.random_schedule.generate import draw_schedule
from harness.random_schedule.profile import DEFAULT
from harness.report.reading import Reading
from harness.report.timeline import timeline_of
from harness.report.timeline_svg import draw_timeline
from harness.run.player import Player
from harness.run.spec import RunSpec
from harness.scenario.file import draw
from harness.scenario.variant import Variant
from nemesis import kill, restart
from targets.broker_target.target import TARGET
from targets.simulator.broker.environment import SimEnvironment
from tests.faults import NEMESES

SEED = 3
# Every schedule can draw every kind of fault; the new faults have their own weights.
PROFILE = replace(DEFAULT, tempers=(1.0,))


class Clocks:
    """
    The clocks of nodes, with a fault that sets them wrong.

    Attributes:
        wrong: the nodes whose clock is wrong.
        rusty: healing raises an error.
        lying: healing reports success and changes nothing.
    """

    def __init__(self, *, rusty: bool = False, lying: bool = False) -> None:
        self.wrong: set[str] = set()
        self.rusty = rusty
        self.lying = lying

    def fault(self) -> Fault:
        return Fault(
            name="skew",
            doc="set the clock of a node an hour back",
            inject=self.skew,
            probe=lambda _, name: "" if name in self.wrong else "its clock is right",
            heal=self.right,
            effect=Effect.CLOCK_WRONG,
            band=Band.IMPAIRED,
            weight=20.0,
        )

    def skew(self, _cluster: Cluster, name: str) -> str:
        self.wrong.add(name)
        return f"{name}'s clock is an hour late"

    def right(self, _cluster: Cluster, name: str) -> str:
        if self.rusty:
            raise PreconditionError(f"skew {name}: its clock cannot be set")
        if not self.lying:
            self.wrong.discard(name)
        return f"{name}'s clock is right"


OOM = Fault(
    name="oom",
    doc="have the kernel kill the process",
    inject=lambda cluster, name: cluster.take_down(name, cluster.host.kill),
    probe=kill.probe,
    heal=restart.inject,
    effect=Effect.DOWN,
    band=Band.DOWN,
    weight=20.0,
)


def played(clocks: Clocks) -> list[Op]:
    """Draw a schedule with both faults, play it in the simulator and return its history."""
    faults = {**NEMESES, "skew": clocks.fault(), "oom": OOM}
    schedule = draw_schedule(SEED, faults, PROFILE)
    spec = RunSpec(
        target=TARGET.name,
        host="sim",
        variant=Variant(protocol="kip380"),
        rules=TARGET.rules("kip380", ()),
        traits=TARGET.traits("kip380", ()),
        scenario=schedule,
        draw=draw(schedule, SEED),
        nemeses=("all",),
    )
    history = MemoryHistory(Path("T"))
    Player(environment=SimEnvironment("sim", TARGET), faults=faults).play_into(history, spec, Path())
    return history.ops


def judged(ops: list[Op]) -> Verdict:
    return verdict_of(check_in_process(ops))


def of(ops: list[Op], f: str, type_: OpType = OpType.OK) -> list[Op]:
    return [op for op in ops if (op.source, op.f, op.type) == (Source.NEMESIS, f, type_)]


def test_new_fault_is_drawn_played_proven_and_healed_once_on_every_node() -> None:
    clocks = Clocks()
    ops = played(clocks)
    skewed = [op.value["nodes"] for op in of(ops, "skew")]
    assert len(skewed) > 1
    assert sorted(skewed) == sorted(op.value["nodes"] for op in of(ops, "heal-skew"))
    assert set() == clocks.wrong
    assert {"clock-wrong"} == {op.value["effect"] for op in of(ops, "skew")}
    assert {("clock-wrong",)} == {tuple(op.value["heals"]) for op in of(ops, "heal-skew")}
    (healed,) = [op for op in ops if op.f == "healed"]
    assert max(op.index for op in of(ops, "heal-skew")) < healed.index
    assert (OpType.OK, Verdict.VALID) == (healed.type, judged(ops))


def test_new_fault_that_takes_a_node_down_is_an_outage_for_checkers_until_it_starts_again() -> None:
    ops = played(Clocks())
    found = [outage for outage in outages(ops) if outage.op.f == "oom"]
    assert [op.index for op in of(ops, "oom")] == [outage.op.index for outage in found]
    assert all(outage.back is not None and not outage.power_lost for outage in found)


def test_new_fault_is_shaded_from_its_probe_to_its_healing() -> None:
    ops = played(Clocks())
    reading = Reading(ops=ops)
    timeline = timeline_of(reading, frozenset(), {})
    shaded = [item for item in timeline.items if item.label == "clock wrong"]
    assert [op.index for op in of(ops, "skew")] == [item.first.index for item in shaded]
    assert {"heal-skew"} == {item.last.f for item in shaded if item.last}
    assert draw_timeline(timeline, ops).plot.count("down st-paused") >= len(shaded)
    assert [i.label for i in timeline.items if i.lane == "nemesis"].count("heal-skew A") <= 1
    assert len(of(ops, "oom")) == [i.css for i in timeline.items if i.label == "killed"].count("st-down")


def test_new_fault_is_counted_and_its_healing_proves_nothing() -> None:
    ops = played(Clocks())
    bit = activity_of(ops).bit
    assert (len(of(ops, "skew")), len(of(ops, "oom"))) == (bit["skew"], bit["oom"])
    assert [] == vacuous(ops)
    harmless = [op for op in ops if op.source is not Source.NEMESIS or op.f == "heal-skew"]
    # The simulator reports the faults of its ZooKeeper, which bit too.
    harmless = [op for op in harmless if op.source not in (Source.FABRIC, Source.SIMULATOR)]
    assert ["No fault of the schedule bit."] == [anomaly.sentence for anomaly in vacuous(harmless)]


@pytest.mark.parametrize(
    ("clocks", "says"), [(Clocks(rusty=True), "cannot be set"), (Clocks(lying=True), "still in force after")]
)
def test_fault_whose_healing_fails_makes_the_run_unknown_and_all_else_is_healed_and_read(
    clocks: Clocks, says: str
) -> None:
    clocks.wrong.clear()
    ops = played(clocks)
    (healed,) = [op for op in ops if op.f == "healed"]
    assert (OpType.FAIL, Verdict.UNKNOWN) == (healed.type, judged(ops))
    assert says in healed.value["missing"]
    assert {f"skew {node}" for node in clocks.wrong} == set(healed.value["unhealed"])
    reads = [op for op in ops if op.index > healed.index and op.f in ("read", "snapshot")]
    assert {(Source.LOG, OpType.OK)} == {(op.source, op.type) for op in reads}
    assert len(of(ops, "restart")) >= len({node for op in of(ops, "oom") for node in op.value["nodes"]})
