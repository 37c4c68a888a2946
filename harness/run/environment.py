"""
`Environment`: opens the cluster of a run, on real nodes of a host or in the simulator.

Order of calls:  make_environment -> open -> (open_cluster -> make_client) for each run, in threads -> close.
A new environment is one module with `make_environment` and one line in `ENVIRONMENTS` (harness/environment).
"""

from __future__ import annotations

from pathlib import Path
from typing import Protocol

from harness.ability import Ability
from harness.cluster.cluster import Cluster
from harness.history.file import History
from harness.random_schedule.timing import Timing
from harness.run.spec import RunSpec
from harness.target.clients import Client
from harness.target.target import Target


class Environment(Protocol):
    """
    A place where clusters can be opened.

    Attributes:
        jobs: how many runs are played in parallel by default.
        timing: the timing of random schedules.

    Raises:
        UsageError: the machine lacks something, or the environment does not support what is asked.
    """

    name: str
    jobs: int
    timing: Timing

    def open(self, folder: Path) -> None:
        """Start the services that all clusters share, with their files below this folder."""

    def lacks(self, ability: Ability) -> str:
        """Return why no machine of it can do this, "" if they can; known after `open`."""

    def open_cluster(self, spec: RunSpec, folder: Path, history: History) -> Cluster:
        """
        Open the cluster of a run, without starting nodes. The cluster owns the history, and closes it.

        Args:
            folder: the run's own folder; its name together with its parent's is unique among all open runs.

        Raises:
            UsageError: the cluster cannot be opened; everything is down again and the history closed.
        """

    def make_client(self, cluster: Cluster) -> Client:
        """Return a client of that cluster that records its calls in the cluster's history."""

    def record_evidence(self, cluster: Cluster) -> None:
        """Record the environment's own evidence about a finished run, such as violations of the oracles."""

    def keep(self, cluster: Cluster, name: str, folder: Path) -> None:
        """Copy a replica's disk into a folder; raise OSError if it cannot be read."""

    def close(self) -> None:
        """Stop what `open` started; safe to call twice."""


class MakeEnvironment(Protocol):
    """
    Creates an environment, without side effects before its `open`.

    Args:
        name: the environment's name in the table.
        power_tier: "loop" or "watermark" requires that way to lose power; None uses the best available one.
        ports: the ports that nodes may use on their machine; None for no limit.
        machines: the file that lists the machines of a host that has some, None for another host.
    """

    def __call__(
        self,
        name: str,
        *,
        target: Target,
        power_tier: str | None,
        ports: range | None,
        machines: Path | None = None,
    ) -> Environment:
        """Create the environment; raise UsageError if the target cannot run there."""
