"""
What nodes print, followed line by line into the history: for targets whose nodes tell the collector nothing.

A line is recorded when the target's own patterns find something in it (harness.cluster.target.Printed), as soon
as it is seen; everything else that a node prints is kept beside the run, and nowhere in its history.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from typing import Final

from harness import events
from harness.cluster.target import Printed
from harness.history.file import History
from harness.model import FencepostError, OpType

LOOK_S: Final = 0.05
# A broker in a hot loop says the same thing thousands of times: of each node and each kind so many are kept.
LINES_MAX: Final = 200
LINE_CHARACTERS_MAX: Final = 400


class PrintedLines:
    """
    Follow what nodes print. Own one thread.

    Shapes:  text_of gives all that a node printed so far; read gives what a line tells, None for nothing.
    """

    def __init__(
        self,
        names: Iterable[str],
        text_of: Callable[[str], str],
        read: Callable[[str], Printed | None],
        history: History,
    ) -> None:
        """Take what is followed; start begins."""
        self._text_of = text_of
        self._read = read
        self._history = history
        self._seen = dict.fromkeys(names, 0)
        self._kept: dict[tuple[str, str], int] = {}
        self._turn = threading.Lock()
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._follow, name="prints", daemon=True)

    def start(self) -> None:
        """Look from now on."""
        self._thread.start()

    def look(self, name: str) -> None:
        """Take up what a node has printed by now."""
        with self._turn:
            text = self._text_of(name)
            end = text.rfind("\n") + 1
            fresh, self._seen[name] = text[self._seen[name] : end], max(end, self._seen[name])
            for line in fresh.splitlines():
                told = self._read(line)
                if told is not None:
                    self._keep(name, line, told)

    def close(self) -> None:
        """Follow no more; safe to call twice."""
        self._over.set()
        if self._thread.ident is not None:
            self._thread.join()

    def _follow(self) -> None:
        while not self._over.wait(LOOK_S):
            for name in self._seen:
                try:
                    self.look(name)
                except (FencepostError, OSError, ValueError):
                    # The node, or the run's history, is being taken down: there is nobody left to tell.
                    if self._over.is_set():
                        return

    def _keep(self, name: str, line: str, told: Printed) -> None:
        kept = self._kept[name, told.what] = self._kept.get((name, told.what), 0) + 1
        if kept > LINES_MAX:
            return
        printed = events.Printed(
            topic=told.topic,
            partition=told.partition,
            what=told.what,
            line=line[:LINE_CHARACTERS_MAX],
            to=told.to,
        )
        self._history.record(name, OpType.INFO, printed)
