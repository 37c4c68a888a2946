"""Each fault takes effect on nodes that run as processes, and is refused where it cannot."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

from harness import limits
from harness.cleanup import mounts
from harness.cleanup.process import identity_of, is_stopped, until
from harness.hosts import site
from harness.launch import Launch
from harness.model import PreconditionError, UsageError
from targets.zookeeper import server
from tests.hosts.conftest import MakeHostFixture, node, start_ready
from tests.needs import needs
from tests.services import zookeeper_on

pytestmark = pytest.mark.slow

TIERS = [
    pytest.param("watermark"),
    pytest.param("loop", marks=[pytest.mark.root, needs("loop")]),
]


def pid_of(probe: str) -> int:
    """Return the pid in the text of a fault's probe."""
    match = re.search(r"pid (\d+)", probe)
    assert match is not None, probe
    return int(match[1])


def test_kill_leaves_no_process_and_keeps_what_was_not_flushed(make_host: MakeHostFixture) -> None:
    host = make_host()
    place = host.add_node("A", disk=True)
    start_ready(host, "A", node(place.data_dir, "write:log:a:1000"))
    assert host.alive("A") is True
    pid = pid_of(host.kill("A"))
    assert host.alive("A") is False
    assert identity_of(pid) is None
    assert (host.disk("A") / "log").stat().st_size == 1000


def test_stop_lets_the_process_end_by_itself(make_host: MakeHostFixture) -> None:
    host = make_host()
    place = host.add_node("A", disk=False)
    start_ready(host, "A", node(place.data_dir))
    assert "exit code 7" in host.stop("A")
    assert host.alive("A") is False


def test_pause_stops_every_thread_until_resume(make_host: MakeHostFixture) -> None:
    host = make_host()
    place = host.add_node("A", disk=False)
    start_ready(host, "A", node(place.data_dir))
    identity = identity_of(pid_of(host.pause("A")))
    assert identity is not None
    assert is_stopped(identity) is True
    assert host.alive("A") is True
    host.resume("A")
    assert is_stopped(identity) is False


@pytest.mark.parametrize("fault", ["kill", "stop", "pause", "resume"])
def test_fault_on_a_node_that_does_not_run_is_refused(make_host: MakeHostFixture, fault: str) -> None:
    host = make_host()
    host.add_node("A", disk=False)
    with pytest.raises(PreconditionError, match=f"{fault} A: no process of it runs"):
        getattr(host, fault)("A")


def test_resume_of_a_node_that_was_not_paused_is_refused(make_host: MakeHostFixture) -> None:
    host = make_host()
    place = host.add_node("A", disk=False)
    start_ready(host, "A", node(place.data_dir))
    with pytest.raises(PreconditionError, match="is not stopped"):
        host.resume("A")


def test_start_of_a_running_node_is_refused(make_host: MakeHostFixture) -> None:
    host = make_host()
    place = host.add_node("A", disk=False)
    start_ready(host, "A", node(place.data_dir))
    with pytest.raises(PreconditionError, match="it runs already"):
        host.start("A", node(place.data_dir))


def test_start_of_a_program_that_is_not_there_says_so(make_host: MakeHostFixture) -> None:
    host = make_host()
    host.add_node("A", disk=False)
    with pytest.raises(UsageError, match=r"start A: /none/such: No such file"):
        host.start("A", Launch(argv=("/none/such",)))


def test_start_gives_the_output_of_a_process_that_ends_at_once(make_host: MakeHostFixture) -> None:
    host = make_host()
    host.add_node("A", disk=False)
    with pytest.raises(UsageError, match=r"(?s)ended at once with exit code 3.*no such option"):
        host.start("A", Launch(argv=("/bin/sh", "-c", "echo no such option; exit 3")))


