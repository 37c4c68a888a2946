"""
A night's journal: one line for each thing that began or ended, durable before the night goes on.

A night that is killed at any moment goes on from its journal: what has a line is done, and what has none is played
(again). A last line that was cut short is no line. A line is one JSON object with `what` it is, and `spent_s`, the
time that the night has been at work so far, all its sessions together.

| what | has |
| --- | --- |
| `night` | all that decides what is played; the first line |
| `session` | when a process began to play the night, and which |
| `asked` | the lines that are left out of this session, each with what the machine lacks for it |
| `begun` | a unit's number |
| `ran` | of a unit on real processes: the place of a run in it, what it showed, and the time of the unit so far |
| `ended` | a unit's number; in the simulator what all its runs showed; why it could not be played, or "" |
| `note` | what else went wrong, in words |
| `removed` | a folder that was deleted for want of space |
| `interrupted` | the unit at which somebody ended the session, if there was one |
| `finished` | the end of the night |
"""

from __future__ import annotations

import errno
import json
import os
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from harness.input_file import open_file
from harness.model import UsageError
from harness.suite.interrupts import INTERRUPTS

LINES: Final = "journal.jsonl"
VERSION: Final = 1
# Space that is kept for the journal's last lines and the page, for when the disk is full.
RESERVE: Final = "reserve"
RESERVE_BYTES: Final = 4 * 1024 * 1024


@dataclass(slots=True)
class Journal:
    """
    The journal of a night that this process plays; only the main thread writes it.

    Attributes:
        clock: monotonic seconds.
        make_room: called when the disk is full; returns True if a line may fit now.
        failed: whether a line could not be written, which ends the night.
    """

    path: Path
    clock: Callable[[], float] = time.monotonic
    make_room: Callable[[], bool] = field(default=lambda: False)
    failed: bool = False
    _before_s: float = 0.0
    _since: float = 0.0
    _handle: int = -1

    @staticmethod
    def open(folder: Path, clock: Callable[[], float] = time.monotonic) -> tuple[Journal, list[dict[str, Any]]]:
        """Open the journal of a night, new or old, and return it with its lines so far."""
        path = folder / LINES
        lines, whole = read_lines(path)
        journal = Journal(path=path, clock=clock)
        journal._before_s = float(lines[-1]["spent_s"]) if lines else 0.0
        journal._since = clock()
        journal._handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
        os.ftruncate(journal._handle, whole)
        _sync_folder(folder)
        reserve = folder / RESERVE
        with suppress(OSError), reserve.open("wb") as file:
            os.posix_fallocate(file.fileno(), 0, RESERVE_BYTES)
        return journal, lines

    @property
    def spent_s(self) -> float:
        """How long the night has been at work, all sessions together."""
        return self._before_s + self.clock() - self._since

    def write(self, what: str, **values: Any) -> dict[str, Any]:
        """
        Write a line, durably, and return it.

        Raises:
            UsageError: the disk is full, and nothing that passed is left to be deleted.
        """
        line = {"what": what, "spent_s": round(self.spent_s, 3), **values}
        data = f"{json.dumps(line, ensure_ascii=False)}\n".encode()
        with INTERRUPTS.shielded():
            while not self._written(data):
                pass
        return line

    def close(self) -> None:
        """Close the file."""
        if self._handle >= 0:
            os.close(self._handle)
            self._handle = -1
        self.release()

    def release(self) -> bool:
        """Give the reserved space back; return True if there was some."""
        reserve = self.path.with_name(RESERVE)
        there = reserve.exists()
        reserve.unlink(missing_ok=True)
        return there

    def _written(self, data: bytes) -> bool:
        """Write a line; return False if it is worth to try again, since there is room now."""
        size = os.fstat(self._handle).st_size
        try:
            view = memoryview(data)
            while view:
                view = view[os.write(self._handle, view) :]
            os.fsync(self._handle)
        except OSError as error:
            os.ftruncate(self._handle, size)
            if error.errno in (errno.ENOSPC, errno.EDQUOT) and (self.make_room() or self.release()):
                return False
            self.failed = True
            raise UsageError(
                f"{self.path}: {error.strerror}; expected a disk with room; make some, and start the night again: "
                "it goes on from here"
            ) from error
        return True


def read_lines(path: Path) -> tuple[list[dict[str, Any]], int]:
    """
    Return a journal's whole lines, and their size in bytes; none if there is no file.

    Raises:
        UsageError: the file cannot be read, or a line before the last is none of ours.
    """
    data = b""
    if os.path.lexists(path):
        with open_file(path, "a night's journal") as file:
            data = file.read()
    lines: list[dict[str, Any]] = []
    whole = 0
    for number, text in enumerate(data.split(b"\n")[:-1], start=1):
        try:
            line = json.loads(text)
            if not isinstance(line["what"], str) or not isinstance(line["spent_s"], int | float):
                raise ValueError("no line of a night's journal")
        except (ValueError, TypeError, KeyError, RecursionError) as error:
            raise UsageError(
                f"{path}:{number}: {error!r:.100}; expected a line of a night's journal; move the "
                "night's folder away"
            ) from error
        lines.append(line)
        whole += len(text) + 1
    return lines, whole


def require(line: Mapping[str, Any], where: Path) -> Mapping[str, Any]:
    """Return a journal's first line; raise UsageError if another version has written it."""
    if line.get("what") != "night" or line.get("version") != VERSION:
        raise UsageError(
            f"{where}: version {line.get('version')!r}; expected {VERSION}; move the night's folder away"
        )
    return line


def _sync_folder(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
