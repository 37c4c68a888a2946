"""A simulated payload represents the batch that a real client would have sent."""

from __future__ import annotations

from pathlib import Path

from targets.simulator.broker.storage.disk import scan
from targets.simulator.broker.storage.log import SimLog
from targets.simulator.broker.storage.records import content_of, make_batch, placed, with_only
from tests.simulator.worlds import TP
from tests.targets.kafka_family.logs import build
from tests.targets.kafka_family.logs.scans import scan_partition


def test_batch_counts_its_records_from_zero_and_has_no_epoch() -> None:
    batch = make_batch(["a", "b", "c"], codec="gzip", timestamp_ms=5)
    assert (0, 2, 3, -1) == (batch.base_offset, batch.last_offset, batch.next_offset, batch.leader_epoch)
    content = content_of(batch.payload)
    values = [(delta, value) for delta, _, value in content.records]
    assert ("gzip", 5, [(0, "a"), (1, "b"), (2, "c")]) == (content.codec, content.timestamp_ms, values)


def test_compacted_batch_keeps_its_offsets_and_some_records() -> None:
    batch = placed(make_batch(["a", "b", "c"], timestamp_ms=5), 7, 3)
    left = with_only(batch, {1})
    assert (7, 9, 3) == (left.base_offset, left.last_offset, left.leader_epoch)
    assert (3, [(1, "b")]) == (
        content_of(left.payload).count,
        [(delta, value) for delta, _, value in content_of(left.payload).records],
    )
    assert left.size < batch.size
    assert make_batch(["b"], timestamp_ms=5).size == left.size


def test_placed_batch_keeps_its_checksum_and_payload() -> None:
    batch = make_batch(["a", "b"], timestamp_ms=5)
    stored = placed(batch, 7, 3)
    assert (7, 8, 3) == (stored.base_offset, stored.last_offset, stored.leader_epoch)
    assert (batch.crc, batch.size, batch.payload) == (stored.crc, stored.size, stored.payload)
    assert make_batch(["a", "c"], timestamp_ms=5).crc != batch.crc


def test_log_is_seen_as_the_log_reader_sees_a_real_one(tmp_path: Path) -> None:
    real = scan_partition(build.partition(tmp_path, build.batch(0, "a", "b"), build.batch(2, "ü", epoch=1)))
    log = SimLog(TP, segment_bytes=1000)
    log.append_as_leader([make_batch(["a", "b"], timestamp_ms=build.TIME_MS)], 0)
    log.append_as_leader([make_batch(["ü"], timestamp_ms=build.TIME_MS)], 1)
    ours = scan(log, None)
    assert [batch.records for batch in real.batches] == [batch.records for batch in ours.batches]
    for name in ("base", "last", "epoch", "magic", "codec", "segment", "problem", "control"):
        expected = [getattr(batch, name) for batch in real.batches]
        assert expected == [getattr(batch, name) for batch in ours.batches], name
    for name in ("log_start_offset", "log_end_offset", "epochs", "high_watermark", "problems", "unread"):
        assert getattr(real, name) == getattr(ours, name), name
