"""Each fault takes effect on machines reached over SSH, and nothing is left on them, whoever is killed."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from harness import limits
from harness.cleanup import mounts
from harness.cleanup.process import until
from harness.hosts.ssh import SshHost
from harness.launch import Launch
from harness.model import FencepostError, PreconditionError, UsageError
from harness.zookeeper import server
from tests.hosts.conftest import node, start_ready
from tests.hosts.sshds import Sshd, write_list

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[2]
MakeSsh = Callable[..., SshHost]

# A harness with three nodes, one of them paused, that then waits to be killed.
HARNESS = """
import sys
from pathlib import Path
from harness.hosts.ssh import SshHost
from harness.launch import Launch

host = SshHost(Path(sys.argv[1]), power_tier=sys.argv[3] or None, machines=Path(sys.argv[2]))
host.open()
for name in "ABC":
    place = host.add_node(name, disk=True)
    host.start(name, Launch(argv=(place.python, "-c", "import signal; signal.pause()")))
host.pause("B")
if sys.argv[4]:
    print(host.drop("A"))
print("ready", flush=True)
sys.stdin.read()
"""


@pytest.fixture
def make_ssh(tmp_path: Path, machines: list[Sshd]) -> Iterator[MakeSsh]:
    """Open hosts on the machines, or others, and close them all after the test."""
    made: list[SshHost] = []

    def make(
        on: list[Sshd] | None = None, *top: str, tier: str | None = "watermark", **wishes: Callable[[str], None]
    ) -> SshHost:
        file = write_list(tmp_path / f"hosts{len(made)}.toml", on or machines, *top)
        host = SshHost(tmp_path / f"run{len(made)}", power_tier=tier, machines=file, **wishes)
        made.append(host)
        host.open()
        return host

    yield make
    for host in made:
        with suppress(FencepostError):  # a machine that the test has killed
            host.close()


def launched(host: SshHost, name: str, *actions: str, disk: bool = True) -> Launch:
    """Add a node, start it, and return its launch when it has done its actions."""
    place = host.add_node(name, disk=disk)
    launch = node(place.data_dir, *actions, python=place.python)
    start_ready(host, name, launch)
    return launch


def agents(machine: Sshd) -> list[int]:
    """Return the pids of a machine's agents, and of their guards."""
    return [int(line.split()[0]) for line in machine.processes() if "remote.agent" in line]


def files_of(machine: Sshd) -> list[str]:
    """Return the files that are left of runs on a machine, relative to its folder."""
    kept = ("code", "lib", "state/fencepost/ports", "state/fencepost/templates")
    found = (str(path.relative_to(machine.root)) for path in machine.root.rglob("*") if not path.is_dir())
    return [name for name in found if not name.startswith(kept) and not name.endswith("registry.lock")]


def is_clean(machine: Sshd) -> bool:
    return machine.processes() == [] and files_of(machine) == [] and mounts.mounts_below(machine.root) == []


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
    with pytest.raises(UsageError, match="it needs /x, which is not copied"):
        host.start("B", Launch(argv=("java",), library=Path("/x")))


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


def test_zookeeper_stays_here_and_all_ends_with_the_host(make_ssh: MakeSsh, machines: list[Sshd]) -> None:
    host = make_ssh()
    address = host.start_zookeeper()
    assert ("127.0.0.1", "127.0.0.1") == (host.bind_address, address.host)
    launched(host, "A")
    host.pause("A")
    host.close()
    assert server.is_ready(address) is False
    assert [True] * 3 == [is_clean(each) for each in machines]
    assert "ready" in host.log_text("A")
    host.close()


def test_nothing_of_a_run_is_outside_the_machines_folder(make_ssh: MakeSsh, machines: list[Sshd]) -> None:
    if machines[0].uid == os.geteuid():
        pytest.skip("not root: the machine's user has other files")
    host = make_ssh()
    launched(host, "A", "write:log:a:10")
    host.close()
    uids = {each.uid for each in machines}
    # Besides their homes these users may write to the folders of all.
    shared = [Path("/tmp"), Path("/var/tmp"), Path("/dev/shm"), Path("/run/lock")]
    assert [] == [path for place in shared for path in place.glob("*") if _owner(path) in uids]
    assert [["fencepost"]] * 3 == [os.listdir(each.home) for each in machines]
    assert {"code", "incoming", "lib", "runs", "state"} == set(os.listdir(machines[0].root))
    assert [] == os.listdir(machines[0].root / "incoming")


def _owner(path: Path) -> int:
    """Return the uid of a file's owner, -1 of a file that is gone by now."""
    try:
        return path.lstat().st_uid
    except OSError:
        return -1


def test_machine_whose_key_is_not_known_is_refused_with_its_fingerprint(
    make_ssh: MakeSsh, machines: list[Sshd], tmp_path: Path
) -> None:
    first = machines[0]
    known = first.known_hosts.read_text()
    try:
        first.known_hosts.write_text("")
        with pytest.raises(UsageError) as error:
            make_ssh()
        first.known_hosts.write_text(
            known.replace(known.split()[2], machines[1].known_hosts.read_text().split()[2])
        )
        with pytest.raises(
            UsageError, match=r"machine m1 .* is not the one in .*; expected SHA256:.*: another machine"
        ):
            make_ssh()
    finally:
        first.known_hosts.write_text(known)
    said = subprocess.run(
        ["ssh-keygen", "-lf", str(first.folder / "host-key.pub")], capture_output=True, text=True, check=True
    ).stdout.split()[1]
    assert f"machine m1 ({first.user}@{first.address}:{first.port}): its host key ssh-ed25519 {said}" in str(
        error.value
    )
    assert f"`ssh-keyscan -p {first.port} {first.address} >> {first.known_hosts}`" in str(error.value)
    assert "\n" not in str(error.value)
    assert [[], [], []] == [each.processes() for each in machines]


