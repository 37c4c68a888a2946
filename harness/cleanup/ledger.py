"""
The heal ledger: every resource that a run creates and must undo, written to disk before it is created.

A run has one folder below the state folder's `runs`, with `lock`, held by flock while the harness lives,
`ledger.jsonl`, append-only, each line fsynced, and an empty file for each process. A killed harness leaves them.
The next harness finds the lock free and undoes the open entries, newest first.

The lock is flock's and not a POSIX lock, because two runs of one process must exclude each other too.

A line is one JSON object. The first describes the run; `note` opens an entry, `add` adds fields that are known
later (a pid), `done` closes it. A last line that was cut short is ignored: its resource was not created.
"""

from __future__ import annotations

import fcntl
import json
import math
import os
import secrets
import shutil
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from harness import limits
from harness.cleanup.process import Identity, identity_of, is_alive, until
from harness.cleanup.state import state_dir
from harness.cleanup.undo import UNDO
from harness.model import UsageError

LOCK: Final = "lock"
LINES: Final = "ledger.jsonl"
REGISTRY_LOCK: Final = "registry.lock"
MARK: Final = "process-"


@dataclass(frozen=True, slots=True, kw_only=True)
class Reaped:
    """The result of reap: texts of what was undone, and of what could not be undone."""

    undone: tuple[str, ...] = ()
    left: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Unborn:
    """
    A process that is recorded and not yet forked.

    Attributes:
        number: its id in the ledger.
        token: the value of TOKEN_VARIABLE in its environment.
        mark: an empty file of the ledger's folder, its standard input: see process.bearers.
    """

    number: int
    token: str
    mark: Path


def runs_dir() -> Path:
    """Return the folder that holds this user's ledgers."""
    return state_dir("runs")


