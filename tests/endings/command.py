"""The command as a user starts it, observed from outside, and checks for everything that it could leave behind."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from harness import limits
from harness.cleanup import mounts
from harness.cleanup.ledger import runs_dir
from harness.cleanup.process import until

ROOT: Final = Path(__file__).resolve().parents[2]
# Above the usual range and below the kernel's ephemeral ports: every listener there was started by these tests.
PORTS: Final = range(32000, 32768)
MOMENT_S_MAX: Final = 180.0
END_S_MAX: Final = 60.0

# Everything that a scenario can leave outstanding at once, while it waits for its last condition.
PAUSED: Final = """\
title    A is paused behind two holds, B is down, and nobody comes
source   no document: a state that a killed harness may leave
nodes    A B replicas, C controller
records  m1 1..2

produce m1 acks=all
hold answers Fetch B -> A
hold requests Fetch B -> A
pause A
kill B
await log A = 1000

expect hw: none
expect kip101, kip101-text: none
"""

# The command. The arguments before "--" are its scenarios folder and whether it may look for Java in the usual
# places.
PROGRAM: Final = """\
import signal
import sys
from pathlib import Path
# Who started the tests may have had Ctrl-C ignored; the command would then rightly ignore it too.
signal.signal(signal.SIGINT, signal.default_int_handler)
import workloads
import harness.java
from harness.cli.main import main
cut = sys.argv.index("--")
scenarios, places = sys.argv[1:cut]
workloads.SCENARIOS = Path(scenarios) if scenarios else workloads.SCENARIOS
harness.java.USUAL_PLACES = harness.java.USUAL_PLACES if places == "usual" else ()
sys.exit(main(sys.argv[cut + 1:]))
"""


@dataclass(slots=True, kw_only=True)
class Running:
    """One running command: its process, and the folder with its results, state and output."""

    process: subprocess.Popen[bytes]
    folder: Path
    told: dict[str, str] = field(default_factory=dict)

    def ops(self) -> list[str]:
        """Return the history lines of all runs so far."""
        lines: list[str] = []
        for path in self.folder.glob("results/2*/*/history.jsonl"):
            lines += path.read_text(encoding="utf-8", errors="replace").splitlines()
        return lines

    def reach(self, moment: Callable[[Running], bool]) -> None:
        """Wait until the moment comes; fail if the command ends first."""
        assert until(lambda: moment(self) or self.process.poll() is not None, MOMENT_S_MAX), self.output()
        assert self.process.poll() is None, f"it ended before the moment came: {self.output()}"

    def kill(self) -> None:
        """Send SIGKILL to the command's own process only, not to its children."""
        self.process.send_signal(signal.SIGKILL)
        assert -signal.SIGKILL == self.process.wait()

    def end(self) -> int:
        """Wait until the command ends and return its exit code."""
        return self.process.wait(timeout=MOMENT_S_MAX)

    def errors(self) -> str:
        """Return what the command wrote to stderr."""
        return (self.folder / "stderr").read_text(encoding="utf-8")

    def output(self) -> str:
        """Return what the command wrote to stdout and stderr."""
        return (self.folder / "stdout").read_text(encoding="utf-8") + self.errors()


@contextmanager
def started(folder: Path, *arguments: str, scenarios: str = "", places: str = "usual") -> Iterator[Running]:
    """Start `fencepost test-kip101` with results, state and output in the folder; kill it after the block."""
    own = ["--results", str(folder / "results")]
    if not {"docker", "sim"} & set(arguments):
        own += ["--ports", f"{PORTS[0]}-{PORTS[-1]}"]
    with (folder / "stdout").open("wb") as stdout, (folder / "stderr").open("wb") as stderr:
        process = subprocess.Popen(
            [sys.executable, "-c", PROGRAM, scenarios, places, "--", "test-kip101", *own, *arguments],
            stdin=subprocess.DEVNULL,
            stdout=stdout,
            stderr=stderr,
            cwd=ROOT,
            env={**os.environ, "XDG_STATE_HOME": str(folder / "state")},
            start_new_session=True,
        )
    with process:
        try:
            yield Running(process=process, folder=folder)
        finally:
            process.kill()


