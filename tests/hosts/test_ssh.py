"""Each fault takes effect on machines that are reached over SSH, and a run leaves nothing on them."""

from __future__ import annotations

import os
import re
import socket
from collections.abc import Collection
from pathlib import Path

import pytest

from harness import limits
from harness.ability import Ability
from harness.cleanup import mounts
from harness.cleanup.process import until
from harness.launch import Launch
from harness.model import PreconditionError, UsageError
from harness.packets import Packets
from targets.zookeeper import server
from tests.hosts.conftest import MakeSsh, launched, node, start_ready
from tests.hosts.sshds import Sshd, is_clean, rules
from tests.needs import needs
from tests.services import zookeeper_on

pytestmark = pytest.mark.slow


def test_nodes_are_given_to_the_machines_in_turn_and_each_fault_takes_effect(
    make_ssh: MakeSsh, machines: list[Sshd]
) -> None:
    host = make_ssh()
    first = launched(host, "A", "write:log:a:1000")
    for name in ("B", "C", "D"):
        launched(host, name, "write:log:a:10", disk=False)
    assert [2, 1, 1] == [sum("signal.pause" in line for line in each.processes()) for each in machines]
    assert re.fullmatch(r"m1: pid \d+ stopped", host.pause("A"))
    assert host.alive("A") is True
    assert re.fullmatch(r"m1: pid \d+ runs", host.resume("A"))
    with pytest.raises(PreconditionError, match="is not stopped"):
        host.resume("A")
    assert "1 files copied to the shadow" in host.flush("A")
    assert "ended by SIGKILL" in host.kill("A")
    assert host.alive("A") is False
    with pytest.raises(PreconditionError, match=r"machine m1 \(.*kill A: no process of it runs"):
        host.kill("A")
    assert "m2: pid" in (seen := host.stop("B")) and "exit code 7" in seen
    with pytest.raises(PreconditionError, match="plain folder"):
        host.power_loss("C")
    start_ready(host, "A", first)
    assert 2000 == (host.disk("A") / "log").stat().st_size
    assert "1000 bytes in 1 files undone (watermark)" in host.power_loss("A")
    assert b"a" * 1000 == (host.disk("A") / "log").read_bytes()
    host.unlink("A", "log")
    assert [] == list(host.disk("A").iterdir())
    with pytest.raises(PreconditionError, match="'log' cannot be removed"):
        host.unlink("A", "log")
    with pytest.raises(UsageError, match=r"(?s)ended at once with exit code 3.*no such option"):
        host.start("B", Launch(argv=("/bin/sh", "-c", "echo no such option; exit 3")))


def test_power_loss_waits_here_for_what_the_dead_node_sent_and_keeps_what_it_flushed(make_ssh: MakeSsh) -> None:
    def late_report(name: str) -> None:
        assert host.alive(name) is False
        host.note_flushed(name, "log", 1000)

    host = make_ssh(drain=late_report)
    launched(host, "A", "write:log:a:1000", "sync:log", "write:log:b:500")
    host.power_loss("A")
    assert b"a" * 1000 == (host.disk("A") / "log").read_bytes()


def test_words_with_every_sign_of_a_shell_reach_the_node_as_they_are(
    make_ssh: MakeSsh, machines: list[Sshd]
) -> None:
    host = make_ssh(machines[:1])
    place = host.add_node("A", disk=False)
    words = ["a b", "'", '"', "$HOME", "`id`", "; exit 1", "\\", "*", "~", "é", "a\nb", ""]
    program = "import sys, os; print(sys.argv[1:], os.environ['W'], flush=True); sys.stdin.read(); os.pause()"
    program = program.replace("sys.stdin.read(); os.pause()", "__import__('signal').pause()")
    files = {"conf $x.txt": "text"}
    host.start("A", Launch(argv=(place.python, "-c", program, *words), env={"W": "$(x) ' "}, files=files))
    assert until(lambda: host.log_text("A").endswith("\n"), limits.PROCESS_START_S_MAX)
    assert f"{words} $(x) ' \n" == host.log_text("A")
    assert "text" == (Path(place.conf_dir) / "conf $x.txt").read_text()


def test_library_of_a_launch_is_copied_once_and_nothing_that_its_command_does_not_name(
    make_ssh: MakeSsh, machines: list[Sshd], tmp_path: Path
) -> None:
    library, there = tmp_path / "cache", machines[0].root / "lib"
    (library / "a").mkdir(parents=True)
    for name in ("a/one", "two", "unnamed"):
        (library / name).write_text(f"{name} of {tmp_path}")
    program = "import sys; print(*(open(p).read() for p in sys.argv[1].split(':')), flush=True)"
    program += "; __import__('signal').pause()"
    made: list[set[str]] = []
    for _ in range(2):
        host = make_ssh(machines[:1])
        before = set(os.listdir(there))
        place = host.add_node("A", disk=False)
        path = f"{place.library}/a/one:{place.library}/two"
        host.start("A", Launch(argv=(place.python, "-c", program, path), library=library))
        assert until(lambda host=host: host.log_text("A").endswith("\n"), limits.PROCESS_START_S_MAX)
        assert f"a/one of {tmp_path} two of {tmp_path}\n" == host.log_text("A")
        made.append(set(os.listdir(there)) - before)
        host.close()
    assert [1, 0] == list(map(len, made))
    assert ["a", "two"] == sorted(os.listdir(there / made[0].pop()))


