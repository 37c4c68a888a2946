"""The same seeds on both systems: each is played once; an interrupted comparison resumes and is judged again."""

from __future__ import annotations

import errno
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest
from rich.console import Console

from harness.model import EXIT_CODES, Kind, Op, OpType, Source, UsageError, Verdict
from harness.run.player import Player
from harness.run.result import RunResult
from harness.run.spec import RunSpec
from harness.run.store import SuiteDir
from harness.search import pairing
from harness.search.pairing import OURS, THEIRS, Pairing, compare, lighten, seen_of_any
from harness.search.random_runs import RandomRuns
from harness.search.real_runs import Job, RealRun
from harness.suite.options import Options
from targets import VIRTUAL_HOST as SIM
from tests.search.results import result_of


def pairing_on(host: str) -> Pairing:
    theirs = RandomRuns(target="kafka", variant="0.10.2.2", host=host)
    return Pairing(runs={THEIRS: theirs, OURS: RandomRuns(target="broker", variant="hw", host=host)})


@dataclass(slots=True)
class FakeProcesses:
    """Fake brokers: each run has the result that was set for its side and seed."""

    played: list[tuple[str, int]] = field(default_factory=list)
    bad: set[tuple[str, int]] = field(default_factory=set)
    failing: set[tuple[str, int]] = field(default_factory=set)
    unknown: bool = False
    end_after: int | None = None

    @contextmanager
    def open_players(
        self, runs: Mapping[str, RandomRuns], *, ports: range | None, folder: Path, note: Callable[[str], None]
    ) -> Iterator[dict[str, Player]]:
        yield {}

    def play_many(
        self,
        jobs: Iterator[Job],
        players: Mapping[str, Player],
        folder: SuiteDir,
        side_by_side: int,
        receive: Callable[[RealRun], None],
    ) -> str:
        for side, spec in jobs:
            if self.end_after == len(self.played):
                raise KeyboardInterrupt
            run = folder.create_run(spec.name)
            if (side, spec.seed) in self.failing:
                run = replace(run, failure="OSError: no space")
            (run.path / "nodes").mkdir()
            ops = (op(0, Source.BROKER, "append"), op(1, Source.LOG, "batch"))
            run.history.write_text("".join(each.to_json() + "\n" for each in ops), encoding="utf-8")
            self.played.append((side, spec.seed))
            receive(RealRun(player=side, spec=spec, run=run, result=self._result(side, spec)))
        return ""

    def judge(self, spec: RunSpec, ops: Sequence[Op], *, seconds: float) -> RunResult:
        assert [Source.LOG] == [each.source for each in ops], "events that one side alone emits do not count"
        return self._result(OURS if spec.target == "broker" else THEIRS, spec)

    def _result(self, side: str, spec: RunSpec) -> RunResult:
        if self.unknown:
            return result_of(Verdict.UNKNOWN, Kind.VACUOUS, seed=spec.seed, rerun=spec.command)
        found = (Verdict.INVALID, Kind.LOST) if (side, spec.seed) in self.bad else (Verdict.VALID,)
        return result_of(*found, seed=spec.seed, rerun=spec.command)


@pytest.fixture
def processes(monkeypatch: pytest.MonkeyPatch) -> FakeProcesses:
    made = FakeProcesses()
    monkeypatch.setattr(pairing, "open_players", made.open_players)
    monkeypatch.setattr(pairing, "play_many", made.play_many)
    monkeypatch.setattr(pairing, "judge", made.judge)
    return made


def play(tmp_path: Path, seeds: range) -> tuple[int, str]:
    console = Console(record=True, width=150)
    options = Options(host="local", seed=seeds.start, results=tmp_path, jobs=1)
    return compare(pairing_on("local"), options, seeds, console), console.export_text()


def test_every_seed_is_played_on_both_and_kinds_that_agree_are_valid(
    tmp_path: Path, processes: FakeProcesses
) -> None:
    processes.bad = {(OURS, 1), (THEIRS, 1)}
    code, text = play(tmp_path, range(2))
    assert EXIT_CODES["valid"] == code
    assert {(THEIRS, 0), (OURS, 0), (THEIRS, 1), (OURS, 1)} == set(processes.played)
    assert "2 seeds on both: 2 of the same kind, 0 differ" in text
    assert "kafka:0.10.2.2: 1 of 2 invalid" in text


