"""The offsets of a run's records: as acknowledged, and before that as expected from the drawn counts."""

from __future__ import annotations

import pytest

from harness.model import UsageError
from harness.scenario.offsets import Mark, RecordOffsets

START_1, END_1, START_2, END_2 = (Mark(side, name) for name in ("m1", "m2") for side in ("start", "end"))


@pytest.fixture
def record_offsets() -> RecordOffsets:
    return RecordOffsets(counts={"m1": 2, "m2": 3})


def test_values_are_numbered_within_their_group(record_offsets: RecordOffsets) -> None:
    assert ["m2.0", "m2.1", "m2.2"] == record_offsets.values("m2")
    with pytest.raises(UsageError, match="records 'm3': expected a group of the head: m1, m2"):
        record_offsets.values("m3")


def test_acknowledged_group_lies_where_it_was_told(record_offsets: RecordOffsets) -> None:
    record_offsets.acknowledged("m1", [4, 5])
    assert (4, 6, 6, 9) == tuple(map(record_offsets.number, (START_1, END_1, START_2, END_2)))


def test_group_that_told_nothing_follows_what_is_there(record_offsets: RecordOffsets) -> None:
    record_offsets.acknowledged("m1", [])
    assert (0, 2, 3) == tuple(map(record_offsets.number, (START_1, END_1, END_2)))


def test_group_under_way_lies_where_the_log_ended(record_offsets: RecordOffsets) -> None:
    record_offsets.expected("m2", 7)
    assert (7, 10) == (record_offsets.number(START_2), record_offsets.number(END_2))


def test_number_is_itself(record_offsets: RecordOffsets) -> None:
    assert 4 == record_offsets.number(4)
