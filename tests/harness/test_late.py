"""A call that lasts too long is ended, or left behind; its caller goes on."""

from __future__ import annotations

import itertools
import subprocess
import sys
import threading
from collections.abc import Iterator
from queue import SimpleQueue
from typing import Final

import pytest

from harness import limits
from harness.late import LateError, Steps, apart

WITHIN_S = 0.05


@pytest.fixture
def over() -> Iterator[threading.Event]:
    """What lets calls that wait for ever end, after the test."""
    event = threading.Event()
    yield event
    event.set()


def ended(threads: list[threading.Thread]) -> bool:
    threads[0].join(limits.CONDITION_WAIT_S_MAX)
    return not threads[0].is_alive()


def test_work_returns_what_it_returns_and_raises_what_it_raises() -> None:
    def fails() -> None:
        raise KeyError("why")

    assert 7 == apart(lambda: 7, WITHIN_S)
    with pytest.raises(KeyError, match="why"):
        apart(fails, WITHIN_S)


def test_loop_is_ended() -> None:
    threads: list[threading.Thread] = []

    def spins() -> None:
        threads.append(threading.current_thread())
        for _ in itertools.count():
            pass

    with pytest.raises(LateError):
        apart(spins, WITHIN_S)
    assert ended(threads)


def test_call_that_waits_is_left_behind_in_a_thread_that_holds_no_process(over: threading.Event) -> None:
    threads: list[threading.Thread] = []

    def waits() -> None:
        threads.append(threading.current_thread())
        over.wait()

    with pytest.raises(LateError):
        apart(waits, WITHIN_S)
    assert threads[0].is_alive()
    assert threads[0].daemon
    over.set()
    assert ended(threads)


def test_call_that_waits_is_ended_where_it_goes_on(over: threading.Event) -> None:
    outcome = SimpleQueue[BaseException | None]()

    def waits() -> None:
        try:
            over.wait()
            outcome.put(None)
        except BaseException as error:
            outcome.put(error)
            raise

    with pytest.raises(LateError):
        apart(waits, WITHIN_S)
    over.set()
    assert isinstance(outcome.get(timeout=limits.CONDITION_WAIT_S_MAX), LateError)


# A profiler, in a program of its own: what does not end there would not end here.
PROFILED: Final = """
import sys, threading
from harness.late import LateError, apart
try:
    apart(threading.Event().wait, 0.05)
except LateError:
    sys.setprofile(lambda *_: None)
    print((lambda: "called")())
"""


def test_calls_under_a_profiler_begin_while_a_call_is_left_behind() -> None:
    """On Python 3.11 they did not, for as long as the thread had not taken what was raised in it."""
    said = subprocess.run([sys.executable, "-c", PROFILED], capture_output=True, text=True, check=True, timeout=60)
    assert "called\n" == said.stdout


def test_loop_that_catches_whatever_is_raised_is_left_behind(over: threading.Event) -> None:
    threads: list[threading.Thread] = []

    def stubborn() -> str:
        threads.append(threading.current_thread())
        while not over.is_set():
            try:
                while not over.is_set():
                    pass
            except BaseException:  # what nobody should catch
                continue
        return "nonsense"

    with pytest.raises(LateError):
        apart(stubborn, WITHIN_S)
    over.set()
    assert ended(threads)


def test_work_may_last_as_long_as_no_call_of_it_does() -> None:
    """What is not under way is never late, nor is a call that is another one at each look."""
    steps, looked = Steps(), threading.Event()

    class Counted(Steps):
        @property
        def under_way(self) -> int:
            self.began += 1
            if self.began > 20:
                looked.set()
            return self.began

    assert apart(lambda: looked.wait(limits.CONDITION_WAIT_S_MAX), WITHIN_S, Counted())
    rest = threading.Timer(4 * WITHIN_S, looked.set)
    looked.clear()
    rest.start()
    assert apart(lambda: looked.wait(limits.CONDITION_WAIT_S_MAX), WITHIN_S, steps)
    assert 0 == steps.under_way


def test_call_that_is_late_within_work_ends_all_of_it(over: threading.Event) -> None:
    steps = Steps()

    def work() -> None:
        for number in itertools.count(1):
            steps.began += 1
            if number == 3:
                over.wait()
            steps.ended = steps.began

    with pytest.raises(LateError):
        apart(work, WITHIN_S, steps)
    assert 3 == steps.under_way
