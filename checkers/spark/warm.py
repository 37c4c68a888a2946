"""
Warm Spark up with a check of tiny runs, so that the first check of real runs finds its classes loaded.

In a first check, most of the time goes to Java reading and linking some ten thousand classes, and to executors
importing PySpark. While a suite still plays, the warm-up costs that suite nothing.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from checkers import CHECKERS
from checkers.spark.runs import check_runs
from harness.events import Batch, Event, MetadataState, Produce, Read, Setup, Snapshot
from harness.model import Op, OpType
from harness.run.store import Run


def warm_up(session: SparkSession) -> None:
    """Check runs that kept their one record and a run that lost it, and discard the result."""
    with tempfile.TemporaryDirectory(prefix="fencepost-warm-") as folder:
        # More runs than cores, as a suite has.
        paths = [_stored(Path(folder) / name, kept=name != "lost") for name in ("kept", "lost", "again")]
        check_runs(session, paths, CHECKERS)


def _stored(folder: Path, *, kept: bool) -> Path:
    run = Run(path=folder)
    folder.mkdir()
    run.history.write_text("".join(op.to_json() + "\n" for op in _ops(kept)), encoding="utf-8")
    return run.path


def _ops(kept: bool) -> list[Op]:
    """Return a run of one broker that acknowledged one record and returned it to a reader."""
    here: dict[str, Any] = {"topic": "t", "partition": 0}
    batch = Batch(
        **here,
        base=0,
        last=0,
        epoch=0,
        magic=2,
        crc=0,
        codec="none",
        position=0,
        segment="0.log",
        records=((0, "0" * 16, "m1-1"),),
    )
    snapshot = Snapshot(
        **here,
        log_start_offset=0,
        log_end_offset=1,
        high_watermark=None,
        epochs=((0, 0),),
        problems=(),
        batches=int(kept),
    )
    setup = Setup(
        **here,
        scenario="",
        protocol="",
        rules={},
        host="",
        target="",
        seed=0,
        power_tier="",
        nodes={"A": 1},
        replicas=("A",),
        records={},
        min_isr=1,
        unclean=False,
    )
    recorded: list[tuple[str, Event]] = [
        ("runner", setup),
        ("metadata", MetadataState(**here, leader="A", epoch=0, isr=("A",), version=0)),
        ("client-1", Produce(**here, name="", acks=-1, codec="none", value="m1-1", offset=0)),
        ("client-1", Read(**here, records=((0, "m1-1"),), high_watermark=1)),
        ("A", snapshot),
        ("A", batch),
    ]
    return [
        Op.of(event, index=index, time_ns=index, process=process, type=event.TYPES[0] if index < 2 else OpType.OK)
        for index, (process, event) in enumerate(recorded if kept else recorded[:-1])
    ]
