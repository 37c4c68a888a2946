"""Where the partitions of a topic are put that a client creates or extends: as it assigns them, or round robin."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from targets.broker.core.messages import ErrorCode, NewTopic
from targets.broker.core.names import is_topic_name
from targets.broker.core.state import Config

# Of a list in an error's text.
NAMED_MAX = 20
# In place of a number of partitions or replicas.
_DEFAULT = -1


def place(
    config: Config, topic: NewTopic, live: list[int], most: int
) -> tuple[Mapping[int, tuple[int, ...]], ErrorCode, str]:
    """
    Return partition -> replicas, or an error: as the client assigned them, else round robin over the live.

    Where the client leaves a number to this broker, its own setting holds (KIP-464).

    Args:
        most: partitions that the topic may have. All topics of a request share them, as their creation holds up
            others.
    """
    if not is_topic_name(topic.topic):
        text = f"topic {topic.topic[:80]!r}: expected 1 to 249 of a-z, A-Z, 0-9, '.', '_', '-'"
        return {}, ErrorCode.INVALID_TOPIC, text
    wanted = config.num_partitions if topic.partitions == _DEFAULT else topic.partitions
    factor = (
        config.default_replication_factor if topic.replication_factor == _DEFAULT else topic.replication_factor
    )
    partitions = len(topic.assignments) or wanted
    if partitions > most:
        text = f"{partitions} partitions: expected at most {most} more in one request (topic_partitions_max)"
        return {}, ErrorCode.INVALID_PARTITIONS, text
    if topic.assignments:
        return _as_assigned(topic, live)
    if wanted < 1:
        return {}, ErrorCode.INVALID_PARTITIONS, f"partitions {wanted}: expected at least 1, or -1"
    if not 1 <= factor <= len(live):
        text = f"replication factor {factor}: expected 1 to {len(live)}, the live brokers, or -1"
        return {}, ErrorCode.INVALID_REPLICATION_FACTOR, text
    placed = {
        partition: tuple(live[(partition + i) % len(live)] for i in range(factor)) for partition in range(wanted)
    }
    return placed, ErrorCode.NONE, ""


def _as_assigned(topic: NewTopic, live: list[int]) -> tuple[Mapping[int, tuple[int, ...]], ErrorCode, str]:
    placed = dict(topic.assignments)
    if sorted(placed) != list(range(len(topic.assignments))):
        text = f"partitions {shown(sorted(placed))}: expected 0 to {len(topic.assignments) - 1}, each once"
        return {}, ErrorCode.INVALID_REPLICA_ASSIGNMENT, text
    return assigned(placed, live)


def assigned(
    placed: Mapping[int, tuple[int, ...]], live: Sequence[int]
) -> tuple[Mapping[int, tuple[int, ...]], ErrorCode, str]:
    """Return the partitions as a client has assigned them, or what is wrong with that."""
    there = set(live)
    for partition, replicas in placed.items():
        if not replicas or len(set(replicas)) != len(replicas) or not set(replicas) <= there:
            text = f"partition {partition} on {shown(replicas)}: expected distinct live brokers of {list(live)}"
            return {}, ErrorCode.INVALID_REPLICA_ASSIGNMENT, text
    return placed, ErrorCode.NONE, ""


def shown(numbers: Sequence[int]) -> str:
    """Return a list of numbers as an error's text has it: the first of them."""
    more = "" if len(numbers) <= NAMED_MAX else f" and {len(numbers) - NAMED_MAX} more"
    return f"{list(numbers[:NAMED_MAX])}{more}"
