"""Rounds are played side by side, handed on in one thread, and taken down whatever happens."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from harness.cli.rounds import (
    Ended,
    Missed,
    Round,
    Side,
    cell_spec,
    judge_run,
    open_sides,
    play_rounds,
    seen_of_any,
)
from harness.cli.searching import Order

from harness.chance.pace import REAL
from harness.cli import rounds
from harness.history import History
from harness.model import Op, OpType, Source, Verdict
from harness.run.store import SuiteDir

SPEC = Order(target="broker", variant="hw", real=True).spec()


class Cancelled:
    """In place of a stage: whether its clusters were taken down."""

    def __init__(self) -> None:
        self.cancels = 0

    def cancel(self) -> None:
        self.cancels += 1


def side() -> tuple[Side, Cancelled]:
    stage: Any = Cancelled()
    return Side(name="ours", spec=SPEC, stage=stage), stage


def play(monkeypatch: pytest.MonkeyPatch, how: Any, seeds: int, jobs: int, take: Any) -> Cancelled:
    one, stage = side()
    monkeypatch.setattr(rounds, "play_round", how)
    todo: Iterator[Round] = (Round(side=one, seed=seed) for seed in range(seeds))
    try:
        play_rounds(todo, [one.stage], SuiteDir(path=Path()), jobs, take)
    finally:
        how.stage = stage
    return stage


def ended(one: Round, _: SuiteDir) -> Any:
    return SimpleNamespace(round=one)


@pytest.mark.parametrize(("release", "client"), [("0.10.2.2", "librdkafka"), ("3.9.1", "raw")])
def test_sides_are_played_with_one_client_that_which_the_first_needs(
    release: str, client: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One that sends a record again by itself has more acknowledged than one that does not."""
    wished: list[str | None] = []

    class Ground:
        zookeeper = None

        def __init__(self, _name: str, *, client: str | None, **_: Any) -> None:
            wished.append(client)

        def open(self, _folder: Path) -> None:
            pass

        def close(self) -> None:
            pass

    monkeypatch.setattr(rounds, "RealEnvironment", Ground)
    specs = {"theirs": Order(target="kafka", variant=release, real=True).spec(), "ours": SPEC}
    with open_sides(specs, host="local", ports=None, power_tier=None, folder=tmp_path) as sides:
        assert ["theirs", "ours"] == [one.name for one in sides]
    assert [client, client] == wished


def test_every_round_is_played_once_and_taken_in_the_callers_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    taken: list[tuple[int, str]] = []

    def take(one: Ended) -> None:
        taken.append((one.round.seed, threading.current_thread().name))

    stage = play(monkeypatch, ended, 20, 4, take)
    assert list(range(20)) == sorted(seed for seed, _ in taken)
    assert {threading.current_thread().name} == {name for _, name in taken}
    assert 0 == stage.cancels


def test_round_that_fails_ends_all_and_takes_every_cluster_down(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(one: Round, _: SuiteDir) -> Any:
        if one.seed == 3:
            raise OSError("no space")
        return SimpleNamespace(round=one)

    with pytest.raises(OSError, match="no space"):
        play(monkeypatch, fails, 1000, 2, lambda _: None)
    assert 1 == fails.stage.cancels  # type: ignore[attr-defined]


def test_round_that_a_busy_machine_did_not_answer_is_missed_and_the_others_go_on(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def busy(one: Round, _: SuiteDir) -> Any:
        if one.seed == 3:
            raise TimeoutError("no answer")
        return SimpleNamespace(round=one)

    taken: list[tuple[int, bool]] = []
    stage = play(monkeypatch, busy, 6, 2, lambda one: taken.append((one.round.seed, isinstance(one, Missed))))
    assert [(seed, seed == 3) for seed in range(6)] == sorted(taken)
    assert 0 == stage.cancels


def test_interrupt_takes_every_cluster_down_before_it_is_passed_on(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(_: Ended) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        play(monkeypatch, ended, 5, 1, interrupted)
    assert 1 == ended.stage.cancels  # type: ignore[attr-defined]


def test_schedule_has_more_time_for_what_has_limits_on_real_processes() -> None:
    spec = cell_spec(SPEC, 4)
    assert SPEC.profile.heal_within_s * REAL.slack == spec.scenario.settings.heal_within_s
    assert ("seed-4", "seed-4-hw") == (spec.scenario.name, spec.name)


def op(index: int, source: Source, f: str, process: str = "A", **value: Any) -> Op:
    return Op(index=index, time_ns=index, source=source, process=process, type=OpType.INFO, f=f, value=value)


def test_what_only_some_brokers_tell_is_left_out_where_two_are_compared() -> None:
    ops = [
        op(0, Source.BROKER, "append"),
        op(1, Source.BROKER, "printed"),
        op(2, Source.BROKER, "stuck"),
        op(3, Source.LOG, "batch"),
    ]
    assert [1, 2, 3] == [one.index for one in seen_of_any(ops)]


def test_run_is_judged_by_its_history_and_proves_nothing_when_nothing_was_done(tmp_path: Path) -> None:
    run = SuiteDir(path=tmp_path).create_run("run")
    history = History(run.history)
    history.record(Source.RUNNER, "runner", OpType.INFO, "done", {})
    history.close()
    trial = judge_run(run, 7, 1.5)
    assert (7, 1.5, Verdict.UNKNOWN) == (trial.seed, trial.seconds, trial.verdict)
    assert "no record of the schedule was acknowledged" in trial.vacuous
