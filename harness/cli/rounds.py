"""
Rounds: seeds played on real processes, several side by side, each judged in this process as soon as it is over.

A side is one system under test on a ground of its own; all sides share one ZooKeeper, so that what is compared
differs in nothing else.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final

from harness.cell import CellSpec, Stage, play_cell
from harness.chance.pace import REAL
from harness.chance.play import ChancePlay, with_slack
from harness.cli.counts import Counts
from harness.cli.findings import keep_schedule
from harness.cli.grounds import RealGround
from harness.cli.hindsight import with_hindsight
from harness.cli.interrupts import INTERRUPTS, apart
from harness.cli.trials import Trial, TrialSpec, judge_ops, merge, schedule_of
from harness.cli.workers import play_side_by_side
from harness.history import read_history
from harness.hosts import HOSTS
from harness.model import Op, Source
from harness.registry import pick
from harness.schedule import draw
from harness.store import RunDir, SuiteDir, write_anomalies
from nemesis import NEMESES

# What is read off the lines that a broker prints, where it tells nothing; ours says itself that it is stuck.
_PRINTED: Final = frozenset({"printed", "stuck"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Side:
    """
    One system under test: what is played, and where.

    Shapes:  name tells it from the other sides, such as "ours" and "theirs".
    """

    name: str
    spec: TrialSpec
    stage: Stage


@dataclass(frozen=True, slots=True, kw_only=True)
class Round:
    """One seed to be played on one side."""

    side: Side
    seed: int

    @property
    def name(self) -> str:
        """Its run's folder."""
        return f"seed-{self.seed}-{self.side.spec.variant}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """A round that was played, with its folder and what came of it."""

    round: Round
    run: RunDir
    trial: Trial


@contextmanager
def open_sides(
    specs: Mapping[str, TrialSpec], *, host: str, ports: range | None, power_tier: str | None, folder: Path
) -> Iterator[list[Side]]:
    """
    Give a side for every spec, by name, on grounds that share one ZooKeeper; all down at the end.

    Shapes:  folder is ZooKeeper's. The first spec's client serves all sides: one that sends again by itself has
             more acknowledged than one that does not.
    """
    make_host = partial(pick("host", HOSTS, host), ports=ports)
    first = next(iter(specs.values()))
    client = first.target.client(first.rules)
    grounds: list[RealGround] = []
    sides: list[Side] = []
    try:
        for name, spec in specs.items():
            ground = RealGround(
                host,
                make_host=make_host,
                target=spec.target,
                power_tier=power_tier,
                client=client,
                zookeeper=grounds[0].zookeeper if grounds else None,
            )
            if not grounds:
                grounds.append(ground)
                apart(partial(ground.open, folder), "ground")
            stage = Stage(
                ground=ground, target=spec.target, faults=NEMESES, make_play=partial(ChancePlay, pace=REAL)
            )
            sides.append(Side(name=name, spec=spec, stage=stage))
        yield sides
    finally:
        with INTERRUPTS.shielded():
            for ground in grounds:
                ground.close()


def cell_spec(spec: TrialSpec, seed: int) -> CellSpec:
    """Give the cell that plays a seed on real processes: its schedule with time enough."""
    schedule = with_slack(schedule_of(spec, seed), REAL.slack)
    return CellSpec(scenario=schedule, draw=draw(schedule, seed), variant=spec.variant, rules=spec.rules)


def play_round(one: Round, folder: SuiteDir) -> Ended:
    """Play a round in a folder of its own, and judge it."""
    spec = one.side.spec
    run = folder.create_run(one.name)
    keep_schedule(run, spec, one.seed)
    played = play_cell(one.side.stage, cell_spec(spec, one.seed), run, lambda _: None)
    trial = judge_run(run, one.seed, played.seconds)
    write_anomalies(run, trial.anomalies)
    return Ended(round=one, run=run, trial=trial)


def seen_of_any(ops: Iterable[Op]) -> list[Op]:
    """Give what would be seen of any target: brokers of Apache Kafka tell nothing but what they print."""
    return [op for op in ops if op.source is not Source.BROKER or op.f in _PRINTED]


def judge_run(run: RunDir, seed: int, seconds: float, *, alike: bool = False) -> Trial:
    """
    Judge a run that was played on real processes by its history alone.

    Shapes:  alike: by what would be seen of any target, so that two can be compared.
    """
    told = read_history(run.history)
    ops = seen_of_any(told) if alike else told
    counts = Counts()
    for op in ops:
        counts.hear(op)
    anomalies = with_hindsight(ops, judge_ops(ops))
    return Trial(
        seed=seed,
        verdict=merge((), anomalies, counts.vacuous),
        violations=(),
        anomalies=tuple(anomalies),
        asked=dict(counts.asked),
        bit=dict(counts.bit),
        elections=counts.elections,
        acked=counts.acked,
        steps=0,
        virtual_s=0.0,
        seconds=seconds,
        vacuous=counts.vacuous,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Missed:
    """A round that came to nothing, since the machine was too busy to answer: what was seen of it."""

    round: Round
    error: TimeoutError

    @property
    def sentence(self) -> str:
        """What to tell of it."""
        return f"{self.round.name}: missed, {self.error!r}; the machine is too busy"


def play_rounds(
    rounds: Iterator[Round],
    stages: Sequence[Stage],
    folder: SuiteDir,
    jobs: int,
    take: Callable[[Ended | Missed], None],
) -> None:
    """
    Play rounds, `jobs` at a time, and hand each to `take`, in this thread, as it ends.

    A long run must not end for one moment in which the machine was too busy: such a round is missed, and told.

    Raises:  what the first failing round or `take` raised, and KeyboardInterrupt, after every cluster was taken
             down.
    """
    ended: queue.SimpleQueue[Ended | Missed] = queue.SimpleQueue()
    lock = threading.Lock()

    def play_next() -> bool:
        with lock:
            one = next(rounds, None)
        if one is None:
            return False
        try:
            ended.put(play_round(one, folder))
        except TimeoutError as error:
            ended.put(Missed(round=one, error=error))
        return True

    def look(seconds: float) -> bool:
        try:
            take(ended.get(timeout=seconds))
        except queue.Empty:
            return False
        return True

    play_side_by_side(play_next, stages, jobs=jobs, name="round", look=look)
