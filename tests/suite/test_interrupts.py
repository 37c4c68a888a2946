"""The first signal interrupts, later ones do not; a shield delays it, and work in another thread continues."""

from __future__ import annotations

import signal
import threading

import pytest

from harness import limits
from harness.suite.interrupts import SIGNALS, Interrupts, apart


@pytest.fixture
def interrupts() -> Interrupts:
    """Catch signals."""
    made = Interrupts()
    made.catch()
    return made


@pytest.mark.parametrize("number", SIGNALS)
def test_first_signal_interrupts_and_those_that_follow_do_not(
    interrupts: Interrupts, number: signal.Signals
) -> None:
    with pytest.raises(KeyboardInterrupt):
        signal.raise_signal(number)
    signal.raise_signal(number)
    interrupts.catch()
    with pytest.raises(KeyboardInterrupt):
        signal.raise_signal(number)


def test_signal_under_a_shield_comes_when_the_outermost_ends(interrupts: Interrupts) -> None:
    done: list[str] = []

    def shielded_twice() -> None:
        with interrupts.shielded():
            with interrupts.shielded():
                signal.raise_signal(signal.SIGTERM)
                done.append("inner")
            done.append("outer")

    with pytest.raises(KeyboardInterrupt):
        shielded_twice()
    assert ["inner", "outer"] == done


def test_shield_alone_raises_nothing(interrupts: Interrupts) -> None:
    with interrupts.shielded():
        pass


def test_signal_that_is_to_be_ignored_stays_ignored(interrupts: Interrupts) -> None:
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    interrupts.catch()
    signal.raise_signal(signal.SIGHUP)
    assert signal.SIG_IGN is signal.getsignal(signal.SIGHUP)


def test_no_signal_comes_once_all_is_down(interrupts: Interrupts) -> None:
    interrupts.ignore()
    for number in SIGNALS:
        signal.raise_signal(number)


def test_apart_returns_and_raises_what_the_function_does_in_its_own_thread() -> None:
    assert "worker" == apart(lambda: threading.current_thread().name, "worker")
    with pytest.raises(ZeroDivisionError):
        apart(lambda: 1 // 0, "worker")


@pytest.mark.usefixtures("interrupts")
def test_signal_leaves_work_that_is_done_apart_whole() -> None:
    go_on, done = threading.Event(), threading.Event()

    def work() -> None:
        signal.pthread_kill(main.ident or 0, signal.SIGINT)
        if go_on.wait(limits.CONDITION_WAIT_S_MAX):
            done.set()

    main = threading.current_thread()
    with pytest.raises(KeyboardInterrupt):
        apart(work, "worker")
    assert False is done.is_set()
    go_on.set()
    assert True is done.wait(limits.CONDITION_WAIT_S_MAX)