def test_launch_files_and_environment_reach_the_node(make_host: MakeHostFixture) -> None:
    host = make_host()
    place = host.add_node("A", disk=False)
    host.start(
        "A",
        Launch(
            argv=("/bin/sh", "-c", f"cat {place.conf_dir}/a.txt; echo $WORD ready; exec sleep 60"),
            files={"a.txt": "of the file, "},
            env={"WORD": "of the environment,"},
        ),
    )
    assert until(lambda: "ready" in host.log_text("A"), limits.PROCESS_START_S_MAX)
    assert host.log_text("A") == "of the file, of the environment, ready\n"


@pytest.mark.parametrize("tier", TIERS)
def test_power_loss_keeps_what_a_flush_from_outside_made_durable(make_host: MakeHostFixture, tier: str) -> None:
    """Source: KIP-101, Scenario 2: m2 flushed on one replica only."""
    host = make_host(tier=tier)
    place = host.add_node("A", disk=True)
    start_ready(host, "A", node(place.data_dir, "write:log:a:1000"))
    host.flush("A")
    host.kill("A")
    start_ready(host, "A", node(place.data_dir, "write:log:b:500", "write:new:c:10"))
    host.power_loss("A")
    assert host.alive("A") is False
    assert (host.disk("A") / "log").read_bytes() == b"a" * 1000
    assert [path.name for path in host.disk("A").iterdir()] == ["log"]


@pytest.mark.parametrize("tier", TIERS)
def test_power_loss_undoes_truncation_and_rename_that_were_not_flushed(
    make_host: MakeHostFixture, tier: str
) -> None:
    host = make_host(tier=tier)
    place = host.add_node("A", disk=True)
    start_ready(host, "A", node(place.data_dir, "write:log:a:1000", "write:other:b:5"))
    host.flush("A")
    host.kill("A")
    start_ready(host, "A", node(place.data_dir, "cut:log:300", "rename:other:moved"))
    host.power_loss("A")
    assert (host.disk("A") / "log").read_bytes() == b"a" * 1000
    assert sorted(path.name for path in host.disk("A").iterdir()) == ["log", "other"]


@pytest.mark.parametrize("tier", TIERS)
def test_power_loss_keeps_what_the_node_flushed_itself(make_host: MakeHostFixture, tier: str) -> None:
    host = make_host(tier=tier)
    place = host.add_node("A", disk=True)
    actions = ("write:log:a:1000", "sync:log", "write:log:b:500")
    start_ready(host, "A", node(place.data_dir, *actions))
    host.note_flushed("A", "log", 1000)
    probe = host.power_loss("A")
    assert (host.disk("A") / "log").read_bytes() == b"a" * 1000
    assert ("EIO" if tier == "loop" else "500 bytes in 1 files undone") in probe


@pytest.mark.parametrize("tier", TIERS)
def test_power_loss_without_any_flush_loses_all(make_host: MakeHostFixture, tier: str) -> None:
    host = make_host(tier=tier)
    place = host.add_node("A", disk=True)
    start_ready(host, "A", node(place.data_dir, "write:log:a:1000"))
    assert (host.disk("A") / "log").stat().st_size == 1000
    host.power_loss("A")
    assert list(host.disk("A").iterdir()) == []


@pytest.mark.parametrize("tier", TIERS)
def test_power_loss_of_a_dead_and_of_a_paused_node_loses_as_well(make_host: MakeHostFixture, tier: str) -> None:
    host = make_host(tier=tier)
    for name, fault in (("A", host.kill), ("B", host.pause)):
        place = host.add_node(name, disk=True)
        start_ready(host, name, node(place.data_dir, "write:log:a:1000"))
        fault(name)
        host.power_loss(name)
        assert list(host.disk(name).iterdir()) == []


@pytest.mark.parametrize("tier", TIERS)
def test_node_runs_and_writes_again_after_power_loss(make_host: MakeHostFixture, tier: str) -> None:
    host = make_host(tier=tier)
    place = host.add_node("A", disk=True)
    for size in (10, 20, 30):
        start_ready(host, "A", node(place.data_dir, "write:log:a:10", "sync:log"))
        host.note_flushed("A", "log", size)
        host.power_loss("A")
        assert (host.disk("A") / "log").stat().st_size == size


