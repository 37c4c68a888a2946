"""
The request to a load process, and its answer: two values that are passed between processes.

Times are in seconds, latencies in milliseconds; an MB is 10**6 bytes of record values, without keys and framing.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Final

MB: Final = 1_000_000


class Work(StrEnum):
    """
    The kind of load.

    produce: as many records as the brokers accept. alone: one record at a time, with a wait for each
    acknowledgement. consume: read everything from the beginning, again and again, as fast as possible.
    """

    PRODUCE = "produce"
    ALONE = "alone"
    CONSUME = "consume"


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """
    One load process's work.

    Attributes:
        acks: -1 (all of the ISR), 1 or 0; consume ignores it.
        warm_s: the seconds before the window, which do not count.
        window_s: the length of the window in seconds.
        pids: the brokers, whose CPU time is read at the begin and the end of the window.
    """

    work: Work
    bootstrap: str
    topic: str
    partitions: int
    acks: int
    record_bytes: int
    warm_s: float
    window_s: float
    pids: tuple[int, ...]

    def to_json(self) -> str:
        """Return one line of JSON, which from_json reads."""
        return json.dumps(asdict(self))

    @staticmethod
    def from_json(text: str) -> Job:
        """Return the value of a line from to_json."""
        raw = json.loads(text)
        return Job(**{**raw, "work": Work(raw["work"]), "pids": tuple(raw["pids"])})


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """
    The measurement of a window.

    Attributes:
        records: the records acknowledged (or read) inside the window.
        failed: the records that the client gave up, at any time.
        p50_ms: the median latency, None if no latency was measured (consume).
        p99_ms: likewise, the 99th percentile.
    """

    records: int
    record_bytes: int
    seconds: float
    broker_cpu_s: float
    client_cpu_s: float
    failed: int
    p50_ms: float | None = None
    p99_ms: float | None = None

    @property
    def megabytes(self) -> float:
        """The MB of record values in the window."""
        return self.records * self.record_bytes / MB

    @property
    def mb_per_s(self) -> float:
        """The throughput in MB/s."""
        return self.megabytes / self.seconds

    @property
    def records_per_s(self) -> float:
        """The throughput in records/s."""
        return self.records / self.seconds

    @property
    def broker_cpu_ms_per_mb(self) -> float | None:
        """The CPU time of all brokers per MB, None without records."""
        return self.broker_cpu_s * 1000 / self.megabytes if self.records else None

    @property
    def client_cpu_ms_per_mb(self) -> float | None:
        """The CPU time of the load process per MB, None without records."""
        return self.client_cpu_s * 1000 / self.megabytes if self.records else None

    def to_json(self) -> str:
        """Return one line of JSON, which from_json reads."""
        return json.dumps(asdict(self))

    @staticmethod
    def from_json(text: str) -> Measured:
        """Return the value of a line from to_json."""
        return Measured(**json.loads(text))
