"""
Follow the lines that nodes print and record them in the history, for targets whose nodes emit no events.

A line is recorded as soon as it is seen, if a pattern of the target finds something in it
(harness.target.target.Printed). Other lines are only in the node's log file, not in the history.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from typing import Final

from harness import events
from harness.history.file import History
from harness.model import FencepostError, OpType
from harness.target.target import Printed

LOOK_S: Final = 0.05
# Lines recorded for each node and kind: a broker in a hot loop prints the same line thousands of times.
LINES_MAX: Final = 200
LINE_CHARACTERS_MAX: Final = 400


class PrintedLines:
    """
    Follows what nodes print, in a thread of its own.

    Args:
        text_of: Returns everything that a node has printed so far.
        read: Returns what a line reports; None if it reports nothing.
    """

    def __init__(
        self,
        names: Iterable[str],
        text_of: Callable[[str], str],
        read: Callable[[str], Printed | None],
        history: History,
    ) -> None:
        """Set up; `start` begins to follow."""
        self._text_of = text_of
        self._read = read
        self._history = history
        self._seen = dict.fromkeys(names, 0)
        self._kept: dict[tuple[str, str], int] = {}
        self._turn = threading.Lock()
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._follow, name="printed-lines", daemon=True)

    def start(self) -> None:
        """Begin to follow."""
        self._thread.start()

    def look(self, name: str) -> None:
        """Record what a node has printed since the last look."""
        with self._turn:
            text = self._text_of(name)
            end = text.rfind("\n") + 1
            fresh, self._seen[name] = text[self._seen[name] : end], max(end, self._seen[name])
            for line in fresh.splitlines():
                found = self._read(line)
                if found is not None:
                    self._record(name, line, found)

    def close(self) -> None:
        """Stop following; safe to call twice."""
        self._over.set()
        if self._thread.ident is not None:
            self._thread.join()

    def _follow(self) -> None:
        while not self._over.wait(LOOK_S):
            for name in self._seen:
                try:
                    self.look(name)
                except (FencepostError, OSError, ValueError):
                    # The node or the history may be closing already: then stop, else try again.
                    if self._over.is_set():
                        return

    def _record(self, name: str, line: str, found: Printed) -> None:
        kept = self._kept[name, found.what] = self._kept.get((name, found.what), 0) + 1
        if kept > LINES_MAX:
            return
        printed = events.Printed(
            topic=found.topic,
            partition=found.partition,
            what=found.what,
            line=line[:LINE_CHARACTERS_MAX],
            to=found.to,
        )
        self._history.record(name, OpType.INFO, printed)
