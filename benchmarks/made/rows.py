"""The rows of a made history, as tables; what depends on the order of ops is as in harness/tables/rows.py."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pyarrow as pa

from benchmarks.made.columns import Held, Sent, highest_before, mixed, texts, words
from harness.tables.writer import placed

TOPIC: Final = "made"
NS: Final = 1_000
PROCESS: Final = "client-1"
_RECORD_BYTES: Final = 70
_HASH_SALT: Final = 99


def produce_rows(partition: int, sent: Sent, acked: int) -> pa.Table:
    """Return the rows of produces; acked is the highest offset that was acknowledged before them."""
    count = len(sent.number)
    told = np.where(sent.outcome == 0, sent.offset, -1)
    # All of a batch were sent before the first of it was answered.
    begun = np.searchsorted(sent.done, sent.invoked, side="left")
    before = np.maximum.accumulate(np.concatenate(([acked], told)))
    return placed(
        "produces",
        {
            **_about(partition, count),
            "process": _same(PROCESS, count),
            "name": _same("w", count),
            "acks": np.full(count, -1),
            "codec": _same("none", count),
            **_values(partition, sent.number),
            "digest": sent.digest,
            "invoked": sent.invoked,
            "invoked_ns": sent.invoked * NS,
            "done": sent.done,
            "done_ns": sent.done * NS,
            "outcome": words(("ok", "info"), sent.outcome),
            "offset": pa.array(sent.offset, mask=sent.outcome == 1),
            "error": words(("", "timed out"), sent.outcome),
            "floor": before[begun],
            "behind": highest_before(told, acked),
            "rising": np.ones(count, dtype=bool),
        },
    )


def read_rows(partition: int, read: int, rank: int, shown: tuple[Any, Any]) -> pa.Table:
    """Return the rows of what a read showed, from that rank on: offsets and numbers of values."""
    offset, number = shown
    count = len(offset)
    about = {"read": np.full(count, read), "rank": rank + np.arange(count), "offset": offset}
    return placed("reads", {**_about(partition, count), **about, **_values(partition, number)})


@dataclass(slots=True, kw_only=True)
class LogRows:
    """
    One replica's log, row after row.

    Attributes:
        place: of the log in the manifest.
    """

    partition: int
    node: str
    place: int
    number: int = 0
    high: int = -1
    newest: int = -1
    epoch: int = -1
    before: int = -1
    stretch: int = 0

    def rows(self, held: Held, index: Any) -> tuple[pa.Table, pa.Table]:
        """Return the rows of the next batches and of their records; index is that of each batch's op."""
        batches, records = len(held.bases), len(held.offset)
        high, newest = highest_before(held.lasts, self.high), highest_before(held.epochs, self.newest)
        of = np.repeat(np.arange(batches), held.counts)
        place = np.arange(records) - (np.cumsum(held.counts) - held.counts)[of]
        ragged = np.bincount(of, weights=held.offset != held.bases[of] + place, minlength=batches) > 0
        whole = (held.counts == held.lasts - held.bases + 1) & (held.counts > 0) & ~ragged
        changes = held.epochs != np.concatenate(([self.epoch], held.epochs))[:-1]
        stretches = self.stretch + np.cumsum((held.bases <= high) | changes)
        log = np.int32(self.place)
        before = np.concatenate(([self.before], held.bases))[:-1]
        found = (
            placed(
                "batches",
                {
                    **_about(self.partition, batches),
                    "replica": _same(self.node, batches),
                    "log": np.full(batches, log),
                    "number": self.number + np.arange(batches),
                    "stretch": stretches,
                    "index": index,
                    "time_ns": index * NS,
                    "base": held.bases,
                    "before": pa.array(before, mask=before < 0),
                    "last": held.lasts,
                    "epoch": held.epochs,
                    "magic": np.full(batches, 2),
                    "crc": held.crcs,
                    "codec": _same("none", batches),
                    "position": held.bases * _RECORD_BYTES,
                    "segment": _same("00000000000000000000.log", batches),
                    "control": pa.nulls(batches, pa.bool_()),
                    "problem": _same("", batches),
                    "odd": (held.bases != high + 1) | ~whole | ((held.epochs < newest) & changes),
                },
            ),
            placed(
                "records",
                {
                    **_about(self.partition, records),
                    "replica": _same(self.node, records),
                    "log": np.full(records, log),
                    "batch": index[of],
                    "offset": held.offset,
                    "digest": held.digest,
                    **_values(self.partition, held.number),
                },
            ),
        )
        if batches:
            self.number += batches
            self.high = max(self.high, int(held.lasts.max()))
            self.newest = max(self.newest, int(held.epochs.max()))
            self.before = int(held.bases[-1])
            self.stretch, self.epoch = int(stretches[-1]), int(held.epochs[-1])
        return found


def _values(partition: int, number: Any) -> dict[str, Any]:
    return {"hash": mixed(number, salt=_HASH_SALT), "value": texts(f"w{partition}", number)}


def _about(partition: int, count: int) -> dict[str, Any]:
    number = np.full(count, partition, dtype=np.int32)
    return {"topic": _same(TOPIC, count), "partition": number, "part": number}


def _same(text: str, count: int) -> pa.Array:
    return pa.repeat(pa.scalar(text), count)
