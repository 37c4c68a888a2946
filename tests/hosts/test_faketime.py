"""The file that sets a process's clocks says what it must, and a machine without the library says so."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from harness.cleanup.process import remove_shared
from harness.clocks import RIGHT, Moment, Reading, Setting, Which
from harness.hosts import faketime
from harness.hosts.faketime import CONTROL, NodeClock
from harness.model import PreconditionError
from tests.needs import needs

S = 1_000_000_000


def reading(wall_ns: int, ago_s: int = 0) -> Reading:
    """Return a reading that was asked for so long ago, and answered now."""
    answered = Moment(wall_ns=time.time_ns(), monotonic_ns=time.monotonic_ns())
    asked = Moment(wall_ns=answered.wall_ns - ago_s * S, monotonic_ns=answered.monotonic_ns - ago_s * S)
    return Reading(wall_ns=wall_ns, monotonic_ns=wall_ns, asked=asked, answered=answered)


def line(folder: Path) -> str:
    return (folder / CONTROL).read_text(encoding="utf-8").removesuffix("\n")


def test_clocks_are_right_as_a_process_starts(tmp_path: Path) -> None:
    clock = NodeClock(tmp_path)
    clock.begin(Which.WALL)
    assert "+0" == line(tmp_path)
    clock.begin(Which.BOTH)
    assert "+0 x1" == line(tmp_path)


@pytest.mark.parametrize(
    ("ahead_s", "written"), [(100.0, "+100.000000000"), (-100.0, "-100.000000000"), (0.0, "+0.000000000")]
)
def test_wall_clock_is_set_beside_the_right_time_and_stays_so_for_the_next_process(
    tmp_path: Path, ahead_s: float, written: str
) -> None:
    clock = NodeClock(tmp_path)
    clock.begin(Which.WALL)
    clock.set(Setting(which=Which.WALL, ahead_s=ahead_s), reading(0))
    assert written == line(tmp_path)
    clock.begin(Which.WALL)
    assert written == line(tmp_path)


def test_frozen_clock_stands_still_at_the_time_of_its_freezing(tmp_path: Path) -> None:
    clock, before = NodeClock(tmp_path), time.time_ns()
    clock.begin(Which.WALL)
    clock.set(Setting(which=Which.WALL, frozen=True), reading(0))
    frozen = line(tmp_path)
    assert before <= int(frozen.replace(".", "")) <= time.time_ns()
    clock.begin(Which.WALL)
    assert frozen == line(tmp_path)
    clock.set(RIGHT[Which.WALL], reading(0))
    assert "+0.000000000" == line(tmp_path)


def test_both_clocks_go_on_from_what_the_process_read(tmp_path: Path) -> None:
    clock = NodeClock(tmp_path)
    clock.begin(Which.BOTH)
    clock.set(Setting(which=Which.BOTH, rate=10.0), reading(5_000 * S))
    shown, rate = line(tmp_path).split()
    assert ("@", "x10") == (shown[0], rate)
    assert 5_000 <= float(shown[1:]) < 5_100
    clock.set(Setting(which=Which.BOTH, ahead_s=100.0), reading(6_000 * S))
    shown, rate = line(tmp_path).split()
    assert "x1" == rate
    assert 6_100 <= float(shown[1:]) < 6_200


def test_clocks_are_never_set_back_however_old_the_reading_may_be(tmp_path: Path) -> None:
    clock = NodeClock(tmp_path)
    clock.begin(Which.BOTH)
    clock.set(Setting(which=Which.BOTH, rate=10.0), reading(5_000 * S))
    # It was asked 2 s ago, and may have read its clocks then: 20 s of its own since.
    clock.set(RIGHT[Which.BOTH], reading(6_000 * S, ago_s=2))
    assert float(line(tmp_path).split()[0][1:]) >= 6_020


def test_next_process_has_gained_what_its_node_has(tmp_path: Path) -> None:
    clock = NodeClock(tmp_path)
    clock.begin(Which.BOTH)
    clock.set(Setting(which=Which.BOTH, ahead_s=100.0, rate=10.0), reading(time.time_ns()))
    clock.begin(Which.BOTH)
    ahead, rate = line(tmp_path).split()
    assert float(ahead) >= 100.0
    assert "x10" == rate


def test_clocks_that_a_process_has_not_cannot_be_set(tmp_path: Path) -> None:
    clock = NodeClock(tmp_path)
    with pytest.raises(PreconditionError, match="with the machine's own clocks; expected them for wall"):
        clock.set(RIGHT[Which.WALL], reading(0))
    clock.begin(Which.WALL)
    with pytest.raises(PreconditionError, match="with clocks for wall; expected them for both"):
        clock.set(RIGHT[Which.BOTH], reading(0))


def test_library_that_is_named_and_not_there_is_none(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv(faketime.VARIABLE, str(tmp_path / "none.so"))
    assert faketime.find() is None
    assert "no libfaketime on this machine; expected" in faketime.lacks.__wrapped__()
    assert "apt-get install libfaketime" in faketime.lacks.__wrapped__()


def test_file_that_is_no_such_library_sets_no_clock(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "wrong.so").write_bytes(b"no library")
    monkeypatch.setenv(faketime.VARIABLE, str(tmp_path / "wrong.so"))
    assert "a process that preloads it saw" in faketime.lacks.__wrapped__()


@pytest.mark.parametrize(
    ("which", "printed", "right"),
    [
        (Which.WALL, "1000000000 5000", True),
        (Which.WALL, "1000000000 1000000000", False),
        (Which.WALL, "1795636054 5000", False),
        (Which.BOTH, "1000000000 1000000000", True),
        (Which.BOTH, "1000000000 5000", False),
        (Which.BOTH, "", False),
    ],
)
def test_what_a_trial_printed_is_judged_by_both_clocks(which: Which, printed: str, *, right: bool) -> None:
    assert right is not bool(faketime.why_not(which, printed, "an error"))


@pytest.mark.slow
@needs("faketime")
def test_killed_process_leaves_nothing_of_the_library_in_shared_memory(tmp_path: Path) -> None:
    NodeClock(tmp_path).begin(Which.WALL)
    env = {**os.environ, **faketime.environment(str(faketime.find()), str(tmp_path / CONTROL), Which.WALL)}
    code = "import sys; print(1, flush=True); sys.stdin.read()"
    words = [sys.executable, "-S", "-c", code]
    with subprocess.Popen(words, env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        child.stdout.readline()
        left = [Path(f"/dev/shm/faketime_shm_{child.pid}"), Path(f"/dev/shm/sem.faketime_sem_{child.pid}")]
        assert [True, True] == [path.exists() for path in left]
        remove_shared(child.pid)
        assert [True, True] == [path.exists() for path in left], "it is alive"
        child.kill()
        child.wait()
    remove_shared(child.pid)
    assert [False, False] == [path.exists() for path in left]
