"""
The files below a log's start: they are unlinked beside the event loop, which thousands of them would hold up.

They are no part of the log from the moment at which its start is durable: what is left of them when the broker
ends is deleted by its next start, for their offsets alone. So they need no other name meanwhile, and whoever could
need their names again, or lowers the start below them, first has them gone (`finish`) or gives up the directory
(`cancel`).
Source:  Kafka, LogManager.deleteLogs and UnifiedLog.deleteSegmentFiles, which leave the files to a scheduler.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from pathlib import Path
from threading import Lock
from typing import Final

from targets.broker.log.beneath import Folder
from targets.broker.log.doubt import noted

# Files that are unlinked in one step: whoever closes waits for one step alone.
STEP_FILES: Final = 100

# One step of work; returns True if there is more.
Work = Callable[[], bool]
# Does work step by step, now or later.
Later = Callable[[Work], None]


def at_once(work: Work) -> None:
    """Do work now, to its end."""
    while work():
        pass


class Discards:
    """
    The files of one log that are to be unlinked.

    Raises:
        OSError: from the disk.
    """

    def __init__(self, directory: Path, later: Later) -> None:
        self._directory = directory
        self._later = later
        # Held while files are unlinked, so that none is after a `finish` or a `cancel`.
        self._lock = Lock()
        self._names: deque[str] = deque()
        # Whether steps go on; the loop and the steps' thread both ask and change it.
        self._working = False
        self._asking = Lock()

    def __len__(self) -> int:
        return len(self._names)

    def add(self, names: Iterable[str]) -> None:
        """Have files unlinked, the oldest first."""
        with self._asking:
            self._names.extend(names)
            begins = bool(self._names) and not self._working
            self._working |= begins
        if begins:
            self._later(self.step)

    def step(self) -> bool:
        """Unlink some files, on any thread; return True if there are more."""
        with self._lock:
            self._unlink(STEP_FILES)
        with self._asking:
            self._working = bool(self._names)
            return self._working

    def finish(self) -> None:
        """Unlink what is left, now and durably."""
        with self._lock:
            self._unlink(len(self._names))

    def cancel(self) -> None:
        """Unlink nothing more: the directory goes as a whole."""
        with self._lock:
            self._names.clear()

    def _unlink(self, count: int) -> None:
        if not self._names:
            return
        with noted(f"the deletion of files of {self._directory.name}"), Folder(self._directory) as folder:
            for _ in range(min(count, len(self._names))):
                folder.unlink(self._names[0], missing_ok=True)
                self._names.popleft()
            folder.sync()
