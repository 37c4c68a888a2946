"""The heal ledger: noted effects are undone, newest first, by the run itself or by the next reap."""

from __future__ import annotations

import errno
import json
import select
import signal
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from harness import limits
from harness.cleanup import ledger as module
from harness.cleanup.ledger import LINES, Ledger, reap
from harness.cleanup.process import TOKEN_VARIABLE, Identity, boot_id, identity_of, is_alive, send
from harness.cleanup.undo import UNDO
from harness.model import UsageError


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Return a folder of ledgers for this test alone."""
    return tmp_path / "runs"


def sleeper(token: str) -> subprocess.Popen[bytes]:
    """Start a process that has the token in its environment and waits."""
    return subprocess.Popen(
        [sys.executable, "-c", "import signal; signal.pause()"],
        env={TOKEN_VARIABLE: token},
        start_new_session=True,
    )


def test_note_is_on_disk_before_it_returns(tmp_path: Path, root: Path) -> None:
    ledger = Ledger.open(tmp_path, root=root)
    number = ledger.note("directory", path=str(tmp_path / "x"))
    last = json.loads((ledger.folder / LINES).read_text().splitlines()[-1])
    assert last == {"op": "note", "id": number, "kind": "directory", "path": str(tmp_path / "x")}
    ledger.close()


def test_note_of_an_unknown_kind_is_our_mistake(tmp_path: Path, root: Path) -> None:
    ledger = Ledger.open(tmp_path, root=root)
    with pytest.raises(AssertionError, match="expected one of process, mount"):
        ledger.note("house", path="x")
    ledger.close()


def test_undo_goes_from_the_newest_to_the_oldest_and_skips_what_is_done(
    tmp_path: Path, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[str] = []
    monkeypatch.setitem(UNDO, "directory", lambda fields: seen.append(fields["path"]) or "")
    ledger = Ledger.open(tmp_path, root=root)
    numbers = [ledger.note("directory", path=name) for name in ("first", "second", "third")]
    ledger.done(numbers[1])
    ledger.done(numbers[1])
    assert ledger.undo_all() == []
    assert seen == ["third", "first"]
    assert ledger.undo_all() == []
    assert seen == ["third", "first"]
    ledger.close()


def test_close_removes_the_runs_folder_and_later_calls_are_refused(tmp_path: Path, root: Path) -> None:
    ledger = Ledger.open(tmp_path, root=root)
    assert ledger.close() == []
    assert ledger.folder.exists() is False
    assert ledger.close() == []
    with pytest.raises(UsageError, match="closed; expected no call after close"):
        ledger.note("directory", path="x")


def test_close_keeps_what_could_not_be_undone_for_the_next_reap(
    tmp_path: Path, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ledger = Ledger.open(tmp_path, root=root)
    ledger.note("directory", path="x")
    with monkeypatch.context() as patch:
        patch.setitem(UNDO, "directory", lambda _fields: "x: in use")
        assert ledger.close() == ["x: in use"]
        assert reap(root).left == ("x: in use",)
    assert reap(root).undone == ("directory x",)
    assert reap(root).undone == ()


def test_reap_leaves_alone_for_a_while_what_this_process_just_failed_to_undo(
    tmp_path: Path, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every run of a suite reaps; a mount that stays in use must not cost each of them ten seconds."""
    ledger = Ledger.open(tmp_path, root=root)
    ledger.note("directory", path="x")
    tries: list[str] = []
    monkeypatch.setitem(UNDO, "directory", lambda fields: tries.append(fields["path"]) or "x: in use")
    assert ["x: in use"] == ledger.close()
    assert module.Reaped() == reap(root, again_s=3600)
    assert 1 == len(tries)
    assert ("x: in use",) == reap(root, again_s=0).left
    assert module.Reaped() == reap(root, again_s=3600)
    assert 2 == len(tries)


