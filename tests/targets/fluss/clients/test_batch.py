"""Batches that a client sends are those that the log reader reads, and it reads those that servers wrote."""

from __future__ import annotations

import struct
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from targets.fluss.clients.batch import NoBatch, read, written
from tests.targets.fluss.logs import build
from tests.targets.fluss.logs.scans import GOLDEN, scan, values

TEXTS = st.lists(st.text(max_size=30), min_size=1, max_size=20)
CRC = slice(21, 25)
COUNT_AT = 44


@given(TEXTS)
def test_values_are_read_as_they_were_written(texts: list[str]) -> None:
    assert list(enumerate(texts)) == [*read(written([text.encode() for text in texts]))]


def test_batch_that_is_written_is_sound_to_the_log_reader(tmp_path: Path) -> None:
    batch = written([b"m1.0", b"", "ü".encode()])
    build.bucket(tmp_path, (0, [batch]))
    log = scan(tmp_path)
    assert ((), (), 3) == (log.problems, log.unread, log.log_end_offset)
    (found,) = log.batches
    assert (["m1.0", "", "ü"], "") == (values(log), found.problem)


def test_batch_has_no_writer_so_that_no_server_takes_it_for_one_sent_before() -> None:
    batch = written([b"m"])
    assert (0, len(batch) - 12, 0) == struct.unpack_from("<qib", batch)
    assert (1, 1, 0, -1, -1, 1) == struct.unpack_from("<hbiqii", batch, 25)
    assert batch == written([b"m"])


@pytest.mark.parametrize(
    ("topic", "bucket", "path"),
    [
        ("records", 0, "records-0/log-0"),
        ("records", 1, "records-0/log-1"),
        ("lz4", 0, "lz4-1/log-0"),
        ("keys", 0, "keys-4/log-0"),
    ],
)
@pytest.mark.parametrize("server", ["0", "1"])
def test_what_servers_wrote_is_what_the_log_reader_reads_of_it(
    server: str, topic: str, bucket: int, path: str
) -> None:
    log = scan(GOLDEN / server, topic, bucket)
    expected = [(offset, value or "") for batch in log.batches for offset, _, value in batch.records]
    # The log reader shows a batch without records as one, so that it is compared; a consumer sees nothing of it.
    expected = [record for record in expected if record[1] != "empty batch"]
    segments = sorted((GOLDEN / server / "fencepost" / path).glob("*.log"))
    found = [record for segment in segments for record in read(segment.read_bytes())]
    assert len(found) >= 60
    assert expected == found


@pytest.mark.parametrize("magic", [0, 1])
def test_batches_keep_the_offsets_that_the_server_gave_them(magic: int) -> None:
    first = build.batch(5, "a", "b", magic=magic, epoch=3)
    second = build.batch(9, "c", None, magic=magic, epoch=4, changes=b"\0\0")
    assert [(5, "a"), (6, "b"), (9, "c"), (10, "")] == [*read(first + second)]


def test_batch_that_is_cut_short_is_left_out_and_those_before_it_are_not() -> None:
    first, second = build.batch(0, "a"), build.batch(1, "b")
    for size in range(len(second)):
        assert [(0, "a")] == [*read(first + second[:size])]
    assert [(0, "a"), (1, "b")] == [*read(first + second)]


@pytest.mark.parametrize("length", [-(2**31), -1, 0, 34])
def test_length_that_no_batch_has_is_refused(length: int) -> None:
    batch = bytearray(written([b"m"]))
    struct.pack_into("<i", batch, 8, length)
    with pytest.raises(NoBatch, match=f"batch of {length} bytes with magic 0 at byte 0; expected"):
        list(read(bytes(batch)))


def test_other_magic_and_other_columns_are_refused() -> None:
    batch = bytearray(written([b"m"]))
    batch[12] = 2
    with pytest.raises(NoBatch, match="with magic 2 at byte 0; expected magic 0 or 1"):
        list(read(bytes(batch)))
    with pytest.raises(NoBatch, match=r"batch at offset 7: .*; expected a column of text"):
        list(read(build.batch(7, "a", arrow=b"no arrow")))


@pytest.mark.parametrize("magic", [0, 1])
def test_damaged_batch_is_refused_or_read_and_nothing_else_is_raised(magic: int) -> None:
    batch = build.batch(0, "one", "two", magic=magic)
    for at in range(len(batch)):
        for lie in {0, 0x7F, 0x80, 0xFF, batch[at] ^ 1}:
            with suppress(NoBatch):
                list(read(batch[:at] + bytes((lie,)) + batch[at + 1 :]))