def test_seed_that_differs_is_printed_with_the_commands_that_play_it_again(
    tmp_path: Path, processes: FakeProcesses
) -> None:
    processes.bad = {(OURS, 1)}
    code, text = play(tmp_path, range(2))
    assert EXIT_CODES["invalid"] == code
    assert "seed 1: ours lost, theirs valid" in text
    assert "fencepost run --host local --target kafka:0.10.2.2 --seed 1" in text
    assert "fencepost run --host local --protocol hw --seed 1" in text
    (folder,) = tmp_path.iterdir()
    summary = json.loads((folder / "summary.json").read_text())
    assert [1] == [one["seed"] for one in summary["differing"]]
    # A run that differs is kept whole; of a run without findings, only what its verdict needs.
    assert (folder / "play-1/seed-1-hw/nodes").exists()
    assert not (folder / "play-1/seed-0-hw/nodes").exists()


def test_comparison_that_was_interrupted_keeps_what_it_has_and_goes_on_where_it_ended(
    tmp_path: Path, processes: FakeProcesses
) -> None:
    processes.end_after = 3
    with pytest.raises(KeyboardInterrupt):
        play(tmp_path, range(2))
    (folder,) = tmp_path.iterdir()
    assert 1 == json.loads((folder / "summary.json").read_text())["seeds"]
    processes.end_after = None
    first = list(processes.played)
    _, text = play(tmp_path, range(2))
    assert "3 runs of 4 played before" in text
    assert 4 == len(processes.played)
    assert processes.played[3] not in first
    # Nothing is left to play: the runs are judged again.
    assert EXIT_CODES["valid"] == play(tmp_path, range(2))[0]
    assert 4 == len(processes.played)


def test_seeds_that_prove_nothing_on_either_are_unknown(tmp_path: Path, processes: FakeProcesses) -> None:
    processes.unknown = True
    assert EXIT_CODES["unknown"] == play(tmp_path, range(2))[0]


def test_simulator_is_not_compared_with_real_processes(tmp_path: Path) -> None:
    options = Options(host=SIM, seed=0, results=tmp_path)
    with pytest.raises(UsageError, match="expected a host of real processes"):
        compare(pairing_on(SIM), options, range(2), Console())
    assert [] == list(tmp_path.iterdir())


def test_run_that_shows_something_keeps_all(tmp_path: Path) -> None:
    run = SuiteDir(path=tmp_path).create_run("run")
    run.tables.mkdir()
    lighten(run, result_of(Verdict.UNKNOWN))
    assert (True, True) == (run.logs.exists(), run.tables.exists())
    lighten(run, result_of(Verdict.PERMITTED))
    assert (False, False) == (run.logs.exists(), run.tables.exists())


# --- events of both systems ------------------------------------------------------------------------------------
def op(index: int, source: Source, f: str) -> Op:
    return Op(index=index, time_ns=index, source=source, process="A", type=OpType.INFO, f=f, value={})


def test_events_that_only_some_brokers_emit_are_left_out_where_two_are_compared() -> None:
    ops = [
        op(0, Source.BROKER, "append"),
        op(1, Source.BROKER, "printed"),
        op(2, Source.BROKER, "stuck"),
        op(3, Source.LOG, "batch"),
    ]
    seen = seen_of_any(ops)
    assert ["printed", "stuck", "batch"] == [one.f for one in seen]
    assert [0, 1, 2] == [one.index for one in seen], "a history with gaps in its indexes proves nothing"


def test_run_that_fails_makes_the_comparison_unknown_and_is_played_again_when_it_continues(
    tmp_path: Path, processes: FakeProcesses
) -> None:
    processes.failing = {(OURS, 1)}
    code, text = play(tmp_path, range(3))
    assert EXIT_CODES["unknown"] == code
    assert "seed-1-hw failed after 0.2 s: OSError: no space" in text
    assert "seed-1-hw: no result; it is played again when the comparison continues" in text
    assert "2 seeds on both: 2 of the same kind, 0 differ" in text
    processes.failing = set()
    assert EXIT_CODES["valid"] == play(tmp_path, range(3))[0]
    assert 2 == processes.played.count((OURS, 1))


def test_comparison_that_a_full_disk_does_not_store_is_printed_and_unknown(
    tmp_path: Path, processes: FakeProcesses, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(pairing.PairingProgress, "add", full)
    code, text = play(tmp_path, range(1))
    assert EXIT_CODES["unknown"] == code
    assert "seed-0-hw: not stored: OSError: [Errno 28] No space left on device" in text
    assert "0 seeds on both" in text


def test_comparison_of_other_clients_or_faults_has_a_folder_of_its_own() -> None:
    plain = pairing_on("local")
    other = Pairing(
        runs={
            side: replace(runs, workload="topics", nemeses=("all", "move-away"))
            for side, runs in plain.runs.items()
        }
    )
    assert ("conform-kafka-0.10.2.2-hw", "conform-kafka-0.10.2.2-hw-topics-move-away") == (
        plain.folder,
        other.folder,
    )
    assert {"workload": "topics", "nemeses": "all,move-away"}.items() <= other.about().items()
    assert not {"workload", "nemeses"} & plain.about().keys()
