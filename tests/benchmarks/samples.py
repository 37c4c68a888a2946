"""Made-up measurements for the tests of the benchmark's arithmetic."""

from __future__ import annotations

from benchmarks.figures import OURS, Load, Repeat
from benchmarks.job import Measured, Work

KAFKA = "Apache Kafka"
BIG, SMALL = Load(acks=-1, record_bytes=1000), Load(acks=1, record_bytes=100)


def measured(records: int, *, seconds: float = 2.0, cpu_s: float = 1.0, size: int = 1000) -> Measured:
    """Return a measured window with this number of records."""
    return Measured(
        records=records,
        record_bytes=size,
        seconds=seconds,
        broker_cpu_s=cpu_s,
        client_cpu_s=0.5,
        failed=0,
        p50_ms=4.0,
        p99_ms=9.0,
    )


def a_repeat(records: int, *, cpu_s: float = 1.0) -> Repeat:
    """Return one repeat with the same measurement for every kind of work."""
    return {work: measured(records, cpu_s=cpu_s) for work in Work}


RESULTS = {
    BIG: {
        OURS: [a_repeat(1000), a_repeat(3000), a_repeat(2000)],
        KAFKA: [a_repeat(4000), a_repeat(4000), a_repeat(8000)],
    },
    SMALL: {OURS: [a_repeat(5000)], KAFKA: [a_repeat(4000)]},
}
