from __future__ import annotations

import struct
import subprocess
import sys
import textwrap
from collections.abc import Callable
from random import Random

import cramjam
import pytest
from crc32c import crc32c

from targets.broker.core.messages import ErrorCode
from targets.broker.limits import Limits
from targets.broker.log import HeavyError, split_produced
from targets.kafka_family.clients.batches import CODECS, write_batch
from tests.broker.log.batches import COMPRESSORS, produced_batch, raw_batch, raw_record, raw_records

INVALID = ErrorCode.INVALID_RECORD


def test_split_gives_views_of_every_batch_in_order() -> None:
    data = produced_batch(count=2) + produced_batch(count=3)
    batches, error, text = split_produced(data)
    assert (ErrorCode.NONE, "") == (error, text)
    assert [(0, 1), (0, 2)] == [(b.base_offset, b.last_offset) for b in batches]
    assert data == b"".join(bytes(b.payload) for b in batches)
    assert all(isinstance(b.payload, memoryview) and b.payload.obj is data for b in batches)


@pytest.mark.parametrize(
    ("data", "error", "words"),
    [
        (raw_batch(magic=1), ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT, "magic 1"),
        (raw_batch(magic=0), ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT, "magic 0"),
        (raw_batch(magic=3), ErrorCode.CORRUPT_MESSAGE, "magic 3"),
        (raw_batch()[:-1], ErrorCode.CORRUPT_MESSAGE, "torn"),
        (raw_batch()[:60], ErrorCode.CORRUPT_MESSAGE, "torn"),
        (produced_batch() + bytes(5), ErrorCode.CORRUPT_MESSAGE, "byte 69 of 74: zeros"),
        (produced_batch() + bytes(80), ErrorCode.CORRUPT_MESSAGE, "zeros"),
        (raw_batch()[:-1] + b"x", ErrorCode.CORRUPT_MESSAGE, "crc"),
        (raw_batch()[:11] + b"\x30" + raw_batch()[12:], ErrorCode.CORRUPT_MESSAGE, "length"),
        (produced_batch(base=5), INVALID, "base offset 5"),
        (produced_batch(count=3, delta=1), INVALID, "3 records over 2 offsets"),
        (raw_batch(count=0, delta=-1), INVALID, "last offset delta -1"),
        (raw_batch(count=0, delta=0), INVALID, "0 records; expected at least one"),
        (raw_batch(count=-5, delta=0), INVALID, "-5 records; expected at least one"),
        (raw_batch(count=2**31 - 1), INVALID, "2147483647 records in 1 bytes; expected at least 7 for each"),
        (raw_batch(attributes=5), INVALID, "codec 5"),
        (raw_batch(attributes=0x20), INVALID, "control"),
        (raw_batch(attributes=0x10), INVALID, "transactional"),
        (b"", INVALID, "at least one"),
    ],
)
def test_produced_bytes_are_refused_with_a_reason(data: bytes, error: ErrorCode, words: str) -> None:
    batches, found, text = split_produced(data)
    assert ((), error) == (batches, found)
    assert words in text


@pytest.mark.parametrize("codec", COMPRESSORS)
@pytest.mark.parametrize(
    ("count", "records", "words"),
    [
        (1, raw_records(2), "1 records end at byte 8 of 16"),
        (2, raw_records(1) + bytes(8), "record at byte 8: offset delta 0; expected 1"),
        (3, raw_records(2) + bytes(7), "record at byte 16: offset delta 0; expected 2"),
        (2, raw_record(0) + raw_record(2), "record at byte 8: offset delta 2; expected 1"),
        (2, raw_record(1) + raw_record(0), "record at byte 0: offset delta 1; expected 0"),
        (2, raw_record(0) + raw_record(1)[:-1], "15 bytes end within a record; expected 2 whole ones"),
        (3, raw_records(2), "3 records in 16 bytes"),
    ],
)
def test_count_that_the_records_deny_is_refused_under_every_codec(
    codec: int, count: int, records: bytes, words: str
) -> None:
    """Source: Kafka, LogValidator and DefaultRecordBatch.RecordIterator."""
    batches, error, text = split_produced(produced_batch(count=count, codec=codec, records=records))
    assert ((), INVALID) == (batches, error)
    assert words in text


