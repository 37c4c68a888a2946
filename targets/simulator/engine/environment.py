"""
What every simulated environment has in common: one process, virtual time, and worlds that end with their runs.

A system brings the rest: how a run's world is made, its clients, and what it records at the end.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Generic, TypeVar

from harness.ability import Ability
from harness.cluster.cluster import Cluster
from harness.events import Event
from harness.events.codec import encode, key_of
from harness.logs.replica import snapshot_events
from harness.model import UsageError
from harness.random_schedule.timing import VIRTUAL, Timing
from harness.target.operator import lacking
from harness.target.target import Target

W = TypeVar("W")


class SimulatedRuns(Generic[W]):
    """
    Simulated worlds; see harness.run.environment.Environment for every call.

    Attributes:
        runs: the world of each run, by its history's path.
    """

    def __init__(self, name: str, target: Target) -> None:
        self.name = name
        # One process and one thread at a time: parallel worlds would only take turns.
        self.jobs = 1
        self.timing: Timing = VIRTUAL
        self.runs: dict[str, W] = {}
        self._target = target

    def open(self, folder: Path) -> None:
        """Start nothing: each world has services of its own."""

    def lacks(self, ability: Ability) -> str:
        """Return what the target lacks: simulated machines can do everything."""
        return lacking(self._target.name, self._target.abilities, ability)

    def keep(self, cluster: Cluster, name: str, folder: Path) -> None:
        """Write a replica's disk contents down, as the history has it."""
        folder.mkdir(parents=True, exist_ok=True)
        for partition in cluster.partitions:
            if name in partition.replicas:
                log = partition.log(name)
                lines = [] if log is None else [_line(event) for event in snapshot_events(log)]
                (folder / f"{partition.place}.jsonl").write_text("\n".join(lines), encoding="utf-8")

    def close(self) -> None:
        """Drop the worlds."""
        self.runs.clear()


def _line(event: Event) -> str:
    return json.dumps({"f": key_of(event)[1], **encode(event)})


def refuse_real(name: str, *, power_tier: str | None, ports: range | None, machines: Path | None) -> None:
    """Raise UsageError if a real disk, real ports or real machines were requested."""
    if power_tier is not None:
        raise UsageError(f"host {name}: power tier {power_tier!r}; expected none, its disks are simulated")
    if ports is not None:
        raise UsageError(
            f"host {name}: ports {ports[0]} to {ports[-1]}; expected no range, its network is simulated"
        )
    if machines is not None:
        raise UsageError(f"host {name}: machines of {machines}; expected none, they are simulated")
