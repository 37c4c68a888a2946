"""Runs are played in parallel, received in one thread, judged by their history, and always taken down."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest

from harness import limits
from harness.events import Done
from harness.history.file import History
from harness.model import OpType, Verdict
from harness.random_schedule.timing import REAL
from harness.run.environment import Environment
from harness.run.player import Player, setup_event
from harness.run.result import RunResult
from harness.run.spec import RunSpec
from harness.run.store import Run, SuiteDir, read_anomalies
from harness.search import real_runs
from harness.search.random_runs import RandomRuns
from harness.search.real_runs import Job, RealRun, open_players, play_many, play_real
from tests.search.results import result_of

RUNS = RandomRuns(target="broker", variant="hw", host="local")
Played = tuple[Run, RunResult]
Receive = Callable[[RealRun], None]


class FakePlayer:
    """A fake player that counts how often its clusters were taken down."""

    def __init__(self) -> None:
        self.cancels = 0

    def cancel(self) -> None:
        self.cancels += 1


class Playing:
    """Plays many runs with a fake in place of `play_real`; those of the seeds `failing` fail."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.player = FakePlayer()
        self.failing: set[int] = set()
        monkeypatch.setattr(real_runs, "play_real", self._play)

    def _play(self, player: Player, spec: RunSpec, folder: SuiteDir) -> Played:
        failure = "no space" if spec.seed in self.failing else ""
        return Run(path=folder.path / spec.name, failure=failure), result_of(Verdict.VALID, seed=spec.seed)

    def many(self, seeds: int, side_by_side: int, receive: Receive) -> str:
        spec = RUNS.spec(0)
        jobs: Iterator[Job] = (("ours", spec_with_seed(spec, seed)) for seed in range(seeds))
        players = {"ours": cast(Player, self.player)}
        return play_many(jobs, players, SuiteDir(path=Path()), side_by_side, receive)


def spec_with_seed(spec: RunSpec, seed: int) -> RunSpec:
    """Return the spec with only its seed replaced: drawing a thousand schedules would take long."""
    return replace(spec, draw=replace(spec.draw, seed=seed))


@pytest.fixture
def playing(monkeypatch: pytest.MonkeyPatch) -> Playing:
    return Playing(monkeypatch)


@pytest.mark.parametrize(("release", "client"), [("0.10.2.2", "librdkafka"), ("3.9.1", "raw")])
def test_systems_are_compared_with_one_client_which_the_first_needs(
    release: str, client: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A client that retries by itself gets more acknowledgements than one that does not."""
    clients: list[str | None] = []
    calls: list[str] = []

    class FakeEnvironment:
        shared = None

        def __init__(self, _name: str, *, client: str | None, **_: Any) -> None:
            clients.append(client)

        def open(self, _folder: Path) -> None:
            calls.append("open")

        def close(self) -> None:
            calls.append("close")

    monkeypatch.setattr(real_runs, "RealEnvironment", FakeEnvironment)
    runs = {"theirs": RandomRuns(target="kafka", variant=release, host="local"), "ours": RUNS}
    with open_players(runs, ports=None, folder=tmp_path, note=calls.append) as players:
        assert ["theirs", "ours"] == list(players)
    assert [client, client] == clients
    # Only the first environment starts services, which the others share.
    assert ["open", "close"] == calls


def test_every_run_is_played_once_and_received_in_the_callers_thread(playing: Playing) -> None:
    received: list[tuple[int, str]] = []
    playing.many(20, 4, lambda one: received.append((one.spec.seed, threading.current_thread().name)))
    assert list(range(20)) == sorted(seed for seed, _ in received)
    assert {threading.current_thread().name} == {name for _, name in received}
    assert 0 == playing.player.cancels


def test_runs_that_fail_are_received_as_such_and_the_others_go_on(playing: Playing) -> None:
    playing.failing = {3, 5}
    received: list[tuple[int, str]] = []
    playing.many(8, 2, lambda one: received.append((one.spec.seed, one.run.failure)))
    assert [(seed, "no space" if seed in (3, 5) else "") for seed in range(8)] == sorted(received)
    assert 0 == playing.player.cancels


def test_search_ends_when_too_many_runs_in_a_row_fail(playing: Playing) -> None:
    """Without it, a search for a night on an engine that is gone would fail thousands of times a minute."""
    playing.failing = {0, *range(2, 1000)}
    received: list[int] = []
    said = playing.many(1000, 1, lambda one: received.append(one.spec.seed))
    assert list(range(2 + limits.FAILED_RUNS_IN_A_ROW_MAX)) == received
    assert "ended early: 10 runs in a row failed, the last with no space" == said


def test_search_of_all_seeds_says_nothing(playing: Playing) -> None:
    assert "" == playing.many(3, 1, lambda _: None)


def test_interrupt_is_passed_on_after_every_cluster_was_taken_down(playing: Playing) -> None:
    def interrupted(_: RealRun) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        playing.many(5, 1, interrupted)
    assert 1 == playing.player.cancels


def test_schedule_has_more_time_for_what_has_limits_on_real_processes(tmp_path: Path) -> None:
    """The cluster's spec has the longer limits; schedule.txt has the schedule as drawn."""
    opened: list[RunSpec] = []

    class Refusing:
        timing = REAL

        def open_cluster(self, spec: RunSpec, _folder: Path, history: History) -> Any:
            history.close()
            opened.append(spec)
            raise OSError("no cluster")

    spec, run = RUNS.spec(4), SuiteDir(path=tmp_path).create_run("run")
    with pytest.raises(OSError, match="no cluster"):
        Player(environment=cast(Environment, Refusing()), faults={}).play(spec, run)
    drawn = spec.scenario.settings.heal_within_s
    assert [drawn * REAL.slack] == [one.scenario.settings.heal_within_s for one in opened]
    assert f"heal_within_s={drawn:g}" in run.schedule.read_text(encoding="utf-8")


def test_run_is_judged_by_its_history_and_proves_nothing_when_nothing_was_done(tmp_path: Path) -> None:
    class Idle:
        def attempt(self, spec: RunSpec, suite: SuiteDir) -> Run:
            run = suite.create_run(spec.name)
            with History(run.history) as history:
                history.record(
                    "runner",
                    OpType.INFO,
                    setup_event(spec, traits=spec.traits, power_tier="loop", sends_once=True),
                )
                history.record("runner", OpType.INFO, Done())
            return Run(path=run.path, power_tier="loop", seconds=1.5)

    spec = RUNS.spec(7)
    run, result = play_real(cast(Player, Idle()), spec, SuiteDir(path=tmp_path))
    assert (7, 1.5, Verdict.UNKNOWN) == (result.seed, result.seconds, result.verdict)
    assert "No fault of the schedule bit." == result.vacuous
    assert list(result.anomalies) == read_anomalies(run)
