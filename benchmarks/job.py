"""
What a load process is told to do, and what it says that it measured: two values that cross a process border.

Units:   times are seconds, latencies milliseconds, MB are 10**6 bytes of record values (no key, no framing).
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Final

MB: Final = 1_000_000


class Work(StrEnum):
    """
    What a load process does.

    produce: as much as the brokers take. alone: one record at a time, each waits for its acknowledgement.
    consume: read all from the beginning, and again, as fast as it comes.
    """

    PRODUCE = "produce"
    ALONE = "alone"
    CONSUME = "consume"


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """
    One load process's work.

    Shapes:  pids are the brokers', whose CPU time is read where the window begins and where it ends. acks is -1
             (all of the ISR), 1 or 0; consume has no use for it.
    Units:   nothing counts in the first warm_s seconds; the window takes window_s.
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
        """Give one line of JSON; from_json reads it back."""
        return json.dumps(asdict(self))

    @staticmethod
    def from_json(text: str) -> Job:
        """Read what to_json gave."""
        raw = json.loads(text)
        return Job(**{**raw, "work": Work(raw["work"]), "pids": tuple(raw["pids"])})


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """
    What happened in a window.

    Shapes:  records are those acknowledged (or read) inside the window; failed those that the client gave up, at
             any time. p50_ms and p99_ms are None where no latency was taken (consume).
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
        """MB of values in the window."""
        return self.records * self.record_bytes / MB

    @property
    def mb_per_s(self) -> float:
        """Throughput in MB."""
        return self.megabytes / self.seconds

    @property
    def records_per_s(self) -> float:
        """Throughput in records."""
        return self.records / self.seconds

    @property
    def broker_cpu_ms_per_mb(self) -> float | None:
        """CPU time of all brokers for each MB; None where nothing came through."""
        return self.broker_cpu_s * 1000 / self.megabytes if self.records else None

    @property
    def client_cpu_ms_per_mb(self) -> float | None:
        """CPU time of the load process for each MB; None where nothing came through."""
        return self.client_cpu_s * 1000 / self.megabytes if self.records else None

    def to_json(self) -> str:
        """Give one line of JSON; from_json reads it back."""
        return json.dumps(asdict(self))

    @staticmethod
    def from_json(text: str) -> Measured:
        """Read what to_json gave."""
        return Measured(**json.loads(text))
