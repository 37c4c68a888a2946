"""Simulated runs that stop at a violation: where, with what verdict, and each rule at something planted."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from checkers.judge import check_in_process, judge
from checkers.live.rules import ANOTHER, BACK, GONE, HIGH_WATERMARK, TWICE
from checkers.live.watch import LiveCheck
from harness.cli import play as play_command
from harness.cli.suites import specs_of
from harness.events import ScheduleStopped
from harness.history.memory import MemoryHistory
from harness.model import Kind, Op, OpType, Source, Verdict
from harness.run.result import RunResult
from harness.run.spec import RunSpec
from harness.scenario.file import draw, parse
from harness.search.random_runs import RandomRuns
from harness.search.simulated import sim_player
from harness.suite.options import Options
from targets import VIRTUAL_HOST as SIM
from tests.faults import NEMESES
from tests.kept import exhaustive

TARGET = RandomRuns(target="broker", variant="hw", host=SIM).load_target()
LAST = "restart B"
SCHEDULE = f"""title Planted
source chance
nodes A B replicas, C controller
records m1 2, m2 2, m3 1, last1 1, last2 1, last3 1, last4 1
settings min_isr=1 heal_within_s=3

produce m1 acks=all
produce m2 acks=all
read
produce m3 acks=all
read
pass 50ms
kill B
{LAST}
"""

Change = Callable[[Op], dict[str, Any] | None]


class Planted(MemoryHistory):
    """A history in which one op, the first that the change returns a value for, says something else."""

    def __init__(self, change: Change) -> None:
        super().__init__(Path("planted"))
        self._change: Change | None = change

    def _keep(self, op: Op) -> Op:
        changed = self._change(op) if self._change is not None else None
        if changed is not None:
            op, self._change = replace(op, value={**op.value, **changed}), None
        return super()._keep(op)


def spec_of(seed: int = 1, variant: str = "kip380", *, schedule: str = "", stop: bool = True) -> RunSpec:
    spec = RandomRuns(target="broker", variant=variant, host=SIM, stop_at_violation=stop).spec(seed)
    if not schedule:
        return spec
    scenario = parse("T", schedule, "T", NEMESES)
    return replace(spec, scenario=scenario, draw=draw(scenario, seed))


def play(spec: RunSpec, history: MemoryHistory | None = None) -> tuple[Sequence[Op], RunResult]:
    history = history or MemoryHistory(Path("T"))
    sim_player(TARGET).play_into(history, spec, Path())
    return history.ops, judge(spec, history.ops)


def stops(ops: Sequence[Op]) -> list[ScheduleStopped]:
    return [op.event for op in ops if isinstance(op.event, ScheduleStopped)]


def ended(ops: Sequence[Op]) -> list[str]:
    return [str(op.value["text"]) for op in ops if op.f == "step" and op.type is not OpType.INVOKE]


# --- each rule at what is planted ----------------------------------------------------------------------------
def acked_elsewhere(op: Op) -> dict[str, Any] | None:
    """The first record of m2 is acknowledged at an offset of m1."""
    return {"offset": 0} if op.f == "produce" and op.type is OpType.OK and op.value["name"] == "m2" else None


def shown(change: Callable[[list[Any]], list[Any]]) -> Change:
    """A read shows what is made of its records."""
    return lambda op: {"records": change(op.value["records"])} if op.f == "read" and op.type is OpType.OK else None


def short(op: Op) -> dict[str, Any] | None:
    """A read is told a lower high watermark, and shows what is below it."""
    if op.f != "read" or op.type is not OpType.OK or op.value["high_watermark"] != 5:
        return None
    return {"records": op.value["records"][:3], "high_watermark": 3}


def lower(op: Op) -> dict[str, Any] | None:
    """The leader's high watermark falls."""
    return {"to": 1} if op.source is Source.BROKER and op.f == "high-watermark" and op.value["to"] == 4 else None


