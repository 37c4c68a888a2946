"""What unmodified Apache Kafka was asked, and answered; tests/record_kafka_frames.py recorded it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from tests.kafka_release import DATA

FOLDER: Final = DATA / "kafka-frames"
RELEASES: Final = ("0.10.2.2", "1.1.1", "3.9.1")
BETWEEN_BROKERS: Final = "between brokers"
# A request's api key, version and correlation id; an answer's correlation id.
CORRELATION: Final = slice(4, 8)


@dataclass(frozen=True, slots=True, kw_only=True)
class Exchange:
    """One question; both frames are without their lengths."""

    release: str
    api: str
    version: int
    what: str
    request: bytes
    answer: bytes

    def __str__(self) -> str:
        return f"{self.release} {self.api} v{self.version} {self.what}"

    @property
    def correlation(self) -> int:
        """The correlation id of the request."""
        return int.from_bytes(self.request[CORRELATION])


def _exchanges() -> Iterator[Exchange]:
    for release in RELEASES:
        for line in (FOLDER / f"{release}.jsonl").read_text(encoding="utf-8").splitlines():
            value = json.loads(line)
            frames = {name: bytes.fromhex(value.pop(name)) for name in ("request", "answer")}
            yield Exchange(**value, **frames)


EXCHANGES: Final = tuple(_exchanges())


def exchange(release: str, api: str, what: str, version: int | None = None) -> Exchange:
    """Return the one exchange that this names."""
    (found,) = (
        each
        for each in EXCHANGES
        if (each.release, each.api, each.what) == (release, api, what) and version in (None, each.version)
    )
    return found
