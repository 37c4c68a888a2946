"""
Follow the lines that nodes print and record them in the history, for targets whose nodes emit no events.

A line is recorded as soon as it is seen, if a pattern of the target finds something in it
(harness.target.target.Printed). Other lines are only in the node's log file, not in the history.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Sequence
from typing import Final

from harness import events, limits
from harness.history.file import History
from harness.late import LateError, Steps, apart
from harness.model import FencepostError, OpType, PreconditionError, TargetError
from harness.target.target import Printed

LOOK_S: Final = 0.05
# Lines recorded for each node and kind: a broker in a hot loop prints the same line thousands of times.
LINES_MAX: Final = 200
LINE_CHARACTERS_MAX: Final = 400
# Of a line, or of what a target makes of it, in an error.
_SHOWN_CHARACTERS: Final = 200


class PrintedLines:
    """
    Follows what nodes print, in a thread of its own.

    Args:
        text_of: Returns everything that a node has printed so far.
        read: Returns what a line reports; None if it reports nothing. It is a target's own code, and asked no more
            once it raises, hangs or returns nonsense.
        target: The target's name.
    """

    def __init__(
        self,
        names: Iterable[str],
        text_of: Callable[[str], str],
        read: Callable[[str], Printed | None],
        history: History,
        target: str,
    ) -> None:
        """Set up; `start` begins to follow."""
        self._text_of = text_of
        self._read = read
        self._history = history
        self._target = target
        self._problem = ""
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
            for line, found in self._meanings(fresh.splitlines()):
                self._record(name, line, found)

    def close(self) -> None:
        """Stop following; safe to call twice. Raise PreconditionError if the target failed to read a line."""
        self._over.set()
        if self._thread.ident is not None:
            self._thread.join()
        if self._problem:  # the history's end may have been written before
            raise PreconditionError(self._problem)

    def _follow(self) -> None:
        while not self._over.wait(LOOK_S):
            for name in self._seen:
                try:
                    self.look(name)
                except (FencepostError, OSError, ValueError):
                    # The node or the history may be closing already: then stop, else try again.
                    if self._over.is_set():
                        return

    def _meanings(self, lines: Sequence[str]) -> Sequence[tuple[str, Printed]]:
        """Return the lines that mean something; if the target fails at one, the run is unknown, and says so."""
        if not lines or self._problem:
            return ()
        steps, found = Steps(), list[tuple[str, Printed]]()

        def read() -> None:
            for line in lines:
                steps.what = line
                steps.began += 1
                meaning = self._read(line)
                steps.ended = steps.began
                if meaning is None:
                    continue
                if problem := _problem_of(meaning):
                    raise TargetError(problem)
                found.append((line, meaning))

        try:
            apart(read, limits.PRINTED_LINE_S_MAX, steps)
        except LateError:
            self._fail(f"no answer within {limits.PRINTED_LINE_S_MAX:g} s", steps.what)
        except TargetError as error:
            self._fail(str(error), steps.what)
        except Exception as error:
            self._fail(f"{type(error).__name__}: {error}", steps.what)
        return found

    def _fail(self, what: str, line: str) -> None:
        self._problem = (
            f"target {self._target}, printed: {what}; expected what {line[:_SHOWN_CHARACTERS]!r} means, or None"
        )
        self._history.give_up(TargetError(self._problem))

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


def _problem_of(meaning: object) -> str:
    """Return what is wrong with what a target returned for a line, "" for nothing."""
    if isinstance(meaning, Printed):
        texts = isinstance(meaning.what, str) and isinstance(meaning.topic, str)
        if texts and type(meaning.partition) is int and (meaning.to is None or type(meaning.to) is int):
            return ""
    return f"{meaning!r:.{_SHOWN_CHARACTERS}}"
