"""
Play one cell of a suite: one scenario, one protocol, one cluster, one run folder; everything down afterwards.

A cell never raises for what the system under test or a fault did: that is in its history, for the checkers.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field

from harness.client import Client
from harness.cluster import PARTITION, TOPIC, Cluster
from harness.fault import Fault
from harness.ground import Ground, Plan
from harness.history import History
from harness.model import FencepostError, Op, OpType, Source
from harness.runner import Play
from harness.schedule import Draw, Scenario
from harness.store import RunDir, write_parquet
from harness.target import Target
from harness.variant import Variant, expectation_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    """
    What all cells of a suite share: the ground they stand on, the target, the faults, and what is open now.

    Shapes:  make_play is who plays a cell's scenario.
    """

    ground: Ground
    target: Target
    faults: Mapping[str, Fault]
    make_play: Callable[..., Play] = Play
    open_clusters: dict[str, Cluster] = field(default_factory=dict)
    cancelled: threading.Event = field(default_factory=threading.Event)

    def cancel(self) -> None:
        """Take down every cluster, those too that are only being made; FencepostError when something is left."""
        self.cancelled.set()
        with ExitStack() as stack:
            for cluster in list(self.open_clusters.values()):
                stack.callback(cluster.cancel)


@dataclass(frozen=True, slots=True, kw_only=True)
class CellSpec:
    """
    One cell to play: the scenario, what was drawn for it, the variant of a protocol, and its rules.

    Shapes:  rules are the variant's, and whatever else was changed for all cells of a suite.
    """

    scenario: Scenario
    draw: Draw
    variant: Variant
    rules: Mapping[str, str]

    @property
    def name(self) -> str:
        """The run's folder."""
        return f"{self.scenario.name}-{self.variant}"

    @property
    def expectation(self) -> str | None:
        """What is expected of it; None when its scenario says nothing of its variant."""
        found = expectation_of(self.variant, self.rules, self.scenario.expectations)
        return None if found is None else self.scenario.expectations[found]


@dataclass(frozen=True, slots=True, kw_only=True)
class Played:
    """A cell that was played: its folder, the tier its disks had, how long it took."""

    spec: CellSpec
    run: RunDir
    power_tier: str
    seconds: float


def play_cell(stage: Stage, spec: CellSpec, run: RunDir, on_step: Callable[[str], None]) -> Played:
    """
    Play it and write its Parquet.

    Shapes:  on_step is told each step as it begins, for the progress line.
    Raises:  UsageError when the machine or the scenario is wrong; RunCancelled; nothing else that is not a bug
             of ours. Nothing of the cell runs any more, whatever is raised.
    """
    began = time.monotonic()
    history = History(run.history)
    history.listeners.append(lambda op: _progress(op, on_step))
    plan = Plan(
        name=f"{run.path.parent.name}-{run.name}",
        run_dir=run.path,
        protocol=spec.variant.protocol,
        rules=spec.rules,
        ids=spec.draw.ids,
        replicas=spec.scenario.replicas,
        seed=spec.draw.seed,
        settings=spec.scenario.settings,
    )
    cluster = stage.ground.open_cluster(plan, history)
    stage.open_clusters[spec.name] = cluster
    try:
        if stage.cancelled.is_set():
            cluster.cancel()
        client = stage.ground.make_client(cluster)
        describe(spec, cluster, client, host=stage.ground.name, target=stage.target.name)
        scenario = spec.scenario.under(spec.variant.names(spec.rules))
        stage.make_play(
            scenario=scenario, draw=spec.draw, cluster=cluster, client=client, faults=stage.faults
        ).run()
        _keep_logs(stage, cluster, run)
    finally:
        stage.open_clusters.pop(spec.name, None)
        cluster.close()
    write_parquet(run)
    seconds = time.monotonic() - began
    return Played(spec=spec, run=run, power_tier=cluster.host.power_tier, seconds=seconds)


def _progress(op: Op, on_step: Callable[[str], None]) -> None:
    if (op.source, op.f, op.type) == (Source.RUNNER, "step", OpType.INVOKE):
        on_step(str(op.value["text"]))
    elif (op.source, op.f) == (Source.RUNNER, "healed"):
        on_step("final reads")


def describe(spec: CellSpec, cluster: Cluster, client: Client, *, host: str, target: str) -> None:
    """Write the history's first line: everything that was drawn and chosen."""
    records = {name: [f"{name}.{number}" for number in range(count)] for name, count in spec.draw.counts.items()}
    value = {
        "scenario": spec.scenario.name,
        "protocol": spec.variant.protocol,
        "changes": list(spec.variant.changes),
        "rules": dict(spec.rules),
        "host": host,
        "target": target,
        "seed": spec.draw.seed,
        "power_tier": cluster.host.power_tier,
        "nodes": dict(spec.draw.ids),
        "replicas": list(spec.scenario.replicas),
        "topic": TOPIC,
        "partition": PARTITION,
        "records": records,
        "min_isr": spec.scenario.settings.min_isr,
        "unclean": spec.scenario.settings.unclean_election,
        "message_format": spec.scenario.settings.message_format.value,
        "sends_once": client.sends_once,
    }
    cluster.record(Source.RUNNER, "runner", OpType.INFO, "setup", value)


def _keep_logs(stage: Stage, cluster: Cluster, run: RunDir) -> None:
    """Keep what the nodes printed and the replicas' files as they ended, for whoever has to look."""
    for name in cluster.ids:
        try:
            (run.logs / f"{name}.log").write_text(cluster.host.log_text(name), encoding="utf-8")
            if name in cluster.replicas:
                stage.ground.keep(cluster, name, run.logs / f"{name}-data")
        except (FencepostError, OSError) as error:  # shutil.Error is an OSError
            note = {"node": name, "text": f"its logs could not be kept: {error}"}
            cluster.record(Source.RUNNER, "runner", OpType.INFO, "note", note)
