"""Opens the view of a run's ZooKeeper; its client is imported only then, since that takes long."""

from __future__ import annotations

from typing import TYPE_CHECKING

from harness.target.metadata import Metadata, TargetRun
from targets.kafka_family.zookeeper.layout import Layout

if TYPE_CHECKING:
    from targets.kafka_family.zookeeper.view import RealZooKeeperView


def open_view(run: TargetRun, layout: Layout) -> RealZooKeeperView:
    """Return the view of a run's ZooKeeper; raise PreconditionError if ZooKeeper does not answer in time."""
    from targets.kafka_family.zookeeper.view import RealZooKeeperView

    return RealZooKeeperView(run=run, layout=layout)


def operator_of(metadata: Metadata) -> RealZooKeeperView:
    """Return the operator of these metadata: one view is both, since requests are written to ZooKeeper too."""
    from targets.kafka_family.zookeeper.view import RealZooKeeperView

    assert isinstance(metadata, RealZooKeeperView), "these metadata are a view of ZooKeeper"
    return metadata
