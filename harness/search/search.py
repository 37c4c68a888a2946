"""
Search many seeds in the simulator, in parallel processes; results are in the order of seeds.

A result depends only on the seed and the variant, not on the number of jobs.
"""

from __future__ import annotations

import gc
import os
import signal
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from multiprocessing import get_context, parent_process
from multiprocessing.process import BaseProcess
from typing import Final

from harness.run.player import Player
from harness.run.result import RunResult
from harness.search.random_runs import RandomRuns
from harness.search.simulated import SearchEndedError, sim_player, simulate_seed
from harness.shortage import memory

# Seeds in one batch of a process: few, so that a search ends soon when it is stopped.
BATCH_SEEDS: Final = 10
# Submitted batches for each process, so that no process waits for the next batch.
AHEAD: Final = 3
# The exit code of a process that has no memory to begin.
OUT_OF_MEMORY: Final = 12


def search(runs: RandomRuns, seeds: range, *, jobs: int, stop: Callable[[RunResult], bool]) -> Iterator[RunResult]:
    """
    Yield the results of the seeds in order, up to and including the first for which stop returns True.

    Raises:
        SearchEndedError: a process has no memory left, or was killed; what was yielded before holds.
    """
    for result in _alone(runs, seeds) if jobs == 1 else _together(runs, seeds, jobs):
        yield result
        if stop(result):
            return


def _alone(runs: RandomRuns, seeds: Sequence[int]) -> Iterator[RunResult]:
    player = sim_player(runs.load_target())
    return (simulate_seed(player, runs, seed) for seed in seeds)


def _together(runs: RandomRuns, seeds: range, jobs: int) -> Iterator[RunResult]:
    """Play in several processes, which are spawned: a fork would copy the locks of our threads."""
    batches = (seeds[at : at + BATCH_SEEDS] for at in range(0, len(seeds), BATCH_SEEDS))
    pool = ProcessPoolExecutor(jobs, mp_context=get_context("spawn"), initializer=_begin, initargs=(runs,))
    waiting: deque[Future[list[RunResult]]] = deque()
    started: dict[int, BaseProcess] = {}
    try:
        for batch in batches:
            waiting.append(pool.submit(_play, batch))
            started |= pool._processes or {}  # a pool that is broken has forgotten them
            if len(waiting) >= AHEAD * jobs:
                yield from waiting.popleft().result()
        while waiting:
            yield from waiting.popleft().result()
    except BrokenProcessPool as error:
        raise SearchEndedError(_why_ended(started.values())) from error
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


def _why_ended(processes: Iterable[BaseProcess]) -> str:
    """Return how a pool's first process ended; the pool then ends the others by SIGTERM."""
    for process in processes:
        process.join()
    codes = [process.exitcode for process in processes if process.exitcode not in (0, None, -signal.SIGTERM)]
    code = codes[0] if codes else None
    if code == -signal.SIGKILL:
        how = f"was killed by SIGKILL, as the kernel does where memory is used up; {memory()}"
    elif code == OUT_OF_MEMORY:
        how = f"could not begin; {memory()}"
    elif code is not None and code < 0:
        how = f"was ended by {signal.Signals(-code).name}; expected no signal but ours; search the rest again"
    else:
        how = f"ended with exit code {code}; its last lines are above; search the rest again"
    return f"ended early: a process of the search {how}"


_WORK: Final[list[tuple[RandomRuns, Player]]] = []


def _begin(runs: RandomRuns) -> None:
    """Initialise a process of the pool; its parent handles Ctrl-C, and ends it."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    try:
        _WORK[:] = [(runs, sim_player(runs.load_target()))]
    except MemoryError:
        os._exit(OUT_OF_MEMORY)
    # Every world is a cycle of objects, so collections are frequent; they need not visit the modules each time.
    gc.collect()
    gc.freeze()


def _end_with_parent() -> None:
    """End this process when its parent is gone: one that was killed has told nobody to stop."""
    parent = parent_process()
    assert parent is not None, "a process of a pool has a parent"
    parent.join()
    os._exit(1)


def _play(seeds: Sequence[int]) -> list[RunResult]:
    runs, player = _WORK[0]
    return [simulate_seed(player, runs, seed) for seed in seeds]
