from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from targets.broker.core.messages import ErrorCode
from targets.broker.log.batch import (
    HEADER_BYTES,
    Damage,
    batch_of,
    examine,
    max_timestamp_of,
    parse_header,
    stamp,
)
from targets.broker.log.produced import split_produced
from targets.broker.log.stored import split_stored
from tests.broker.log.batches import drawn, raw_batch


def test_header_reads_every_field_from_its_place() -> None:
    """Source: Kafka, DefaultRecordBatch."""
    raw = bytes(range(61))
    header = parse_header(raw)
    expected = {
        "base_offset": (0, 8),
        "length": (8, 12),
        "leader_epoch": (12, 16),
        "magic": (16, 17),
        "crc": (17, 21),
        "attributes": (21, 23),
        "last_offset_delta": (23, 27),
        "base_timestamp": (27, 35),
        "max_timestamp": (35, 43),
        "producer_id": (43, 51),
        "producer_epoch": (51, 53),
        "base_sequence": (53, 57),
        "count": (57, 61),
    }
    for name, (first, end) in expected.items():
        assert int.from_bytes(raw[first:end]) == getattr(header, name), name


def test_greatest_timestamp_is_read_from_its_place() -> None:
    raw = raw_batch(count=4, timestamp=1 << 40)
    assert (1 << 40) + 3 == max_timestamp_of(raw) == parse_header(raw).max_timestamp


def test_stamp_changes_offset_and_epoch_and_keeps_the_crc_true() -> None:
    """Source: KIP-101, steps 1 and 3."""
    raw = raw_batch(count=4, text=b"abc")
    batch, pieces = stamp(batch_of(parse_header(raw), raw), 1 << 40, 7)
    written = b"".join(pieces)
    (found,), error, _ = split_stored(written)
    assert ErrorCode.NONE == error
    assert (1 << 40, (1 << 40) + 3, 7) == (found.base_offset, found.last_offset, found.leader_epoch)
    assert replace(found, payload=b"") == replace(batch, payload=b"")
    assert raw[16:] == written[16:]
    assert isinstance(pieces[-1], memoryview) and pieces[-1].obj is raw
    assert raw_batch(count=4, text=b"abc") == raw


def test_stored_batches_may_begin_anywhere_and_leave_gaps_but_never_fall() -> None:
    rising = raw_batch(base=5, count=2) + raw_batch(base=9)
    assert [(5, 6), (9, 9)] == [(b.base_offset, b.last_offset) for b in split_stored(rising)[0]]
    batches, error, text = split_stored(raw_batch(base=5, count=2) + raw_batch(base=6))
    assert ((), ErrorCode.INVALID_RECORD) == (batches, error)
    assert "base offset 6; expected at least 7" in text
    assert ((), ErrorCode.NONE, "") == split_stored(b"")


def test_every_flipped_bit_is_seen_except_in_offset_and_epoch() -> None:
    """Source: Kafka, DefaultRecordBatch: the CRC does not cover bytes 0-7 and 12-15."""
    raw = raw_batch(count=2, text=b"abc")
    for at in range(len(raw)):
        for bit in range(8):
            flipped = bytearray(raw)
            flipped[at] ^= 1 << bit
            _, error, _ = split_stored(bytes(flipped))
            unprotected = (0 <= at < 8 and (at, bit) != (0, 7)) or 12 <= at < 16
            assert unprotected == (error is ErrorCode.NONE), f"byte {at} bit {bit}: {error!r}"


@drawn
@given(st.binary(max_size=200))
def test_split_never_raises_whatever_the_bytes(data: bytes) -> None:
    for split in (split_produced, split_stored):
        batches, error, text = split(data)
        assert (error is ErrorCode.NONE) == (text == "")
        assert not batches or error is ErrorCode.NONE


@drawn
@given(st.integers(min_value=0, max_value=200))
def test_examine_calls_a_cut_batch_torn_or_zeros(cut: int) -> None:
    raw = raw_batch(base=1, text=b"x" * 139)
    found = examine(raw[: min(cut, HEADER_BYTES)], cut)
    if cut == len(raw):
        assert parse_header(raw) == found
    else:
        assert (Damage.ZEROS if not any(raw[:cut]) else Damage.TORN) == found
