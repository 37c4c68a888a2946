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
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from multiprocessing import get_context, parent_process
from typing import Final

from harness.run.player import Player
from harness.run.result import RunResult
from harness.search.random_runs import RandomRuns
from harness.search.simulated import sim_player, simulate_seed

# Seeds in one batch of a process: few, so that a search ends soon when it is stopped.
BATCH_SEEDS: Final = 10
# Submitted batches for each process, so that no process waits for the next batch.
AHEAD: Final = 3


def search(runs: RandomRuns, seeds: range, *, jobs: int, stop: Callable[[RunResult], bool]) -> Iterator[RunResult]:
    """Yield the results of the seeds in order, up to and including the first for which stop returns True."""
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
    try:
        for batch in batches:
            waiting.append(pool.submit(_play, batch))
            if len(waiting) >= AHEAD * jobs:
                yield from waiting.popleft().result()
        while waiting:
            yield from waiting.popleft().result()
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


_WORK: Final[list[tuple[RandomRuns, Player]]] = []


def _begin(runs: RandomRuns) -> None:
    """Initialise a process of the pool; its parent handles Ctrl-C, and ends it."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    _WORK[:] = [(runs, sim_player(runs.load_target()))]
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
