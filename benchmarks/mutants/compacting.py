"""Mutants of compaction."""

from __future__ import annotations

from typing import Final

from benchmarks.mutants.mutant import Category, Mutant

MUTANTS: Final = (
    Mutant(
        name="compaction-past-the-high-watermark",
        module="compaction",
        category=Category.VISIBLE,
        sentence="All closed files are compacted, whether or not their records are committed.",
        breaks="KAFKA-13194",
        edits=(("if past else replica.high_watermark", "if past else replica.log.end_offset"),),
    ),
    Mutant(
        name="compaction-once",
        module="compaction",
        category=Category.MANY,
        sentence="Logs are compacted once, after the broker has started.",
        breaks="Kafka's LogCleaner, whose threads look again and again",
        edits=(("    core.state.cleaning = None\n    begin(core)\n", "    core.state.cleaning = None\n"),),
    ),
    Mutant(
        name="compaction-skips-the-rest",
        module="compaction",
        category=Category.MANY,
        sentence="A log that takes several steps is left after the first one, until all others had a turn.",
        breaks="Kafka's LogCleaner, which ends a cleaning that it began",
        edits=(("tp < core.state.cleaning", "tp <= core.state.cleaning"),),
        unreachable="a simulated log is cleaned in one step",
    ),
    Mutant(
        name="compaction-does-not-return",
        module="compaction",
        category=Category.MANY,
        sentence="After a pause, the logs before the one at which it paused are never compacted again.",
        breaks="Kafka's LogCleanerManager.grabFilthiestCompactedLog, which chooses among all logs",
        edits=(("    core.state.cleaning = None\n    begin(core)\n", "    begin(core)\n"),),
        unreachable="nobody waits for a log to become smaller",
    ),
    Mutant(
        name="tombstones-without-their-delay",
        module="tombstones",
        category=Category.VISIBLE,
        sentence="A tombstone goes with the cleaning after the one that kept it, however soon that comes.",
        breaks="Kafka, delete.retention.ms; KIP-534",
        edits=(
            (
                "return horizon_ms is not None and horizon_ms <= self.now_ms",
                "return horizon_ms is not None",
            ),
        ),
    ),
    Mutant(
        name="tombstones-delay-of-nothing",
        module="tombstones",
        category=Category.VISIBLE,
        sentence="The time at which a tombstone is kept is written down as the end of its delay.",
        breaks="Kafka, delete.retention.ms; KIP-534",
        edits=(("return self.now_ms + self.retention_ms", "return self.now_ms"),),
    ),
    Mutant(
        name="tombstones-delayed-again",
        module="tombstones",
        category=Category.MANY,
        sentence="Every cleaning that keeps a tombstone begins its delay anew.",
        breaks="KAFKA-8522: tombstones can survive forever",
        edits=(("or horizon_ms is not None or self.now_ms < 0", "or self.now_ms < 0"),),
    ),
    Mutant(
        name="tombstones-for-ever",
        module="tombstones",
        category=Category.MANY,
        sentence="No tombstone goes.",
        breaks="KAFKA-8522: tombstones can survive forever",
        edits=(("return horizon_ms is not None and horizon_ms <= self.now_ms", "return False"),),
    ),
)
