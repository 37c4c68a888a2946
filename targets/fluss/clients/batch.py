"""
Batches of a log table as a client sends them, and as a server hands them out: an Arrow record batch behind a head.

    base offset (8), length (4), magic (1), commit time (8), CRC-32C (4), schema id (2), attributes (1),
    last offset delta (4), writer id (8), batch sequence (4), count (4); little-endian
    [one byte of change type for each record, unless the batch is append-only], then Arrow, without its schema

The server sets offset and time. This is magic 0; magic 1 has a leader epoch (4) before the CRC.

Source:  DefaultLogRecordBatch.java and MemoryLogRecordsArrowBuilder.java of Fluss 0.9.1; Arrow's IPC format.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from typing import Final

import crc32c

from harness.model import FencepostError
from targets.fluss.tables import arrow_schema

_LOG: Final = struct.Struct("<qib")
_TIME_AND_CRC: Final = struct.Struct("<qI")
_COVERED: Final = struct.Struct("<hbiqii")
_EPOCH_BYTES: Final = 4
_APPEND_ONLY: Final = 1
_SCHEMA_ID: Final = 1
_NO_WRITER: Final = -1


class NoBatch(FencepostError):
    """Bytes that are no batch of a table with one column of text."""


def written(values: Sequence[bytes]) -> bytes:
    """Return one batch of these values, from no writer: the server does not know it again."""
    # Half of the commands have no client, and start sooner without it.
    import pyarrow as pa

    column = pa.array([value.decode() for value in values], pa.string())
    arrow = pa.record_batch([column], schema=arrow_schema()).serialize().to_pybytes()
    count = len(values)
    covered = _COVERED.pack(_SCHEMA_ID, _APPEND_ONLY, count - 1, _NO_WRITER, _NO_WRITER, count) + arrow
    rest = _TIME_AND_CRC.pack(0, crc32c.crc32c(covered)) + covered
    batch: bytes = _LOG.pack(0, 1 + len(rest), 0) + rest
    return batch


def read(data: bytes) -> Iterator[tuple[int, str]]:
    """
    Yield (offset, value) of every record of whole batches; a batch that is cut short at the end is left out.

    Raises:
        NoBatch: a batch is none of this kind.
    """
    at = 0
    while at + _LOG.size <= len(data):
        base, length, magic = _LOG.unpack_from(data, at)
        end = at + _LOG.size - 1 + length
        if length < _TIME_AND_CRC.size + _COVERED.size or magic not in (0, 1):
            raise NoBatch(f"batch of {length} bytes with magic {magic} at byte {at}; expected magic 0 or 1")
        if end > len(data):
            return
        body = at + _LOG.size + _TIME_AND_CRC.size + (_EPOCH_BYTES if magic else 0)
        yield from _records(base, data[body:end])
        at = end


def _records(base: int, covered: bytes) -> Iterator[tuple[int, str]]:
    import pyarrow as pa

    try:
        _, attributes, _, _, _, count = _COVERED.unpack_from(covered)
        if not count:
            return
        arrow = covered[_COVERED.size + (0 if attributes & _APPEND_ONLY else count) :]
        found = pa.ipc.read_record_batch(pa.py_buffer(arrow), arrow_schema())
        found.validate(full=True)
        values = found.column(0).to_pylist()
    except (struct.error, pa.ArrowException, OSError, EOFError) as error:
        raise NoBatch(f"batch at offset {base}: {error}; expected a column of text") from error
    yield from ((base + number, value or "") for number, value in enumerate(values))
