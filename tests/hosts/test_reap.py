"""After the next reap, a harness killed at any moment leaves nothing behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from harness import limits
from harness.cleanup import ledger, mounts
from harness.cleanup.ledger import runs_dir
from harness.cleanup.process import TOKEN_VARIABLE, until
from tests.kept import keep
from tests.needs import lacks, needs

ROOT = Path(__file__).resolve().parents[2]

pytestmark = pytest.mark.slow

# A harness that opens a host, then repeats its faults in a loop, and prints every step.
HARNESS = """
import sys
from pathlib import Path
from harness.hosts import HOSTS
from harness.launch import Launch

kind, run_dir, tier = sys.argv[1:]
host = HOSTS[kind](Path(run_dir), power_tier=tier)
print("opening", flush=True)
host.open()
print("opened", flush=True)
for name in ("A", "B", "C"):
    place = host.add_node(name, disk=True)
    print("added", name, flush=True)
    host.start(name, Launch(argv=(place.python, "-c", "import signal; signal.pause()")))
    print("started", name, flush=True)
while True:
    host.pause("A")
    print("paused", flush=True)
    host.power_loss("A")
    print("lost", flush=True)
    host.start("A", Launch(argv=(place.python, "-c", "import signal; signal.pause()")))
    print("again", flush=True)
"""

# The same with a disk that is full, one that is read-only and one that is slow, in turn.
FAILING = """
import sys
from pathlib import Path
from harness.cluster.disk_error import DiskError
from harness.hosts import HOSTS
from harness.launch import Launch

kind, run_dir, tier = sys.argv[1:]
host = HOSTS[kind](Path(run_dir), power_tier=tier)
host.open()
place = host.add_node("A", disk=True, fails=True)
print("added A", flush=True)
write = "import os, sys, time; fd = os.open(sys.argv[1], os.O_WRONLY | os.O_CREAT)\\nwhile True: time.sleep(1)"
host.start("A", Launch(argv=(place.python, "-c", write, place.data_dir + "/log")))
while True:
    for error in (DiskError.FULL, DiskError.SLOW, DiskError.READ_ONLY):
        host.break_disk("A", error)
        print("broken", error, flush=True)
        host.mend_disk("A")
    host.power_loss("A")
    print("lost", flush=True)
    host.start("A", Launch(argv=(place.python, "-c", write, place.data_dir + "/log")))
"""


def tier() -> str:
    """Return the power tier that this machine can have."""
    return "watermark" if lacks("loop") else "loop"


def run_and_kill(kind: str, run_dir: Path, after: str, more_s: float, program: str = HARNESS) -> None:
    """Start the program, and kill it more_s after it printed the step."""
    process = subprocess.Popen(
        [sys.executable, "-c", program, kind, str(run_dir), tier()],
        stdout=subprocess.PIPE,
        text=True,
        cwd=ROOT,
        start_new_session=True,
    )
    with process:
        assert process.stdout is not None
        for line in process.stdout:
            if line.strip() == after:
                break
        until(lambda: False, more_s)
        process.send_signal(signal.SIGKILL)
        assert process.wait() == -signal.SIGKILL


def left_of(run_dir: Path, token: str) -> list[str]:
    """Return every process, mount, loop device and image that a run left behind."""
    found = [f"mount {path}" for path in mounts.mounts_below(run_dir)]
    for name in ("A", "B", "C"):
        image = run_dir / "nodes" / name / "disk" / "disk.img"
        found += [f"{device} {image}" for device in mounts.loops_of(image)]
        found += [f"image {image}"] if image.exists() else []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            environment = Path(f"/proc/{pid}/environ").read_bytes()
        except OSError:
            continue
        if f"{TOKEN_VARIABLE}={token}.".encode() in environment:
            found.append(f"process {pid}")
    return found


@pytest.mark.parametrize("more_s", keep([0.0, 0.003, 0.011], 0.003))
@pytest.mark.parametrize("after", ["opening", "opened", "added A", "started B", "paused", "lost", "again"])
def test_reap_leaves_nothing_of_a_harness_killed_at_any_moment(tmp_path: Path, after: str, more_s: float) -> None:
    run_and_kill("local", tmp_path / "run", after, more_s)
    tokens = [path.name for path in runs_dir().iterdir() if path.is_dir()]
    reaped = ledger.reap()
    assert reaped.left == ()
    for token in tokens:
        assert left_of(tmp_path / "run", token) == []
    assert [path.name for path in runs_dir().iterdir() if path.is_dir()] == []
    assert ledger.reap().undone == ()


@needs("fuse")
@pytest.mark.parametrize("after", keep(["added A", "broken full", "broken slow", "lost"], "broken full"))
def test_reap_takes_away_a_disk_that_fails(tmp_path: Path, after: str) -> None:
    run_and_kill("local", tmp_path / "run", after, 0.0, FAILING)
    [token] = [path.name for path in runs_dir().iterdir() if path.is_dir()]
    fuse = tmp_path / "run" / "nodes" / "A" / "fuse" / "data"
    assert f"fencepost-{token}" == mounts.source_of(fuse)
    assert () == ledger.reap().left
    assert [] == left_of(tmp_path / "run", token)
    assert "" == mounts.source_of(fuse)


def test_killed_harness_does_leave_processes_before_reap(tmp_path: Path) -> None:
    run_and_kill("local", tmp_path / "run", "started B", 0.0)
    [token] = [path.name for path in runs_dir().iterdir() if path.is_dir()]
    assert left_of(tmp_path / "run", token) != []
    ledger.reap()
    assert left_of(tmp_path / "run", token) == []


def test_opening_a_host_reaps_what_a_killed_harness_left(tmp_path: Path) -> None:
    from harness.hosts.local import LocalHost

    run_and_kill("local", tmp_path / "run", "started A", 0.0)
    host = LocalHost(tmp_path / "next", power_tier="watermark")
    host.open()
    assert any(text.startswith("process ") for text in host.reaped.undone)
    host.close()


def test_interrupt_leaves_nothing_once_the_host_is_closed(tmp_path: Path) -> None:
    before, first, rest = HARNESS.partition('print("opening", flush=True)\n')
    program = f"{before}try:\n{textwrap.indent(first + rest, '    ')}finally:\n    host.close()\n"
    process = subprocess.Popen(
        [sys.executable, "-c", program, "local", str(tmp_path / "run"), tier()],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=ROOT,
    )
    with process:
        assert process.stdout is not None
        for line in process.stdout:
            if line.strip() == "lost":
                break
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=limits.CONDITION_WAIT_S_MAX)
    assert "KeyboardInterrupt" in errors
    assert [path.name for path in runs_dir().iterdir() if path.is_dir()] == []
    assert mounts.mounts_below(tmp_path / "run") == []
