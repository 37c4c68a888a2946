"""Nodes in containers are unprivileged, have a network of their own, and are removed with their run."""

from __future__ import annotations

import gc
import re
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from harness import limits
from harness.ability import OF_DISKS
from harness.cleanup import ledger, mounts
from harness.cleanup.engine import connect
from harness.cleanup.ledger import Ledger, runs_dir
from harness.cleanup.process import until
from harness.cluster.disk_error import DiskError
from harness.hosts import container
from harness.hosts.docker import LABEL, DockerHost
from harness.launch import Address, Launch, Runtime
from harness.model import PreconditionError, UsageError
from targets.zookeeper import server
from tests.hosts.conftest import MakeHostFixture, node, start_ready
from tests.hosts.test_reap import left_of, run_and_kill, tier
from tests.kept import keep
from tests.needs import UID, needs
from tests.services import zookeeper_on

pytestmark = [pytest.mark.docker, pytest.mark.slow]

IDENTITY = """
import gc
import os
def can(path):
    try:
        open(path, "w").close()
        return "yes"
    except OSError as error:
        return error.strerror
print("uid", os.getuid(), "root", can("/x"), "conf", can("/conf/x"), "tmp", can("/tmp/x"), "data", can("/data/x"))
print([line for line in open("/proc/self/status") if line.startswith(("CapEff", "NoNewPrivs"))])
print("ready", flush=True)
import signal; signal.pause()
"""

CONNECT = """
import socket, sys
for address in sys.argv[1:]:
    host, port = address.rsplit(":", 1)
    try:
        socket.create_connection((host, int(port)), 2).close()
        print(address, "reached")
    except OSError as error:
        print(address, "refused")
print("ready", flush=True)
listener = socket.create_server(("", 9092))
while True: listener.accept()[0].close()
"""


# Uses its disk in every way, again and again, until a call fails.
WRITER = """
import os, time
log = os.open("/data/log", os.O_RDWR | os.O_CREAT)
while True:
    os.pwrite(log, b"x" * 9000, 0)
    os.pread(log, 9, 0)
    os.fsync(log)
    with open("/data/new", "w") as file:
        file.write("1")
    os.rename("/data/new", "/data/checkpoint")
    time.sleep(0.01)
"""


@pytest.fixture
def engine() -> Iterator[Any]:
    """A client of the Docker engine."""
    client = connect()
    yield client
    client.close()


def of_run(engine: Any, token: str) -> list[str]:
    """Return the names of a run's containers and networks."""
    mark = {"label": f"{LABEL}={token}"}
    found = [
        *engine.containers.list(all=True, filters=mark, ignore_removed=True),
        *engine.networks.list(filters=mark),
    ]
    return [each.name for each in found]


def token_of(host: DockerHost) -> str:
    """Return the token of the host's run."""
    return host._site.ledger.token


def test_node_is_unprivileged_and_writes_only_to_its_disk(make_host: MakeHostFixture) -> None:
    host = make_host("docker", None)
    place = host.add_node("A", disk=True)
    start_ready(host, "A", Launch(argv=(place.python, "-c", IDENTITY)))
    uid = UID or 10001
    assert host.log_text("A").splitlines()[:2] == [
        f"uid {uid} root Read-only file system conf Read-only file system tmp yes data yes",
        "['CapEff:\\t0000000000000000\\n', 'NoNewPrivs:\\t1\\n']",
    ]


def test_node_that_runs_on_java_finds_it_and_reads_its_library(make_host: MakeHostFixture, tmp_path: Path) -> None:
    host = make_host("docker")
    place = host.add_node("A", disk=False)
    (tmp_path / "library").mkdir()
    (tmp_path / "library" / "jar").write_text("classes", encoding="utf-8")
    program = f"cat {place.library}/jar; rm {place.library}/jar; {place.java} -version; echo ready; sleep 600"
    launch = Launch(
        argv=("/bin/sh", "-c", f"({program}) 2>&1"), runtime=Runtime.JAVA, library=tmp_path / "library"
    )
    start_ready(host, "A", launch)
    said = host.log_text("A")
    assert "classes" in said
    assert "Read-only file system" in said
    assert "OpenJDK" in said


