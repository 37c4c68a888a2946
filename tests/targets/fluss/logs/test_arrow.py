"""What an Arrow message claims is refused before a library allocates for it; then its batch is a digest."""

from __future__ import annotations

import struct
import time
import tracemalloc
from pathlib import Path

import pyarrow as pa
import pytest

from harness import limits
from targets.fluss.logs.arrow import ArrowError, text_column
from tests.little_memory import printed_with_little_memory
from tests.targets.fluss.logs.build import batch, bucket, message, texts
from tests.targets.fluss.logs.scans import scan, values

LONG = "same words " * 20
GIGABYTES = 3 << 30


def claiming(opened: int, codec: str = "zstd") -> bytes:
    """Return a message whose data buffer claims to open to so many bytes."""
    sent = texts(LONG, codec=codec)
    # The same number is in the buffer of offsets, which comes before.
    at = sent.rindex(struct.pack("<q", len(LONG)))
    return sent[:at] + struct.pack("<q", opened) + sent[at + 8 :]


@pytest.mark.parametrize("codec", ["zstd", "lz4"])
def test_message_that_claims_gigabytes_is_refused_in_no_memory(tmp_path: Path, codec: str) -> None:
    bucket(tmp_path, (0, [batch(at, LONG, arrow=claiming(GIGABYTES, codec)) for at in range(20)]))
    scan(tmp_path)  # what is imported for the first time takes memory too
    pool, began = pa.total_allocated_bytes(), time.monotonic()
    tracemalloc.start()
    log = scan(tmp_path)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert f"its buffers open to {GIGABYTES + 8} bytes; this reader takes at most 134217728" in log.remarks[0]
    assert [1, 20] == [len(set(values(log))), len(values(log))]  # each batch has the same bytes
    assert (1, pool) == (len(log.remarks), pa.total_allocated_bytes())
    assert peak < 8 << 20
    assert time.monotonic() - began < 5


def test_message_that_claims_gigabytes_is_read_by_a_process_that_has_none(tmp_path: Path) -> None:
    bucket(tmp_path, (0, [batch(0, LONG, arrow=claiming(2**62))]))
    code = "from pathlib import Path\nfrom tests.targets.fluss.logs.scans import scan, values\n"
    code += f"print(values(scan(Path({str(tmp_path)!r}))))"
    assert printed_with_little_memory(code).startswith("['batch ")


def test_limit_is_that_of_all_buffers_together(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "LOG_BATCH_OPENED_BYTES_MAX", len(LONG) + 8)
    with pytest.raises(ArrowError, match=f"open to {len(LONG) + 9} bytes"):
        text_column(memoryview(claiming(len(LONG) + 1)))


@pytest.mark.parametrize("opened", [-2, 0, 5, len(LONG) + 1])
def test_length_when_opened_that_lies_gives_a_digest(tmp_path: Path, opened: int) -> None:
    bucket(tmp_path, (0, [batch(0, LONG, arrow=claiming(opened))]))
    log = scan(tmp_path)
    assert ((), 1) == (log.problems, len(log.remarks))
    assert str(values(log)[0]).startswith("batch ")


def test_buffer_outside_the_body_is_refused() -> None:
    sent = texts("abc")
    at = sent.index(struct.pack("<qq", 8, 3))  # behind two offsets of four bytes
    for pair in ((8, 2**40), (-8, 3), (2**62, 2**62), (8, -1), (14, 3)):
        changed = sent[:at] + struct.pack("<qq", *pair) + sent[at + 16 :]
        with pytest.raises(ArrowError, match="a buffer of"):
            text_column(memoryview(changed))


def test_codec_that_an_older_version_of_metadata_names_is_refused() -> None:
    """A library would open its buffers, which were looked at as plain ones."""
    column = pa.record_batch([pa.array(["a"])], names=["v"])
    old = message(column, version=pa.ipc.MetadataVersion.V4)
    with pytest.raises(ArrowError, match="metadata of version 3"):
        text_column(memoryview(old))


@pytest.mark.parametrize(
    "column",
    [
        pytest.param(pa.array([1, 2]), id="numbers"),
        pytest.param(pa.array([["a"], ["b"]]), id="lists"),
        pytest.param(pa.array(["a", "b"]).dictionary_encode(), id="a dictionary"),
        pytest.param(pa.array(["a", "b"], pa.string_view()), id="views"),
        pytest.param(pa.array([b"\xff", b"b"], pa.binary()), id="bytes that are no text"),
    ],
)
def test_other_column_falls_to_the_digest(tmp_path: Path, column: pa.Array) -> None:
    sent = message(pa.record_batch([column], names=["v"]))
    bucket(tmp_path, (0, [batch(0, "", "", arrow=sent)]))
    log = scan(tmp_path)
    assert ((), 1) == (log.problems, len(log.remarks))
    assert [True, True] == [str(value).startswith("batch ") for value in values(log)]


def test_two_columns_are_no_column_of_text() -> None:
    two = message(pa.record_batch([pa.array(["a"]), pa.array(["b"])], names=["v", "w"]))
    with pytest.raises(ArrowError, match="not one column of text"):
        text_column(memoryview(two))


def test_rows_that_are_not_the_batch_s_records_fall_to_the_digest(tmp_path: Path) -> None:
    bucket(tmp_path, (0, [batch(0, "", "", arrow=texts("a"))]))
    log = scan(tmp_path)
    assert "1 rows; expected 2" in log.remarks[0]
    assert [" #0", " #1"] == [str(value)[-3:] for value in values(log)]


def test_equal_batches_have_equal_digests_wherever_they_stand_and_others_have_not(tmp_path: Path) -> None:
    same, other = (batch(0, "", arrow=text) for text in (b"rows of another format", b"other rows"))
    later = batch(1, "", arrow=b"rows of another format")
    bucket(tmp_path / "a", (0, [same, later]))
    bucket(tmp_path / "b", (0, [other]))
    first, second = values(scan(tmp_path / "a"))
    assert (first, False) == (second, [first] == values(scan(tmp_path / "b")))
    assert str(first).removeprefix("batch ").removesuffix(" #0").isalnum()


def test_change_type_that_there_is_not_falls_to_the_digest(tmp_path: Path) -> None:
    bucket(tmp_path, (0, [batch(0, "a", "b", changes=b"\x01\x02"), batch(2, "c", changes=b"\x09")]))
    log = scan(tmp_path)
    assert ["a", "b"] == values(log)[:2]
    assert "change type of record 0 is 9" in log.remarks[0]
