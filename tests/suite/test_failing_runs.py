"""
A run that cannot be played, taken down or stored is unknown with its reason; the others have their verdicts.

Each test runs the command in the simulator, and breaks one run of it, or what all runs share.
"""

from __future__ import annotations

import errno
import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest

from checkers.judge import check_in_process
from harness.cli import suites
from harness.cli.main import main
from harness.cluster.cluster import Cluster
from harness.history.file import History, read_history
from harness.java import Java
from harness.model import Anomaly, FencepostError, Op, UsageError
from harness.run import store
from harness.run.store import Run, SuiteDir
from harness.run.suite import Suite
from harness.suite import runner
from targets.simulator.broker.environment import SimEnvironment

BROKEN = "kip101-1-kip101"
OTHERS = ("kip101-1-hw", "kip101-1-kip279")
FULL = OSError(errno.ENOSPC, "No space left on device")
Break = Callable[[pytest.MonkeyPatch], None]


class FakeSpark:
    """A fake Spark that applies the rules in this process."""

    def start(self) -> None:
        """Do nothing."""

    def check(self, parquet_paths: Sequence[Path]) -> dict[str, list[Anomaly]]:
        return {
            path.parent.name: check_in_process(read_history(path.parent / "history.jsonl"))
            for path in parquet_paths
        }


class CrashingSpark(FakeSpark):
    """A fake Spark whose process has died."""

    def check(self, parquet_paths: Sequence[Path]) -> dict[str, list[Anomaly]]:
        raise FencepostError("Spark: its process ended with exit code 1")


@pytest.fixture(autouse=True)
def _spark(monkeypatch: pytest.MonkeyPatch) -> None:
    java = Java(home=Path("/none"), executable=Path("/none/bin/java"), version=17, source="this test")
    monkeypatch.setattr(runner, "find_java", lambda: java)
    use(monkeypatch, FakeSpark())


def use(monkeypatch: pytest.MonkeyPatch, spark: FakeSpark) -> None:
    @contextmanager
    def worker(_java_home: Path) -> Iterator[FakeSpark]:
        yield spark

    monkeypatch.setattr(suites, "spark_worker", worker)


def play(results: Path, capsys: pytest.CaptureFixture[str]) -> tuple[int, str, str]:
    """Play three runs; return the exit code and what was printed."""
    words = ["test-kip101", "--host", "sim", "--results", str(results), "--seed", "5", "--jobs", "2"]
    for protocol in ("hw", "kip101", "kip279"):
        words += ["--protocol", protocol]
    code = main([*words, "--scenario", "kip101-1"])
    printed = capsys.readouterr()
    return code, printed.out, printed.err


def of_broken(cluster: Cluster) -> bool:
    return cluster.history.path.parent.name == BROKEN


# --- what breaks one run ----------------------------------------------------------------------------------------
def bug_and_busy_mount(patch: pytest.MonkeyPatch) -> None:
    bug_of_ours(patch)
    busy_mount(patch)


def machine_lacks(patch: pytest.MonkeyPatch) -> None:
    opened = SimEnvironment.open_cluster

    def open_cluster(self: SimEnvironment, spec: Any, folder: Path, history: History) -> Cluster:
        if folder.name == BROKEN:
            history.close()
            raise UsageError("disk of /x: 16 MiB free; expected 1024 MiB")
        return opened(self, spec, folder, history)

    patch.setattr(SimEnvironment, "open_cluster", open_cluster)


def bug_of_ours(patch: pytest.MonkeyPatch) -> None:
    made = SimEnvironment.make_client

    def make_client(self: SimEnvironment, cluster: Cluster) -> Any:
        if of_broken(cluster):
            raise KeyError("a bug of ours")
        return made(self, cluster)

    patch.setattr(SimEnvironment, "make_client", make_client)


def full_disk_during_the_history(patch: pytest.MonkeyPatch) -> None:
    write = History._write

    def fail_late(self: History, op: Op) -> None:
        if self.path.parent.name == BROKEN and op.index >= 30:
            raise FULL
        write(self, op)

    patch.setattr(History, "_write", fail_late)


def full_disk_for_one_moment(patch: pytest.MonkeyPatch) -> None:
    """The event that is lost leaves no gap in the indexes."""
    write = History._write

    def fail_once(self: History, op: Op) -> None:
        if self.path.parent.name == BROKEN and op.f == "append" and not vars(self).get("failed"):
            vars(self)["failed"] = True
            raise FULL
        write(self, op)

    patch.setattr(History, "_write", fail_once)


def full_disk_before_the_folder(patch: pytest.MonkeyPatch) -> None:
    create = SuiteDir.create_run

    def create_run(self: SuiteDir, name: str) -> Run:
        if name == BROKEN:
            raise FULL
        return create(self, name)

    patch.setattr(SuiteDir, "create_run", create_run)


