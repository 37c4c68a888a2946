"""Frames, bodies and packets of Kafka and ZooKeeper, read on the links between nodes."""

from targets.kafka_family.wire.frames import MESSAGES

__all__ = ["MESSAGES"]
