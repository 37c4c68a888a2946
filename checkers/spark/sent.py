"""
What executors do to find where values were sent, and at which offsets they landed.

This module imports nothing of Spark.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from checkers.spark.fold import by_part
from checkers.spark.reading import Found, Key
from checkers.spark.rows import Rows
from checkers.spark.sought import Sought
from checkers.spark.works import keyed


@dataclass(frozen=True, slots=True)
class Sent:
    """Take the offset and the invoke of each produce of some values."""

    values: Mapping[Key, Sought]

    def __call__(self, run: int, tables: Iterable[pa.Table]) -> Iterator[tuple[Key, pa.Table]]:
        """Yield offset and invoke of these produces, by partition."""
        for table in tables:
            for key, rows in keyed(run, by_part(table)):
                if key in self.values:
                    there = self.values[key].within(Rows(rows)["hash"])[0]
                    if len(there):
                        yield key, _told(rows.select(["offset", "invoked"]).take(pa.array(there)))


def _told(rows: pa.Table) -> pa.Table:
    """Return rows without the offset of an acknowledgement with acks=0, which is -1."""
    offset = Rows(rows)["offset"]
    there = Rows(rows).known("offset") & (offset >= 0)
    return rows.set_column(0, "offset", pa.array(offset, mask=~there))


def landed_at(item: Found, *, values: Mapping[Key, Sought]) -> Iterator[Found]:
    """Yield the offsets at which values landed."""
    key, claims = item
    there = values[key].within(Rows(claims)["hash"])[0] if key in values else np.empty(0, dtype=np.int64)
    offset = claims.column("offset").take(pa.array(there))
    yield key, pa.table({"offset": offset, "invoked": pa.nulls(len(offset), pa.int64())})