def full_disk_for_the_anomalies(patch: pytest.MonkeyPatch) -> None:
    write = store.write_anomalies

    def write_anomalies(run: Run, anomalies: Sequence[Anomaly]) -> None:
        if run.name == BROKEN:
            raise FULL
        write(run, anomalies)

    patch.setattr("harness.suite.judged.write_anomalies", write_anomalies)


def busy_mount(patch: pytest.MonkeyPatch) -> None:
    close = Cluster.close

    def close_but_leave(self: Cluster) -> None:
        with ExitStack() as stack:  # as a real cluster closes its parts
            stack.callback(close, self)
            stack.callback(leave, self)

    def leave(self: Cluster) -> None:
        if of_broken(self):
            raise FencepostError("/x/mount: target is busy; the next run tries again to undo it")

    patch.setattr(Cluster, "close", close_but_leave)


@pytest.mark.parametrize(
    ("break_it", "why"),
    [
        (machine_lacks, "disk of /x: 16 MiB free; expected 1024 MiB (traceback in traceback.txt)"),
        (bug_of_ours, "KeyError: 'a bug of ours' (traceback in traceback.txt)"),
        (full_disk_during_the_history, "No space left on device; the disk is full; make room"),
        (full_disk_for_one_moment, "No space left on device; the disk is full; make room"),
        (full_disk_before_the_folder, "OSError: [Errno 28] No space left on device"),
        (
            full_disk_for_the_anomalies,
            "its anomalies cannot be stored: OSError: [Errno 28] No space left on device",
        ),
        (
            bug_and_busy_mount,
            "KeyError: 'a bug of ours'; then not taken down: /x/mount: target is busy; the next ",
        ),
        (busy_mount, "/x/mount: target is busy; the next run tries again to undo it (traceback in traceback.txt)"),
    ],
)
def test_run_that_fails_is_unknown_and_the_suite_ends_with_its_table_and_report(
    break_it: Break,
    why: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    break_it(monkeypatch)
    code, out, err = play(tmp_path, capsys)
    assert (3, "") == (code, err)
    (path,) = tmp_path.glob("2*/suite.json")
    results = {result.run: result for result in Suite.read(path).results}
    assert {BROKEN: "unknown", **dict.fromkeys(OTHERS, "as expected")} == {
        name: str(result.status) for name, result in results.items()
    }
    assert why in results[BROKEN].reason
    assert "\n" not in results[BROKEN].reason
    assert "3 runs: 2 as expected, 1 unknown, 0 mismatch" in out
    report = path.with_name("report.html")
    assert f"report: {report}" in out
    assert why.partition("(")[0] in report.read_text(encoding="utf-8").replace("&#39;", "'")
    if "traceback in" in why:
        assert "Traceback (most recent call last)" in (path.parent / BROKEN / "traceback.txt").read_text()


# --- what breaks the whole suite --------------------------------------------------------------------------------
def test_environment_that_cannot_be_closed_makes_the_suite_unknown_at_best(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def close(_self: SimEnvironment) -> None:
        raise FencepostError("/x/mount: target is busy")

    monkeypatch.setattr(SimEnvironment, "close", close)
    code, out, err = play(tmp_path, capsys)
    assert (3, "") == (code, err)
    assert "not taken down: /x/mount: target is busy" in out
    assert "3 runs: 3 as expected" in out


def test_spark_that_dies_is_replaced_by_the_same_rules_in_this_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    use(monkeypatch, CrashingSpark())
    code, out, err = play(tmp_path, capsys)
    assert (3, "") == (code, err)
    assert "Spark: Spark: its process ended with exit code 1; the runs are judged without it" in out
    assert "3 runs: 3 as expected" in out
    (path,) = tmp_path.glob("2*/kip101-1-hw/anomalies.json")
    assert ["lost"] == [each["kind"] for each in json.loads(path.read_text()) if each["kind"] == "lost"]


@pytest.mark.parametrize("name", ["suite.json", "report.html"])
def test_file_of_the_suite_that_cannot_be_written_is_named_and_no_part_of_it_is_left(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    replace = Path.replace

    def full(self: Path, target: Path) -> Path:
        if Path(target).name == name:
            raise FULL
        return replace(self, target)

    monkeypatch.setattr(Path, "replace", full)
    code, out, err = play(tmp_path, capsys)
    assert (3, "") == (code, err)
    assert f"{name}: not written: OSError: [Errno 28] No space left on device" in out
    assert "3 runs: 3 as expected" in out
    (folder,) = tmp_path.glob("2*")
    other = {"suite.json": "report.html", "report.html": "suite.json"}[name]
    assert [other] == [path.name for path in folder.iterdir() if path.is_file()]


def test_environment_without_space_at_the_start_is_one_line_and_wrong_usage(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(_self: SimEnvironment, _folder: Path) -> None:
        raise FULL

    monkeypatch.setattr(SimEnvironment, "open", fail)
    code, _, err = play(tmp_path, capsys)
    assert 2 == code
    assert 1 == err.count("\n")
    assert "OSError: [Errno 28] No space left on device; the disk is full; make room" in err
