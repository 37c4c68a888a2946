"""
Random runs on real processes, several in parallel; each is judged in this process when it ends.

Systems that are compared share one ZooKeeper and one kind of client, so that they differ in nothing else.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TypeAlias

from checkers.judge import judge
from harness.environment.real import RealEnvironment
from harness.history.file import read_history
from harness.hosts import HOSTS
from harness.registry import pick
from harness.run.player import Player
from harness.run.result import RunResult
from harness.run.spec import RunSpec
from harness.run.store import Run, SuiteDir, write_anomalies
from harness.search.random_runs import RandomRuns
from harness.suite.interrupts import INTERRUPTS, apart
from harness.suite.workers import play_side_by_side
from nemesis import NEMESES

# A run to play: the name of its player, and its spec.
Job: TypeAlias = tuple[str, RunSpec]


@dataclass(frozen=True, slots=True, kw_only=True)
class RealRun:
    """A run that was played on real processes, and its result."""

    player: str
    spec: RunSpec
    run: Run
    result: RunResult


@dataclass(frozen=True, slots=True, kw_only=True)
class Interrupted:
    """A run without a result, because the machine was too busy to answer; a long search continues without it."""

    spec: RunSpec
    error: TimeoutError

    @property
    def sentence(self) -> str:
        """A line for the screen."""
        return f"{self.spec.name}: no result, {self.error!r}; the machine is too busy"


@contextmanager
def open_players(
    runs: Mapping[str, RandomRuns], *, ports: range | None, folder: Path
) -> Iterator[dict[str, Player]]:
    """
    Yield a player for each of the runs, by name, in environments that share one ZooKeeper; close all at the end.

    All use the client of the first: a client that retries would get more acknowledgements than another.

    Args:
        runs: the runs by name.
        ports: the ports that local nodes may use, None for the default.
        folder: ZooKeeper's folder.
    """
    first = next(iter(runs.values()))
    make_host = partial(pick("host", HOSTS, first.host), ports=ports)
    client = first.load_target().client(first.rules)
    environments: list[RealEnvironment] = []
    players: dict[str, Player] = {}
    try:
        for name, one in runs.items():
            environment = RealEnvironment(
                one.host,
                make_host=make_host,
                target=one.load_target(),
                power_tier=one.power_tier,
                client=client,
                zookeeper=environments[0].zookeeper if environments else None,
            )
            if not environments:
                environments.append(environment)
                apart(partial(environment.open, folder), "environment")
            players[name] = Player(environment=environment, faults=NEMESES)
        yield players
    finally:
        with INTERRUPTS.shielded():
            for environment in environments:
                environment.close()


def play_real(player: Player, spec: RunSpec, folder: SuiteDir) -> tuple[Run, RunResult]:
    """Play a run in its own folder, judge it, and return both."""
    run = player.play(spec, folder.create_run(spec.name))
    result = judge(spec, read_history(run.history), seconds=run.seconds)
    write_anomalies(run, result.anomalies)
    return run, result


def play_many(
    jobs: Iterator[Job],
    players: Mapping[str, Player],
    folder: SuiteDir,
    side_by_side: int,
    receive: Callable[[RealRun | Interrupted], None],
) -> None:
    """
    Play runs in parallel, and pass each to `receive`, in this thread, when it ends.

    Raises:
        BaseException: the first exception of a run or of `receive`, or KeyboardInterrupt, after every cluster is
            down.
    """
    ended: queue.SimpleQueue[RealRun | Interrupted] = queue.SimpleQueue()
    lock = threading.Lock()

    def play_next() -> bool:
        with lock:
            job = next(jobs, None)
        if job is None:
            return False
        name, spec = job
        try:
            run, result = play_real(players[name], spec, folder)
            ended.put(RealRun(player=name, spec=spec, run=run, result=result))
        except TimeoutError as error:
            ended.put(Interrupted(spec=spec, error=error))
        return True

    def look(seconds: float) -> bool:
        try:
            receive(ended.get(timeout=seconds))
        except queue.Empty:
            return False
        return True

    play_side_by_side(play_next, list(players.values()), jobs=side_by_side, name="run", look=look)
