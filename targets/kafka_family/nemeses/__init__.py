"""The faults that Kafka's family adds to the common ones: those of ZooKeeper, and of what it answers."""

from __future__ import annotations

from typing import Final

from harness.cluster.fault import Fault
from targets.kafka_family.nemeses import (
    zookeeper_back,
    zookeeper_late,
    zookeeper_leader_lost,
    zookeeper_multi_lost,
    zookeeper_outage,
)

FAULTS: Final[dict[str, Fault]] = {
    "zookeeper-outage": zookeeper_outage.FAULT,
    "zookeeper-leader-lost": zookeeper_leader_lost.FAULT,
    "zookeeper-late": zookeeper_late.FAULT,
    "zookeeper-multi-lost": zookeeper_multi_lost.FAULT,
    "zookeeper-back": zookeeper_back.FAULT,
}
