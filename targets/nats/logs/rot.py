"""Choose a byte of a store's blocks that bit rot may change: one that a checksum covers, so that it is noticed."""

from __future__ import annotations

from harness.bit_rot import RECORD_BIT, Flip, Where
from harness.logs.source import opened
from targets.nats.logs.blocks import Stored, records
from targets.nats.logs.highway import block_key
from targets.nats.logs.store import OpenError, Store


def flip_in(store: Store, where: Where, *, offsets: bool = True) -> Flip | None:
    """
    Choose a byte of the middle record of the newest block, or of the newest older one that has records.

    It is the last byte of the record's body, or of its checksum if that is empty. In a compressed block it is the
    middle byte.

    Args:
        where: Which block; anything but CLOSED is the newest.
        offsets: Whether the sequences are offsets of a log, which a Flip then names.

    Raises:
        OSError: A block cannot be read.
    """
    numbers = list(store.blocks)
    for number in reversed(numbers[:-1] if where is Where.CLOSED else numbers[-1:]):
        found = _places(store, number)
        if not found:
            continue
        position, first, last = found[len(found) // 2]
        with opened(store.folder, store.blocks[number]) as source:
            if store.is_compressed(number):
                position, first, last = source.size // 2, found[0][1], found[-1][2]
            (before,) = source.at(position, 1)
        path = f"{store.path}/{store.blocks[number]}"
        after = before ^ RECORD_BIT
        if not offsets:
            return Flip(path=path, position=position, before=before, after=after)
        return Flip(path=path, position=position, before=before, after=after, base=first, last=last)
    return None


def _places(store: Store, number: int) -> list[tuple[int, int, int]]:
    """Return the byte to flip, and the first and last sequence, of each record of a block."""
    try:
        with store.source(number) as (source, _):
            return [
                (each.body_at + len(each.body) - 1 if each.body else each.position + each.size - 1, *_span(each))
                for each in records(source, block_key(store.name, number))
                if isinstance(each, Stored) and each.is_live
            ]
    except OpenError:
        return []


def _span(record: Stored) -> tuple[int, int]:
    return record.sequence, record.sequence
