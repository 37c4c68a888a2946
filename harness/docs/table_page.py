"""Print docs/tables.md, from the columns of a run's tables."""

from __future__ import annotations

from typing import Final

from checkers.spark.room import OP_BYTES
from harness.docs import markdown
from harness.tables.manifest import LINES_MAX, VERSION
from harness.tables.schema import COLUMNS, ROWS

_WHAT: Final = {
    "events": "Everything that is not in the other tables: leadership, ISR, faults, links, snapshots, reads.",
    "produces": "A produce and its completion. One that never ended is an event.",
    "batches": "A batch of a final log.",
    "records": "A record of a final log.",
    "reads": "A record that a read showed.",
}


def run_tables() -> str:
    """Return docs/tables.md."""
    return markdown.page(
        "Tables of a large run",
        "harness/tables/schema.py",
        f"A run with more than {LINES_MAX // 2**20} MiB of lines has its ops as tables too, in `RUN/tables`: one "
        f"Parquet file for each table, in row groups of {ROWS} rows, and `manifest.json`, which is written last.\n"
        f"This is version {VERSION} of them. "
        "The lines of `history.jsonl` stay the durable record: tables are made again from them if a table is "
        "missing, damaged, of another version or of another history. Without lines such a run is unknown.",
        "## How they are written",
        f"Once a history is longer than {LINES_MAX // 2**20} MiB, a process of low priority follows it and writes "
        "each row group when it is full (`harness/tables/follow.py`); it needs less time for an op than recording "
        "it does. When the run ends, the harness says how long the history is, and waits for what is left.\n"
        "The process never touches the history, and no run fails by it: if it is killed, or the disk is full, its "
        "`tables.partial` is removed, and the tables are made from the lines when the run is checked. It ends "
        "with the harness, also with one that is killed.\n"
        "Most lines become rows without an event in between (`harness/tables/lines.py`); a test compares their "
        "rows with those of the events. The files are the same to the last byte, whenever and in whatever pieces "
        "the history was read.",
        "What depends on the order of ops is decided when the tables are written, and stored with the row "
        "(`floor`, `behind`, `rising`, `odd`, `before`, `stretch`), so that no query needs an order.",
        "## How a large run is checked",
        "Spark's executors fold all rows into buckets of 4,096 offsets, compare logs with each other, and the "
        "leader's log with what was acknowledged and read, and look again, at single offsets, where they differ "
        "(`checkers/spark/fold.py`, `checkers/spark/compare.py`). They read the files themselves, row groups one "
        "by one (`checkers/spark/reading.py`), and only buckets leave an executor, no record; of files that only "
        "Spark's readers reach (`hdfs:`, `s3a:`), these hand over the rows. What is looked at again is read by "
        "its `place`.\n"
        "The rules then judge each partition from all of its events, and from the produces, batches and records "
        "that are in doubt; everything else is left out of all of them at once, so that no rule can miss it "
        "(`checkers/facts/abridged.py`).\n"
        "All of a partition is judged if its brokers report their appends, as ours do: the rules then follow each "
        "record from append to append. The same holds for a partition whose ops do not fit the tables. Such a "
        f"partition takes some {OP_BYTES:,} bytes of memory an op; where half of the free memory is less, it is "
        "unknown, and says so (`checkers/spark/room.py`).",
        *markdown.columns(COLUMNS, _WHAT, "##"),
        "## manifest.json",
        markdown.table(
            ("key", "meaning"),
            (
                ("`version`", "of the tables"),
                ("`size`", "the bytes of the history that they were made from"),
                ("`ops`", "how many ops it has"),
                ("`rows`", "how many rows each table has"),
                ("`skips`, `falls`", "the first breaks in the order of its ops, by index and by time"),
                ("`parts`", "topic and partition of each partition"),
                (
                    "`logs`",
                    "of each log that was read: the place of its partition, its node, its snapshot's index",
                ),
                ("`irregular`", "partitions with an op that does not fit the tables, and why"),
                ("`reach`", "how many places after its own the records of a batch lie at most"),
                ("`sizes`", "the bytes of each table's file, so that another file is not taken for it"),
            ),
        ),
    )
