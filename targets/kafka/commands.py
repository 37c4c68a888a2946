"""The commands that Apache Kafka alone has."""

from __future__ import annotations

from typing import Final

from harness.target.commands import Command, Spelled

COMMANDS: Final = {
    "test-kafka": Command(
        module="targets.kafka_commands.suite",
        help="play the scenarios on releases of Apache Kafka and on our broker, and print both in one table",
    ),
    "kafka": Command(
        module="targets.kafka_commands.kafka",
        help="list the releases of Apache Kafka that can be a target, or fetch their jars from Maven Central",
    ),
}
TEST: Final = Spelled(words=("test-kafka",), version="--release")
FETCH: Final = Spelled(words=("kafka", "fetch"))
