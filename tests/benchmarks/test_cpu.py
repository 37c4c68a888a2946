"""CPU time and child processes, as read from /proc."""

from __future__ import annotations

import os
import subprocess
import sys
import time

import pytest

from benchmarks.cpu import child_with, cpu_seconds

# The kernel counts CPU time in hundredths of a second.
TICK_S = 0.01


def burn(seconds: float) -> None:
    """Use this much CPU time."""
    until = time.process_time() + seconds
    while time.process_time() < until:
        pass


def test_cpu_time_is_what_the_process_used() -> None:
    before, mine = cpu_seconds([os.getpid()]), time.process_time()
    burn(0.1)
    used = time.process_time() - mine
    assert pytest.approx(used, abs=3 * TICK_S) == cpu_seconds([os.getpid()]) - before
    assert cpu_seconds([]) == 0


def test_cpu_time_of_several_is_their_sum() -> None:
    one = cpu_seconds([os.getpid()])
    assert pytest.approx(2 * one, abs=3 * TICK_S) == cpu_seconds([os.getpid(), os.getpid()])


def test_process_that_is_gone_has_no_cpu_time() -> None:
    child = subprocess.Popen([sys.executable, "-c", ""])
    child.wait()
    with pytest.raises(FileNotFoundError):
        cpu_seconds([os.getpid(), child.pid])


def test_child_is_found_by_a_word_of_its_command_line_while_it_is_there() -> None:
    word = f"word-{os.getpid()}"
    # The process name has a blank and a bracket, which must not shift the fields of its line in /proc.
    # It works for ten of the kernel's ticks, so that its time is not rounded to nothing.
    program = (
        "import ctypes, time; ctypes.CDLL(None).prctl(15, b'a ) b')\n"
        "while time.process_time() < 0.1: pass\n"
        "print(1, flush=True); input()"
    )
    child = subprocess.Popen([sys.executable, "-c", program, word], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert child.stdout is not None
    child.stdout.readline()
    assert child.pid == child_with(word)
    assert cpu_seconds([child.pid]) > 0
    child.communicate(b"\n")
    assert child_with(word) is None
