"""
Random runs on real processes, several in parallel; each is judged in this process when it ends.

Systems that are compared share their services and one kind of client, so that they differ in nothing else.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TypeAlias

from checkers.live.watch import LiveCheck
from harness import limits
from harness.environment.real import RealEnvironment
from harness.hosts import HOSTS
from harness.launch import Address
from harness.registry import pick
from harness.run.player import Player
from harness.run.result import RunResult
from harness.run.spec import RunSpec
from harness.run.store import Run, SuiteDir
from harness.search.random_runs import RandomRuns
from harness.suite.environments import closing, open_environment, require_abilities
from harness.suite.judged import judge_run
from harness.suite.workers import play_side_by_side
from nemesis import NEMESES

# A run to play: the name of its player, and its spec.
Job: TypeAlias = tuple[str, RunSpec]


@dataclass(frozen=True, slots=True, kw_only=True)
class RealRun:
    """
    A run on real processes, and its result.

    A run that could not be played or taken down has a `failure` (harness.run.store.Run), and is unknown.
    """

    player: str
    spec: RunSpec
    run: Run
    result: RunResult


@contextmanager
def open_players(
    runs: Mapping[str, RandomRuns], *, ports: range | None, folder: Path, note: Callable[[str], None]
) -> Iterator[dict[str, Player]]:
    """
    Yield a player for each of the runs, by name, in environments that share their services; close all at the end.

    All use the client of the first: a client that retries would get more acknowledgements than another.

    Args:
        runs: the runs by name.
        ports: the ports that local nodes may use, None for the default.
        folder: that of the services.
        note: called with what could not be taken down at the end.
    """
    first = next(iter(runs.values()))
    make_host = partial(pick("host", HOSTS, first.host), ports=ports, machines=first.machines)
    client = first.load_target().client(first.rules)
    players: dict[str, Player] = {}
    with ExitStack() as stack:
        zookeeper: Address | None = None
        for name, one in runs.items():
            environment = RealEnvironment(
                one.host,
                make_host=make_host,
                target=one.load_target(),
                power_tier=one.power_tier,
                client=client,
                zookeeper=zookeeper,
            )
            if not players:
                stack.enter_context(closing(environment.close, note))
                open_environment(environment, folder)
                require_abilities(environment, NEMESES, first.nemeses)
                zookeeper = environment.zookeeper
            players[name] = Player(environment=environment, faults=NEMESES, watch=LiveCheck)
        yield players


def play_real(player: Player, spec: RunSpec, folder: SuiteDir) -> tuple[Run, RunResult]:
    """Play a run in its own folder, judge it, and return both; a run that fails is unknown."""
    run = player.attempt(spec, folder)
    return run, judge_run(spec, run)[0]


def play_many(
    jobs: Iterator[Job],
    players: Mapping[str, Player],
    folder: SuiteDir,
    side_by_side: int,
    receive: Callable[[RealRun], None],
) -> str:
    """
    Play runs in parallel, and pass each to `receive`, in this thread, when it ends.

    Returns:
        Why jobs were left out, because too many runs in a row failed; "" if none were.

    Raises:
        BaseException: the first exception of `receive`, or KeyboardInterrupt, after every cluster is down.
    """
    ended: queue.SimpleQueue[RealRun] = queue.SimpleQueue()
    lock = threading.Lock()
    failures: list[str] = []  # of the last runs, in a row

    def hopeless() -> bool:
        return len(failures) >= limits.FAILED_RUNS_IN_A_ROW_MAX

    def play_next() -> bool:
        with lock:
            job = None if hopeless() else next(jobs, None)
        if job is None:
            return False
        name, spec = job
        run, result = play_real(players[name], spec, folder)
        with lock:
            if run.failure:
                failures.append(run.failure)
            else:
                failures.clear()
        ended.put(RealRun(player=name, spec=spec, run=run, result=result))
        return True

    def look(seconds: float) -> bool:
        try:
            receive(ended.get(timeout=seconds))
        except queue.Empty:
            return False
        return True

    play_side_by_side(play_next, list(players.values()), jobs=side_by_side, name="run", look=look)
    return f"ended early: {len(failures)} runs in a row failed, the last with {failures[-1]}" if hopeless() else ""
