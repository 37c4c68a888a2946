"""Batches with keys for the tests of compaction, and what is left of them in a log."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from targets.broker.core.messages import NO_PRODUCER_ID, Batch
from targets.broker.core.tombstones import TombstoneDelay
from targets.broker.log import FileLog
from targets.broker.log.batch import HEADER_BYTES, batch_of, build, parse_header
from targets.kafka_family.logs.message_set import records_of, walk
from tests.broker.log.batches import COMPRESSORS, raw_batch, raw_record

# A key and a value, None for none.
Pair = tuple[str | None, str | None]


def keyed(*pairs: Pair, codec: int = 0, timestamp: int = 1000, attributes: int = 0) -> Batch:
    """Return a producer's batch of records with these keys and values."""
    records = b"".join(
        raw_record(delta, key=_bytes(key), value=_bytes(value)) for delta, (key, value) in enumerate(pairs)
    )
    text = COMPRESSORS[codec](records)
    raw = raw_batch(count=len(pairs), text=text, timestamp=timestamp, attributes=codec | attributes)
    return batch_of(parse_header(raw), raw)


def numbered(batch: Batch, producer: int, sequence: int = 0) -> Batch:
    """Return a batch as an idempotent producer sends it; as it is if that is -1."""
    if producer == NO_PRODUCER_ID:
        return batch
    raw = bytes(batch.payload)
    header = replace(parse_header(raw), producer_id=producer, producer_epoch=0, base_sequence=sequence)
    made = build(header, raw[HEADER_BYTES:])
    return batch_of(parse_header(made), made)


def append(log: FileLog, *batches: Sequence[Pair], codec: int = 0, epoch: int = 0, timestamp: int = 1000) -> None:
    """Append a batch for each sequence of pairs."""
    for pairs in batches:
        log.append_as_leader([keyed(*pairs, codec=codec, timestamp=timestamp)], epoch)


def held(log: FileLog) -> dict[int, Pair]:
    """Return the key and the value at each offset of a log."""
    found: dict[int, Pair] = {}
    for batch in log.read(log.start_offset, log.end_offset, 1 << 30):
        for header in walk(bytes(batch.payload)).headers:
            for record in records_of(header):
                found[record.offset] = (_text(record.key), _text(record.value))
    return found


# A tombstone goes as soon as the times of the files allow it.
AT_ONCE = TombstoneDelay(0)


def clean_all(
    log: FileLog, upto: int | None = None, *, delay: TombstoneDelay = AT_ONCE, step: int = 1 << 30
) -> int:
    """Clean a log to the end of a cleaning; return how many steps that took."""
    steps = 1
    while log.clean(log.end_offset if upto is None else upto, delay, step).more:
        steps += 1
    return steps


def _bytes(text: str | None) -> bytes | None:
    return None if text is None else text.encode()


def _text(data: bytes | None) -> str | None:
    return None if data is None else data.decode()