class Ledger:
    """One run's ledger; any thread may call its methods."""

    def __init__(self, *, folder: Path, token: str, lock: int, lines: int, entries: dict[int, dict[str, Any]]):
        """Use `Ledger.open` or `reap` instead; they prepare these arguments."""
        self.folder = folder
        self.token = token
        self._lock_handle = lock
        self._lines_handle = lines
        self._entries = entries
        self._next = max(entries, default=0) + 1
        self._torn = False
        self._mutex = threading.RLock()

    @staticmethod
    def open(run_dir: Path, *, root: Path | None = None) -> Ledger:
        """
        Begin a run's ledger and acquire its lock.

        The ledger's token is unique to the run; it is part of the names of its containers, and in the
        environment of its child processes.

        Args:
            run_dir: The folder of the run's files.
            root: The folder of all ledgers; None: runs_dir().
        """
        root = root if root is not None else runs_dir()
        root.mkdir(parents=True, exist_ok=True)
        token = secrets.token_hex(6)
        folder = root / token
        me = identity_of(os.getpid())
        assert me is not None, "this process is alive, so /proc has it"
        # A reaper looks for free locks under the same registry lock, so it never sees our lock before we hold it.
        with _registry(root):
            folder.mkdir()
            lock = _take(folder / LOCK)
            assert lock is not None, "no other process knows a folder just made"
        lines = os.open(folder / LINES, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        ledger = Ledger(folder=folder, token=token, lock=lock, lines=lines, entries={})
        ledger._write({"op": "run", "run_dir": str(run_dir), "pid": me.pid, "start": me.start, "boot": me.boot})
        return ledger

    def note(self, kind: str, **fields: Any) -> int:
        """Record, durably, a resource that is about to be created; return its id for add and done."""
        assert kind in UNDO, f"ledger: kind {kind!r}; expected one of {', '.join(UNDO)}"
        with self._mutex:
            number = self._next
            self._next += 1
            self._entries[number] = {"kind": kind, **fields}
            self._write({"op": "note", "id": number, "kind": kind, **fields})
            return number

    def note_process(self) -> Unborn:
        """Record a process that is about to be forked; it shall have the token, and its mark as standard input."""
        me = identity_of(os.getpid())
        assert me is not None, "this process is alive, so /proc has it"
        with self._mutex:
            token, mark = f"{self.token}.{self._next}", self.folder / f"{MARK}{self._next}"
            number = self.note("process", token=token, mark=str(mark), since=me.start, boot=me.boot)
            mark.touch(mode=0o600)
            return Unborn(number=number, token=token, mark=mark)

    @contextmanager
    def making(self) -> Iterator[None]:
        """
        Create a noted resource inside this context: no other thread undoes the run's resources meanwhile.

        Raises:
            UsageError: The ledger is closed, because another thread has closed the run.
        """
        with self._mutex:
            self._require_open()
            yield

    def add(self, number: int, **fields: Any) -> None:
        """Record fields that are known only after the resource was created."""
        with self._mutex:
            self._entries[number].update(fields)
            self._write({"op": "add", "id": number, **fields})

    def done(self, number: int) -> None:
        """Record that the resource is gone; a second call for an id does nothing."""
        with self._mutex:
            if self._entries.pop(number, None) is not None:
                self._write({"op": "done", "id": number})

    def run(self, *argv: str) -> str:
        """
        Run a tool that creates a noted resource; return "", or the tool's error output if it failed.

        The tool inherits the run's lock: if the harness is killed meanwhile, no reaper starts before the tool has
        ended. The tool runs in its own session, so that Ctrl-C does not reach it.
        """
        with self.making():
            done = subprocess.run(
                argv,
                capture_output=True,
                text=True,
                check=False,
                start_new_session=True,
                pass_fds=(self._lock_handle,),
            )
        return (done.stderr.strip() or f"exit code {done.returncode}") if done.returncode != 0 else ""

    @property
    def is_closed(self) -> bool:
        """Whether the run was closed; while another thread closes it, this waits for the end of that."""
        with self._mutex:
            return self._lines_handle < 0

    def undo_all(self) -> list[str]:
        """Undo all open entries, newest first; return what could not be undone."""
        with self._mutex:
            return [problem for _, problem in self._undo() if problem]

    def close(self) -> list[str]:
        """Undo all and release the run's lock; remove its folder if nothing is left; return what is left."""
        with self._mutex:
            if self._lock_handle < 0:
                return []
            left = self.undo_all()
            if left:
                _failed_at_s[self.token] = time.monotonic()
            self._finish(empty=not left)
            return left

    def abandon(self) -> None:
        """Release the lock and undo nothing: the next reap does."""
        with self._mutex:
            for handle in (self._lines_handle, self._lock_handle):
                if handle >= 0:
                    os.close(handle)
            self._lines_handle = self._lock_handle = -1

    def _finish(self, *, empty: bool) -> None:
        """Remove the folder if nothing is left to undo, then release the lock."""
        if empty:
            with _registry(self.folder.parent):
                shutil.rmtree(self.folder, ignore_errors=True)
        self.abandon()

    def _undo(self) -> Iterator[tuple[str, str]]:
        """Undo entry by entry, newest first; yield each entry's text and what is left of it."""
        for number in sorted(self._entries, reverse=True):
            entry = self._entries[number]
            try:
                problem = UNDO[entry["kind"]](entry)
            except OSError as error:  # such as a filesystem that answers with IO errors: the others must go on
                problem = f"{_text(entry)}: {error}; expected to be able to undo it"
            if not problem:
                # A full disk must not keep the other entries from being undone; this one is undone again later.
                with suppress(OSError):
                    self.done(number)
            yield _text(entry), problem

    def _require_open(self) -> None:
        if self._lines_handle < 0:
            raise UsageError(f"ledger {self.folder}: closed; expected no call after close")

    def _write(self, line: dict[str, Any]) -> None:
        self._require_open()
        text = (json.dumps(line, separators=(",", ":")) + "\n").encode()
        # The line that a full disk has cut must not swallow this one.
        text = b"\n" + text if self._torn else text
        self._torn = True
        while text:
            text = text[os.write(self._lines_handle, text) :]
        os.fsync(self._lines_handle)
        self._torn = False


# When this process last failed to undo a ledger, by its token, in seconds of the monotonic clock.
_failed_at_s: Final[dict[str, float]] = {}


def reap(root: Path | None = None, *, again_s: float = 0.0) -> Reaped:
    """
    Undo what is left of every run whose lock is free: its harness was killed, or could not undo all of it.

    What cannot be undone now (no engine answers, a mount is in use) stays in its ledger for the next reap.

    Args:
        root: The folder of all ledgers; None: runs_dir().
        again_s: Leave out what this process failed to undo less than so many seconds ago, because each run of a
            suite reaps when it opens, and a mount that is in use takes seconds every time.
    """
    root = root if root is not None else runs_dir()
    if not root.is_dir():
        return Reaped()
    found: list[Ledger] = []
    held: list[Path] = []
    with _registry(root):
        for folder in sorted(path for path in root.iterdir() if path.is_dir()):
            if time.monotonic() < _failed_at_s.get(folder.name, -math.inf) + again_s:
                continue
            lock = _take(folder / LOCK)
            if lock is None:
                held.append(folder)
            else:
                found.append(_reopen(folder, lock))
    for folder in held:
        lock = _take_of_dead(folder)
        if lock is not None:
            found.append(_reopen(folder, lock))
    undone: list[str] = []
    left: list[str] = []
    for ledger in found:
        results = list(ledger._undo())
        undone += [text for text, problem in results if not problem]
        problems = [problem for _, problem in results if problem]
        if problems:
            _failed_at_s[ledger.token] = time.monotonic()
        ledger._finish(empty=not problems)
        left += problems
    return Reaped(undone=tuple(undone), left=tuple(left))


@dataclass(slots=True)
class _Read:
    """The open entries, as read from the lines of a ledger."""

    entries: dict[int, dict[str, Any]] = field(default_factory=dict)

    def take(self, line: dict[str, Any]) -> None:
        """Apply one line."""
        fields = {key: value for key, value in line.items() if key not in ("op", "id")}
        match line["op"]:
            case "note":
                self.entries[line["id"]] = fields
            case "add":
                self.entries[line["id"]].update(fields)
            case "done":
                self.entries.pop(line["id"], None)


def _reopen(folder: Path, lock: int) -> Ledger:
    """Read a killed run's ledger; the caller holds its lock."""
    read = _Read()
    path = folder / LINES
    for text in path.read_text(encoding="utf-8").splitlines() if path.exists() else ():
        try:
            line = json.loads(text)
        except ValueError:
            continue
        read.take(line)
    lines = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    # End a torn last line, so that the first line that we append does not continue it.
    os.write(lines, b"\n")
    return Ledger(folder=folder, token=folder.name, lock=lock, lines=lines, entries=read.entries)


def _take_of_dead(folder: Path) -> int | None:
    """
    Acquire a held lock whose harness is dead; return None if the harness lives, or the lock does not get free.

    A child that was being forked when its harness was killed still holds the lock, until it has its mark as
    standard input and has closed the rest; a running tool (Ledger.run) holds it until it has ended.
    """
    try:
        first = json.loads((folder / LINES).read_text(encoding="utf-8").partition("\n")[0])
    except (OSError, ValueError):
        return None
    if is_alive(Identity(pid=first["pid"], start=first["start"], boot=first["boot"])):
        return None
    taken: list[int] = []

    def free_or_gone() -> bool:
        lock = _take(folder / LOCK)
        if lock is not None:
            taken.append(lock)
        return bool(taken) or not folder.exists()

    until(free_or_gone, limits.PROCESS_END_S_MAX)
    return taken[0] if taken else None


def _take(path: Path) -> int | None:
    """Acquire the lock; return None if another process or run holds it."""
    try:
        handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    except FileNotFoundError:
        return None
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(handle)
        return None
    return handle


@contextmanager
def _registry(root: Path) -> Iterator[None]:
    """Hold the lock that is needed to create or remove a run's folder, and to look for free locks."""
    handle = os.open(root / REGISTRY_LOCK, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


def _text(entry: dict[str, Any]) -> str:
    """Return a short name of the entry's resource."""
    of = entry.get("mount_point") or entry.get("path") or entry.get("name") or entry.get("pid") or "unstarted"
    return f"{entry['kind']} {of}"
