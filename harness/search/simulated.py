"""Play one random run in the simulator, and judge it in this process from a history in memory."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path

from checkers.judge import judge
from checkers.live.watch import LiveCheck
from harness.cluster.cluster import RunCancelled
from harness.history.memory import MemoryHistory
from harness.model import FencepostError, Op
from harness.run.failure import reason_of
from harness.run.player import Player
from harness.run.result import RunResult
from harness.run.spec import RunSpec
from harness.search.random_runs import RandomRuns
from harness.shortage import shortage_of
from harness.target.target import Target
from nemesis import faults_of
from targets import VIRTUAL_HOST
from targets.simulator.broker.environment import SimEnvironment
from targets.simulator.engine.trace import Trace


class SearchEndedError(FencepostError):
    """A search cannot go on: its processes have met a limit of the machine, which the message names."""


def sim_player(target: Target, trace: Trace | None = None) -> Player:
    """Return a player for the simulator; trace receives every step of its runs."""
    return Player(
        environment=SimEnvironment(VIRTUAL_HOST, target, trace=trace), faults=faults_of(target), watch=LiveCheck
    )


def simulate(player: Player, spec: RunSpec) -> RunResult:
    """
    Play a run and judge it; the same spec always returns the same result, event by event.

    A run that fails, as by a bug of ours, is unknown, and the search goes on.
    """
    return play_in_memory(player, spec)[0]


def play_in_memory(player: Player, spec: RunSpec) -> tuple[RunResult, list[Op]]:
    """Play a run and judge it, as `simulate` does; return its history too."""
    history, failure = MemoryHistory(Path(spec.name)), ""
    try:
        player.play_into(history, spec, Path())
    except (RunCancelled, MemoryError):  # without memory the next runs would fail too, and prove nothing
        raise
    except Exception as error:
        failure = reason_of(error)
    return judge(spec, history.ops, failure=failure), history.ops


def simulate_seed(player: Player, runs: RandomRuns, seed: int) -> RunResult:
    """
    Draw the schedule of a seed, play and judge it; the result has the processor time of all three.

    Raises:
        SearchEndedError: memory is used up.
    """
    began = time.process_time()
    try:
        result = simulate(player, runs.spec(seed))
    except MemoryError as error:
        raise SearchEndedError(f"ended at seed {seed}: {shortage_of(error)}") from error
    return replace(result, seconds=time.process_time() - began)
