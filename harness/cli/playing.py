"""Play the cells of a suite, some of them side by side."""

from __future__ import annotations

import queue
import time
from collections.abc import Sequence
from functools import partial

from harness.cell import CellSpec, Played, Stage, play_cell
from harness.cli.progress import CellProgress
from harness.cli.workers import play_side_by_side
from harness.store import SuiteDir


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

    def play_next() -> bool:
        try:
            spec = todo.get_nowait()
        except queue.Empty:
            return False
        progress.begin(spec.name)
        run = suite.create_run(spec.name)
        one = play_cell(stage, spec, run, partial(progress.step, spec.name))
        played[spec.name] = one
        progress.end(spec.name, one.seconds)
        return True

    def look(seconds: float) -> bool:
        time.sleep(seconds)  # noqa: TID251
        return False

    play_side_by_side(play_next, [stage], jobs=jobs, name="cell", look=look)
    return [played[spec.name] for spec in specs]
