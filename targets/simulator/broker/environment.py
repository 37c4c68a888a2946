"""
The environment `sim`: every cluster is a world of its own, in this process and in virtual time.

It runs only targets that are this repository's broker, since it runs that broker's core. A random run also has a
random world: the seed decides latencies and ZooKeeper faults, and oracles watch it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from harness import events
from harness.cluster.cluster import Cluster
from harness.history.file import History
from harness.model import OpType, UsageError
from harness.random_schedule.upgrades import OLDEST
from harness.run.environment import Environment
from harness.run.spec import RunSpec
from harness.target.clients import Client
from harness.target.settings import MessageFormat
from harness.target.target import Target
from targets.broker.core.messages import TopicPartition
from targets.broker.core.rules import from_text
from targets.broker_target import layout
from targets.broker_target.target import BrokerTarget, settings_of
from targets.simulator.broker.clients.client import SimClient
from targets.simulator.broker.disturbances.administrator import Administrator
from targets.simulator.broker.disturbances.alterer import Alterer
from targets.simulator.broker.disturbances.deleter import Deleter
from targets.simulator.broker.disturbances.late_writes import LateWrites
from targets.simulator.broker.disturbances.mover import Mover
from targets.simulator.broker.disturbances.next_topics import NextTopics
from targets.simulator.broker.disturbances.remover import Remover
from targets.simulator.broker.disturbances.session_ends import SessionEnds
from targets.simulator.broker.disturbances.stranger import Stranger
from targets.simulator.broker.oracles import Oracles
from targets.simulator.broker.oracles.generations import GenerationOracle
from targets.simulator.broker.random_world import (
    random_compaction,
    random_fetches,
    random_formats,
    random_more,
    random_retention,
    random_together,
    random_world,
)
from targets.simulator.broker.storage.disk import SEGMENT_BYTES
from targets.simulator.broker.view import SimZooKeeperView
from targets.simulator.broker.world import World
from targets.simulator.engine.environment import SimulatedRuns, refuse_real
from targets.simulator.engine.machines import ServedMachines, SimTime
from targets.simulator.engine.node_clock import random_clocks
from targets.simulator.engine.trace import Trace
from targets.simulator.zookeeper.faults import ZooKeeperFaults
from targets.simulator.zookeeper.servers import KIND, SEVERAL, SimZooKeeperServers

SIMULATOR = "simulator"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Simulated:
    """One run's world, and its oracles and ZooKeeper faults in a random run."""

    world: World
    zookeeper_faults: ZooKeeperFaults | None = None
    oracles: Oracles | None = None
    generations: GenerationOracle | None = None