def test_zookeeper_stays_here_and_all_ends_with_the_host(make_ssh: MakeSsh, machines: list[Sshd]) -> None:
    host = make_ssh()
    address = zookeeper_on(host)
    assert ("127.0.0.1", "127.0.0.1") == (host.bind_address, address.host)
    launched(host, "A")
    host.pause("A")
    host.close()
    assert server.is_ready(address) is False
    assert [True] * 3 == [is_clean(each) for each in machines]
    assert "ready" in host.log_text("A")
    host.close()


@pytest.mark.root
@needs("loop", "ssh-users")
def test_service_loses_power_as_the_machine_of_the_harness_can(make_ssh: MakeSsh, machines: list[Sshd]) -> None:
    """Users of the machines are plain, so that their nodes lose power by a stand-in; the service is beside us."""
    host = make_ssh(machines[:1], tier=None)
    assert ("watermark", "") == (host.power_tier, host.lacks(Ability.SERVICE_POWER_LOSS))
    place = host.add_node("coordinator-1", disk=True, beside=True)
    start_ready(host, "coordinator-1", node(place.data_dir, "write:log:a:10", "sync:log", "write:log:b:10"))
    assert "filesystem shut down" in host.power_loss("coordinator-1")
    assert b"a" * 10 == (host.disk("coordinator-1") / "log").read_bytes().rstrip(b"\0")
    why = "host ssh: this machine: power tier watermark (requested) takes what a service has flushed; "
    assert f"{why}expected tier loop" == make_ssh(machines[:1]).lacks(Ability.SERVICE_POWER_LOSS)


@needs("ssh-users")
def test_nothing_of_a_run_is_outside_the_machines_folder(make_ssh: MakeSsh, machines: list[Sshd]) -> None:
    uids = {each.uid for each in machines}
    before = _shared_files(uids)  # of other users who had these numbers once
    host = make_ssh()
    launched(host, "A", "write:log:a:10")
    host.close()
    assert before == _shared_files(uids)
    assert [["fencepost"]] * 3 == [os.listdir(each.home) for each in machines]
    assert {"code", "incoming", "lib", "runs", "state"} == set(os.listdir(machines[0].root))
    assert [] == os.listdir(machines[0].root / "incoming")


def _shared_files(uids: Collection[int]) -> list[Path]:
    """Return what these users have in the folders of all, which they may write to besides their homes."""
    shared = [Path("/tmp"), Path("/var/tmp"), Path("/dev/shm"), Path("/run/lock")]
    return sorted(path for place in shared for path in place.glob("*") if _owner(path) in uids)


def _owner(path: Path) -> int:
    """Return the uid of a file's owner, -1 of a file that is gone by now."""
    try:
        return path.lstat().st_uid
    except OSError:
        return -1


@pytest.mark.root
def test_machine_with_root_has_filesystems_that_really_lose_power(make_ssh: MakeSsh, root_machine: Sshd) -> None:
    host = make_ssh([root_machine], tier=None)
    assert ("loop", "m9: loop filesystems can be mounted and shut down here") == (
        host.power_tier,
        host.power_reason,
    )
    first = launched(host, "A", "write:log:a:1000")
    host.flush("A")
    host.kill("A")
    start_ready(host, "A", first)
    assert 2000 == (host.disk("A") / "log").stat().st_size
    assert "m9: filesystem shut down" in host.power_loss("A")
    assert b"a" * 1000 == (host.disk("A") / "log").read_bytes()
    assert 1 == len(mounts.mounts_below(root_machine.root))
    host.close()
    assert is_clean(root_machine)


@pytest.mark.root
@needs("ssh-users")
def test_machines_of_one_run_lose_power_in_the_same_way(
    make_ssh: MakeSsh, machines: list[Sshd], root_machine: Sshd
) -> None:
    host = make_ssh([root_machine, machines[0]], tier=None)
    assert ("watermark", "m1: no loop filesystems: not root") == (host.power_tier, host.power_reason)
    launched(host, "A", "write:log:a:10")
    assert "(watermark)" in host.power_loss("A")


def _connects(address: str, port: int) -> bool:
    try:
        socket.create_connection((address, port), 0.2).close()
    except TimeoutError:
        return False
    except ConnectionRefusedError:  # an answer, by the machine
        return True
    return True


@pytest.mark.root
def test_chain_drops_a_nodes_packets_and_is_gone_with_its_run(make_ssh: MakeSsh, root_machine: Sshd) -> None:
    host = make_ssh([root_machine])
    place = host.add_node("A", disk=False)
    assert _connects(place.client.host, place.client.port)
    assert "" == host.lacks(Ability.PACKETS_DROPPED)
    assert not host.packets_impaired("A", Packets.DROPPED)
    host.impair_packets("A", Packets.DROPPED)
    assert [False, False] == [_connects(each.host, each.port) for each in (place.client, place.internal)]
    assert host.packets_impaired("A", Packets.DROPPED)
    assert host.packets_met("A", Packets.DROPPED) >= 2
    # SSH goes on, and so does what is not the node's.
    assert host.alive("A") is False
    host.pass_packets("A", Packets.DROPPED)
    assert not host.packets_impaired("A", Packets.DROPPED)
    assert _connects(place.client.host, place.client.port)
    host.impair_packets("A", Packets.DROPPED)
    assert "FENCEPOST-" in rules()
    host.close()
    assert "FENCEPOST-" not in rules()
