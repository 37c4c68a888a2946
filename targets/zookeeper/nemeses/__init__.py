"""The faults that a target on ZooKeeper adds to the common ones."""

from __future__ import annotations

from typing import Final

from harness.cluster.fault import Fault
from targets.zookeeper.nemeses import zookeeper_back, zookeeper_late, zookeeper_leader_lost, zookeeper_outage

FAULTS: Final[dict[str, Fault]] = {
    "zookeeper-outage": zookeeper_outage.FAULT,
    "zookeeper-leader-lost": zookeeper_leader_lost.FAULT,
    "zookeeper-late": zookeeper_late.FAULT,
    "zookeeper-back": zookeeper_back.FAULT,
}