def test_power_loss_drains_the_dead_nodes_reports_before_it_cuts(make_host: MakeHostFixture) -> None:
    def late_report(name: str) -> None:
        assert host.alive(name) is False
        host.note_flushed(name, "log", 1000)

    host = make_host(drain=late_report)
    place = host.add_node("A", disk=True)
    start_ready(host, "A", node(place.data_dir, "write:log:a:1000", "sync:log"))
    host.power_loss("A")
    assert (host.disk("A") / "log").stat().st_size == 1000


def test_power_loss_of_a_plain_folder_is_refused_and_kills_nothing(make_host: MakeHostFixture) -> None:
    host = make_host()
    place = host.add_node("A", disk=False)
    start_ready(host, "A", node(place.data_dir))
    with pytest.raises(PreconditionError, match="plain folder"):
        host.power_loss("A")
    assert host.alive("A") is True


@pytest.mark.parametrize("tier", TIERS)
def test_close_leaves_no_process_mount_or_device(make_host: MakeHostFixture, tier: str) -> None:
    host = make_host(tier=tier)
    place = host.add_node("A", disk=True)
    start_ready(host, "A", node(place.data_dir))
    pid = pid_of(host.pause("A"))
    run_dir = Path(place.conf_dir).parents[2]
    assert len(mounts.mounts_below(run_dir)) == (1 if tier == "loop" else 0)
    host.close()
    assert identity_of(pid) is None
    assert mounts.mounts_below(run_dir) == []
    assert mounts.loops_of(run_dir / "nodes" / "A" / "disk" / "disk.img") == []
    assert list(run_dir.rglob("disk.img")) == []
    host.close()


@pytest.mark.root
@needs("loop")
def test_best_tier_is_the_loop_filesystem_as_root(make_host: MakeHostFixture) -> None:
    assert make_host(tier=None).power_tier == "loop"


def test_tier_falls_back_to_the_watermark_and_says_why(
    make_host: MakeHostFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(site, "why_not", lambda _folder, _ledger: "not root")
    host = make_host(tier=None)
    assert host.power_tier == "watermark"
    assert getattr(host, "power_reason", "") == "no loop filesystems: not root"


def test_tier_that_was_asked_for_and_cannot_be_is_refused(
    make_host: MakeHostFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(site, "why_not", lambda _folder, _ledger: "not root")
    with pytest.raises(UsageError, match="power tier loop: not root"):
        make_host(tier="loop")


def test_too_little_disk_is_refused_with_where_and_how_much(
    make_host: MakeHostFixture, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "FREE_BYTES_MIN", 1 << 60)
    with pytest.raises(UsageError, match=rf"disk of {tmp_path}.*MiB free; expected {1 << 40} MiB"):
        make_host()


@needs("java")
def test_one_zookeeper_serves_and_ends_with_its_host(make_host: MakeHostFixture) -> None:
    host = make_host()
    address = zookeeper_on(host)
    assert server.is_ready(address) is True
    assert server.ask(address, "ruok") == "imok"
    host.close()
    assert server.is_ready(address) is False


@needs("java")
def test_zookeeper_that_cannot_start_gives_its_output(
    make_host: MakeHostFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server, "CONFIGURATION", "dataDir={data_dir}\nclientPort=none\n")
    host = make_host()
    with pytest.raises(UsageError, match=r"(?s)service zookeeper at .*: ended while starting; it said:.*none"):
        zookeeper_on(host)


def test_nodes_of_parallel_hosts_get_different_ports(make_host: MakeHostFixture) -> None:
    places = [make_host().add_node("A", disk=False) for _ in range(5)]
    ports = {address.port for place in places for address in (place.client, place.internal)}
    assert len(ports) == 10
    assert sys.executable == places[0].python
