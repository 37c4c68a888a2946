"""The Spark worker starts on request and ends with its block; a failure is raised by the next check."""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path

import pytest

from harness.cleanup.process import bearers, identity_of, until
from harness.model import FencepostError, UsageError
from harness.suite import spark_worker as module
from harness.suite.spark_worker import spark_worker

RUN = Path("/results/suite/run")
WAIT_S_MAX = 30.0

# A fake worker process: `does` selects its behaviour, and it appends each event to the log.
WORKER = """
import json, subprocess, sys, time
from pathlib import Path
does, folder, log = sys.argv[-2], Path(sys.argv[-1]), Path(sys.argv[1])
def note(text):
    with log.open("a") as file:
        print(text, file=file)
def tell(**answer):
    print(json.dumps(answer), flush=True)
note("started")
if does == "dies":
    sys.exit(5)
if does == "sleeps":
    # As the executors' Python does, it leaves our group.
    subprocess.Popen(["sleep", "600"], start_new_session=True)
    note("asleep")
    time.sleep(600)
tell(up=True)
for line in sys.stdin:
    request = json.loads(line)
    if request is None:
        note("ended")
        sys.exit(0)
    note("asked")
    if does == "works":
        tell(found={Path(path).name: [] for path in request})
    else:
        tell(**{does: "so it is"})
"""


@pytest.fixture
def log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the path of the fake worker's log; the worker's folder is created beside it."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr(module, "PROGRAM", (sys.executable, "-c", WORKER, str(tmp_path / "log")))
    return tmp_path / "log"


def noted(log: Path) -> list[str]:
    return log.read_text(encoding="utf-8").split() if log.exists() else []


def check_once(does: str) -> None:
    with spark_worker(Path(does)) as running:
        running.check([RUN])


def test_spark_is_started_once_answers_and_ends_with_the_block(log: Path) -> None:
    with spark_worker(Path("works")) as running:
        running.start()
        running.start()
        assert {"run": []} == running.check([RUN])
        assert {"run": []} == running.check([RUN])
    assert ["started", "asked", "asked", "ended"] == noted(log)
    assert [log] == list(log.parent.iterdir())


def test_spark_that_is_asked_is_started(log: Path) -> None:
    check_once("works")
    assert ["started", "asked", "ended"] == noted(log)


def test_spark_that_nobody_starts_is_not_there(log: Path) -> None:
    with spark_worker(Path("works")):
        pass
    with pytest.raises(KeyError), spark_worker(Path("works")):
        raise KeyError
    assert [] == noted(log)


def test_spark_that_nobody_asks_ends_with_the_block(log: Path) -> None:
    with spark_worker(Path("works")) as running:
        running.start()
    assert ["started", "ended"] == noted(log)


@pytest.mark.parametrize(
    ("does", "error", "said"),
    [
        ("usage", UsageError, "^so it is$"),
        ("crash", RuntimeError, "in Spark's process:\nso it is"),
        ("dies", FencepostError, "Spark: its process ended with exit code 5 before it answered"),
    ],
)
def test_what_is_wrong_with_spark_is_told_to_whoever_asks(
    log: Path, does: str, error: type[Exception], said: str
) -> None:
    with pytest.raises(error, match=said):
        check_once(does)
    assert [log] == list(log.parent.iterdir())


def test_what_is_wrong_with_spark_is_nobodys_loss_when_nobody_asks(
    log: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    with spark_worker(Path("dies")) as running:
        running.start()
        assert until(lambda: noted(log) == ["started"], WAIT_S_MAX)
    assert ("", "") == capfd.readouterr()


def test_spark_that_is_not_up_in_time_is_told(log: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "START_S_MAX", 0.0)
    with pytest.raises(FencepostError, match="Spark: not up after 0 s"):
        check_once("sleeps")
    assert [] == list(log.parent.glob("fencepost-spark-*"))


def test_error_of_the_block_ends_at_once_all_that_spark_started_and_is_the_one_that_is_told(
    log: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    tokens: list[str] = []

    def fail() -> None:
        with spark_worker(Path("sleeps")) as running:
            running.start()
            tokens.append(running._token)
            assert until(lambda: "asleep" in noted(log), WAIT_S_MAX)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fail()
    assert [] == list(bearers(tokens[0], 0))
    assert ("", "") == capfd.readouterr()
    assert [log] == list(log.parent.iterdir())


def test_folder_of_a_process_that_is_dead_goes_and_others_stay(log: Path) -> None:
    ours = identity_of(os.getpid())
    assert ours is not None
    names = {
        "dead": f"fencepost-spark-{ours.pid}-{ours.start - 1}-abc",
        "alive": f"fencepost-spark-{ours.pid}-{ours.start}-abc",
        "foreign": "fencepost-spark-what-is-this",
    }
    for name in names.values():
        (log.parent / name).mkdir()
        (log.parent / name / "file").touch()
    made = module._new_folder()
    assert {names["alive"], names["foreign"], made.name} == {path.name for path in log.parent.iterdir()}
    assert made.name.startswith(names["alive"].removesuffix("abc"))
