"""A harness killed at any moment, with every kind of fault in force, leaves nothing after the next start."""

from __future__ import annotations

import itertools
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from random import Random

import pytest

from harness import limits
from harness.cleanup.process import until
from harness.events import Injection
from harness.history.file import read_history
from harness.hosts import HOSTS
from harness.hosts.base import Host
from harness.model import OpType, events_of
from tests.cleanup.leftovers import Leftovers
from tests.faults import NEMESES
from tests.hosts.sshds import Sshd, is_clean, servers, write_list
from tests.kept import exhaustive
from tests.needs import needs

pytestmark = [pytest.mark.slow, exhaustive, needs("java")]

ROOT = Path(__file__).resolve().parents[2]
SEED = 26
MOMENTS = 10
# In this order; a fault that the host cannot do is left out. None after the restart undoes another, so that at the
# last step a partition, a power loss, a jam, a clock, a disk, a zombie, a pause and an outage are in force.
STEPS = (
    *("client-crash A", "write-error D", "restart D", "await isr = A B D", "partition-isolate D", "power-loss D"),
    *("jam A", "clock-forward A", "disk-slow A", "zombie B", "produce m2 acks=1", "pause B", "zookeeper-outage A"),
)
SCHEDULE = """\
title    Every kind of fault at once
source   this test
nodes    A B D replicas, C controller
records  m1 1, m2 1, last1 1, last2 1, last3 1, last4 1
producer p1 log-0 acks=all
consumer c1 log-0

produce m1 acks=all
await checkpoint B = end(m1)
{steps}
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Field:
    """
    A host to play on, with how far a run goes that nobody kills.

    Attributes:
        name: of the host.
        arguments: of `fencepost run`.
        machines: the SSH servers, for the host ssh.
        file: which lists them.
        counts: how many entries the ledgers of a run have, and how many lines its history.
    """

    name: str
    arguments: tuple[str, ...]
    machines: tuple[Sshd, ...]
    file: Path | None
    counts: Mapping[str, int]

    def make(self, folder: Path) -> Host:
        """Return a host, as the next start makes it."""
        return HOSTS[self.name](folder, machines=self.file)

    def moment(self, number: int) -> tuple[str, int]:
        """Draw what is counted and up to which: in turn of both, spread over the whole span."""
        of = ("ledger", "history")[number % 2]
        span = self.counts[of] / (MOMENTS // 2)
        drawn = Random(f"{SEED} {self.name} {number}").random()
        return of, 1 + int(span * (number // 2 + drawn))


def run(field_arguments: tuple[str, ...], results: Path, of: str, number: int) -> subprocess.Popen[str]:
    """Start the run."""
    words = (sys.executable, "-m", "tests.cleanup.killed_run", of, str(number), "run", "--seed", str(SEED))
    return subprocess.Popen(
        [*words, *field_arguments, "--results", str(results)],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )


@contextmanager
def state_in(folder: Path) -> Iterator[None]:
    """Have ledgers below this folder during the block."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_STATE_HOME", str(folder))
        yield


@pytest.fixture(
    scope="module",
    params=[
        "local",
        pytest.param("docker", marks=pytest.mark.docker),
        pytest.param("ssh", marks=needs("sshd")),
    ],
)
def played(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Field]:
    """Play a run on each host to its end, and see that every fault was in force."""
    name, folder = str(request.param), tmp_path_factory.mktemp("whole")
    with ExitStack() as stack:
        stack.enter_context(state_in(folder / "state"))
        machines: tuple[Sshd, ...] = ()
        file = None
        if name == "ssh":
            machines = tuple(stack.enter_context(servers(3)))
            file = write_list(folder / "hosts.toml", machines)
        host = HOSTS[name](folder / "asked", machines=file)
        stack.callback(host.close)
        host.open()
        faults = [(step, NEMESES.get(step.split()[0])) for step in STEPS]
        steps = [step for step, fault in faults if not fault or not any(map(host.lacks, fault.needs))]
        host.close()
        schedule = folder / "schedule.txt"
        schedule.write_text(SCHEDULE.format(steps="\n".join(steps)), encoding="utf-8")
        arguments = ("--host", name, "--schedule", str(schedule))
        arguments += () if file is None else ("--hosts", str(file))
        with run(arguments, folder / "results", "ledger", 0) as process:
            said, _ = process.communicate()
        counted = re.search(r"^counted (\d+) (\d+)$", said, re.MULTILINE)
        assert counted is not None, said
        [history] = (folder / "results").glob("2*/*/history.jsonl")
        bitten = {event.name for op, event in events_of(read_history(history), Injection) if op.type is OpType.OK}
        named = {step.split()[0] for step in steps} & NEMESES.keys()
        assert named <= bitten, said
        counts = {"ledger": int(counted[1]), "history": int(counted[2])}
        yield Field(name=name, arguments=arguments, machines=machines, file=file, counts=counts)


@pytest.mark.parametrize("number", range(MOMENTS))
def test_next_start_leaves_nothing_of_a_run_that_was_killed(played: Field, tmp_path: Path, number: int) -> None:
    of, at = played.moment(number)
    with state_in(tmp_path / "state"):
        left = Leftovers(folder=tmp_path, docker=played.name == "docker")
        with run(played.arguments, tmp_path / "results", of, at) as process:
            assert process.stdout is not None
            said = list(itertools.takewhile(lambda line: line != "now\n", process.stdout))
            process.kill()
        assert -signal.SIGKILL == process.returncode, said
        left.remember()
        # The check can see: but for a run that was at its end, there is something to remove.
        assert left.found() or any("played in" in line for line in said), (of, at, said)
        host = played.make(tmp_path / "next")
        try:
            host.open()
        finally:
            host.close()
        assert [] == left.found(), (of, at, said)
    for machine in played.machines:
        assert until(partial(is_clean, machine), limits.CONDITION_WAIT_S_MAX), (of, at, machine.processes())
