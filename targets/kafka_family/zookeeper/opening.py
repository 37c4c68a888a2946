"""Opens the view of a run's ZooKeeper; its client is imported only then, since that takes long."""

from __future__ import annotations

from pathlib import Path

from harness.target.metadata import Metadata, TargetRun
from harness.target.operator import Operator
from harness.target.target import NodeSpec
from targets.kafka_family.zookeeper.layout import Layout


def open_view(run: TargetRun, layout: Layout) -> Metadata:
    """Return the view of a run's ZooKeeper; raise PreconditionError if ZooKeeper does not answer in time."""
    from targets.kafka_family.zookeeper.view import RealZooKeeperView

    return RealZooKeeperView(run=run, layout=layout)


def operator_of(metadata: Metadata) -> Operator:
    """Return the operator of these metadata: one view is both, since requests are written to ZooKeeper too."""
    assert isinstance(metadata, Operator), "a view of ZooKeeper is an operator"
    return metadata


def connection_of(spec: NodeSpec) -> str:
    """Return what a node connects to: its links to all servers, and the path of its run."""
    return f"{','.join(map(str, spec.services))}{chroot_of(spec.folder)}"


def chroot_of(folder: Path) -> str:
    """Return the path in ZooKeeper below which a run with this folder has its cluster."""
    return f"/{folder.parent.name}-{folder.name}"
