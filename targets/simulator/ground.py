"""
The ground `sim`: every cluster of a suite is a world of its own, in this process and in virtual time.

It carries the targets that are this repository's broker, since it runs the broker's core and nothing else.
"""

from __future__ import annotations

import json
from pathlib import Path

from harness.client import Client
from harness.cluster import PARTITION, TOPIC, Cluster
from harness.ground import Ground, Plan
from harness.history import History
from harness.logdir.scan import snapshot_ops
from harness.model import UsageError
from harness.target import Target
from targets.broker.core.rules import from_text
from targets.broker.target import BrokerTarget, settings_of
from targets.simulator.client import SimClient
from targets.simulator.eye import SimEye
from targets.simulator.machines import SimMachines, SimTime
from targets.simulator.world import World


class SimGround:
    """Worlds; see harness.ground.Ground for every call."""

    def __init__(self, name: str, target: Target) -> None:
        """Take the target; nothing is shared by the clusters."""
        self.name = name
        # One process and one thread at a time: side by side they would only take turns.
        self.jobs = 1
        self._target = target
        self._worlds: dict[str, World] = {}

    def open(self, folder: Path) -> None:
        """Make nothing: each world has a ZooKeeper of its own."""

    def open_cluster(self, plan: Plan, history: History) -> Cluster:
        """Make a world; no node runs yet."""
        world = World(
            seed=plan.seed,
            protocol=plan.protocol,
            rules=from_text(plan.rules),
            ids=plan.ids,
            settings=settings_of(plan.settings),
            sink=history.record,
        )
        history.keep_time_by(lambda: world.clock.now_ns)
        self._worlds[str(history.path)] = world
        return cluster_of(world, plan, history, self._target)

    def make_client(self, cluster: Cluster) -> Client:
        """A client in the cluster's own world."""
        return SimClient(self._worlds[str(cluster.history.path)])

    def keep(self, cluster: Cluster, name: str, folder: Path) -> None:
        """Write down what a replica's disk holds, as the history has it."""
        log = cluster.host.replica_log(name, TOPIC, PARTITION)
        folder.mkdir(parents=True, exist_ok=True)
        lines = [] if log is None else [json.dumps({"f": f, **value}) for f, value in snapshot_ops(log)]
        (folder / f"{TOPIC}-{PARTITION}.jsonl").write_text("\n".join(lines), encoding="utf-8")

    def close(self) -> None:
        """Forget the worlds."""
        self._worlds.clear()


def cluster_of(world: World, plan: Plan, history: History, target: Target) -> Cluster:
    """Give a world as the cluster of a run, which its history listens to."""
    cluster = Cluster(
        host=SimMachines(world, plan.replicas),
        target=target,
        protocol=plan.protocol,
        rules=plan.rules,
        ids=plan.ids,
        replicas=plan.replicas,
        history=history,
        fabric=world.links,
        observer=SimEye(world, target),
        time=SimTime(world),
    )
    history.listeners.append(cluster.listen)
    return cluster


def make_ground(name: str, *, target: Target, power_tier: str | None, ports: range | None) -> Ground:
    """Make the simulated ground; UsageError for a target that it cannot carry, or a real disk."""
    del ports
    if not isinstance(target, BrokerTarget):
        raise UsageError(f"host {name}: target {target.name}; expected broker, whose core the simulator runs")
    if power_tier is not None:
        raise UsageError(f"host {name}: power tier {power_tier!r}; expected none, its disks are simulated")
    return SimGround(name, target)
