"""
What a ground is: where the clusters of a suite stand, on a host of real nodes or in the simulator.

A new ground is one module with `make_ground` and one line in `GROUNDS` (harness/cli/grounds.py); nothing else asks
which one it is.

Order of calls:  make_ground -> open -> (open_cluster -> make_client) for each run, in threads -> close.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from harness.client import Client
from harness.cluster import Cluster
from harness.history import History
from harness.settings import Settings
from harness.target import Target


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """
    What a ground must know to make the cluster of one run.

    Shapes:  name is unique among all runs that a ground has at one time; a ground may keep the run's ZooKeeper
             below a node of that name. ids are in the order of starting; replicas are the nodes with a disk that
             can lose power. settings are what the scenario asks of its cluster; a ground hands them to the target
             in each NodeSpec. seed is for what chance decides on the ground itself.
    """

    name: str
    run_dir: Path
    protocol: str
    rules: Mapping[str, str]
    ids: Mapping[str, int]
    replicas: tuple[str, ...]
    seed: int
    settings: Settings = field(default_factory=Settings)


class Ground(Protocol):
    """
    Where clusters stand.

    Shapes:  jobs is how many cells are played side by side when nobody says how many.
    Raises:  UsageError when the machine lacks something, or the ground cannot carry what is asked of it.
    """

    name: str
    jobs: int

    def open(self, folder: Path) -> None:
        """Make what all clusters share, below this folder: a ZooKeeper."""

    def open_cluster(self, plan: Plan, history: History) -> Cluster:
        """
        Make the cluster of a run; no node runs yet. It owns the history from now on, and closes it.

        Raises:  UsageError, with everything down again and the history closed.
        """

    def make_client(self, cluster: Cluster) -> Client:
        """Make a client of that cluster, which writes what it does to the cluster's history."""

    def keep(self, cluster: Cluster, name: str, folder: Path) -> None:
        """Copy a replica's disk into a folder, for whoever has to look; OSError when it cannot be had."""

    def close(self) -> None:
        """Take down what open made; safe to call twice."""


class MakeGround(Protocol):
    """
    Make a ground; nothing is touched before its `open`.

    Shapes:  name is that of the table's line. power_tier: "loop" or "watermark" insists on a way to lose
             power, None takes the best there is. ports limits which ports of this machine nodes may take.
    """

    def __call__(self, name: str, *, target: Target, power_tier: str | None, ports: range | None) -> Ground:
        """Make it; UsageError when the target cannot stand on it."""
