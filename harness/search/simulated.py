"""Play one random run in the simulator, and judge it in this process from a history in memory."""

from __future__ import annotations

import time
from pathlib import Path

from checkers.judge import judge
from harness.cluster.target import Target
from harness.history.memory import MemoryHistory
from harness.run.player import Player
from harness.run.result import RunResult
from harness.run.spec import RunSpec
from harness.search.random_runs import SIM
from nemesis import NEMESES
from targets.simulator.environment import SimEnvironment
from targets.simulator.trace import Trace


def sim_player(target: Target, trace: Trace | None = None) -> Player:
    """Return a player for the simulator; trace receives every step of its runs."""
    return Player(environment=SimEnvironment(SIM, target, trace=trace), faults=NEMESES)


def simulate(player: Player, spec: RunSpec) -> RunResult:
    """Play a run and judge it; the same spec always returns the same result, event by event."""
    began = time.process_time()
    history = MemoryHistory(Path(spec.name))
    player.play_into(history, spec, Path())
    return judge(spec, history.ops, seconds=time.process_time() - began)
