"""A log of single records is read as one of batches: compared, followed, and reported where it cannot be read."""

from __future__ import annotations

from collections.abc import Iterator

from harness.logs.compare import compare
from harness.logs.lineage import LineageSegment
from harness.logs.record import Record
from harness.logs.replica import ReplicaLog, snapshot_events
from harness.logs.stream import RecordsReading, Unread, read_whole
from harness.model import Verdict

ONE = Record(offset=0, epoch=1, value=b"a")
TWO = Record(offset=1, epoch=2, value=b"b")


def whole(*records: Record | Unread, start: int = 0) -> ReplicaLog:
    return read_whole(lambda: RecordsReading("t", 0, records, start=start, epochs=[(1, 0)], high_watermark=1))


def test_each_record_is_a_batch_of_its_own() -> None:
    log = whole(ONE, TWO)
    assert (0, 2, 1, ((1, 0),)) == (log.log_start_offset, log.log_end_offset, log.high_watermark, log.epochs)
    assert [(0, 0, 1), (1, 1, 2)] == [(batch.base, batch.last, batch.epoch) for batch in log.batches]
    assert [((0, ONE.digest, "a"),), ((1, TWO.digest, "b"),)] == [batch.records for batch in log.batches]
    assert all(batch.single for batch in log.batches)
    assert 3 == len(snapshot_events(log))


def test_record_without_an_epoch_has_a_format_without_epochs() -> None:
    (batch,) = whole(Record(offset=0, value=b"a")).batches
    assert (-1, 1) == (batch.epoch, batch.magic)


def test_empty_log_begins_and_ends_at_its_start() -> None:
    log = whole(start=7)
    assert (7, 7, (), ()) == (log.log_start_offset, log.log_end_offset, log.batches, log.problems)


def test_what_could_not_be_read_is_no_hole() -> None:
    log = whole(ONE, Unread(why="log, line 2: no number", first=1, end=2), Record(offset=2, epoch=2, value=b"c"))
    assert (("log, line 2: no number",), ((1, 2),), 3) == (log.problems, log.unread, log.log_end_offset)


def test_logs_are_compared_by_content_and_their_histories_fork() -> None:
    other = Record(offset=1, epoch=3, value=b"x")
    found = compare(
        "t-0",
        {name: lambda last=last: RecordsReading("t", 0, [ONE, last]) for name, last in (("A", TWO), ("B", other))},
    )
    assert Verdict.INVALID is found.verdict
    assert [(1, 2)] == [(each.first, each.end) for each in found.differences]
    assert [(("A",), ("B",))] == [fork.branches for fork in found.forks]
    assert (LineageSegment(epoch=1, start=0, end=1), LineageSegment(epoch=2, start=1, end=2)) == (
        found.replicas["A"].lineage
    )


def test_value_is_cut_for_a_comparison_and_told_with_the_rest_of_its_record() -> None:
    (batch,) = RecordsReading("t", 0, [Record(offset=0, key=b"k", value=b"v" * 99)]).batches(3)
    assert "vvv…" == batch.records[0][2]
    assert "key 'k'" in batch.about[0]
    assert "99 bytes" in batch.about[0]


def test_iterator_is_closed_with_the_reading() -> None:
    closed = []

    def records() -> Iterator[Record]:
        try:
            yield ONE
            yield TWO
        finally:
            closed.append(True)

    reading = RecordsReading("t", 0, records())
    next(reading.batches(None))
    reading.close()
    assert [True] == closed