def test_entry_that_cannot_even_be_looked_at_keeps_no_other_from_being_undone(
    tmp_path: Path, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[str] = []

    def undo(fields: Mapping[str, Any]) -> str:
        if fields["path"] == "broken":
            raise OSError(errno.EIO, "Input/output error")
        seen.append(fields["path"])
        return ""

    monkeypatch.setitem(UNDO, "directory", undo)
    ledger = Ledger.open(tmp_path, root=root)
    for name in ("first", "broken", "last"):
        ledger.note("directory", path=name)
    assert ["directory broken: [Errno 5] Input/output error; expected to be able to undo it"] == ledger.close()
    assert ["last", "first"] == seen


def test_full_disk_keeps_no_entry_from_being_undone(
    tmp_path: Path, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[str] = []
    monkeypatch.setitem(UNDO, "directory", lambda fields: seen.append(fields["path"]) or "")
    ledger = Ledger.open(tmp_path, root=root)
    for name in ("first", "second"):
        ledger.note("directory", path=name)
    monkeypatch.setattr(module.os, "fsync", full)
    assert [] == ledger.close()
    assert ["second", "first"] == seen
    assert False is ledger.folder.exists()


def test_line_after_one_that_a_full_disk_cut_is_read(
    tmp_path: Path, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ledger = Ledger.open(tmp_path, root=root)
    write = module.os.write

    def cut(handle: int, text: bytes) -> int:
        write(handle, text[: len(text) // 2])
        return full(handle)

    with monkeypatch.context() as patch:
        patch.setattr(module.os, "write", cut)
        with pytest.raises(OSError, match="No space left"):
            ledger.note("directory", path=str(tmp_path / "x"))
    (tmp_path / "y").mkdir()
    ledger.note("directory", path=str(tmp_path / "y"))
    ledger.abandon()
    assert (f"directory {tmp_path / 'y'}",) == reap(root).undone


def full(_handle: int) -> int:
    raise OSError(errno.ENOSPC, "No space left on device")


def test_reap_leaves_a_run_alone_whose_harness_lives(tmp_path: Path, root: Path) -> None:
    """This holds within one process too: parallel runs reap when they open."""
    (tmp_path / "x").mkdir()
    ledger = Ledger.open(tmp_path, root=root)
    ledger.note("directory", path=str(tmp_path / "x"))
    assert reap(root) == module.Reaped()
    assert (tmp_path / "x").exists() is True
    ledger.abandon()
    assert reap(root).undone == (f"directory {tmp_path / 'x'}",)
    assert (tmp_path / "x").exists() is False


def test_reap_of_no_ledgers_is_nothing(root: Path) -> None:
    assert reap(root) == module.Reaped()


@pytest.mark.parametrize("cut", [1, 5, 20])
def test_reap_reads_a_ledger_whose_last_line_was_cut(tmp_path: Path, root: Path, cut: int) -> None:
    (tmp_path / "x").mkdir()
    (tmp_path / "y").mkdir()
    ledger = Ledger.open(tmp_path, root=root)
    ledger.note("directory", path=str(tmp_path / "x"))
    ledger.note("directory", path=str(tmp_path / "y"))
    lines = ledger.folder / LINES
    lines.write_bytes(lines.read_bytes()[:-cut])
    ledger.abandon()
    whole = (f"directory {tmp_path / 'y'}",) if cut == 1 else ()
    assert reap(root).undone == (*whole, f"directory {tmp_path / 'x'}")


def test_reap_of_a_harness_killed_before_its_first_line_removes_the_folder(root: Path) -> None:
    (root / "abc").mkdir(parents=True)
    assert reap(root) == module.Reaped()
    assert (root / "abc").exists() is False


def test_directory_is_never_removed_through_a_mount(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "x").mkdir()
    monkeypatch.setattr("harness.cleanup.mounts.mounts_below", lambda path: [path / "mount"])
    assert "is still mounted" in UNDO["directory"]({"path": str(tmp_path / "x")})
    assert (tmp_path / "x").exists() is True


@pytest.mark.slow
def test_undo_ends_the_noted_process(tmp_path: Path, root: Path) -> None:
    ledger = Ledger.open(tmp_path, root=root)
    unborn = ledger.note_process()
    with sleeper(unborn.token) as process:
        identity = identity_of(process.pid)
        assert identity is not None
        ledger.add(unborn.number, pid=identity.pid, start=identity.start)
        assert ledger.undo_all() == []
        assert process.wait() == -9
    ledger.close()


@pytest.mark.slow
def test_undo_finds_a_process_by_its_token_when_its_pid_was_never_noted(tmp_path: Path, root: Path) -> None:
    ledger = Ledger.open(tmp_path, root=root)
    token = ledger.note_process().token
    with sleeper(token) as ours, sleeper(token + "0") as other:
        ledger.abandon()
        assert reap(root).undone == ("process unstarted",)
        assert ours.wait() == -9
        assert other.poll() is None
        other.kill()


# A harness that is killed while its child is between the fork and the end of exec. There subprocess sets standard
# input, closes the rest and calls exec, in this order; the child stays before exec, as on a busy machine.
FORKING = """
import os, signal, sys
from pathlib import Path
from harness.cleanup.ledger import Ledger
ledger = Ledger.open(Path(sys.argv[1]), root=Path(sys.argv[1]) / "runs")
unborn = ledger.note_process()
mark = os.open(unborn.mark, os.O_RDONLY)
child = os.fork()
if not child:
    os.dup2(mark, 0)
    os.closerange(3, 256)
    os.kill(os.getppid(), signal.SIGKILL)
    signal.pause()
os.waitpid(child, 0)
"""


@pytest.mark.slow
def test_undo_finds_a_child_that_its_harness_had_forked_and_exec_had_not_ended(tmp_path: Path, root: Path) -> None:
    with subprocess.Popen([sys.executable, "-c", FORKING, str(tmp_path)], stdout=subprocess.PIPE) as harness:
        assert harness.wait() == -9
        assert reap(root).undone == ("process unstarted",)
        # The child has the other end of the pipe until it ends.
        assert select.select([harness.stdout], [], [], limits.PROCESS_END_S_MAX)[0] != []


@pytest.mark.slow
def test_undo_spares_a_process_with_another_standard_input(tmp_path: Path, root: Path) -> None:
    ledger = Ledger.open(tmp_path, root=root)
    ledger.note_process()
    other = ledger.note_process()
    with (
        other.mark.open("rb") as mark,
        subprocess.Popen([sys.executable, "-c", "import signal; signal.pause()"], stdin=mark) as process,
    ):
        ledger.done(other.number)
        assert ledger.undo_all() == []
        assert process.poll() is None
        process.kill()
    ledger.close()


@pytest.mark.slow
@pytest.mark.parametrize("wrong", ["start", "boot"])
def test_undo_spares_a_process_that_only_has_the_pid(tmp_path: Path, root: Path, wrong: str) -> None:
    ledger = Ledger.open(tmp_path, root=root)
    number = ledger.note_process().number
    with sleeper("of nobody") as process:
        identity = identity_of(process.pid)
        assert identity is not None
        fields = {"pid": identity.pid, "start": identity.start, "boot": identity.boot}
        fields[wrong] = identity.start + 1 if wrong == "start" else "another boot"
        ledger.add(number, **fields)
        assert ledger.undo_all() == []
        assert process.poll() is None
        process.kill()
    ledger.close()


@pytest.mark.slow
def test_signal_goes_to_no_other_process_than_the_one_identified() -> None:
    with sleeper("of nobody") as process:
        identity = identity_of(process.pid)
        assert identity is not None
        stranger = Identity(pid=identity.pid, start=identity.start - 1, boot=boot_id())
        assert is_alive(stranger) is False
        assert send(stranger, signal.SIGKILL) is False
        assert is_alive(identity) is True
        process.kill()
