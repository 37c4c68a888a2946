"""Each look of `Leftovers` finds what a run could leave: one leftover of each kind is planted and found."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

import pytest

from harness.cleanup import chains, engine, mounts
from harness.cleanup.ledger import Ledger, runs_dir
from harness.cleanup.process import TOKEN_VARIABLE
from harness.hosts.docker import HOME_LABEL, LABEL, _home
from harness.hosts.image_build import ensure
from tests.cleanup.leftovers import SHARED, Leftovers
from tests.needs import needs

TOKEN = "0123456789ab"
SLEEPER = (sys.executable, "-S", "-c", "input()")


@pytest.fixture
def left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Leftovers:
    """What is left of runs of a new state folder: nothing yet."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    (tmp_path / "results").mkdir()
    found = Leftovers(folder=tmp_path / "results", tokens={TOKEN})
    assert [] == found.found()
    return found


def kinds(left: Leftovers) -> set[str]:
    """Return the first word of each leftover."""
    return {text.split()[0] for text in left.found()}


def iptables(*words: str) -> None:
    subprocess.run(["iptables", "-w", *words], check=True)


def test_ledger_and_image_are_found(left: Leftovers, tmp_path: Path) -> None:
    book = Ledger.open(tmp_path / "run")
    book.note_process()
    book.abandon()
    (left.folder / "disk.img").touch()
    assert {"ledger", "image"} == kinds(left)
    left.remember()
    assert {TOKEN, book.token} == left.tokens


@pytest.mark.parametrize("mark", ["state", "token", "folder"])
def test_process_is_found_by_what_it_was_given(left: Leftovers, mark: str) -> None:
    env = {"state": dict(os.environ), "token": {TOKEN_VARIABLE: f"{TOKEN}.3"}, "folder": {}}[mark]
    words = (*SLEEPER, str(left.folder)) if mark == "folder" else SLEEPER
    with subprocess.Popen(words, stdin=subprocess.PIPE, env=env) as child:
        assert {"process"} == kinds(left)
        left.remember()
        assert child.pid in left.pids
    assert set() == kinds(left)


def test_file_of_a_clock_is_found(left: Leftovers) -> None:
    left.pids.add(os.getpid())
    for name in ("faketime_shm", "sem.faketime_sem"):
        shared = Path(SHARED, f"{name}_{os.getpid()}")
        shared.touch()
        try:
            assert {"clock"} == kinds(left)
        finally:
            shared.unlink()


@pytest.mark.root
@pytest.mark.slow
@pytest.mark.parametrize(
    "kind",
    ["mount", pytest.param("loop", marks=needs("loop")), pytest.param("chain", marks=needs("iptables"))],
)
def test_what_the_kernel_has_is_found(left: Leftovers, kind: str) -> None:
    point, backing = left.folder / "mount", left.folder / "backing"
    point.mkdir()
    backing.write_bytes(bytes(1 << 20))

    def detach() -> None:
        for device in mounts.loops_of(backing):
            subprocess.run(["losetup", "--detach", device], check=True)

    plant: dict[str, tuple[Callable[[], object], Callable[[], object]]] = {
        "mount": (
            lambda: subprocess.run(["mount", "-t", "tmpfs", f"fencepost-{TOKEN}", str(point)], check=True),
            lambda: subprocess.run(["umount", str(point)], check=True),
        ),
        "loop": (lambda: subprocess.run(["losetup", "--find", str(backing)], check=True), detach),
        "chain": (
            lambda: iptables("-N", f"{chains.PREFIX}{TOKEN}"),
            lambda: iptables("-X", f"{chains.PREFIX}{TOKEN}"),
        ),
    }
    make, undo = plant[kind]
    make()
    try:
        assert {kind} == kinds(left)
    finally:
        undo()
    assert set() == kinds(left)


@pytest.mark.docker
@pytest.mark.slow
def test_what_the_engine_has_is_found(left: Leftovers) -> None:
    left.docker = True
    labels = {LABEL: TOKEN, HOME_LABEL: _home()}
    with ExitStack() as made:
        client = engine.connect()
        made.callback(client.close)
        image = ensure(client).broker
        network = client.networks.create(f"fencepost-{TOKEN}", internal=True, labels=labels)
        made.callback(network.remove)
        assert {"network"} == kinds(left)
        container = client.containers.create(
            image, name=f"fencepost-{TOKEN}-a", labels=labels, network_mode="none"
        )
        made.callback(container.remove)
        assert {"network", "container"} == kinds(left)
    assert set() == kinds(left)
    assert [] == [path for path in runs_dir().iterdir() if path.is_dir()]