def left_of(folder: Path) -> list[str]:
    """Name everything on this machine that belongs to the folder; the list is empty after a clean exit."""
    ledgers = [path.name for path in runs_dir().iterdir() if path.is_dir()]
    return [
        *_processes(folder),
        *(f"mount {path}" for path in mounts.mounts_below(folder)),
        *_loops(folder),
        *(f"image {path}" for path in folder.glob("results/**/disk.img")),
        *(f"listener on {port}" for port in _ports(folder) if _listens(port)),
        *(f"ledger {name}" for name in ledgers),
    ]


def _processes(folder: Path) -> Iterator[str]:
    """Yield every process with the folder in its arguments or environment; all children of the command have it."""
    mark = str(folder).encode()
    for pid in filter(str.isdigit, os.listdir("/proc")):
        if int(pid) == os.getpid():
            continue
        try:
            arguments = Path(f"/proc/{pid}/cmdline").read_bytes()
            environment = Path(f"/proc/{pid}/environ").read_bytes()
        except OSError:
            continue
        if mark in arguments or mark in environment:
            yield f"process {pid} {arguments.replace(bytes(1), b' ').decode(errors='replace')[:200]}"


def _loops(folder: Path) -> Iterator[str]:
    for node in Path("/sys/block").glob("loop*/loop/backing_file"):
        try:
            backing = node.read_text(encoding="utf-8").strip()
        except OSError:
            continue
        if backing.startswith(str(folder)):
            yield f"{node.parents[1].name} {backing}"


def _ports(folder: Path) -> set[int]:
    """Return the ports that the configuration of brokers and ZooKeeper makes them listen on."""
    found: set[int] = set()
    for path in folder.glob("results/**/broker.json"):
        config = json.loads(path.read_text(encoding="utf-8"))
        found |= {config["listen_client"][1], config["listen_internal"][1]}
    for path in folder.glob("results/**/zoo.cfg"):
        found |= {int(port) for port in re.findall(r"clientPort=(\d+)", path.read_text(encoding="utf-8"))}
    return found & set(PORTS)


def _listens(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), limits.SERVICE_ANSWER_S_MAX).close()
    except OSError:
        return False
    return True


# --- moments -------------------------------------------------------------------------------------------------
def catching(running: Running) -> bool:
    """Return whether the command handles signals yet: before that it has created nothing."""
    status = Path(f"/proc/{running.process.pid}/status").read_text(encoding="ascii")
    caught = int(re.findall(r"^SigCgt:\s*(\w+)$", status, re.MULTILINE)[0], 16)
    return bool(caught >> (signal.SIGTERM - 1) & 1)


def opened(running: Running) -> bool:
    """Return whether the command's first ledger exists."""
    runs = running.folder / "state" / "fencepost" / "runs"
    return runs.is_dir() and any(path.is_dir() for path in runs.iterdir())


def starting_zookeeper(running: Running) -> bool:
    """Return whether ZooKeeper is configured, and so is about to start or has been started."""
    return any(running.folder.glob("results/2*/services/nodes/zookeeper/conf/zoo.cfg"))


def op(number: int) -> Callable[[Running], bool]:
    """Return the moment when the runs have recorded more than this number of ops."""
    return lambda running: len(running.ops()) > number


def saw(*parts: str) -> Callable[[Running], bool]:
    """Return the moment when a history line contains all of these parts."""
    return lambda running: any(all(part in line for part in parts) for line in running.ops())


def runs(program: str) -> Callable[[Running], bool]:
    """Return the moment when a process of the command runs this program."""
    return lambda running: any(program in text for text in _processes(running.folder))


cutting_power = saw('"f":"power-loss"')
all_outstanding = saw('"f":"step"', "await log A = 1000")
