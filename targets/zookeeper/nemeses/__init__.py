"""The faults that a target on ZooKeeper adds to the common ones."""

from __future__ import annotations

from typing import Final

from harness.cluster.fault import Fault
from targets.zookeeper.nemeses import back, late, leader_lost, outage

FAULTS: Final[dict[str, Fault]] = {
    "zookeeper-outage": outage.FAULT,
    "zookeeper-leader-lost": leader_lost.FAULT,
    "zookeeper-late": late.FAULT,
    "zookeeper-back": back.FAULT,
}
