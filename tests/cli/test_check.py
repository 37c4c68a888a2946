"""`fencepost check` judges stored runs again, names what differs, and stores it only when asked."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from benchmarks.made.history import Maker, Shape
from checkers.judge import check_in_process, judge
from checkers.spark.options import SparkOptions
from harness.cli import check as module
from harness.cli.main import main
from harness.events import Setup
from harness.history.file import read_history
from harness.model import EXIT_CODES, Anomaly, Op, PartOps, UsageError
from harness.run.result import RunResult
from harness.run.store import Run, SuiteDir, read_anomalies, write_anomalies
from harness.run.suite import Suite
from harness.suite import recheck
from harness.tables.manifest import FOLDER, table_path
from harness.target.traits import traits_of
from tests.checkers.golden import ops_of
from tests.checkers.specs import random_spec
from tests.kept import exhaustive
from tests.report.samples import suite_of

LOST = "lost-bad"
SOUND = "lost-ok"


class InProcess:
    """Judges like Spark, in this process; it fails from the request of that number on."""

    def __init__(self, fails: int = 1_000, error: type[Exception] = RuntimeError) -> None:
        self.asked: list[int] = []
        self._fails, self._error = fails, error

    def check(self, folders: Sequence[Path]) -> dict[str, list[Anomaly]]:
        self.asked.append(len(folders))
        if len(self.asked) > self._fails:
            raise self._error("it is gone")
        unique = len({folder.name for folder in folders}) == len(folders)
        return {
            folder.name if unique else str(folder): check_in_process(read_history(Run(path=folder).history))
            for folder in folders
        }


@pytest.fixture
def spark(java_found: None, monkeypatch: pytest.MonkeyPatch) -> InProcess:
    return use(InProcess(), monkeypatch)


def use(worker: InProcess, monkeypatch: pytest.MonkeyPatch) -> InProcess:
    @contextmanager
    def started(_home: Path, _options: SparkOptions) -> Iterator[InProcess]:
        yield worker

    monkeypatch.setattr(module, "spark_worker", started)
    return worker


def suite_in(folder: Path, **histories: str) -> Path:
    """Store a suite with these runs as they were judged; run -> the story that is its history."""
    results = [run_in(folder, name, story) for name, story in histories.items()]
    suite_of(results).write(folder / "suite.json")
    return folder


def run_in(folder: Path, name: str, story: str) -> RunResult:
    ops = PartOps(ops_of(story))
    (folder / name).mkdir(parents=True)
    run = Run(path=folder / name)
    run.history.write_text("".join(op.to_json() + "\n" for op in ops), encoding="utf-8")
    result = replace(judge(random_spec(), ops), run=name, scenario=name)
    write_anomalies(run, result.anomalies)
    return result


def change(folder: Path, **more: Any) -> None:
    """Change the stored results of a suite."""
    suite = Suite.read(folder / "suite.json")
    replace(suite, results=tuple(replace(each, **more) for each in suite.results)).write(folder / "suite.json")


def files(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def check(*words: object) -> int:
    return main(["check", *map(str, words)])


def told(capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    return found


# --- differences -----------------------------------------------------------------------------------------------
def test_runs_as_stored_are_counted_and_nothing_is_changed(
    tmp_path: Path, spark: InProcess, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in "ab":
        suite_in(tmp_path / name, one=SOUND, two=LOST)
    before = files(tmp_path)
    assert EXIT_CODES["valid"] == check(tmp_path)
    assert "4 runs in 2 suites: 4 as stored, 0 not, 0 unknown" in capsys.readouterr().out
    assert (before, [4]) == (files(tmp_path), spark.asked)


def test_run_of_a_target_that_is_not_found_is_judged_whatever_its_schedule_names(
    tmp_path: Path, spark: InProcess, capsys: pytest.CaptureFixture[str]
) -> None:
    history = suite_in(tmp_path / "a", one=SOUND) / "one" / "history.jsonl"
    first, *rest = history.read_text(encoding="utf-8").splitlines()
    op = Op.from_json(first)
    assert isinstance(op.event, Setup)
    traits, schedule = traits_of(op.event).as_text(), "hold requests beg A -> B\n"
    gone = replace(op.event, target="gone", traits=traits, schedule=schedule)
    told = Op.of(gone, index=op.index, time_ns=op.time_ns, process=op.process, type=op.type)
    history.write_text("\n".join([told.to_json(), *rest, ""]), encoding="utf-8")
    assert EXIT_CODES["valid"] == check(tmp_path / "a")
    assert "1 run in 1 suite: 1 as stored, 0 not, 0 unknown" in capsys.readouterr().out


def test_violation_that_was_not_stored_is_named_with_the_checker_that_finds_it(
    tmp_path: Path, spark: InProcess, capsys: pytest.CaptureFixture[str]
) -> None:
    sound = suite_in(tmp_path / "a", one=SOUND, two=SOUND)
    shutil.copy(suite_in(tmp_path / "b", one=LOST) / "one" / "history.jsonl", sound / "two" / "history.jsonl")
    assert EXIT_CODES["invalid"] == check(sound)
    out = " ".join(capsys.readouterr().out.split())
    assert "2 runs in 1 suite: 1 as stored, 1 not, 0 unknown" in out
    assert "a/two" in out
    assert "before none (as expected, valid)" in out
    assert "now lost m2 (mismatch, invalid)" in out
    assert "new lost 3–4" in out
    assert "by lost" in out
    assert EXIT_CODES["invalid"] == check(sound, "--json")
    (difference,) = told(capsys)["differences"]
    assert ("two", "different", []) == (difference["run"], difference["change"], difference["gone"])
    assert {"lost"} <= {each["kind"] for each in difference["new"]}


def test_violation_that_is_not_found_any_more_is_named_with_the_checker_that_found_it(
    tmp_path: Path, spark: InProcess, capsys: pytest.CaptureFixture[str]
) -> None:
    lost = suite_in(tmp_path / "a", one=LOST)
    shutil.copy(suite_in(tmp_path / "b", one=SOUND) / "one" / "history.jsonl", lost / "one" / "history.jsonl")
    assert EXIT_CODES["invalid"] == check(lost, "--json")
    found = told(capsys)
    assert ("invalid", 0, 1) == (found["verdict"], found["suites"][0]["new"], found["suites"][0]["different"])
    assert {("lost", "lost")} <= {(each["kind"], each["checker"]) for each in found["differences"][0]["gone"]}


def test_runs_without_a_verdict_are_judged(
    tmp_path: Path, spark: InProcess, capsys: pytest.CaptureFixture[str]
) -> None:
    suite = suite_in(tmp_path, one=SOUND, two=LOST)
    for path in [suite / "suite.json", *suite.glob("*/anomalies.json")]:
        path.unlink()
    assert EXIT_CODES["invalid"] == check(suite)
    assert "1 as stored, 1 not, 0 unknown; 2 had no verdict before" in capsys.readouterr().out
    assert EXIT_CODES["valid"] == check(suite / "one")


@pytest.mark.parametrize(("broken", "why"), [
    (b"", "has no set-up"),
    (b"\x80\x04\x95\n", "line 1"),
    (None, "history.jsonl: No such file or directory"),
    ("half", "cut short"),
    ("middle", "expected one JSON object"),
])  # fmt: skip
def test_run_that_cannot_be_read_is_unknown_and_no_other(
    tmp_path: Path, spark: InProcess, capsys: pytest.CaptureFixture[str], broken: bytes | str | None, why: str
) -> None:
    suite = suite_in(tmp_path, one=SOUND, two=SOUND, three=LOST)
    history = suite / "two" / "history.jsonl"
    whole = history.read_bytes()
    history.unlink()
    if broken == "half":
        broken = whole[: len(whole) // 2]
    if broken == "middle":
        lines = whole.splitlines(keepends=True)
        broken = b"".join([*lines[:5], lines[5][:20] + b"\n", *lines[6:]])
    if isinstance(broken, bytes):
        history.write_bytes(broken)
    assert EXIT_CODES["unknown"] == check(suite, "--json")
    found = told(capsys)
    (difference,) = found["differences"]
    assert ("two", "unknown", "unknown") == (difference["run"], difference["change"], difference["now"]["status"])
    assert why in difference["why"]
    assert 2 == found["suites"][0]["same"]


def test_history_that_is_a_pipe_is_not_waited_for(
    tmp_path: Path, spark: InProcess, capsys: pytest.CaptureFixture[str]
) -> None:
    suite = suite_in(tmp_path, one=LOST, two=SOUND)
    (suite / "suite.json").unlink()
    (suite / "one" / "history.jsonl").unlink()
    os.mkfifo(suite / "one" / "history.jsonl")
    assert EXIT_CODES["unknown"] == check(suite)
    assert "history.jsonl: not a regular file; expected a run's history" in " ".join(
        capsys.readouterr().out.split()
    )


def test_table_of_a_suite_that_is_cut_is_a_problem_and_its_runs_are_checked(
    tmp_path: Path, spark: InProcess, capsys: pytest.CaptureFixture[str]
) -> None:
    suite = suite_in(tmp_path, one=SOUND, two=LOST)
    (suite / "suite.json").write_text("{", encoding="utf-8")
    assert EXIT_CODES["unknown"] == check(suite)
    out = capsys.readouterr().out
    assert "suite.json: JSONDecodeError" in out
    assert "2 as stored, 0 not, 0 unknown" in out


# --- storing ---------------------------------------------------------------------------------------------------
def test_what_is_found_is_stored_when_asked_and_then_is_as_stored(
    tmp_path: Path, spark: InProcess, capsys: pytest.CaptureFixture[str]
) -> None:
    suite = suite_in(tmp_path, one=SOUND, two=LOST)
    change(suite, anomalies=(), found="none", verdict=0)
    write_anomalies(Run(path=suite / "two"), [])
    (suite / "report.html").write_text("old", encoding="utf-8")
    assert EXIT_CODES["invalid"] == check(suite, "--store")
    one, two = Suite.read(suite / "suite.json").results
    assert ("none", "lost m2") == (one.found, two.found.split(",")[0])
    assert list(two.anomalies) == read_anomalies(Run(path=suite / "two"))
    assert "lost m2" in (suite / "report.html").read_text(encoding="utf-8")
    assert EXIT_CODES["valid"] == check(suite)
    assert [] == [path for path in files(suite) if path.endswith(".partial")]


def test_file_that_cannot_be_written_is_named_and_stays_as_it_was(
    tmp_path: Path, spark: InProcess, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    suite = suite_in(tmp_path, one=SOUND)

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    before = files(suite)
    monkeypatch.setattr(Path, "replace", full)
    assert EXIT_CODES["unknown"] == check(suite, "--store")
    out = " ".join(capsys.readouterr().out.split())
    assert "suite.json: not written: OSError: [Errno 28] No space left on device" in out
    assert "anomalies.json: not written: " in out
    assert before == files(suite)


def test_run_that_cannot_be_checked_keeps_what_is_stored(
    tmp_path: Path, spark: InProcess, capsys: pytest.CaptureFixture[str]
) -> None:
    suite = suite_in(tmp_path, one=LOST, two=SOUND)
    stored = Suite.read(suite / "suite.json").results[0]
    (suite / "one" / "history.jsonl").unlink()
    before = files(suite / "one")
    assert EXIT_CODES["unknown"] == check(suite, "--store")
    assert stored == Suite.read(suite / "suite.json").results[0]
    assert before == files(suite / "one")


# --- Spark -----------------------------------------------------------------------------------------------------
@pytest.mark.usefixtures("java_found")
def test_without_spark_small_runs_are_judged_here_and_larger_ones_are_unknown(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    suite = suite_in(tmp_path, one=LOST, three=SOUND, two=LOST)
    limit = (suite / "one" / "history.jsonl").stat().st_size
    monkeypatch.setattr(recheck, "BATCH_RUNS_MAX", 1)
    monkeypatch.setattr("harness.suite.judged.IN_PROCESS_MAX", limit)
    worker = use(InProcess(fails=0), monkeypatch)
    assert EXIT_CODES["unknown"] == check(suite, "--json")
    assert [1] == worker.asked
    (difference,) = told(capsys)["differences"]
    assert "three" == difference["run"]
    assert "Spark: RuntimeError: it is gone; then " in difference["why"]


@pytest.mark.usefixtures("java_found")
def test_what_the_machine_lacks_ends_the_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    use(InProcess(fails=0, error=UsageError), monkeypatch)
    assert EXIT_CODES["usage"] == check(suite_in(tmp_path, one=SOUND))


class Elsewhere(InProcess):
    """Spark that finds runs which this process cannot read, each with what is stored of it."""

    def __init__(self, **stored: str | None) -> None:
        super().__init__()
        self._stored = stored

    def find(self, roots: Sequence[str]) -> dict[str, str | None]:
        return {f"{root}/{name.replace('_', '-')}": text for root in roots for name, text in self._stored.items()}

    def check(self, folders: Sequence[Path]) -> dict[str, list[Anomaly]]:
        return {(name := str(folder).rpartition("/")[2]): check_in_process(ops_of(name)) for folder in folders}


@pytest.mark.usefixtures("java_found")
def test_runs_elsewhere_are_compared_with_their_stored_anomalies(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    run = Run(path=tmp_path)
    write_anomalies(run, check_in_process(ops_of(LOST)))
    text = run.anomalies.read_text(encoding="utf-8")
    use(Elsewhere(lost_bad=text, lost_ok=None), monkeypatch)
    assert EXIT_CODES["valid"] == check("hdfs://there/suite", "--json")
    found = told(capsys)
    assert [("hdfs://there/suite", 2, 2)] == [
        (each["path"], each["runs"], each["same"]) for each in found["suites"]
    ]
    use(Elsewhere(lost_bad="[]", lost_ok="{"), monkeypatch)
    assert EXIT_CODES["invalid"] == check("hdfs://there/suite", "--json")
    differences = {each["run"]: (each["suite"], each["change"]) for each in told(capsys)["differences"]}
    assert differences == {
        "lost-bad": ("hdfs://there/suite", "different"),
        "lost-ok": ("hdfs://there/suite", "unknown"),
    }


def test_folder_elsewhere_without_a_run_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    use(Elsewhere(), monkeypatch)
    assert EXIT_CODES["usage"] == main(["check", "hdfs://there/none"])


def test_runs_are_sent_in_batches_of_bounded_size(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    suite = SuiteDir(path=suite_in(tmp_path, one=SOUND, two=SOUND, three=SOUND))
    size = (tmp_path / "one" / "history.jsonl").stat().st_size
    monkeypatch.setattr(recheck, "BATCH_BYTES_MAX", 2 * size)
    assert [2, 1] == [len(batch) for batch in recheck.batches(suite.runs())]
    monkeypatch.setattr(recheck, "BATCH_BYTES_MAX", 1)
    assert [1, 1, 1] == [len(batch) for batch in recheck.batches(suite.runs())]


@pytest.mark.spark
@exhaustive
def test_runs_of_every_size_are_judged_on_spark_and_each_damage_is_its_own_runs(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    suite = suite_in(tmp_path / "a", one=SOUND, two=LOST, half=SOUND)
    suite_in(tmp_path / "b", one=LOST)
    history = suite / "half" / "history.jsonl"
    history.write_bytes(history.read_bytes()[:-9_000])
    for name in ("large", "damaged"):
        Maker(Shape(sends=2_000)).make(tmp_path / "made" / name / FOLDER)
    produces = table_path(tmp_path / "made" / "damaged" / FOLDER, "produces")
    produces.write_bytes(produces.read_bytes()[:-200])
    assert EXIT_CODES["unknown"] == check(tmp_path, "--json")
    found = told(capsys)
    assert [2, 1, 1] == [each["same"] for each in found["suites"]]
    reasons = {each["run"]: each["why"] for each in found["differences"]}
    assert ["damaged", "half"] == sorted(reasons)
    assert "produces.parquet" in reasons["damaged"]
    assert "The history has no end: the run was cut short" in reasons["half"]
