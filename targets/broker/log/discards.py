"""
Files that are no part of a log any more: they are unlinked beside the event loop, which thousands would hold up.

Those below the log's start keep their names, as they are no part of it from the moment at which the start is
durable: what is left of them when the broker ends is deleted by its next start, for their offsets alone. Those
that a cut removes lie where new ones may soon be, so they get another name at once, Kafka's, from the last to the
first; the next start removes what has that name. So do those below a start that is lowered, durably before it is
(`finish`). A log that is deleted has all of its files gone with its directory (`cancel`).
Source:  Kafka, LogManager.deleteLogs and LocalLog.deleteSegmentFiles, which rename the files, and leave them to a
         scheduler.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from threading import Lock
from typing import Final

from targets.broker.log.beneath import Folder
from targets.broker.log.doubt import noted
from targets.broker.log.names import DELETED_SUFFIX

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

    @property
    def keep_names(self) -> bool:
        """Return True if some of them have the names of segments, so that the log's start must be remembered."""
        return any(not name.endswith(DELETED_SUFFIX) for name in tuple(self._names))

    def set_aside(self, names: Sequence[str]) -> None:
        """Free the names of files, in this order, and have the files unlinked."""
        with Folder(self._directory) as folder:
            doomed = [_renamed(folder, name) for name in names]
        self.add(doomed)

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
        """Free the names of all that is left, now and durably."""
        with self._lock:
            if self.keep_names:
                with Folder(self._directory) as folder:
                    names = [
                        name if name.endswith(DELETED_SUFFIX) else _renamed(folder, name) for name in self._names
                    ]
                    folder.sync()
                self._names = deque(names)

    def cancel(self) -> None:
        """Unlink nothing more: the directory goes as a whole."""
        with self._lock:
            self._names.clear()

    def _unlink(self, count: int) -> None:
        if not self._names:
            return
        with noted(f"the deletion of files of {self._directory.name}"), Folder(self._directory) as folder:
            below_start = False
            for _ in range(min(count, len(self._names))):
                folder.unlink(self._names[0], missing_ok=True)
                below_start |= not self._names.popleft().endswith(DELETED_SUFFIX)
            # What is below the start may be forgotten once it is gone; a cut becomes durable when its log does.
            if below_start:
                folder.sync()


def _renamed(folder: Folder, name: str) -> str:
    """Give a file the name of one that is to be deleted; one that still has that name gives way."""
    doomed = f"{name}{DELETED_SUFFIX}"
    folder.rename(name, doomed)
    return doomed