class SimEnvironment(SimulatedRuns[_Simulated]):
    """
    Worlds of our broker; see harness.run.environment.Environment for every call.

    Args:
        trace: receives every step of every world, for comparing two runs of one seed.
    """

    def __init__(self, name: str, target: Target, *, trace: Trace | None = None) -> None:
        super().__init__(name, target)
        self._trace = trace

    def open_cluster(self, spec: RunSpec, folder: Path, history: History) -> Cluster:
        """Create a world; no node runs yet."""
        del folder
        world = self._world(spec)
        history.keep_time_by(lambda: world.clock.now_ns)
        cluster = cluster_of(world, spec, history, self._target)
        found = _Simulated(world=world)
        if spec.random:
            faults = ZooKeeperFaults(world, world.zookeeper)
            oracles = Oracles(world, (TopicPartition(*partition.place) for partition in cluster.partitions))
            history.listeners += [faults.listen, oracles.listen]
            if spec.scenario.further:
                places = [(partition.place, partition.replicas) for partition in cluster.partitions]
                last_line = spec.scenario.steps[-1].line
                taken = {each.place.topic for each in (*cluster.partitions, *cluster.churned.partitions)}
                administrator = Administrator(world, spec.seed, places, last_line, taken=taken)
                history.listeners.append(administrator.listen)
                history.listeners.append(NextTopics(world, spec.seed, administrator.topics, last_line).listen)
                history.listeners.append(Deleter(world, spec.seed, places, last_line).listen)
                history.listeners.append(Mover(world, spec.seed, places, last_line).listen)
                history.listeners.append(SessionEnds(world, spec.seed, last_line).listen)
                history.listeners.append(Stranger(world, spec.seed, last_line).listen)
            churned = [TopicPartition(*partition.place) for partition in cluster.churned.partitions]
            theirs = [tp for tp in churned if tp.topic in spec.scenario.clients.churned]
            if spec.scenario.further:
                history.listeners.append(Remover(world, spec.seed, theirs, last_line).listen)
                if not spec.scenario.upgrades:
                    history.listeners.append(LateWrites(world, spec.seed, theirs, last_line).listen)
                    mine = list(dict.fromkeys(tp.topic for tp in theirs))
                    topics = list(dict.fromkeys(place.topic for place in spec.scenario.places))
                    limited = [*mine, *(topics if random_retention(spec.seed) else ())]
                    alterer = Alterer(world, spec.seed, [*topics, *mine], limited, last_line)
                    history.listeners.append(alterer.listen)
            once = spec.scenario.clients.sends_once
            generations = GenerationOracle(world, churned if once else theirs)
            found = _Simulated(world=world, zookeeper_faults=faults, oracles=oracles, generations=generations)
        self.runs[str(history.path)] = found
        return cluster

    def make_client(self, cluster: Cluster) -> Client:
        """Return a client in the cluster's own world."""
        return SimClient(self.runs[str(cluster.history.path)].world, cluster.history.listeners)

    def record_evidence(self, cluster: Cluster) -> None:
        """Record the oracles' violations, the ZooKeeper faults, and the world's duration."""
        run = self.runs.pop(str(cluster.history.path))
        if run.oracles is not None:
            run.oracles.end()
        violations = run.oracles.violations.values() if run.oracles else ()
        for violation in sorted(violations, key=lambda each: each.step):
            cluster.record(SIMULATOR, OpType.INFO, violation.event())
        for seen in run.generations.violations.values() if run.generations else ():
            cluster.record(SIMULATOR, OpType.INFO, seen)
        faults, dropped = run.zookeeper_faults, run.world.zookeeper.dropped
        ran = events.World(
            steps=run.world.steps,
            virtual_ns=run.world.clock.now_ns,
            metadata_faults_asked=dropped + (faults.asked if faults else 0),
            metadata_faults_bit=dropped + (faults.bit if faults else 0),
            coverage=run.world.coverage.named(),
        )
        cluster.record(SIMULATOR, OpType.INFO, ran)

    def _world(self, spec: RunSpec) -> World:
        settings: dict[str, Any] = {**settings_of(spec.scenario.settings)}
        make: Callable[..., World] = random_world if spec.random else World
        if spec.random and spec.scenario.further:
            in_use = spec.scenario.upgrades
            settings |= {
                "together": random_together(spec.seed, settings["replica_lag_ms_max"], in_use=in_use),
                **random_fetches(spec.seed, settings["replica_lag_ms_max"], in_use=in_use),
                # An upgrade from the oldest version is left alone.
                **({} if OLDEST in spec.scenario.installed else random_retention(spec.seed, in_use=in_use)),
            }
            if spec.scenario.settings.keys:
                settings |= random_compaction(spec.seed)
            clocks = random_clocks(spec.seed, spec.draw.ids)
            make = partial(random_world, more=random_more(spec.seed), clocks=clocks)
        elif spec.random and spec.scenario.settings.message_format is MessageFormat.WITHOUT_EPOCHS:
            make = partial(random_world, of_nodes=random_formats(spec.seed, spec.draw.ids))
        return make(
            seed=spec.seed,
            protocol=spec.variant.protocol,
            rules=from_text(spec.rules),
            ids=spec.draw.ids,
            settings=settings,
            segment_bytes=spec.scenario.settings.segment_bytes or SEGMENT_BYTES,
            trace=self._trace,
        )


def cluster_of(world: World, spec: RunSpec, history: History, target: Target) -> Cluster:
    """Return a world as the cluster of a run; the world records in this history, and the cluster reads from it."""
    world.record_into(history)
    view = SimZooKeeperView(world, layout)
    servers = SimZooKeeperServers(world, world.zookeeper, spec.scenario.services.get(KIND, SEVERAL))
    cluster = Cluster(
        host=ServedMachines(world, spec.scenario.stores, servers),
        target=target,
        protocol=spec.variant.protocol,
        rules=spec.rules,
        traits=replace(spec.traits, exact_order=True, tells_flushes=False),
        ids=spec.draw.ids,
        replicas=spec.scenario.replicas,
        topic=spec.scenario.topic,
        partition=spec.scenario.partition,
        further=spec.scenario.further,
        churners=spec.scenario.clients.churners,
        removed=spec.scenario.removed,
        history=history,
        fabric=world.links,
        metadata=view,
        operator=view,
        services=servers,
        time=SimTime(world),
    )
    history.listeners.append(cluster.listen)
    return cluster


def make_environment(
    name: str, *, target: Target, power_tier: str | None, ports: range | None, machines: Path | None = None
) -> Environment:
    """
    Return the simulated environment.

    Raises:
        UsageError: it cannot run this target, or a real disk, real ports or real machines were requested.
    """
    if not isinstance(target, BrokerTarget):
        raise UsageError(f"host {name}: target {target.name}; expected broker, whose core the simulator runs")
    refuse_real(name, power_tier=power_tier, ports=ports, machines=machines)
    return SimEnvironment(name, target)
