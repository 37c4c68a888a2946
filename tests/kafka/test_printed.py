"""Log lines that brokers of Apache Kafka print, and the Printed that each is read as."""

from __future__ import annotations

import pytest

from harness.target.target import Printed
from targets.kafka.printed import clocks, read

THREAD = "[ReplicaFetcher replicaId=2, leaderId=1, fetcherId=0]"
LOG = "[Log partition=log-0, dir=/data/kafka]"


@pytest.mark.parametrize(
    ("line", "what", "to"),
    [
        ("12:00:00,123 INFO Truncating log log-0 to offset 3. (kafka.log.Log)", "truncate", 3),
        (
            "INFO Processing override for entityPath: topics/log with config: Map(message.format.version -> "
            "0.10.2, retention.ms -> 7) (kafka.server.DynamicConfigManager)",
            "format",
            1,
        ),
        (
            "INFO Processing override for entityPath: topics/log with config: {message.format.version=0.11.0} "
            "(kafka.server.DynamicConfigManager)",
            "format",
            2,
        ),
        ("INFO Truncating log-0 to 5 has no effect as the largest offset in the log is 4.", "truncate", 5),
        (f"INFO {LOG} Truncating to 21 has no effect as the largest offset in the log is 20", "truncate", 21),
        (f"INFO {LOG} Truncating to offset 21 (kafka.log.Log)", "truncate", 21),
        (
            "INFO [UnifiedLog partition=log-0, dir=/d] Truncating to offset 11 (kafka.log.UnifiedLog)",
            "truncate",
            11,
        ),
        (
            f"INFO {THREAD} Partition log-0 has an older epoch (1) than the current leader. Will await the new "
            "LeaderAndIsr state before resuming fetching.",
            "fenced",
            None,
        ),
        (
            "kafka.common.UnexpectedAppendOffsetException: Unexpected offset in append to log-0. First offset or "
            "last offset of the first batch 11 is less than the next offset 16.",
            "stuck",
            None,
        ),
        ("kafka.common.KafkaException: error processing data for partition [log,0] offset 16", "stuck", None),
        (
            "org.apache.kafka.common.KafkaException: Error processing data for partition log-0 offset 16",
            "stuck",
            None,
        ),
        (
            f"ERROR {THREAD} Unexpected error occurred while processing data for partition log-0 at offset 16",
            "stuck",
            None,
        ),
        (f"ERROR {THREAD} Unexpected error occurred during truncation for log-0 at offset 3", "stuck", None),
        (
            f"FATAL {THREAD} Exiting because log truncation is not allowed for partition log-0, current leader's "
            "latest offset 10 is less than replica's latest offset 15",
            "exiting",
            None,
        ),
    ],
)
def test_line_tells_what_became_of_a_replica(line: str, what: str, to: int | None) -> None:
    assert Printed(what=what, topic="log", partition=0, to=to) == read(line)


@pytest.mark.parametrize(
    "line",
    [
        "INFO [Log partition=log-0, dir=/d] Truncate and start at offset 11",
        f"INFO {THREAD} Truncating partition log-0 to local high watermark 0",
        "INFO [KafkaServer id=1] started (kafka.server.KafkaServer)",
        f"ERROR {THREAD} Error while processing data for partition log-0 (kafka.server.ReplicaFetcherThread)",
        "",
    ],
)
def test_line_of_anything_else_tells_nothing(line: str) -> None:
    assert read(line) is None


def test_topic_may_have_dots_and_dashes() -> None:
    found = read("INFO Truncating log a.b-c_d-7-12 to offset 3. (kafka.log.Log)")
    assert found is not None and ("a.b-c_d-7", 12) == (found.topic, found.partition)


def test_java_prints_both_clocks_beside_the_stop_for_a_dump_of_its_threads() -> None:
    line = '[1795636294793ms][35319088519186ns] Safepoint "PrintThreads", Time since last: 346428872 ns'
    assert (1_795_636_294_793_000_000, 35_319_088_519_186) == clocks(line)
    assert clocks(line.replace("PrintThreads", "G1CollectForAllocation")) is None
    assert clocks(f"[2026-01-01 00:00:00,000] INFO {line}") is None
