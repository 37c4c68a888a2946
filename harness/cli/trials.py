"""
One trial: a seed's schedule in a seed's world, judged in this process; the unit of a search.

Rules:   the same variant and seed give the same trial, event by event, whoever asks and wherever its history goes.
         The rules of checkers/ judge its history as they would on Spark; the oracles judged every step before.
         A run in which no fault bit, or no record of the schedule was acknowledged, proves nothing: unknown.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from checkers import CHECKERS
from checkers.checker import check, partitions
from harness.cell import CellSpec, describe
from harness.chance.draw import draw_schedule
from harness.chance.memory import MemoryHistory
from harness.chance.play import ChancePlay
from harness.chance.profile import DEFAULT, Profile
from harness.cli.counts import Counts
from harness.cluster import PARTITION, TOPIC
from harness.ground import Plan
from harness.history import Clock, History
from harness.model import Anomaly, Op, Verdict
from harness.schedule import Scenario, draw
from harness.target import Target
from harness.variant import Variant
from nemesis import NEMESES
from targets.broker.core.messages import TopicPartition
from targets.broker.core.rules import from_text
from targets.broker.target import settings_of
from targets.simulator.client import SimClient
from targets.simulator.ground import cluster_of
from targets.simulator.oracles import Oracles, Violation
from targets.simulator.trace import Trace
from targets.simulator.weather import Weather, random_world

HOST: Final = "sim"


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """
    What came of a seed.

    Shapes:  violations are the oracles', in the order of steps; anomalies the checkers'. asked counts by kind the
             faults that were tried, bit those that came about (for links: rules that took a frame). elections
             counts leader epochs after the first, acked the schedule's records with acks=all that were
             acknowledged. vacuous is why the run proves nothing, "" where it does. digest is the trace's, ""
             when nothing was traced.
    Units:   seconds are processor time; virtual_s is the world's own.
    """

    seed: int
    verdict: Verdict
    violations: tuple[Violation, ...]
    anomalies: tuple[Anomaly, ...]
    asked: Mapping[str, int]
    bit: Mapping[str, int]
    elections: int
    acked: int
    steps: int
    virtual_s: float
    seconds: float
    vacuous: str = ""
    digest: str = ""

    @property
    def found(self) -> bool:
        """Whether it shows a violation, a hang, or something that kept the checkers from judging it."""
        severe = any(anomaly.verdict >= Verdict.UNKNOWN for anomaly in self.anomalies)
        return severe or bool(self.violations)

    @property
    def sentences(self) -> list[str]:
        """What was found, the most severe first."""
        told = sorted(self.anomalies, key=lambda anomaly: -anomaly.verdict)
        return [violation.sentence for violation in self.violations] + [
            f"{anomaly.kind.value}: {anomaly.sentence}" for anomaly in told if anomaly.verdict > Verdict.PERMITTED
        ]


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialSpec:
    """
    What a trial is of, but for its seed.

    Shapes:  schedule is played in place of the seed's own where there is one; profile is how that one is drawn.
    """

    target: Target
    variant: Variant
    rules: Mapping[str, str]
    schedule: Scenario | None = None
    profile: Profile = DEFAULT
    make_history: Callable[[Clock], History] | None = None
    trace: Trace | None = None


def run_trial(spec: TrialSpec, seed: int) -> Trial:
    """Play the seed's schedule, or the given one, in the seed's world, and judge it."""
    began = time.process_time()
    schedule = schedule_of(spec, seed)
    drawn = draw(schedule, seed)
    plan = Plan(
        name=schedule.name,
        run_dir=Path(),
        protocol=spec.variant.protocol,
        rules=spec.rules,
        ids=drawn.ids,
        replicas=schedule.replicas,
        seed=seed,
        settings=schedule.settings,
    )
    world = random_world(
        seed,
        protocol=plan.protocol,
        rules=from_text(plan.rules),
        ids=plan.ids,
        settings=settings_of(plan.settings),
        trace=spec.trace,
    )
    memory = MemoryHistory(Path(schedule.name), lambda: world.clock.now_ns)
    history = spec.make_history(lambda: world.clock.now_ns) if spec.make_history else memory
    world.listen(history.record)
    cluster = cluster_of(world, plan, history, spec.target)
    counts, weather, oracles = Counts(), Weather(world), Oracles(world, TopicPartition(TOPIC, PARTITION))
    history.listeners += [counts.hear, weather.hear, oracles.hear]
    if history is not memory:
        history.listeners.append(memory.ops.append)
    cell = CellSpec(scenario=schedule, draw=drawn, variant=spec.variant, rules=spec.rules)
    client = SimClient(world)
    describe(cell, cluster, client, host=HOST, target=spec.target.name)
    ChancePlay(scenario=schedule, draw=drawn, cluster=cluster, client=client, faults=NEMESES).run()
    cluster.close()
    counts.asked["zookeeper"], counts.bit["zookeeper"] = weather.blows, weather.bit
    anomalies = judge_ops(memory.ops)
    vacuous = counts.vacuous
    violations = tuple(sorted(oracles.violations.values(), key=lambda violation: violation.step))
    return Trial(
        seed=seed,
        verdict=merge(violations, anomalies, vacuous),
        vacuous=vacuous,
        violations=violations,
        anomalies=tuple(anomalies),
        asked=dict(counts.asked),
        bit=dict(counts.bit),
        elections=counts.elections,
        acked=counts.acked,
        steps=world.steps,
        virtual_s=world.clock.now_ns / 1e9,
        seconds=time.process_time() - began,
        digest=spec.trace.digest if spec.trace else "",
    )


def schedule_of(spec: TrialSpec, seed: int) -> Scenario:
    """Give the schedule that a seed plays."""
    return spec.schedule or draw_schedule(seed, NEMESES, spec.profile)


def judge_ops(ops: Sequence[Op]) -> list[Anomaly]:
    """Apply every checker to a run's history, in this process: the very rules that Spark applies to many."""
    return [found for part in partitions(ops).values() for found in check(part, CHECKERS, frozenset())]


def merge(violations: Sequence[Violation], anomalies: Sequence[Anomaly], vacuous: str) -> Verdict:
    """Give what a run is by all that was seen of it."""
    found = [Verdict.INVALID] if violations else []
    found += [Verdict.UNKNOWN] if vacuous else []
    return Verdict.merge([*found, *(anomaly.verdict for anomaly in anomalies)])
