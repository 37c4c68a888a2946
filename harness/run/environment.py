"""
`Environment`: what opens the cluster of a run, on real nodes of a host or in the simulator.

Order of calls:  make_environment -> open -> (open_cluster -> make_client) for each run, in threads -> close.
A new environment is one module with `make_environment` and one line in `ENVIRONMENTS` (harness/environment).
"""

from __future__ import annotations

from pathlib import Path
from typing import Protocol

from harness.cluster.client import Client
from harness.cluster.cluster import Cluster
from harness.cluster.target import Target
from harness.history.file import History
from harness.random_schedule.timing import Timing
from harness.run.spec import RunSpec


class Environment(Protocol):
    """
    A place where clusters can be opened.

    Attributes:
        jobs: how many runs are played side by side when the command line does not say.
        timing: how a random schedule is timed there.

    Raises:
        UsageError: when the machine lacks something, or the environment cannot carry what is asked of it.
    """

    name: str
    jobs: int
    timing: Timing

    def open(self, folder: Path) -> None:
        """Start what all clusters share, below this folder: a ZooKeeper."""

    def open_cluster(self, spec: RunSpec, folder: Path, history: History) -> Cluster:
        """
        Open the cluster of a run; no node runs yet. The cluster owns the history from now on, and closes it.

        Args:
            folder: the run's own; its name and its parent's are unique among all runs that are open.

        Raises:
            UsageError: with everything down again and the history closed.
        """

    def make_client(self, cluster: Cluster) -> Client:
        """Return a client of that cluster, which records what it does in the cluster's history."""

    def record_evidence(self, cluster: Cluster) -> None:
        """Record what the environment itself saw of a run that has ended, such as the simulator's oracles."""

    def keep(self, cluster: Cluster, name: str, folder: Path) -> None:
        """Copy a replica's disk into a folder; OSError when it cannot be read."""

    def close(self) -> None:
        """Stop what open started; safe to call twice."""


class MakeEnvironment(Protocol):
    """
    Make an environment; nothing is touched before its `open`.

    Args:
        name: that of the table's line.
        power_tier: "loop" or "watermark" insists on a way to lose power, None accepts the best there is.
        ports: limits which ports of this machine nodes may use.
    """

    def __call__(self, name: str, *, target: Target, power_tier: str | None, ports: range | None) -> Environment:
        """Make it; UsageError when the target cannot run there."""