def test_node_reaches_the_harness_and_nothing_beyond(make_host: MakeHostFixture) -> None:
    host = make_host("docker")
    place = host.add_node("A", disk=False)
    with socket.create_server((host.bind_address, 0)) as listener:
        ours = f"{host.bind_address}:{listener.getsockname()[1]}"
        start_ready(host, "A", Launch(argv=(place.python, "-c", CONNECT, ours, "192.0.2.1:80")))
    assert host.log_text("A").splitlines()[:2] == [f"{ours} reached", "192.0.2.1:80 refused"]
    outside = place.client_outside
    assert until(lambda: _listens(outside), limits.PROCESS_START_S_MAX) is True


def _listens(address: Address) -> bool:
    try:
        socket.create_connection((address.host, address.port), 1).close()
    except OSError:
        return False
    return True


@pytest.mark.parametrize("tier", [pytest.param("loop", marks=needs("loop")), "watermark"])
def test_power_loss_keeps_what_was_flushed_and_loses_the_rest(make_host: MakeHostFixture, tier: str) -> None:
    host = make_host("docker", tier)
    place = host.add_node("A", disk=True)
    first = node(place.data_dir, "write:log:a:1000", python=place.python)
    start_ready(host, "A", first)
    host.flush("A")
    host.kill("A")
    second = node(place.data_dir, "write:log:b:500", "cut:log:300", "write:new:c:1", python=place.python)
    start_ready(host, "A", second)
    host.power_loss("A")
    assert host.alive("A") is False
    assert (host.disk("A") / "log").read_bytes() == b"a" * 1000
    assert [path.name for path in host.disk("A").iterdir()] == ["log"]
    # The same container starts again, on the remounted disk.
    start_ready(host, "A", second)
    assert (host.disk("A") / "log").read_bytes() == b"a" * 300
    assert host.log_text("A").count("ready") == 3


def test_pause_resume_stop_and_kill_each_bite(make_host: MakeHostFixture) -> None:
    host = make_host("docker")
    place = host.add_node("A", disk=False)
    with pytest.raises(PreconditionError, match="no container of it runs"):
        host.kill("A")
    start_ready(host, "A", node(place.data_dir, python=place.python))
    with pytest.raises(PreconditionError, match="it is not paused"):
        host.resume("A")
    assert host.pause("A") == "container frozen"
    assert host.alive("A") is True
    host.resume("A")
    assert "exit code 7" in host.stop("A")
    assert host.alive("A") is False
    start_ready(host, "A", node(place.data_dir, python=place.python))
    assert "exit code 137" in host.kill("A")
    with pytest.raises(PreconditionError, match="plain folder"):
        host.power_loss("A")


