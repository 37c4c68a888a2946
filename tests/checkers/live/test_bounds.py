"""The live check's memory has a limit, and an op costs as much at the end of a long run as at its beginning."""

from __future__ import annotations

import gc
import tracemalloc
from itertools import islice
from typing import Final

import pytest

from benchmarks.long_run import long_run
from checkers.live.electable import PIECES_MAX
from checkers.live.known import BLOCKS_MAX, WINDOW_OFFSETS
from checkers.live.watch import CALLS_MAX, LiveCheck
from harness.events import Produce
from harness.model import Op, OpType
from tests.kept import exhaustive
from tests.little_memory import printed_with_little_memory

# A smaller window than that of real runs, so that a run of some thousand records is many times longer.
_WINDOW: Final = 512
# The logs of three replicas, and what of them is committed.
_LOGS: Final = 4
# An op of one record looks at a few entries; a read at each that it shows, and twice at those it did not know.
_TOUCHED_MAX: Final = 8


def test_entries_stay_below_their_limit_in_a_run_that_is_many_times_longer() -> None:
    watch, most = LiveCheck(window=_WINDOW), 0
    for op in long_run(20 * _WINDOW):
        assert watch.step(op) is None
        most = max(most, watch.entries)
    assert _WINDOW < most <= _WINDOW + BLOCKS_MAX + _LOGS * PIECES_MAX


def test_op_touches_no_more_entries_late_in_a_run_than_early() -> None:
    watch, ops = LiveCheck(window=_WINDOW), long_run(16 * _WINDOW)
    for _ in range(4):
        before, records, most = watch.touched, 0, 0.0
        for op in islice(ops, 24 * _WINDOW):
            last, number = watch.touched, max(1, len(op.value.get("records") or ()))
            watch.step(op)
            most, records = max(most, (watch.touched - last) / number), records + number
        assert 0 < (watch.touched - before) / records < _TOUCHED_MAX
        assert most <= BLOCKS_MAX + _TOUCHED_MAX, "at most all blocks, when each two become one"


@pytest.mark.slow
@exhaustive
def test_memory_of_a_long_run_is_that_of_a_short_one() -> None:
    """The ops themselves are dropped; what is left is the watch."""

    def left(records: int) -> int:
        gc.collect()
        tracemalloc.start()
        watch = LiveCheck(window=_WINDOW)
        for op in long_run(records):
            watch.step(op)
        del op
        gc.collect()
        kept, _ = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert watch.entries
        return kept

    assert left(8 * _WINDOW) < 1.3 * left(2 * _WINDOW)


@pytest.mark.slow
def test_run_that_is_longer_than_the_real_window_is_watched_in_little_memory() -> None:
    code = f"""
from checkers.live.watch import LiveCheck
from benchmarks.long_run import long_run
from tests.little_memory import peak_bytes
import os
watch, early = LiveCheck(), 0
for op in long_run({3 * WINDOW_OFFSETS}):
    watch.step(op)
    if op.f == "produce" and op.value.get("offset") == {WINDOW_OFFSETS}:
        early = peak_bytes(os.getpid())
print(early > 0, peak_bytes(os.getpid()) - early < 5_000_000)
"""
    assert "True True\n" == printed_with_little_memory(code)


def test_calls_that_never_end_are_forgotten_beyond_a_limit() -> None:
    watch = LiveCheck()
    sent = Produce(topic="t", partition=0, name="m", acks=-1, codec="none", value="m.0")
    ops = (
        Op.of(sent, index=index, time_ns=index, process=f"client-{index}", type=OpType.INVOKE)
        for index in range(CALLS_MAX + 100)
    )
    assert {None} == {watch.step(op) for op in ops}
    assert CALLS_MAX == watch.entries
