"""Mutants of what is deleted on purpose: DeleteRecords, retention, the start of a log."""

from __future__ import annotations

from typing import Final

from benchmarks.mutants.mutant import Category, Mutant

MUTANTS: Final = (
    # --- the start of a log ------------------------------------------------------------------------------------
    Mutant(
        name="start-past-the-high-watermark",
        module="log_start",
        category=Category.VISIBLE,
        sentence="A log starts where it is told to, whether or not what lies below is committed.",
        breaks="KAFKA-5634; Kafka's UnifiedLog.maybeIncrementLogStartOffset",
        edits=(("to if past else min(to, replica.high_watermark)", "min(to, replica.log.end_offset)"),),
        unreachable=(
            "a request past the high watermark is refused, retention picks only what is committed, and a follower "
            "learns its leader's high watermark with its start"
        ),
    ),
    Mutant(
        name="epochs-below-the-start-stay",
        module="log_start",
        category=Category.VISIBLE,
        sentence="A log's start moves, and its epochs stay as they were.",
        breaks="KIP-101, Maintaining the LeaderEpochSequenceFile",
        edits=(
            (
                "    if replica.epochs.truncate_from_start(moved):\n        leader.write_epochs(core, replica)\n",
                "",
            ),
        ),
    ),
    Mutant(
        name="who-waits-below-the-start-waits-on",
        module="log_start",
        category=Category.VISIBLE,
        sentence="A consumer that waits for what was deleted is not woken.",
        breaks="V3 C: an offset before the log's start is out of range",
        edits=(("    fetches.wake(core, replica.tp)  # who waits below the start waits in vain\n", ""),),
    ),
    Mutant(
        name="follower-keeps-its-start",
        module="log_start",
        category=Category.VISIBLE,
        sentence="A follower's log starts where it did, wherever its leader's starts.",
        breaks="KIP-107: followers learn the log's start from each fetch",
        edits=(
            ("    advance_start(core, replica, leaders, StartReason.LEADER)", "    del core, replica, leaders"),
        ),
    ),
    # --- DeleteRecords -----------------------------------------------------------------------------------------
    Mutant(
        name="deletion-answered-before-followers",
        module="deletions",
        category=Category.VISIBLE,
        sentence="A deletion is answered as soon as the leader has deleted.",
        breaks="KIP-107: the low watermark must have reached the offset",
        edits=(("(leads and low < waiting.required[tp])", "False"),),
    ),
    Mutant(
        name="deletion-past-the-high-watermark-answered",
        module="deletions",
        category=Category.VISIBLE,
        sentence="A deletion past the high watermark is taken for one up to it, and answered once that has come.",
        breaks="KIP-107: OFFSET_OUT_OF_RANGE",
        edits=(("if not 0 <= to <= replica.high_watermark:", "if to < 0:"),),
    ),
    Mutant(
        name="deletion-waits-for-ever",
        module="deletions",
        category=Category.VISIBLE,
        sentence="A deletion that the ISR does not follow is never answered.",
        breaks="Kafka's DelayedDeleteRecords, which expires",
        edits=(('    core.after_ms(("delete-records", number), request.timeout_ms)\n', ""),),
    ),
    # --- retention ---------------------------------------------------------------------------------------------
    Mutant(
        name="retention-leaves-no-bytes",
        module="retention",
        category=Category.VISIBLE,
        sentence="Retention by size deletes one file more than it should.",
        breaks="Kafka's UnifiedLog.deleteRetentionSizeBreachedSegments: as much as the limit stays",
        edits=(("files[count].size <= over:", "over > 0:"),),
    ),
    Mutant(
        name="retention-begins-no-file",
        module="retention",
        category=Category.VISIBLE,
        sentence="Retention deletes the newest file, and begins no other.",
        breaks="Kafka's UnifiedLog.deleteSegments: there is always one to append to",
        edits=(("            replica.log.roll()\n", "            pass\n"),),
        unreachable="the newest file stays then, and what it holds below the log's start is served to nobody",
    ),
    Mutant(
        name="retention-once",
        module="retention",
        category=Category.VISIBLE,
        sentence="Retention looks once, when the broker starts.",
        breaks="Kafka's LogManager.cleanupLogs, which is scheduled again and again",
        edits=(("    begin(core)\n    for replica", "    for replica"),),
    ),
)
