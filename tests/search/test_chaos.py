"""Random runs on real processes for some time: findings are kept whole, other runs leave nothing."""

from __future__ import annotations

import errno
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest
from rich.console import Console

from harness.java import Java
from harness.model import Kind, Verdict
from harness.run.player import Player
from harness.run.store import Run, SuiteDir
from harness.search import chaos
from harness.search.chaos import Limit, play_chaos
from harness.search.findings import FINDING
from harness.search.random_runs import RandomRuns
from harness.search.real_runs import Job, RealRun
from harness.suite.options import Options
from tests.search.results import result_of

RUNS = RandomRuns(target="kafka", variant="3.9.1", host="local")


@dataclass(slots=True)
class FakeProcesses:
    """Fake brokers: seeds in `bad` lose a record, runs of those in `busy` fail; each takes a second."""

    bad: set[int] = field(default_factory=set)
    busy: set[int] = field(default_factory=set)
    end_after: int | None = None
    left: str = ""
    now: float = 0.0

    @contextmanager
    def open_players(
        self, runs: Mapping[str, RandomRuns], *, ports: range | None, folder: Path, note: Callable[[str], None]
    ) -> Iterator[dict[str, Player]]:
        yield {}
        if self.left:
            note(self.left)

    def play_many(
        self,
        jobs: Iterator[Job],
        players: Mapping[str, Player],
        folder: SuiteDir,
        side_by_side: int,
        receive: Callable[[RealRun], None],
    ) -> str:
        for name, spec in jobs:
            if self.now == self.end_after:
                raise KeyboardInterrupt
            self.now += 1.0
            run = folder.create_run(spec.name)
            conf = run.path / "nodes" / "A" / "conf"
            conf.mkdir(parents=True)
            (conf / "server.properties").write_text("broker.id=1\n")
            (run.path / "nodes" / "A" / "log.txt").write_text("up")
            (run.logs / "A.log").write_text("up")
            found = (Verdict.INVALID, Kind.LOST) if spec.seed in self.bad else (Verdict.VALID,)
            if spec.seed in self.busy:
                run, found = replace(run, failure="TimeoutError: no answer"), (Verdict.UNKNOWN, Kind.UNCHECKED)
            result = result_of(*found, seed=spec.seed)
            receive(RealRun(player=name, spec=spec, run=run, result=result))
        return ""


@pytest.fixture
def processes(monkeypatch: pytest.MonkeyPatch) -> FakeProcesses:
    made = FakeProcesses()
    java = Java(home=Path("/none"), executable=Path("/none/bin/java"), version=17, source="this test")
    monkeypatch.setattr("harness.search.findings.find_java", lambda: java)
    monkeypatch.setattr(chaos, "open_players", made.open_players)
    monkeypatch.setattr(chaos, "play_many", made.play_many)
    monkeypatch.setattr(chaos.time, "monotonic", lambda: made.now)
    return made


def play(tmp_path: Path, limit: Limit, console: Console | None = None) -> tuple[Verdict, str]:
    console = console or Console(record=True, width=150)
    options = Options(host="local", seed=10, results=tmp_path, jobs=1)
    return play_chaos(RUNS, options, limit, console), console.export_text()


def test_seeds_are_played_until_the_time_is_up(tmp_path: Path, processes: FakeProcesses) -> None:
    verdict, text = play(tmp_path, Limit(seeds=1, seconds=3.0))
    assert Verdict.VALID is verdict
    assert [True, True, True, False] == [f"seed-{seed}-3.9.1: valid" in text for seed in (10, 11, 12, 13)]
    assert "1 of 2 faults bit, 3 elections, 4 acknowledged by all" in text
    assert "3 seeds: 3 valid" in text


def test_one_seed_is_played_however_long_its_begin_took(tmp_path: Path, processes: FakeProcesses) -> None:
    assert "1 seeds: 1 valid" in play(tmp_path, Limit(seeds=1, seconds=0.001))[1]


def test_as_many_seeds_are_played_as_were_asked_for(tmp_path: Path, processes: FakeProcesses) -> None:
    assert "5 seeds: 5 valid" in play(tmp_path, Limit(seeds=5))[1]


def test_first_finding_is_the_end_where_that_is_asked_for(tmp_path: Path, processes: FakeProcesses) -> None:
    processes.bad = {11}
    verdict, text = play(tmp_path, Limit(seeds=9, first=True))
    assert Verdict.INVALID is verdict
    assert "2 seeds: 1 valid, 1 invalid" in text


