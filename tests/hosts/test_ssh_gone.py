"""Machines heal themselves, whoever is killed or frozen: harness, server, agents, or agents with their guards."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import pytest

from harness import limits
from harness.cleanup import mounts
from harness.cleanup.process import until
from harness.model import FencepostError, PreconditionError, UsageError
from tests.hosts.conftest import MakeSsh, launched
from tests.hosts.sshds import Sshd, agents, is_clean, rules, write_list

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[2]

# A harness with three nodes, one of them paused, that then waits to be killed. Where the machines can do it, the
# disks are slow by FUSE and the clocks are fast; it prints how many of each.
HARNESS = """
import sys
from pathlib import Path
from harness.ability import Ability
from harness.clocks import Reading, Setting, Which
from harness.cluster.disk_error import DiskError
from harness.hosts import moments
from harness.hosts.ssh import SshHost
from harness.launch import Launch
from harness.packets import Packets

host = SshHost(Path(sys.argv[1]), power_tier=sys.argv[3] or None, machines=Path(sys.argv[2]))
host.open()
fuse, clocks = not host.lacks(Ability.DISK_SLOW), None if host.lacks(Ability.CLOCKS) else Which.BOTH
for name in "ABC":
    place = host.add_node(name, disk=True, fails=True)
    host.start(name, Launch(argv=(place.python, "-c", "import signal; signal.pause()"), clocks=clocks))
    if fuse:
        host.break_disk(name, DiskError.SLOW)
    if clocks:
        now = moments.now()
        seen = Reading(wall_ns=now.wall_ns, monotonic_ns=now.monotonic_ns, asked=now, answered=now)
        host.set_clocks(name, Setting(which=clocks, rate=10.0), seen)
host.pause("B")
if sys.argv[4]:
    host.impair_packets("A", Packets.DROPPED)
print(f"ready {3 * fuse} {3 * bool(clocks)}", flush=True)
sys.stdin.read()
"""


class Harness(NamedTuple):
    """The program HARNESS, and how many of its nodes have a disk of FUSE's and clocks of their own."""

    process: subprocess.Popen[str]
    disks: int
    clocks: int


@contextmanager
def _harness(run_dir: Path, file: Path, *, tier: str = "watermark", drop: bool = False) -> Iterator[Harness]:
    """Start the program HARNESS; yield it when it has nodes."""
    process = subprocess.Popen(
        [sys.executable, "-c", HARNESS, str(run_dir), str(file), tier, "drop" if drop else ""],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd=ROOT,
    )
    with process:
        assert process.stdout is not None
        ready = next((line for line in process.stdout if line.startswith("ready ")), None)
        assert ready is not None, "the harness ended before it had nodes"
        yield Harness(process, *map(int, ready.split()[1:]))


def _shared(pids: Iterable[str]) -> list[Path]:
    """Return what libfaketime has in the shared memory of these processes."""
    return [path for pid in pids for path in Path("/dev/shm").glob(f"*faketime_*_{pid}")]


def _pids(machines: Iterable[Sshd]) -> list[str]:
    return [line.split()[0] for machine in machines for line in machine.processes()]


@pytest.mark.parametrize("how", ["SIGKILL the harness", "SIGSTOP the harness", "SIGKILL the agents"])
def test_nodes_of_a_harness_that_is_gone_end_by_the_machines_own_doing(
    tmp_path: Path, machines: list[Sshd], how: str
) -> None:
    machines = machines[:2] if "harness" in how else machines[:1]
    file = write_list(tmp_path / "hosts.toml", machines, "silence_s = 2")
    with _harness(tmp_path / "run", file) as (process, disks, clocks):
        pids = _pids(machines)
        assert 2 * len(machines) + 3 + disks == len(pids)
        assert disks == sum(len(mounts.mounts_below(machine.root)) for machine in machines)
        assert 2 * clocks == len(_shared(pids))
        if "agents" in how:
            for machine in machines:
                os.kill(min(agents(machine)), signal.SIGKILL)
        else:
            process.send_signal(signal.SIGSTOP if "STOP" in how else signal.SIGKILL)
        for machine in machines:
            assert until(lambda m=machine: is_clean(m), limits.CONDITION_WAIT_S_MAX), machine.processes()
        assert [] == _shared(pids)
        process.kill()


def test_what_killed_agents_and_guards_left_is_undone_by_the_next_agent(
    tmp_path: Path, make_ssh: MakeSsh, machines: list[Sshd]
) -> None:
    machine = machines[0]
    with _harness(tmp_path / "run", write_list(tmp_path / "hosts.toml", [machine])) as (process, disks, _):
        pids = _pids([machine])
        for pid in sorted(agents(machine), reverse=True):
            os.kill(pid, signal.SIGKILL)
        process.kill()
    assert until(lambda: 3 + disks == len(machine.processes()), limits.PROCESS_END_S_MAX), machine.processes()
    make_ssh([machine]).close()
    assert is_clean(machine)
    assert [] == _shared(pids)


def test_machine_whose_server_is_killed_fails_every_call_and_heals_itself(
    make_ssh: MakeSsh, machines: list[Sshd]
) -> None:
    host = make_ssh()
    for name in "ABC":
        launched(host, name)
    lost = machines[1]
    lost.kill()
    try:
        with pytest.raises(
            PreconditionError, match=rf"machine m2 \({lost.user}@.*: lost: the connection has ended"
        ):
            until(lambda: not host.alive("B"), limits.PROCESS_END_S_MAX)
        assert until(lambda: is_clean(lost), limits.CONDITION_WAIT_S_MAX)
        assert host.alive("A") is True
        with pytest.raises(FencepostError, match=r"each machine heals itself .*machine m2 .*: lost"):
            host.close()
        assert [True] * 3 == [is_clean(each) for each in machines]
        with pytest.raises(UsageError, match=r"machine m2 .*expected an SSH server that answers"):
            make_ssh()
        assert [True] * 3 == [is_clean(each) for each in machines]
    finally:
        lost.start()


def test_agent_that_is_frozen_is_lost_and_ended_by_its_guard(make_ssh: MakeSsh, machines: list[Sshd]) -> None:
    host = make_ssh(machines[:1], "silence_s = 2")
    launched(host, "A")
    os.kill(min(agents(machines[0])), signal.SIGSTOP)
    with pytest.raises(
        PreconditionError, match=r"machine m1 .*: lost: (it has been silent for 2 s|the connection)"
    ):
        host.alive("A")
    assert until(lambda: is_clean(machines[0]), limits.CONDITION_WAIT_S_MAX)


@pytest.mark.root
def test_chain_of_a_killed_harness_is_removed_by_the_machine(tmp_path: Path, root_machine: Sshd) -> None:
    file = write_list(tmp_path / "hosts.toml", [root_machine], "silence_s = 2")
    with _harness(tmp_path / "run", file, tier="loop", drop=True) as (process, disks, _):
        assert "FENCEPOST-" in rules()
        assert 3 + disks == len(mounts.mounts_below(root_machine.root))
        process.send_signal(signal.SIGKILL)
    assert until(lambda: is_clean(root_machine), limits.CONDITION_WAIT_S_MAX)
    assert "FENCEPOST-" not in rules()