def test_start_gives_the_output_of_a_container_that_ends_at_once(
    make_host: MakeHostFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    # On a busy machine it takes longer than a start waits for it.
    monkeypatch.setattr(container, "FIRST_LOOK_S", 20.0)
    host = make_host("docker")
    host.add_node("A", disk=False)
    with pytest.raises(UsageError, match=r"(?s)ended at once with exit code 3.*no such option"):
        host.start("A", Launch(argv=("/bin/sh", "-c", "echo no such option; exit 3")))


def test_zookeeper_serves_and_everything_ends_with_the_host(make_host: MakeHostFixture, engine: Any) -> None:
    host = make_host("docker")
    assert isinstance(host, DockerHost)
    token = token_of(host)
    address = zookeeper_on(host)
    assert server.ask(address, "ruok") == "imok"
    assert sorted(of_run(engine, token)) == [f"fencepost-{token}", f"fencepost-{token}-zookeeper"]
    host.close()
    assert of_run(engine, token) == []
    assert isinstance(host.log_text("zookeeper"), str)
    host.close()


@pytest.mark.parametrize("after", keep(["opening", "opened", "started A", "paused", "lost"], "opened", "lost"))
@pytest.mark.parametrize("more_s", keep([0.0, 0.03], 0.0))
def test_next_host_removes_all_of_a_killed_one(
    tmp_path: Path, make_host: MakeHostFixture, engine: Any, after: str, more_s: float
) -> None:
    run_and_kill("docker", tmp_path / "run", after, more_s)
    tokens = [path.name for path in runs_dir().iterdir() if path.is_dir()]
    host = make_host("docker")
    assert isinstance(host, DockerHost)
    assert host.reaped.left == ()
    for token in tokens:
        assert of_run(engine, token) == []
        assert left_of(tmp_path / "run", token) == []
    assert mounts.mounts_below(tmp_path / "run") == []


def test_open_removes_what_the_engine_made_after_the_reap(make_host: MakeHostFixture, engine: Any) -> None:
    late = make_host("docker")
    assert isinstance(late, DockerHost)
    token, labels = token_of(late), late._labels
    late.close()
    engine.networks.create("fencepost-test-late", internal=True, labels=labels)
    assert of_run(engine, token) == ["fencepost-test-late"]
    make_host("docker")
    assert of_run(engine, token) == []


def test_ledger_removes_only_what_bears_its_label(tmp_path: Path, engine: Any) -> None:
    book = Ledger.open(tmp_path)
    book.note("network", name="fencepost-test-other", label=f"{LABEL}={book.token}")
    other = engine.networks.create("fencepost-test-other", internal=True, labels={LABEL: "another"})
    try:
        assert book.close() == []
        assert of_run(engine, "another") == ["fencepost-test-other"]
    finally:
        other.remove()


def test_engine_that_does_not_answer_is_told_with_how_to_start_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/none.sock")
    with pytest.raises(UsageError, match=r"no engine answers.*systemctl start docker"):
        DockerHost(tmp_path / "run").open()
    book = Ledger.open(tmp_path)
    book.note("container", name="x", label=f"{LABEL}=x")
    [left] = book.close()
    assert "expected an engine that removes it" in left
    gc.collect()
    monkeypatch.delenv("DOCKER_HOST")
    assert ledger.reap().left == ()


FEW = (DiskError.FULL, DiskError.FLUSH)
ALL = (*FEW, DiskError.WRITE, DiskError.READ, DiskError.READ_ONLY)


@needs("root", "fuse")
@pytest.mark.parametrize("errors", keep([FEW, ALL], FEW))
def test_disk_of_a_container_fails_and_is_mended(
    make_host: MakeHostFixture, errors: tuple[DiskError, ...]
) -> None:
    host = make_host("docker", tier())
    assert [""] * len(OF_DISKS) == [host.lacks(ability) for ability in OF_DISKS]
    place = host.add_node("A", disk=True, fails=True)
    launch = Launch(argv=(place.python, "-c", WRITER))
    wanted = {
        DiskError.FULL: r"ENOSPC at \w+, (write of \d+ bytes|make)",
        DiskError.WRITE: r"EIO at \w+, write of \d+ bytes",
        DiskError.FLUSH: r"EIO at log, fsync",
        DiskError.READ: r"EIO at log, read of 9 bytes",
        DiskError.READ_ONLY: r"EROFS at \w+, (write of \d+ bytes|make|change)",
    }
    for error in errors:
        host.start("A", launch)
        host.break_disk("A", error)
        assert until(lambda: not host.alive("A"), limits.PROCESS_END_S_MAX), error
        assert re.match(wanted[error], host.mend_disk("A")), error
    host.start("A", launch)
    assert "every call takes" in host.break_disk("A", DiskError.SLOW)
    assert "were durable" in host.power_loss("A")
    host.mend_disk("A")
    assert "the disk is empty" in host.lose_disk("A")
    host.start("A", launch)
    assert until((host.disk("A") / "checkpoint").exists, limits.PROCESS_END_S_MAX)
