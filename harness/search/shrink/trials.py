"""
`Trials`: which candidate is the first that shows the violation; each text is played once, and tries are counted.

Candidates are played ahead in other processes if that pays. What is found, and after how many tries, does not
depend on the number of processes: a run that was played ahead counts only when its turn comes.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterable
from concurrent.futures import Executor, Future
from dataclasses import dataclass, field
from typing import Final

from harness.scenario.file import Scenario
from harness.scenario.text import text_of
from harness.search.shrink.signature import Outcome

# Tries before other processes are started: to start one takes as long as some sixty of these.
ALONE_TRIES: Final = 60
# Candidates in play for each process.
AHEAD: Final = 2


class SpentError(Exception):
    """The tries or the time that a shrinking may take are spent."""


@dataclass(slots=True, kw_only=True)
class Trials:
    """
    Plays candidates in order.

    Attributes:
        play: plays the schedule of this text; the same text always has the same outcome.
        play_there: the same, as a function that another process can call; None without other processes.
        make_pool: starts the other processes.
        jobs: how many processes there are; 1 for this one alone.
        tries_max: how many runs may be played.
        seconds: how long all may take; None for no limit. It alone makes a result depend on the machine.
        clock: the time in seconds.
        on_try: called after each try.
        tries: how many runs were played, but those ahead that never had their turn.
    """

    play: Callable[[str], Outcome]
    play_there: Callable[[str], Outcome] | None = None
    make_pool: Callable[[int], Executor] | None = None
    jobs: int = 1
    tries_max: int
    seconds: float | None = None
    clock: Callable[[], float] = time.monotonic
    on_try: Callable[[], None] = lambda: None
    tries: int = field(init=False, default=0)
    _began: float = field(init=False, default=0.0)
    _known: dict[str, Outcome] = field(init=False, default_factory=dict)
    _ahead: dict[str, Future[Outcome]] = field(init=False, default_factory=dict)
    _pool: Executor | None = field(init=False, default=None)

    def __post_init__(self) -> None:
        self._began = self.clock()

    @property
    def seconds_taken(self) -> float:
        """How long all tries have taken so far."""
        return self.clock() - self._began

    def outcome(self, scenario: Scenario) -> Outcome:
        """Return what a schedule shows; raise SpentError if it must be played and nothing is left for that."""
        return self._outcome(text_of(scenario))

    def first(self, candidates: Iterable[Scenario]) -> tuple[int, Scenario] | None:
        """
        Return the first candidate that shows the violation, with its position; None if none does.

        Raises:
            SpentError: the tries or the time are spent.
        """
        source, waiting = enumerate(candidates), deque[tuple[int, Scenario, str]]()
        try:
            while True:
                while len(waiting) < self._window() and (following := next(source, None)) is not None:
                    at, candidate = following
                    waiting.append((at, candidate, text_of(candidate)))
                    self._send(waiting[-1][2])
                if not waiting:
                    return None
                at, candidate, text = waiting.popleft()
                if self._outcome(text).shows:
                    return at, candidate
        finally:
            self._call_back(text for _, _, text in waiting)

    def close(self) -> None:
        """End the other processes."""
        if self._pool is not None:
            self._pool.shutdown(wait=True, cancel_futures=True)
            self._pool = None

    def _window(self) -> int:
        return 1 if self._pool is None else AHEAD * self.jobs

    def _send(self, text: str) -> None:
        """Have a candidate played ahead, if there are processes for it."""
        if self._pool is None and self.jobs > 1 and self.tries >= ALONE_TRIES and self.make_pool is not None:
            self._pool = self.make_pool(self.jobs)
        if self._pool is not None and text not in self._known and text not in self._ahead:
            assert self.play_there is not None, "a pool, and nothing that it can play"
            self._ahead[text] = self._pool.submit(self.play_there, text)

    def _call_back(self, texts: Iterable[str]) -> None:
        """Forget the candidates that were sent ahead and not begun."""
        for text in texts:
            if text in self._ahead and self._ahead[text].cancel():
                del self._ahead[text]

    def _outcome(self, text: str) -> Outcome:
        if text not in self._known:
            if self.tries >= self.tries_max or (self.seconds is not None and self.seconds_taken >= self.seconds):
                raise SpentError
            self.tries += 1
            sent = self._ahead.pop(text, None)
            self._known[text] = self.play(text) if sent is None else sent.result()
            self.on_try()
        return self._known[text]