def test_run_that_fails_is_unknown_and_kept_as_it_is_and_the_others_go_on(
    tmp_path: Path, processes: FakeProcesses
) -> None:
    processes.busy = {11}
    verdict, text = play(tmp_path, Limit(seeds=3))
    assert Verdict.UNKNOWN is verdict
    assert "failed: TimeoutError: no answer" in text
    assert "again: fencepost run --host local --target kafka:3.9.1 --seed 11" in text
    assert "3 seeds: 2 valid, 1 unknown" in text
    (folder,) = tmp_path.glob("*-chaos-10")
    assert ["seed-11-3.9.1"] == [path.name for path in folder.iterdir()]
    assert (folder / "seed-11-3.9.1" / "nodes").exists()


def test_what_could_not_be_taken_down_is_said_and_makes_the_search_unknown(
    tmp_path: Path, processes: FakeProcesses
) -> None:
    processes.left = "not taken down: a mount"
    verdict, text = play(tmp_path, Limit(seeds=2))
    assert Verdict.UNKNOWN is verdict
    assert "not taken down: a mount" in text
    assert "2 seeds: 2 valid" in text


def test_finding_that_a_full_disk_does_not_keep_is_still_told(
    tmp_path: Path, processes: FakeProcesses, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(_found: RealRun) -> Path:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(chaos, "keep_finding", full)
    processes.bad = {10}
    verdict, text = play(tmp_path, Limit(seeds=2))
    assert Verdict.INVALID is verdict
    assert "seed-10-3.9.1: not kept whole: OSError: [Errno 28] No space left on device" in text
    assert "2 seeds: 1 valid, 1 invalid" in text


def test_folder_in_which_something_is_mounted_is_not_deleted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "disk").touch()
    monkeypatch.setattr(chaos.mounts, "mounts_below", lambda folder: [folder / "mount"])
    chaos.discard(Run(path=tmp_path, failure="in use"))
    assert (tmp_path / "disk").exists()


def test_finding_is_kept_with_all_that_a_report_needs_and_the_rest_is_not_kept(
    tmp_path: Path, processes: FakeProcesses
) -> None:
    processes.bad = {11}
    _, text = play(tmp_path, Limit(seeds=3))
    (folder,) = tmp_path.glob("*-chaos-10")
    assert ["seed-11-3.9.1"] == [path.name for path in folder.iterdir()]
    run = folder / "seed-11-3.9.1"
    assert "broker.id=1\n" == (run / "conf/A/server.properties").read_text()
    assert "up" == (run / "logs/A.log").read_text()
    assert not (run / "nodes").exists()
    again = "fencepost run --host local --target kafka:3.9.1 --seed 11"
    page = (run / FINDING).read_text()
    for words in ("# kafka:3.9.1: invalid under the schedule of seed 11", "lost: S.", f"    {again}", "Java 17"):
        assert words in page
    assert str(run / FINDING) in text
    assert f"again: {again}" in text


def test_no_more_unknown_runs_are_kept_than_an_engineer_reads_and_every_violation_is(
    tmp_path: Path, processes: FakeProcesses
) -> None:
    processes.busy = set(range(10, 18))
    processes.bad = set(range(18, 26))
    play(tmp_path, Limit(seeds=16))
    (folder,) = tmp_path.glob("*-chaos-10")
    kept = sorted(int(path.name.split("-")[1]) for path in folder.iterdir())
    assert [*range(10, 10 + chaos.KEPT_MAX), *range(18, 26)] == kept


def test_violations_are_not_kept_without_end(
    tmp_path: Path, processes: FakeProcesses, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(chaos, "VIOLATIONS_KEPT_MAX", 3)
    processes.bad = set(range(100))
    play(tmp_path, Limit(seeds=8))
    (folder,) = tmp_path.glob("*-chaos-10")
    assert 3 == len(list(folder.iterdir()))


def test_tally_so_far_is_printed_when_the_command_is_interrupted(tmp_path: Path, processes: FakeProcesses) -> None:
    processes.end_after = 1
    console = Console(record=True, width=150)
    with pytest.raises(KeyboardInterrupt):
        play(tmp_path, Limit(seeds=1, seconds=60.0), console)
    assert "1 seeds: 1 valid" in console.export_text()


def test_findings_decide_the_verdict_of_a_command_that_is_interrupted_and_its_last_line_says_where_they_are(
    tmp_path: Path, processes: FakeProcesses
) -> None:
    processes.end_after, processes.bad = 2, {10}
    verdict, text = play(tmp_path, Limit(seeds=1, seconds=60.0))
    (folder,) = tmp_path.glob("*-chaos-10")
    assert (Verdict.INVALID, f"findings: {folder}") == (verdict, text.splitlines()[-1])
    assert ["finding.md"] == [path.name for path in folder.glob("*/finding.md")]
