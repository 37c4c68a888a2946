"""What the faults of NATS see of a run's streams, and ask of its operator, beyond what every target has."""

from __future__ import annotations

from typing import TYPE_CHECKING

from harness.cluster.cluster import Cluster
from harness.model import PreconditionError

if TYPE_CHECKING:
    from targets.nats.operating import NatsOperator


def operator_of(cluster: Cluster) -> NatsOperator:
    """Return the operator of a cluster of NATS; raise PreconditionError for another system's."""
    from targets.nats.operating import NatsOperator

    if not isinstance(cluster.operator, NatsOperator):
        raise PreconditionError(f"target {cluster.target.name}: expected a cluster of NATS")
    return cluster.operator


def snapshot_of(cluster: Cluster, name: str) -> int:
    """
    Return up to which index of its Raft log a node has taken the stream's snapshot; 0 for none.

    Raises:
        PreconditionError: The servers do not answer, or are none of NATS.
    """
    from targets.nats.view import NatsView

    if not isinstance(cluster.metadata, NatsView):
        raise PreconditionError(f"target {cluster.target.name}: expected a cluster of NATS")
    return cluster.metadata.snapshot(*cluster.named.place, name)
