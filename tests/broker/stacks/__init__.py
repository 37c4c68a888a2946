"""Three client libraries behind one interface: librdkafka, kafka-python and aiokafka, each with its own API."""

from __future__ import annotations

from collections.abc import Mapping

from tests.broker.stacks.aio import Aiokafka
from tests.broker.stacks.face import Place, Stack
from tests.broker.stacks.kafka_python import KafkaPython
from tests.broker.stacks.librdkafka import Confluent

__all__ = ["STACKS", "Place", "Stack"]

STACKS: Mapping[str, type[Stack]] = {"librdkafka": Confluent, "kafka-python": KafkaPython, "aiokafka": Aiokafka}