@pytest.mark.parametrize("codec", COMPRESSORS)
def test_produced_batch_is_accepted_under_every_codec(codec: int) -> None:
    assert ErrorCode.NONE == split_produced(produced_batch(count=9000, codec=codec))[1]


@pytest.mark.parametrize("codec", CODECS)
def test_batches_of_our_own_clients_are_accepted(codec: str) -> None:
    values = [b"%d" % at * (at % 300) for at in range(700)]
    assert ErrorCode.NONE == split_produced(write_batch(values, codec))[1]


def test_header_of_an_idempotent_producer_is_accepted() -> None:
    raw = bytearray(produced_batch(count=2))
    struct.pack_into(">qhi", raw, 43, 4711, 3, 12)
    struct.pack_into(">I", raw, 17, crc32c(bytes(raw[21:])))
    assert ErrorCode.NONE == split_produced(bytes(raw))[1]


def test_snappy_is_accepted_in_the_blocks_of_java_clients_too() -> None:
    assert ErrorCode.NONE == split_produced(raw_batch(count=500, text=xerial(raw_records(500)), attributes=2))[1]


def test_batch_above_the_limit_is_too_large() -> None:
    """Source: Kafka, UnifiedLog.analyzeAndValidateRecords; message.max.bytes."""
    fits = produced_batch(records=raw_record(0, value=bytes(900)))
    limits = Limits(message_bytes_max=len(fits))
    assert ErrorCode.NONE == split_produced(fits, limits=limits)[1]
    batches, error, text = split_produced(
        fits + produced_batch(records=raw_record(0, value=bytes(901))), limits=limits
    )
    assert ((), ErrorCode.MESSAGE_TOO_LARGE) == (batches, error)
    assert f"batch at byte {len(fits)}: {len(fits) + 1} bytes; expected at most {len(fits)}" == text


class TestCompressed:
    @pytest.mark.parametrize("codec", [1, 2, 3, 4])
    def test_batch_that_opens_to_more_than_the_limit_is_refused(self, codec: int) -> None:
        records = raw_record(0, value=bytes(100_000))
        raw = produced_batch(codec=codec, records=records)
        assert ErrorCode.NONE == split_produced(raw, limits=Limits(batch_opened_bytes_max=len(records)))[1]
        batches, error, text = split_produced(raw, limits=Limits(batch_opened_bytes_max=len(records) - 1))
        assert ((), INVALID) == (batches, error)
        assert f"open to more than {len(records) - 1} bytes" in text

    def test_snappy_blocks_that_open_to_more_than_the_limit_together_are_refused(self) -> None:
        records = raw_record(0, value=bytes(100_000))
        raw = raw_batch(text=xerial(records), attributes=2)
        assert ErrorCode.NONE == split_produced(raw, limits=Limits(batch_opened_bytes_max=len(records)))[1]
        assert INVALID == split_produced(raw, limits=Limits(batch_opened_bytes_max=len(records) - 1))[1]

    @pytest.mark.parametrize("codec", [1, 2, 3, 4])
    @pytest.mark.parametrize("change", [lambda data: data[:-9], lambda data: b"", lambda data: b"junk" * 9])
    def test_bytes_that_do_not_open_are_refused_for_good(
        self, codec: int, change: Callable[[bytes], bytes]
    ) -> None:
        data = change(COMPRESSORS[codec](raw_records(100)))
        batches, error, text = split_produced(raw_batch(count=100, text=data, attributes=codec))
        assert ((), INVALID) == (batches, error)
        assert "do not decompress" in text

    @pytest.mark.parametrize("size", [-1, 5, 2**31 - 1])
    def test_snappy_block_that_lies_about_its_length_is_refused(self, size: int) -> None:
        data = b"\x82SNAPPY\x00" + bytes(8) + struct.pack(">i", size) + bytes(4)
        _, error, text = split_produced(raw_batch(text=data, attributes=2))
        assert INVALID == error
        assert f"a block of {size} bytes; expected 0 to 4" in text

    def test_snappy_block_that_claims_four_gigabytes_is_refused(self) -> None:
        assert INVALID == split_produced(raw_batch(text=b"\xff\xff\xff\xff\x0f" + bytes(9), attributes=2))[1]

    @pytest.mark.parametrize("codec", [1, 3, 4])
    def test_batch_that_would_open_to_gigabytes_takes_no_more_memory_than_the_limit(self, codec: int) -> None:
        """A process of its own, which may map 400 MB more than it has after its imports."""
        program = f"""
            import resource
            from targets.broker.log import split_produced
            from tests.broker.log import bombs
            raw = bombs.BOMBS[{codec}]()
            assert len(raw) < 1_048_588, len(raw)
            pages = int(open("/proc/self/statm").read().split()[0])
            most = pages * resource.getpagesize() + 400_000_000
            resource.setrlimit(resource.RLIMIT_AS, (most, most))
            _, error, text = split_produced(raw)
            print(error.name, text)
        """
        done = subprocess.run(
            [sys.executable, "-c", textwrap.dedent(program)], capture_output=True, text=True, check=False
        )
        assert 0 == done.returncode, done.stderr
        assert "INVALID_RECORD batch at byte 0: records open to more than 16777216 bytes" in done.stdout