PLANTED: dict[str, tuple[str, Change, Kind]] = {
    "an offset is acknowledged twice": (TWICE, acked_elsewhere, Kind.LOST),
    "a read shows another record": (ANOTHER, shown(lambda all_: [[0, "x"], *all_[1:]]), Kind.WRONG_READ),
    "a read goes back": (BACK, shown(lambda all_: [all_[1], all_[0], *all_[2:]]), Kind.WRONG_READ),
    "a read skips": (BACK, shown(lambda all_: [all_[0], *all_[2:]]), Kind.WRONG_READ),
    "a read stops short": (BACK, short, Kind.WRONG_READ),
    "a leader's high watermark falls": (HIGH_WATERMARK, lower, Kind.WRONG_HIGH_WATERMARK),
}


@pytest.mark.parametrize("name", PLANTED)
def test_planted_violation_stops_the_run_before_its_schedule_ends_and_is_proven(name: str) -> None:
    rule, change, kind = PLANTED[name]
    ops, result = play(spec_of(schedule=SCHEDULE), Planted(change))
    assert [rule] == [stop.rule for stop in stops(ops)]
    assert LAST not in ended(ops)
    assert Verdict.INVALID is result.verdict
    assert kind in {anomaly.kind for anomaly in result.anomalies}
    assert [] == [anomaly.sentence for anomaly in result.anomalies if anomaly.checker == "stopped"]
    assert ["stopped", "healed", "done"] == [op.f for op in ops if op.f in ("stopped", "healed", "done")]


def test_schedule_without_a_violation_is_played_to_its_end_with_and_without_the_live_check() -> None:
    watched, _ = play(spec_of(schedule=SCHEDULE))
    alone, result = play(spec_of(schedule=SCHEDULE, stop=False))
    assert LAST in ended(watched)
    assert [] == stops(watched)
    assert Verdict.VALID is result.verdict
    assert [(op.f, op.time_ns) for op in alone] == [(op.f, op.time_ns) for op in watched]


def test_read_that_is_told_less_than_one_before_stops_the_run() -> None:
    schedule = SCHEDULE.replace("produce m3 acks=all\nread", "read").replace("acks=all", "acks=1")
    schedule = schedule.replace("m2 acks=1\n", "m2 acks=1\npass 50ms\n")  # both reads see all of it
    reads: list[int] = []

    def second(op: Op) -> dict[str, Any] | None:
        if op.f == "read" and op.type is OpType.OK:
            reads.append(op.index)
        return {"records": op.value["records"][:2], "high_watermark": 2} if len(reads) == 2 else None

    ops, result = play(spec_of(schedule=schedule), Planted(second))
    (stop,) = stops(ops)
    assert (HIGH_WATERMARK, tuple(reads[:2])) == (stop.rule, stop.proof)
    assert Kind.WRONG_HIGH_WATERMARK in {anomaly.kind for anomaly in result.anomalies}


def test_written_scenario_of_an_old_protocol_is_stopped_where_it_truncates_what_was_committed() -> None:
    options = Options(host=SIM, seed=7, results=Path("results"), stop_at_violation=True)
    (spec,) = specs_of(play_command.SELECTION, TARGET, options, ("kip101-1",), ("hw",))
    ops, result = play(spec)
    assert [GONE] == [stop.rule for stop in stops(ops)]
    steps = [step.text for step in spec.scenario.steps]
    assert steps[-1] not in ended(ops)
    assert Verdict.INVALID is result.verdict
    assert [] == [anomaly.sentence for anomaly in result.anomalies if anomaly.verdict is Verdict.UNKNOWN]


