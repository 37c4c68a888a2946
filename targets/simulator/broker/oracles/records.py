"""Records as numbers, so that logs are compared by content and quickly, never by epochs or ends."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from targets.broker.core.messages import Batch, Payload
from targets.simulator.broker.storage.log import SimLog
from targets.simulator.broker.storage.records import content_of
from targets.simulator.broker.storage.segment import is_rotten

# The number of an offset without a record.
HOLE: Final = -1


class Records:
    """The numbers of one partition's records: equal records have the same number."""

    def __init__(self) -> None:
        """Start without a record."""
        self._numbers: dict[Payload, list[int]] = {}
        self._values: list[str] = []
        self._number_of: dict[str, int] = {}

    def of_log(self, log: SimLog) -> list[int]:
        """Return the number of the record at every offset of a log; a damaged batch is a hole."""
        records: list[int] = []
        for segment in log.segments:
            for batch in segment.batches:
                if batch.base_offset > len(records):
                    records.extend([HOLE] * (batch.base_offset - len(records)))
                elif batch.base_offset < len(records):
                    del records[batch.base_offset :]
                if log.rotten and is_rotten(batch):
                    records.extend([HOLE] * (batch.next_offset - batch.base_offset))
                    continue
                numbers = self._numbers.get(batch.payload)
                records.extend(self._learn(batch.payload) if numbers is None else numbers)
        return records

    def of_batches(self, batches: Iterable[Batch]) -> list[int]:
        """Return the numbers of the records of batches, wherever they lie."""
        found: list[int] = []
        for batch in batches:
            numbers = self._numbers.get(batch.payload)
            found.extend(self._learn(batch.payload) if numbers is None else numbers)
        return found

    def number_of(self, value: str) -> int | None:
        """Return the number of a record, None if no log has had it."""
        return self._number_of.get(value)

    def name(self, number: int | None) -> str:
        """Return a record's value, for sentences."""
        return "nothing" if number is None or number == HOLE else self._values[number]

    def _learn(self, payload: Payload) -> list[int]:
        content = content_of(payload)
        numbers = [HOLE] * content.count
        for delta, _, value in content.records:
            numbers[delta] = self._number_of.setdefault(value, len(self._values))
            if numbers[delta] == len(self._values):
                self._values.append(value)
        self._numbers[payload] = numbers
        return numbers