class TestWork:
    def test_more_records_than_allowed_at_once_are_not_walked(self) -> None:
        data = produced_batch(count=500) + produced_batch(count=500, records=b"no record" * 400)
        assert INVALID == split_produced(data)[1]
        with pytest.raises(HeavyError, match="1020 records and more"):
            split_produced(data, work_max=1019)
        assert INVALID == split_produced(data, work_max=1020)[1]

    def test_many_batches_are_work_too(self) -> None:
        data = produced_batch() * 100
        assert ErrorCode.NONE == split_produced(data, work_max=1100)[1]
        with pytest.raises(HeavyError):
            split_produced(data, work_max=1099)

    @pytest.mark.parametrize("codec", [1, 2, 3, 4])
    def test_opened_bytes_are_work(self, codec: int) -> None:
        raw = produced_batch(codec=codec, records=raw_record(0, value=bytes(1 << 20)))
        with pytest.raises(HeavyError, match="open to more than"):
            split_produced(raw, work_max=(1 << 16))
        assert ErrorCode.NONE == split_produced(raw, work_max=(1 << 16) + 100)[1]

    def test_compressed_bytes_are_work_before_they_are_opened(self) -> None:
        records = raw_record(0, value=Random(1).randbytes(100_000))
        with pytest.raises(HeavyError, match="records and more"):
            split_produced(produced_batch(codec=3, records=records), work_max=6000)

    def test_headers_of_records_are_work(self) -> None:
        raw = produced_batch(records=raw_record(0, headers=[(b"", None)] * 1000))
        assert ErrorCode.NONE == split_produced(raw, work_max=1011)[1]
        with pytest.raises(HeavyError, match="1000 headers"):
            split_produced(raw, work_max=1010)

    def test_a_count_that_lies_is_no_work(self) -> None:
        for codec in (0, 4):
            _, error, text = split_produced(raw_batch(count=2**31 - 1, attributes=codec), work_max=10)
            assert INVALID == error
            assert "2147483647 records in" in text


def xerial(data: bytes) -> bytes:
    blocks = [bytes(cramjam.snappy.compress_raw(data[at : at + 700])) for at in range(0, len(data), 700)]
    return b"\x82SNAPPY\x00" + bytes(8) + b"".join(struct.pack(">i", len(block)) + block for block in blocks)