def test_key_or_server_that_will_not_do_is_told_in_one_line(
    machines: list[Sshd], tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    first, second, _ = machines
    bad = tmp_path / "bad"
    bad.write_text("no key")
    bad.chmod(0o600)
    loose = tmp_path / "loose"
    loose.write_bytes(first.key.read_bytes())
    loose.chmod(0o644)
    secret = tmp_path / "secret"
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "opensesame", "-f", str(secret)], check=True)
    with socket.socket() as probe:
        probe.bind((first.address, 0))
        nobody = probe.getsockname()[1]
        for changed, complaint in (
            ({"key": str(second.key)}, "refuses key .*: Authentication failed"),
            ({"key": str(tmp_path / "none")}, "key .*none: No such file or directory; expected a file"),
            ({"key": str(bad)}, "key .*bad: .*expected a private key"),
            ({"key": str(loose)}, r"others may read it \(mode 0644\); expected a private key; `chmod 600"),
            ({"key": str(secret)}, "key .*secret: it has a passphrase; expected one without"),
            ({"known_hosts": str(tmp_path / "none")}, "known_hosts .*none: No such file"),
            ({"port": nobody}, "expected an SSH server that answers"),
            ({"python": "/none/such"}, "/none/such: .*not found; expected it to run"),
            ({"folder": "/proc/fencepost"}, "folder /proc/fencepost: .*; expected one of the user's alone"),
        ):
            file = tmp_path / "hosts.toml"
            file.write_text(first.table(**changed))
            with pytest.raises(UsageError, match=rf"machine m1 \(.*{complaint}") as error:
                SshHost(tmp_path / "run", machines=file).open()
            assert "\n" not in str(error.value)
    assert "" == capfd.readouterr().err


@pytest.mark.parametrize("how", ["SIGKILL the harness", "SIGSTOP the harness", "SIGKILL the agents"])
def test_nodes_of_a_harness_that_is_gone_end_by_the_machines_own_doing(
    tmp_path: Path, machines: list[Sshd], how: str
) -> None:
    machines = machines[:2] if "harness" in how else machines[:1]
    file = write_list(tmp_path / "hosts.toml", machines, "silence_s = 2")
    with _harness(tmp_path / "run", file) as process:
        assert 2 * len(machines) + 3 == sum(len(each.processes()) for each in machines)
        if "agents" in how:
            for machine in machines:
                os.kill(min(agents(machine)), signal.SIGKILL)
        else:
            process.send_signal(signal.SIGSTOP if "STOP" in how else signal.SIGKILL)
        for machine in machines:
            assert until(lambda m=machine: is_clean(m), limits.CONDITION_WAIT_S_MAX), machine.processes()
        process.kill()


def test_what_killed_agents_and_guards_left_is_undone_by_the_next_agent(
    tmp_path: Path, make_ssh: MakeSsh, machines: list[Sshd]
) -> None:
    machine = machines[0]
    with _harness(tmp_path / "run", write_list(tmp_path / "hosts.toml", [machine])) as process:
        for pid in sorted(agents(machine), reverse=True):
            os.kill(pid, signal.SIGKILL)
        process.kill()
    assert 3 == len(machine.processes())
    make_ssh([machine]).close()
    assert is_clean(machine)


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
def test_machines_of_one_run_lose_power_in_the_same_way(
    make_ssh: MakeSsh, machines: list[Sshd], root_machine: Sshd
) -> None:
    if machines[0].uid == 0:
        pytest.skip("the machines have no users of their own")
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
    assert "are dropped in FENCEPOST-" in host.drop("A")
    assert [False, False] == [_connects(each.host, each.port) for each in (place.client, place.internal)]
    assert host.dropped("A") >= 2
    # SSH goes on, and so does what is not the node's.
    assert host.alive("A") is False
    host.pass_again("A")
    assert _connects(place.client.host, place.client.port)
    host.drop("A")
    assert "FENCEPOST-" in _rules()
    host.close()
    assert "FENCEPOST-" not in _rules()


@pytest.mark.root
def test_chain_of_a_killed_harness_is_removed_by_the_machine(tmp_path: Path, root_machine: Sshd) -> None:
    file = write_list(tmp_path / "hosts.toml", [root_machine], "silence_s = 2")
    with _harness(tmp_path / "run", file, tier="loop", drop=True) as process:
        assert "FENCEPOST-" in _rules()
        assert 3 == len(mounts.mounts_below(root_machine.root))
        process.send_signal(signal.SIGKILL)
    assert until(lambda: is_clean(root_machine), limits.CONDITION_WAIT_S_MAX)
    assert "FENCEPOST-" not in _rules()


def _rules() -> str:
    return subprocess.run(["iptables", "-w", "-S"], capture_output=True, text=True, check=True).stdout


def _harness(run_dir: Path, file: Path, *, tier: str = "watermark", drop: bool = False) -> subprocess.Popen[str]:
    """Start the program HARNESS, and return when it has nodes."""
    process = subprocess.Popen(
        [sys.executable, "-c", HARNESS, str(run_dir), str(file), tier, "drop" if drop else ""],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd=ROOT,
    )
    assert process.stdout is not None
    for line in process.stdout:
        if line == "ready\n":
            return process
    raise AssertionError("the harness ended before it had nodes")
