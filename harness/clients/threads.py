"""
A workload's clients as threads, one for each.

A thread that fails loses what its client would have seen, so the history takes no further op: the run cannot end
as whole, and the runner's next op raises the error.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias

from harness.history.file import History
from harness.model import HistoryError
from harness.workload.lives import Mortal, next_to_crash

# What a client does until the event is set; it waits for nothing that lasts much longer.
Work: TypeAlias = Callable[[threading.Event], None]


class Threads:
    """
    A workload at work, as harness.target.clients.Workload describes; its threads start at once.

    Args:
        producers, consumers: a client's name -> its work.
        mortals: the clients that have processes of their own.
    """

    def __init__(
        self,
        history: History,
        producers: Mapping[str, Work],
        consumers: Mapping[str, Work],
        mortals: Sequence[Mortal] = (),
    ) -> None:
        self._history = history
        self._mortals = tuple(mortals)
        self._no_more, self._leave = threading.Event(), threading.Event()
        self._producers = [self._thread(name, work, self._no_more) for name, work in producers.items()]
        self._consumers = [self._thread(name, work, self._leave) for name, work in consumers.items()]
        for thread in (*self._producers, *self._consumers):
            thread.start()

    def stop_producing(self) -> None:
        """Let each producer end after the outcome of what it sends now."""
        self._no_more.set()

    def stop(self) -> None:
        """Let each consumer end after the poll that it waits for, and each producer as `stop_producing` does."""
        self._no_more.set()
        self._leave.set()

    def crash(self) -> str:
        """Kill the process of the client that was killed least often; see harness.target.clients.Workload."""
        return next_to_crash(self._mortals).crash()

    @property
    def kills(self) -> int:
        """How many processes of its clients were killed."""
        return sum(each.kills for each in self._mortals)

    @property
    def produced(self) -> bool:
        """Whether every producer has ended, so that every record has its outcome."""
        return not any(thread.is_alive() for thread in self._producers)

    @property
    def done(self) -> bool:
        """Whether every client has ended."""
        return self.produced and not any(thread.is_alive() for thread in self._consumers)

    def _thread(self, name: str, work: Work, leave: threading.Event) -> threading.Thread:
        return threading.Thread(target=self._run, args=(work, leave), name=f"workload {name}", daemon=True)

    def _run(self, work: Work, leave: threading.Event) -> None:
        try:
            work(leave)
        except HistoryError:
            # The run was cancelled, or its history cannot be written, which the history itself tells everybody.
            self.stop()
        except Exception as error:
            self._history.give_up(error)
            self.stop()
