"""Every field of a record is read, and a batch with inconsistent records is refused."""

from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.logs.record import Record
from targets.kafka_family.logs.batch import Header, walk
from targets.kafka_family.logs.codec import CodecError
from targets.kafka_family.logs.records import RecordError, records_of, varint
from tests.targets.kafka_family.logs import build
from tests.targets.kafka_family.logs.build import CODECS, TIME_MS, batch, record, xerial

PAYLOAD = record(0, b"one", key=b"k", time_delta=5, headers=[(b"h", b"x"), (b"n", None)]) + record(1, None)


def only(data: bytes) -> Header:
    """Return the only header of the bytes."""
    (header,) = walk(data).headers
    return header


def test_records_of_gives_time_key_value_and_headers_when_a_record_has_them_all() -> None:
    first, second = records_of(only(batch(40, "", "", payload=PAYLOAD)))
    assert (
        Record(offset=40, timestamp=TIME_MS + 5, key=b"k", value=b"one", headers=((b"h", b"x"), (b"n", None)))
        == first
    )
    assert Record(offset=41, timestamp=TIME_MS, key=None, value=None) == second


@pytest.mark.parametrize("codec", CODECS)
def test_records_of_gives_the_same_records_under_every_codec(codec: str) -> None:
    assert records_of(only(batch(3, "a", "b"))) == records_of(only(batch(3, "a", "b", codec=codec)))


def test_records_of_reads_xerial_frames_when_a_broker_compressed_anew() -> None:
    framed = batch(40, "", "", codec="snappy", payload=xerial(PAYLOAD))
    assert records_of(only(batch(40, "", "", payload=PAYLOAD))) == records_of(only(framed))


def test_records_of_takes_the_batch_s_time_when_the_broker_stamped_it() -> None:
    stamped = records_of(only(batch(0, "a", "b", attributes=0x08)))
    assert [TIME_MS + 7, TIME_MS + 7] == [each.timestamp for each in stamped]


def test_records_of_keeps_the_gap_when_compaction_took_a_record() -> None:
    compacted = batch(10, "", "", last_delta=5, payload=record(1, b"a") + record(4, b"b"))
    assert [11, 14] == [each.offset for each in records_of(only(compacted))]


def test_records_of_refuses_the_batch_when_its_records_are_cut_at_any_byte() -> None:
    for cut in range(len(PAYLOAD)):
        with pytest.raises(RecordError, match=r"record \d|bytes"):
            records_of(only(batch(0, "", "", payload=PAYLOAD[:cut])))


@pytest.mark.parametrize(
    ("payload", "count", "says"),
    [
        (PAYLOAD + b"\x00", 2, "1 bytes follow the last of 2 records"),
        (PAYLOAD, 3, "record 2 of 3"),
        (record(1, b"a") + record(1, b"b"), 2, "record 1 has offset 1; expected 2 to 1"),
        (record(0, b"a") + record(2, b"b"), 2, "record 1 has offset 2; expected 1 to 1"),
        (b"\x01", 1, "length is -1"),
        (b"\xff" * 11, 1, "runs on past 10 bytes"),
    ],
)
def test_records_of_says_what_is_wrong_when_a_batch_does_not_add_up(payload: bytes, count: int, says: str) -> None:
    with pytest.raises(RecordError, match=says):
        records_of(only(batch(0, "", "", payload=payload, count=count)))


@given(st.binary(max_size=80), st.integers(0, 4), st.integers(-1, 4))
def test_records_of_raises_its_own_errors_alone_whatever_a_batch_s_bytes_are(
    payload: bytes, codec: int, count: int
) -> None:
    name = list(CODECS)[codec]
    header = only(batch(0, "", "", codec=name, payload=build.compress(name, payload), count=count))
    with suppress(RecordError, CodecError):
        assert max(count, 0) == len(records_of(header))


@given(st.integers(-(1 << 63), (1 << 63) - 1), st.binary(max_size=3))
def test_varint_reads_back_every_64_bit_number_whatever_follows(number: int, tail: bytes) -> None:
    written = build.varint(number)
    assert (number, 2 + len(written)) == varint(b"xx" + written + tail, 2)
