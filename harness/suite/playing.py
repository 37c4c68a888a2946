"""Play the runs of a suite, some of them in parallel."""

from __future__ import annotations

import queue
import threading
from collections.abc import Sequence
from functools import partial

from harness.run.player import Player
from harness.run.spec import RunSpec
from harness.run.store import Run, SuiteDir
from harness.suite.progress import RunProgress
from harness.suite.workers import play_side_by_side


def play_all(
    player: Player, specs: Sequence[RunSpec], suite: SuiteDir, jobs: int, progress: RunProgress
) -> list[tuple[RunSpec, Run]]:
    """
    Play the specs, `jobs` at a time, and return their runs in the order of `specs`.

    A run that cannot be played or taken down has a `failure`, and the others go on.

    Raises:
        KeyboardInterrupt: after every cluster is down.
    """
    todo: queue.SimpleQueue[RunSpec] = queue.SimpleQueue()
    for spec in specs:
        todo.put(spec)
    played: dict[str, Run] = {}

    def play_next() -> bool:
        try:
            spec = todo.get_nowait()
        except queue.Empty:
            return False
        progress.begin(spec.name)
        run = player.attempt(spec, suite, partial(progress.step, spec.name))
        played[spec.name] = run
        progress.end(spec.name, run.seconds, run.failure)
        return True

    never = threading.Event()

    def look(seconds: float) -> bool:
        return never.wait(seconds)

    play_side_by_side(play_next, [player], jobs=jobs, name="run", look=look)
    return [(spec, played[spec.name]) for spec in specs]
