"""The guard heals when it hears nothing, or when its agent is gone, and not when it was released."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from harness import limits
from harness.cleanup.process import until

ROOT = Path(__file__).resolve().parents[3]

# An agent that does nothing but obey one-word commands; its guard's healing is a file.
AGENT = """
import os, sys
from pathlib import Path
from harness.hosts.remote.guard import Guard
mark, silence_s = Path(sys.argv[1]), float(sys.argv[2])
guard = Guard(silence_s, lambda: mark.write_text(str(os.getpid())))
print("ready", flush=True)
for line in sys.stdin:
    getattr(guard, line.strip())()
    print("did", flush=True)
sys.stdin.read()
"""


def agent(mark: Path, silence_s: float) -> subprocess.Popen[str]:
    """Start the program, and return when it has its guard."""
    process = subprocess.Popen(
        [sys.executable, "-c", AGENT, str(mark), str(silence_s)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd=ROOT,
    )
    assert process.stdout is not None and process.stdout.readline() == "ready\n"
    return process


def test_guard_heals_once_its_agent_is_killed(tmp_path: Path) -> None:
    with agent(tmp_path / "healed", 600) as process:
        process.send_signal(signal.SIGKILL)
    assert until((tmp_path / "healed").exists, limits.PROCESS_END_S_MAX)


def test_guard_kills_an_agent_that_reports_no_life_and_heals(tmp_path: Path) -> None:
    with agent(tmp_path / "healed", 0.2) as process:
        process.send_signal(signal.SIGSTOP)
        assert -signal.SIGKILL == process.wait(limits.PROCESS_END_S_MAX)
    assert until((tmp_path / "healed").exists, limits.PROCESS_END_S_MAX)
    assert str(process.pid) != (tmp_path / "healed").read_text()


def test_guard_that_hears_of_life_waits_and_one_that_was_released_heals_nothing(tmp_path: Path) -> None:
    with agent(tmp_path / "healed", 600) as process:
        assert process.stdin is not None and process.stdout is not None
        children = Path(f"/proc/{process.pid}/task/{process.pid}/children")
        (guard,) = map(int, children.read_text().split())
        for word in ("beat", "beat", "release"):
            process.stdin.write(f"{word}\n")
            process.stdin.flush()
            assert "did\n" == process.stdout.readline()
        assert not Path(f"/proc/{guard}").exists()
        process.stdin.close()
    assert not (tmp_path / "healed").exists()


@pytest.mark.parametrize("number", [signal.SIGHUP, signal.SIGTERM, signal.SIGINT])
def test_guard_outlives_what_ends_a_session(tmp_path: Path, number: signal.Signals) -> None:
    with agent(tmp_path / "healed", 600) as process:
        (guard,) = map(int, Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split())
        assert os.getsid(guard) == guard
        os.kill(guard, number)
        assert process.stdin is not None and process.stdout is not None
        process.stdin.write("beat\n")
        process.stdin.flush()
        assert "did\n" == process.stdout.readline()
        process.send_signal(signal.SIGKILL)
    assert until((tmp_path / "healed").exists, limits.PROCESS_END_S_MAX)
