"""A random world: the seed decides latencies, what a power loss keeps, and the brokers' settings."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from random import Random
from types import MappingProxyType
from typing import Any, Final

from targets.broker.core.rules import Rules
from targets.broker.core.state import ASKS_TOGETHER_MAX, DELETES_TOGETHER_MAX, Together
from targets.simulator.broker.storage.disk import SEGMENT_BYTES
from targets.simulator.broker.world import Randomness, World
from targets.simulator.engine.clock import NS_PER_MS
from targets.simulator.engine.network import Latency
from targets.simulator.engine.node_clock import Drift
from targets.simulator.engine.trace import Trace

# From nearly equal to far apart: frames of two connections overtake each other more and more.
LATENCIES: Final = (
    Latency(low_ns=NS_PER_MS // 5, high_ns=NS_PER_MS // 4),
    Latency(low_ns=NS_PER_MS // 20, high_ns=2 * NS_PER_MS),
    Latency(low_ns=NS_PER_MS // 20, high_ns=2 * NS_PER_MS),
    Latency(low_ns=NS_PER_MS // 10, high_ns=8 * NS_PER_MS),
)
# Short enough that a dead process' session expires before the wait for the healed cluster ends.
SESSION_TIMEOUT_MS: Final = 1_500
# How often a producer of a run of several partitions sends the records of one partition in two batches.
SPLIT_SHARE: Final = 0.3
# How often the brokers of a run of several partitions delete records by age or size.
RETENTION_SHARE: Final = 0.3
# Retention of a cluster that must become whole while clients go on: more than they write in the longest wait of a
# fetch, and in the time that a follower then needs.
IN_USE_BYTES: Final = (6_000, 20_000)
# How often the brokers of a run whose records have keys compact their logs.
COMPACTED_SHARE: Final = 0.8
FETCH_BYTES: Final = 1_048_576
# Who may lag for less asks for all partitions at once.
ASKED_IN_TURN_LAG_MS_MIN: Final = 1_000
# In half of the runs of several partitions, how often what a process hears of ZooKeeper waits in it.
LATE_SHARE: Final = 0.03
# How long a flush takes at most there: nothing, as in a cache that loses no power, or as on a slow disk.
FLUSHES_NS: Final = (0, 5 * NS_PER_MS, 30 * NS_PER_MS)


def random_world(
    seed: int,
    *,
    protocol: str,
    rules: Rules,
    ids: Mapping[str, int],
    settings: Mapping[str, Any],
    segment_bytes: int = SEGMENT_BYTES,
    of_nodes: Mapping[str, Mapping[str, Any]] | None = None,
    more: Mapping[str, Any] | None = None,
    clocks: Mapping[str, Drift] = MappingProxyType({}),
    trace: Trace | None = None,
) -> World:
    """
    Create the world of a seed; it has no sink yet, and no node runs.

    Args:
        more: what is random besides latencies, as `random_more` has it for a run of several partitions.
    """
    chance = Random(f"world {seed}")
    return World(
        seed=seed,
        protocol=protocol,
        rules=rules,
        ids=ids,
        settings=settings,
        of_nodes=of_nodes,
        segment_bytes=segment_bytes,
        session_timeout_ms=SESSION_TIMEOUT_MS,
        randomness=Randomness(latency=chance.choice(LATENCIES), **(more or {})),
        clocks=clocks,
        trace=trace,
    )


def random_together(seed: int, lag_ms: int, *, in_use: bool = False) -> Together:
    """
    Return how much the brokers of a run of several partitions do at once: in many runs little.

    Args:
        lag_ms: how long a follower may lag. One that may only for a short time asks for all partitions at once: it
            would leave the ISR before each has had its turn.
        in_use: whether the cluster must become whole while clients go on; then it asks for all at once too.

    What they do bit by bit with thousands of partitions they then do so with a few.
    """
    chance = Random(f"together {seed}")
    deletes_max = Random(f"deletes {seed}").choice((1, 2, DELETES_TOGETHER_MAX))
    asks_max = Random(f"asks {seed}").choice((1, 2, ASKS_TOGETHER_MAX))
    if in_use or lag_ms < ASKED_IN_TURN_LAG_MS_MIN:
        asks_max = ASKS_TOGETHER_MAX
    if chance.random() < 0.5:
        return Together(deletes_max=deletes_max, asks_max=asks_max)
    return Together(
        ask_ops_max=chance.choice((2, 5, 250)),
        writes_max=chance.choice((1, 2)),
        stops_max=1,
        deletes_max=deletes_max,
        asks_max=asks_max,
    )


def random_fetches(seed: int, lag_ms: int, *, in_use: bool = False) -> dict[str, int]:
    """
    Return how the brokers of a run of several partitions fetch: in many runs so little that a batch comes alone.

    Args:
        lag_ms: how long a follower may lag. A wait at the log's end is at most half of that: Kafka refuses one
            above the lag, since a follower that has everything would leave the ISR while it waits.
        in_use: whether the cluster must become whole while clients go on; then a fetch has room for all.

    Then the high watermark is now and then between the batches of a produce, and a follower's far behind that.
    An answer has as many bytes as one of its partitions may have, so that others wait for their turn.
    Longer waits leave more timers behind that were dropped.
    """
    chance = Random(f"fetches {seed}")
    size, wait_ms = chance.choice((FETCH_BYTES, 1)), chance.choice((50, 500))
    size = FETCH_BYTES if in_use else size
    return {
        "fetch_bytes_max": size,
        "fetch_response_bytes_max": size,
        "fetch_wait_ms_max": min(wait_ms, lag_ms // 2),
    }


def random_retention(seed: int, *, in_use: bool = False) -> dict[str, int]:
    """
    Return how the brokers of a run of several partitions delete old records: in most runs not at all.

    Args:
        in_use: whether the cluster must become whole while clients go on. Then what a follower lacks that was away
            for a while is not deleted before it can ask for it: else it never catches up. And nothing is by its
            age, which would go on while a client reads all at the end.
    """
    chance = Random(f"retention {seed}")
    if chance.random() >= RETENTION_SHARE:
        return {}
    by = "size" if in_use else chance.choice(("size", "time", "both"))
    return {
        "retention_check_ms": chance.choice((20, 100)),
        "retention_bytes": 0 if by == "time" else chance.choice(IN_USE_BYTES if in_use else (1, 300, 900)),
        "retention_ms": 0 if by == "size" else chance.choice((100, 400)),
    }


def random_compaction(seed: int) -> dict[str, int | bool]:
    """Return how the brokers of a run whose records have keys compact their logs: in most runs they do."""
    chance = Random(f"compaction {seed}")
    if chance.random() >= COMPACTED_SHARE:
        return {}
    return {
        "compact": True,
        "compaction_check_ms": chance.choice((5, 20, 100)),
        "compaction_bytes_max": chance.choice((1, 1_048_576)),
    }


def random_formats(seed: int, nodes: Iterable[str]) -> dict[str, dict[str, Any]]:
    """Return which nodes of a cluster of the older message format write epochs already: in most runs some do."""
    chance = Random(f"formats {seed}")
    share = chance.choice((0.0, 0.5, 0.5, 0.5))
    return {name: {"message_format": 2 if chance.random() < share else 1} for name in nodes}


def random_more(seed: int) -> dict[str, Any]:
    """Return what is random in the world of a run of several partitions, besides latencies."""
    return {
        "late_share": Random(f"late {seed}").choice((0.0, LATE_SHARE)),
        "split_share": SPLIT_SHARE,
        "flush_ns_max": Random(f"flushes {seed}").choice(FLUSHES_NS),
    }
