"""
Warm Spark up: a check of two tiny runs, so that the first check of real ones finds its classes loaded.

Most of a first check is Java reading and linking some ten thousand classes, and executors importing PySpark. Done
while a suite is still being played, it costs that suite nothing.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from checkers import CHECKERS
from checkers.spark import check_runs
from harness.model import Op, OpType, Source
from harness.run.store import Run, write_parquet


def warm_up(session: SparkSession) -> None:
    """Check a run that kept its one record and a run that lost it, and forget what was found."""
    with tempfile.TemporaryDirectory() as folder:
        # Three runs on two cores are joined in fewer files, as a suite's are.
        paths = [_stored(Path(folder) / name, kept=name != "lost") for name in ("kept", "lost", "again")]
        check_runs(session, paths, CHECKERS)


def _stored(folder: Path, *, kept: bool) -> Path:
    run = Run(path=folder)
    folder.mkdir()
    run.history.write_text("".join(op.to_json() + "\n" for op in _ops(kept)), encoding="utf-8")
    return write_parquet(run)


def _ops(kept: bool) -> list[Op]:
    """A run of one broker that acknowledged one record and showed it to a reader."""
    records = [[0, "0" * 16, "m1-1"]]
    log = {"log_start_offset": 0, "log_end_offset": 1, "epochs": [[0, 0]], "batches": int(kept)}
    told: list[tuple[Source, str, str, dict[str, Any]]] = [
        (Source.RUNNER, "runner", "setup", {"nodes": {"A": 1}, "replicas": ["A"]}),
        (Source.ZOOKEEPER, "zookeeper", "leaderAndISR", {"leader": "A", "epoch": 0, "isr": ["A"]}),
        (Source.CLIENT, "client-1", "produce", {"value": "m1-1", "acks": -1, "offset": 0}),
        (Source.CLIENT, "client-1", "read", {"records": [[0, "m1-1"]], "high_watermark": 1}),
        (Source.LOG, "A", "snapshot", log),
        (Source.LOG, "A", "batch", {"base": 0, "last": 0, "epoch": 0, "records": records}),
    ]
    return [
        Op(
            index=index,
            time_ns=index,
            source=source,
            process=process,
            type=OpType.OK,
            f=f,
            value={"topic": "t", "partition": 0, **value},
        )
        for index, (source, process, f, value) in enumerate(told if kept else told[:-1])
    ]
