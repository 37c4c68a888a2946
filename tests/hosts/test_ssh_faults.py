"""Disks and clocks of machines over SSH fail as they are told; a machine that cannot have them fail says why."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from random import Random

import pytest

from harness.ability import OF_DISKS, Ability
from harness.clocks import Moment, Which
from harness.cluster.clock_fault import look
from harness.cluster.cluster import Cluster
from harness.cluster.disk_error import NEEDS, DiskError
from harness.hosts import faulty, moments
from harness.hosts.ssh import VARIABLE
from harness.launch import Address, Launch
from harness.model import PreconditionError
from harness.scenario.file import TOPIC
from tests.clusters import running
from tests.faults import NEMESES
from tests.hosts.conftest import MakeSsh, launched, node, start_ready
from tests.hosts.sshds import Sshd, is_clean, write_list
from tests.kept import exhaustive, keep
from tests.needs import needs
from tests.nemesis.conftest import (
    IDS,
    REPLICAS,
    await_whole,
    client_of,
    ends,
    heal,
    inject,
    make_whole,
    produce,
    roles,
)
from tests.nemesis.test_bit_rot_active import whole
from tests.nemesis.test_clock_faults import assert_shown
from tests.nemesis.test_real_disks import SEEN, busily

pytestmark = pytest.mark.slow

OF_MACHINES = sorted(name for name, fault in NEMESES.items() if {*fault.needs} & {
    *OF_DISKS, Ability.WALL_CLOCK, Ability.CLOCKS, Ability.LOST_DISKS, Ability.TORN_POWER_LOSS, Ability.BIT_ROT,
})  # fmt: skip
# A node that says how a write to a new file ended, and goes on.
WRITER = """
import errno, os, signal, sys
try:
    with open(f"{sys.argv[1]}/{os.getpid()}", "wb", 0) as file:
        file.write(b"a")
except OSError as error:
    print("a write:", errno.errorcode[error.errno])
print("ready", flush=True)
signal.pause()
"""
# What it says on a disk that fails without FUSE.
OF_EXT4 = {
    DiskError.FULL: "ENOSPC",
    DiskError.WRITE: "EIO",
    DiskError.FLUSH: "EIO",
    DiskError.READ_ONLY: "EROFS",
}
# By how much the clock that measures time is ahead here: another machine was started at another time.
EARLIER_NS = 10**15
# How far clocks that ran ten times as fast for a moment may be ahead; a mistaken start would show as a million.
MOVED_ON_S_MAX = 1000


def poor(machine: Sshd, monkeypatch: pytest.MonkeyPatch) -> Sshd:
    """Let a machine's Python find neither the tool that mounts FUSE nor libfaketime."""
    wrapper = machine.folder / "poor-python"
    wrapper.write_text(
        f'#!/bin/sh\nexport PATH=/nowhere FENCEPOST_FAKETIME=/nowhere\nexec {machine.python} "$@"\n',
        encoding="utf-8",
    )
    wrapper.chmod(0o755)
    monkeypatch.setattr(machine, "python", str(wrapper))
    return machine


def without_fuse(machine: Sshd, folder: Path, monkeypatch: pytest.MonkeyPatch) -> Sshd:
    """Let a machine's Python have a library for FUSE that finds no libfuse."""
    (folder / f"{faulty.LIBRARY}.py").write_text("raise ImportError('no libfuse3 here')\n", encoding="utf-8")
    wrapper = machine.folder / "python-without-fuse"
    wrapper.write_text(
        f'#!/bin/sh\nexport PYTHONPATH="$PYTHONPATH:{folder}"\nexec {machine.python} "$@"\n', encoding="utf-8"
    )
    wrapper.chmod(0o755)
    monkeypatch.setattr(machine, "python", str(wrapper))
    return machine


@needs("ssh-users")
def test_fault_that_one_machine_cannot_do_is_refused_with_its_reason(
    make_ssh: MakeSsh, machines: list[Sshd], monkeypatch: pytest.MonkeyPatch
) -> None:
    host = make_ssh([machines[0], poor(machines[1], monkeypatch)])
    who = f"host ssh: machine m2 ({machines[1].user}@{machines[1].address}:{machines[1].port}): "
    for ability in (Ability.WALL_CLOCK, Ability.CLOCKS):
        assert host.lacks(ability).startswith(f"{who}no libfaketime on this machine; expected libfaketimeMT")
    assert {f"{who}no fusermount3 on PATH; expected the package fuse3, or root"} == {
        host.lacks(ability) for ability in OF_DISKS
    }
    assert [""] * 3 == [
        host.lacks(ability) for ability in (Ability.LOST_DISKS, Ability.TORN_POWER_LOSS, Ability.BIT_ROT)
    ]


@needs("faketime")
def test_wall_clock_of_a_machine_that_is_far_off_is_no_clock_to_set(
    make_ssh: MakeSsh, machines: list[Sshd], monkeypatch: pytest.MonkeyPatch
) -> None:
    host = make_ssh(machines[:1])
    real = moments.now
    monkeypatch.setattr(
        moments, "now", lambda: Moment(wall_ns=real().wall_ns - 10**11, monotonic_ns=real().monotonic_ns)
    )
    assert " s ahead of this machine's; expected at most 1 s" in host.lacks(Ability.WALL_CLOCK)


