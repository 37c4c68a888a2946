"""Play many cells side by side, in threads of which an interrupted main thread need not wait."""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Sequence
from functools import partial

from harness import limits
from harness.cell import CellSpec, Played, Stage, play_cell
from harness.cli.interrupts import INTERRUPTS
from harness.cli.progress import CellProgress
from harness.model import FencepostError
from harness.store import SuiteDir

JOIN_S: float = 0.1
# A cancelled cell ends with the operation that it is in; a client's takes longest.
END_S_MAX: float = limits.CLIENT_OPERATION_S_MAX + limits.PROCESS_END_S_MAX


def play_all(
    stage: Stage, specs: Sequence[CellSpec], suite: SuiteDir, jobs: int, progress: CellProgress
) -> list[Played]:
    """
    Play the cells, `jobs` at a time, and give them in the order of `specs`.

    Raises:  what the first failing cell raised, and KeyboardInterrupt, after every cluster was taken down.
    """
    todo: queue.SimpleQueue[CellSpec] = queue.SimpleQueue()
    for spec in specs:
        todo.put(spec)
    played: dict[str, Played] = {}
    failed: list[BaseException] = []

    def work() -> None:
        while not failed:
            try:
                spec = todo.get_nowait()
            except queue.Empty:
                return
            progress.begin(spec.name)
            try:
                run = suite.create_run(spec.name)
                one = play_cell(stage, spec, run, partial(progress.step, spec.name))
                played[spec.name] = one
                progress.end(spec.name, one.seconds)
            except BaseException as error:
                failed.append(error)

    threads = [threading.Thread(target=work, name=f"cell-{n}", daemon=True) for n in range(jobs)]
    try:
        for thread in threads:
            thread.start()
        while any(thread.is_alive() for thread in threads) and not failed:
            time.sleep(JOIN_S)
    except BaseException as error:
        failed.append(error)
    if failed:
        with INTERRUPTS.shielded():
            _end(stage, threads)
        raise failed[0]
    return [played[spec.name] for spec in specs]


def _end(stage: Stage, threads: Sequence[threading.Thread]) -> None:
    """Take every cluster down and wait for the threads that play them; FencepostError when something is left."""
    stage.cancel()
    deadline = time.monotonic() + END_S_MAX
    for thread in threads:
        if thread.ident is not None:
            thread.join(max(0.0, deadline - time.monotonic()))
    late = [thread.name for thread in threads if thread.is_alive()]
    if late:
        raise FencepostError(
            f"{', '.join(late)}: still at work {END_S_MAX:.0f} s after the end was asked for; expected an end; "
            "the next run takes down what they leave"
        )
