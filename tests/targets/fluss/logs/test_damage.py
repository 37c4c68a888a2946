"""Damage of a segment is reported, and neither raised nor overlooked; what is sound around it is read."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness import limits
from harness.logs.lineage import holes
from harness.logs.replica import ReplicaLog
from harness.logs.source import BytesSource
from harness.logs.walking import Stop
from targets.fluss.logs.batch import headers
from tests.targets.fluss.logs.build import batch, bucket, stamp, texts
from tests.targets.fluss.logs.scans import scan, values

COMMIT_TIME = range(13, 21)
EPOCH = range(21, 25)
WHOLE = tuple(batch(at, f"m{at}") for at in range(3))


def written(data: Path, *batches: bytes) -> ReplicaLog:
    bucket(data, (0, batches))
    return scan(data)


def is_noticed(log: ReplicaLog, end: int) -> bool:
    """Whether the log is told from a sound one: by a problem, a hole, or where it ends."""
    wrong = log.problems or log.unread or any(each.problem for each in log.batches)
    return bool(wrong or holes(log) or log.log_end_offset != end)


@pytest.mark.parametrize("magic", [0, 1])
def test_every_flipped_byte_is_noticed_or_changes_nothing_that_is_compared(tmp_path: Path, magic: int) -> None:
    """The checksum does not cover the commit time and the epoch; the epoch is compared, and the time is not."""
    batches = [batch(at, f"m{at}", magic=magic, epoch=7) for at in range(3)]
    sound = written(tmp_path, *batches)
    data = b"".join(batches)
    size = len(batches[0])
    path = tmp_path / "fencepost" / "t-0" / "log-0" / f"{0:020d}.log"
    for at in range(len(data)):
        path.write_bytes(data[:at] + bytes((data[at] ^ 0x01,)) + data[at + 1 :])
        log = scan(tmp_path)
        if at % size in COMMIT_TIME:
            assert sound == log
        elif magic and at % size in EPOCH:
            assert [b.records for b in sound.batches] == [b.records for b in log.batches]
            assert [b.epoch for b in sound.batches] != [b.epoch for b in log.batches]
        else:
            assert is_noticed(log, 3), at


def test_log_that_is_cut_at_any_byte_has_its_whole_batches_and_a_torn_tail(tmp_path: Path) -> None:
    data = b"".join(WHOLE)
    path = bucket(tmp_path, (0, [])) / f"{0:020d}.log"
    for at in range(len(data)):
        path.write_bytes(data[:at])
        log = scan(tmp_path)
        whole = at // len(WHOLE[0])
        assert whole == log.log_end_offset
        torn = at % len(WHOLE[0]) > 0
        assert ([(whole, None)] if torn else []) == list(log.unread)
        # The first bytes of the first batch are zeros.
        assert torn == any("torn" in each or "all zero" in each for each in log.problems)


@pytest.mark.parametrize("garbled", [0, 1, 2])
def test_reading_goes_on_behind_a_damaged_batch(tmp_path: Path, garbled: int) -> None:
    batches = [bytearray(each) for each in WHOLE]
    batches[garbled][-1] ^= 1
    log = written(tmp_path, *map(bytes, batches))
    assert [f"m{at}" for at in range(3) if at != garbled] == values(log)
    assert (((garbled, garbled + 1),), 3) == (log.unread, log.log_end_offset)
    assert "batch's CRC-32C is" in log.problems[0]


def test_damaged_segment_does_not_end_the_log(tmp_path: Path) -> None:
    bucket(tmp_path, (0, [WHOLE[0], b"\xff" * 70]), (2, [WHOLE[2]]))
    log = scan(tmp_path)
    assert (["m0", "m2"], ((1, 2),), 3) == (values(log), log.unread, log.log_end_offset)


@pytest.mark.parametrize(
    ("length", "text"),
    [
        (-1, "batch length is -1; expected at least 36"),
        (0, "batch length is 0; expected at least 36"),
        (35, "batch length is 35; expected at least 36"),
        (2**31 - 1, "torn, batch length is 2147483647"),
    ],
)
def test_length_that_lies_ends_the_segment(tmp_path: Path, length: int, text: str) -> None:
    lying = WHOLE[1][:8] + struct.pack("<i", length) + WHOLE[1][12:]
    log = written(tmp_path, WHOLE[0], lying, WHOLE[2])
    assert (["m0"], ((1, None),)) == (values(log), log.unread)
    assert text in log.problems[0]


def test_batch_that_is_larger_than_the_limit_is_not_taken_into_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "LOG_BATCH_BYTES_MAX", 1000)
    log = written(tmp_path, WHOLE[0], batch(1, "x" * 2000))
    assert (["m0"], ((1, None),)) == (values(log), log.unread)
    assert "this reader takes at most 1000" in log.problems[0]


def test_unknown_format_ends_the_segment(tmp_path: Path) -> None:
    log = written(tmp_path, WHOLE[0], batch(1, "x", magic=2), WHOLE[2])
    assert (["m0"], ((1, None),)) == (values(log), log.unread)
    assert "magic is 2; expected 0 or 1" in log.problems[0]


def test_format_with_epochs_has_them(tmp_path: Path) -> None:
    log = written(tmp_path, batch(0, "a"), batch(1, "b", magic=1, epoch=3))
    assert [(1, -1), (2, 3)] == [(each.magic, each.epoch) for each in log.batches]
    assert (["a", "b"], ()) == (values(log), log.problems)


def test_zeros_behind_the_log_are_reported(tmp_path: Path) -> None:
    log = written(tmp_path, WHOLE[0], bytes(500))
    assert (1, ((1, None),)) == (log.log_end_offset, log.unread)
    assert "500 bytes, all zero, to the end of the file" in log.problems[0]


def test_offsets_that_go_back_are_a_problem_of_their_batch(tmp_path: Path) -> None:
    log = written(tmp_path, WHOLE[0], WHOLE[1], WHOLE[0])
    assert ["", "", "base offset is 0; expected 2 or later, the end of the batch before it"] == [
        each.problem for each in log.batches
    ]
    assert 2 == log.log_end_offset


@pytest.mark.parametrize(
    ("count", "delta", "text"),
    [
        (-1, 0, "the batch has -1 records; expected 1"),
        (2, 0, "the batch has 2 records; expected 1"),
        (1, 4, "the batch has 1 records; expected 5"),
        (3_000_000, 2_999_999, "this reader takes at most"),
        (0, 2**31 - 2, "this reader takes at most"),
    ],
)
def test_count_that_contradicts_the_offsets_leaves_the_records_unread(
    tmp_path: Path, count: int, delta: int, text: str
) -> None:
    log = written(tmp_path, batch(0, "a", count=count, delta=delta))
    assert ([], ((0, delta + 1),), delta + 1) == (values(log), log.unread, log.log_end_offset)
    assert text in log.problems[0]


def test_last_offset_before_the_first_is_a_problem(tmp_path: Path) -> None:
    log = written(tmp_path, batch(0, "a", delta=-3))
    assert "last offset delta is -3; expected 0 or more" == log.batches[0].problem
    assert [] == values(log)


def test_tail_that_grows_is_read_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A tablet server at work: between two readings it ends the write that the first one saw half of."""
    path = bucket(tmp_path, (0, [WHOLE[0], WHOLE[1][:30]])) / f"{0:020d}.log"

    def ended(source: BytesSource, next_offset: int) -> object:
        yield from headers(source, next_offset)
        path.write_bytes(b"".join(WHOLE))

    monkeypatch.setattr("targets.fluss.logs.scan.headers", ended)
    log = scan(tmp_path)
    assert (["m0", "m1", "m2"], ()) == (values(log), log.problems)


