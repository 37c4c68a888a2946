"""Histories as tables, and tables as histories."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from checkers.spark import assemble as names
from checkers.spark.assemble import Context, assemble
from harness.model import Op, PartOps, Source
from harness.tables.manifest import Manifest, table_path
from harness.tables.schema import SCHEMAS
from harness.tables.writer import TableMaker

_PIECES = {
    "events": names.EVENT,
    "produces": names.PRODUCE,
    "batches": names.BATCH,
    "records": names.RECORD,
    "reads": names.READ,
}


def silent(ops: Sequence[Op]) -> list[Op]:
    """Return a history as Apache Kafka's brokers leave it: they emit no events, only printed lines."""
    kept = (op for op in ops if op.source is not Source.BROKER or op.f == "printed")
    return [
        replace(op, index=index, value={**op.value, "target": "kafka"} if op.f == "setup" else op.value)
        for index, op in enumerate(kept)
    ]


def stored(ops: Sequence[Op], folder: Path) -> Manifest:
    """Write the tables of a history, and return their manifest."""
    with TableMaker(folder, Path("history.jsonl")) as maker:
        maker.add("".join(op.to_json() + "\n" for op in ops).encode())
        maker.finish()
    return Manifest.read(folder)


def all_ops(folder: Path) -> PartOps:
    """Return every op of tables, in index order."""
    manifest = Manifest.read(folder)
    found: dict[int, Op] = {}
    rows = [row for name in SCHEMAS for row in _rows(folder, name)]
    for part, place in enumerate(manifest.parts):
        mine = [row for row in rows if row["part"] in (None, part)]
        replicas = {log: replica for log, (of, replica, _) in enumerate(manifest.logs) if of == part}
        found |= {op.index: op for op in assemble(mine, Context(place=place, replicas=replicas))}
    return PartOps(found[index] for index in sorted(found))


def _rows(folder: Path, name: str) -> list[dict[str, Any]]:
    rows = pq.read_table(table_path(folder, name)).to_pylist()
    return [{**row, "piece": _PIECES[name], "count": 1} for row in rows]