def test_run_that_was_stopped_for_nothing_is_unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    """The watch has a bug: it takes the second acknowledgement for a violation."""
    seen = ScheduleStopped(
        rule=TWICE, topic="t", partition=0, offsets=((2, 3),), sentence="M2 was acknowledged twice.", proof=(0,)
    )

    def step(_watch: LiveCheck, op: Op) -> ScheduleStopped | None:
        mine = op.f == "produce" and op.type is OpType.OK and op.value["name"] == "m2"
        place = op.place or ("", 0)
        return replace(seen, topic=place[0], partition=place[1], proof=(op.index,)) if mine else None

    monkeypatch.setattr(LiveCheck, "step", step)
    ops, result = play(spec_of(schedule=SCHEDULE))
    assert 1 == len(stops(ops))
    assert Verdict.UNKNOWN is result.verdict
    (why,) = (anomaly for anomaly in result.anomalies if anomaly.checker == "stopped")
    assert (
        "as the live check saw acknowledged-twice, and no rule finds that: M2 was acknowledged twice"
        in why.sentence
    )


# --- random runs ---------------------------------------------------------------------------------------------
@pytest.mark.slow
@exhaustive
def test_seed_stops_at_the_same_op_each_time_and_is_what_it_was_until_then() -> None:
    seed = next(seed for seed in range(20) if stops(play(spec_of(seed, "hw"))[0]))
    (first, _), (second, _) = play(spec_of(seed, "hw")), play(spec_of(seed, "hw"))
    assert [op.to_json() for op in first] == [op.to_json() for op in second]
    whole, _ = play(spec_of(seed, "hw", stop=False))
    at = next(op.index for op in first if op.f == "stopped")
    proof = max(stops(first)[0].proof)
    begun = [
        op for op in first[1:proof] if op.to_json() != whole[op.index].to_json()
    ]  # the set-up has the command
    assert [] == begun
    assert proof < at
    assert len(ended(first)) < len(ended(whole))


def _search(variant: str, seeds: range) -> dict[str, list[int]]:
    """Return the seeds by what came of them: `invalid`, `stopped`, `seen at the end`, and what must not be."""
    found: dict[str, list[int]] = {"invalid": [], "stopped": [], "late": [], "wrong": [], "unproven": []}
    for seed in seeds:
        ops, result = play(spec_of(seed, variant, stop=False))
        if result.verdict is Verdict.INVALID:
            found["invalid"].append(seed)
        watch = LiveCheck()
        if not any(watch.step(op) for op in ops):
            continue
        if result.verdict is not Verdict.INVALID:
            found["wrong"].append(seed)
        stopped, judged = play(spec_of(seed, variant))
        if not stops(stopped):
            found["late"].append(seed)
            continue
        found["stopped"].append(seed)
        if judged.verdict is not Verdict.INVALID or any(a.checker == "stopped" for a in check_in_process(stopped)):
            found["unproven"].append(seed)
    return found


@pytest.mark.slow
@pytest.mark.parametrize(
    ("variant", "seeds", "stopped"), [pytest.param("hw", 12, 1, marks=exhaustive), ("kip380", 6, 0)]
)
def test_search_stops_invalid_runs_alone(variant: str, seeds: int, stopped: int) -> None:
    found = _search(variant, range(seeds))
    assert ([], []) == (found["wrong"], found["unproven"])
    assert len(found["stopped"]) >= stopped
    assert {*found["stopped"], *found["late"]} <= {*found["invalid"]}


@pytest.mark.slow
@pytest.mark.exhaustive
@pytest.mark.parametrize(
    ("variant", "seeds", "stopped"),
    [
        ("kip380", 400, 0),
        ("hw", 200, 60),
        ("kip101", 200, 10),
        ("kip380+truncate_to=high_watermark", 100, 40),
        ("kip380+join_isr_past_epoch_start=no", 150, 1),
    ],
)
def test_search_of_some_hundred_seeds_stops_invalid_runs_alone(variant: str, seeds: int, stopped: int) -> None:
    found = _search(variant, range(seeds))
    assert ([], []) == (found["wrong"], found["unproven"])
    assert len(found["stopped"]) >= stopped