@given(st.binary(max_size=300), st.integers(0, 2))
def test_walk_raises_nothing_whatever_the_bytes_are(tail: bytes, before: int) -> None:
    found = list(headers(BytesSource(b"".join(WHOLE[:before]) + tail), 0))
    assert before <= len([each for each in found if not isinstance(each, Stop)])


@given(st.binary(max_size=200), st.booleans(), st.integers(0, 5))
def test_sound_batch_of_any_bytes_has_a_value_for_each_record(payload: bytes, append: bool, count: int) -> None:
    from targets.fluss.logs.records import rotting, seen

    body = struct.pack("<hbiqii", 1, append, max(count - 1, 0), -1, -1, count) + payload
    (found,) = headers(BytesSource(stamp(0, body)), 0)
    assert not isinstance(found, Stop)
    batch = seen(found, "x", value_characters_max=None, remark=lambda text: None)
    assert (max(count, 1), "") == (len(batch.records), batch.unopened)
    assert 0 < rotting(found) < found.size


@pytest.mark.parametrize("codec", [None, "zstd", "lz4"])
def test_every_changed_byte_of_a_message_gives_values_or_a_digest(tmp_path: Path, codec: str | None) -> None:
    """The checksum is right: a writer sent it so."""
    sent = texts("a", None, "c" * 99, codec=codec)
    changed = [
        sent[:at] + bytes((sent[at] ^ bit,)) + sent[at + 1 :] for at in range(len(sent)) for bit in (1, 128)
    ]
    log = written(tmp_path, *(batch(3 * at, "", "", "", arrow=each) for at, each in enumerate(changed)))
    assert ((), ()) == (log.problems, log.unread)
    assert {3} == {len(each.records) for each in log.batches}