def test_disk_of_a_node_is_written_over_and_lost_on_its_machine(make_ssh: MakeSsh, machines: list[Sshd]) -> None:
    host = make_ssh(machines[:1])
    first = launched(host, "A", "write:log:a:100")
    host.overwrite("A", "log", 50, b"a", b"b")
    kept = b"a" * 50 + b"b" + b"a" * 49
    assert kept == (host.disk("A") / "log").read_bytes()
    with pytest.raises(PreconditionError, match=r"m1 .*'log' has 0x62 at byte 50 by now; expected 0x61, as seen"):
        host.overwrite("A", "log", 50, b"a", b"b")
    with pytest.raises(PreconditionError, match=r"m1 .*'\.\./log\.txt' cannot be written to: .* no path below"):
        host.overwrite("A", "../log.txt", 0, b"r", b"x")
    with pytest.raises(PreconditionError, match="lose the disk of A: it runs; expected a node that is down"):
        host.lose_disk("A")
    host.kill("A")
    assert "1 files lost, a copy of them is in lost-1" in host.lose_disk("A")
    assert [] == list(host.disk("A").iterdir())
    assert kept == (host.disk("A").parent / "lost-1" / "log").read_bytes()
    start_ready(host, "A", first)
    assert b"a" * 100 == (host.disk("A") / "log").read_bytes()


def test_chance_that_tears_what_a_disk_loses_is_the_same_on_each_machine(
    make_ssh: MakeSsh, machines: list[Sshd]
) -> None:
    host = make_ssh(machines[:2])
    left = {}
    for name in ("A", "B"):
        launched(host, name, "write:log:a:100000")
        assert "zeros now" in host.power_loss(name, Random(7))
        left[name] = (host.disk(name) / "log").read_bytes()
    assert left["A"] == left["B"]
    assert {b"a", b"\0"} == {left["A"][at : at + 1] for at in range(len(left["A"]))}


@exhaustive
@pytest.mark.root
@needs("loop")
def test_machine_of_root_without_fuse_has_what_its_filesystem_can_do(
    make_ssh: MakeSsh, root_machine: Sshd, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    host = make_ssh([without_fuse(root_machine, tmp_path, monkeypatch)], tier="loop")
    who = f"host ssh: machine {root_machine.name} (root@{root_machine.address}:{root_machine.port}): FUSE: "
    for ability in (Ability.DISK_READ_ERRORS, Ability.DISK_SLOW):
        assert host.lacks(ability).startswith(who)
    place = host.add_node("A", disk=True, fails=True)
    writer = Launch(argv=(place.python, "-c", WRITER, place.data_dir))
    for error, said in OF_EXT4.items():
        assert "" == host.lacks(NEEDS[error])
        start_ready(host, "A", writer)
        assert host.break_disk("A", error)
        assert error == host.disk_state("A")
        host.kill("A")
        start_ready(host, "A", writer)
        assert host.log_text("A").endswith(f"a write: {said}\nready\n")
        host.kill("A")
        assert host.mend_disk("A")
        assert "" == host.disk_state("A")
    # What one large call wrote, the kernel may write whole (docs/power-loss.md).
    start_ready(host, "A", node(place.data_dir, *["write:log:a:4000"] * 25, python=place.python))
    assert "journal reached the disk before" in host.power_loss("A", Random(7))
    assert {*b"a\0"} == set((host.disk("A") / "log").read_bytes())
    host.close()
    assert is_clean(root_machine)


@pytest.fixture
def far(
    tmp_path: Path, machines: list[Sshd], zookeeper: Address, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Cluster]:
    """A cluster over SSH whose machines were started at another time than this one, and can do every fault."""
    real = moments.now
    monkeypatch.setattr(
        moments, "now", lambda: Moment(wall_ns=real().wall_ns, monotonic_ns=real().monotonic_ns + EARLIER_NS)
    )
    monkeypatch.setenv(VARIABLE, str(write_list(tmp_path / "hosts.toml", machines)))
    with running(
        tmp_path / "far", zookeeper, "kip380", IDS, replicas=REPLICAS, nemeses=OF_MACHINES, host="ssh"
    ) as cluster:
        assert {""} == {cluster.host.lacks(need) for fault in OF_MACHINES for need in NEMESES[fault].needs}
        client_of(cluster).create_topic(TOPIC, [IDS[name] for name in REPLICAS])
        await_whole(cluster)
        yield cluster


@needs("fuse", "faketime")
@pytest.mark.parametrize(
    "errors", keep([pytest.param(("write-error",), id="one"), pytest.param(tuple(SEEN), id="all")], "one")
)
def test_faults_of_disks_and_clocks_take_effect_on_machines_over_ssh_and_nothing_is_left(
    far: Cluster, machines: list[Sshd], errors: Sequence[str]
) -> None:
    produce(far, 3)
    make_whole(far)
    for fault in errors:
        leader, _ = roles(far)
        seen = busily(far, partial(inject, fault, far, leader))
        counted, said = SEEN[fault]
        assert counted in seen
        assert said in seen
        make_whole(far)
    assert "every call takes 20 ms longer" in inject("disk-slow", far, "A")
    produce(far, 1)
    assert "calls took longer" in heal("disk-slow", far, "A")

    assert "of them zeros now" in inject("power-loss-torn", far, "B")
    inject("lose-disk", far, "B")
    assert -1 == far.log_end("B")
    make_whole(far)
    assert 1 == len(set(ends(far).values()))

    assert "batch's CRC-32C is" in inject("bit-rot-active", far, "B")
    far.await_(lambda: whole(far, "B") is not None, lambda: "all whole on B")
    await_whole(far)

    if far.host.unfit("A", Ability.WALL_CLOCK):  # its next process has the other kind
        inject("kill", far, "A")
        make_whole(far)
    for name, fault, which in (("A", "clock-back", Which.WALL), ("C", "clock-fast", Which.BOTH)):
        inject(fault, far, name)
        assert_shown(fault, look(far, name))
        heal(fault, far, name)
        found = look(far, name)
        assert not found.is_wrong(which)
        assert all(abs(each) < MOVED_ON_S_MAX for each in found.ahead_s), found
    far.close()
    assert [True] * 3 == [is_clean(each) for each in machines]
