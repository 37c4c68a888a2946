"""A thread in place of the process of a Java client: it serves the two pipes, and tells what the test says."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from types import SimpleNamespace
from typing import TextIO, cast

from harness import limits
from harness.clients.children import Children
from harness.clients.jvm import READY, Jvm

# Returns what a child tells after a line that it was asked.
Answer = Callable[[list[str]], Sequence[str]]


class Child:
    """Starts a thread that serves the two pipes, and is what was started."""

    def __init__(self, answer: Answer, first: str = f"{READY}\n") -> None:
        self.ledger = SimpleNamespace(is_closed=False)
        self.asked: list[str] = []
        self.argv: Sequence[str] = ()
        self.pid = 7
        self._answer = answer
        self._first = first
        self._thread = threading.Thread(target=self._serve, daemon=True)

    def start(self, name: str, argv: Sequence[str], handles: Sequence[int]) -> Child:
        self.argv = argv
        self._pipes = [os.dup(handle) for handle in handles]
        self._thread.start()
        return self

    def _serve(self) -> None:
        # The end of its pipe ends it, as it ends a process.
        with suppress(BrokenPipeError), os.fdopen(self._pipes[0]) as asked, os.fdopen(self._pipes[1], "w") as told:
            self._tell(told, self._first)
            for line in asked:
                self.asked.append(line.rstrip("\n"))
                for said in self._answer(line.rstrip("\n").split(" ")):
                    if said == "END":
                        return
                    self._tell(told, said)

    @staticmethod
    def _tell(told: TextIO, said: str) -> None:
        told.write(said)
        told.flush()

    def wait(self, within_s: float | None = None) -> str:
        self._thread.join(limits.CONDITION_WAIT_S_MAX)
        assert not self._thread.is_alive()
        return "exit code 1"

    def log_tail(self) -> str:
        return "Exception in thread"


@contextmanager
def starting() -> Iterator[Callable[..., tuple[Child, Jvm]]]:
    """Yield what starts children; they are closed in the end."""
    made: list[Jvm] = []

    def start(answer: Answer, first: str = f"{READY}\n") -> tuple[Child, Jvm]:
        child = Child(answer, first)
        made.append(Jvm("p1", cast(Children, child), lambda asked, told: ("java", str(asked), str(told))))
        return child, made[-1]

    yield start
    for jvm in made:
        jvm.close()
