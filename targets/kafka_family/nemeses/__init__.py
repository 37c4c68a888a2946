"""The faults that Kafka's family adds to the common ones: ZooKeeper's, and one of its controller."""

from __future__ import annotations

from typing import Final

from harness.cluster.fault import Fault
from targets.kafka_family.nemeses import zookeeper_multi_lost
from targets.zookeeper.nemeses import FAULTS as OF_ZOOKEEPER

FAULTS: Final[dict[str, Fault]] = {**OF_ZOOKEEPER, "zookeeper-multi-lost": zookeeper_multi_lost.FAULT}
