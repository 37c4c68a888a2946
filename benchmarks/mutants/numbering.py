"""Mutants of idempotent producers: their ids, what a log says of them, and what is appended again."""

from __future__ import annotations

from typing import Final

from benchmarks.mutants.mutant import Category, Mutant

MUTANTS: Final = (
    # --- batches -----------------------------------------------------------------------------------------------
    Mutant(
        name="repeated-batch-appended",
        module="producers",
        category=Category.VISIBLE,
        sentence="A batch that its producer sends again is known again, and appended all the same.",
        breaks="KIP-98, Idempotent Producer Guarantees",
        edits=(("            return Checked(repeated=repeated)\n", "            return _APPEND\n"),),
    ),
    Mutant(
        name="follower-notes-no-producer",
        module="producers",
        category=Category.VISIBLE,
        sentence="A follower does not note whose batches it copies, so that as leader it appends them again.",
        breaks="KIP-98: the producer's state is in the log, which a new leader has",
        edits=(
            (
                "    for batch in batches:\n        first = ",
                "    for batch in () if base is None else batches:\n        first = ",
            ),
        ),
    ),
    Mutant(
        name="truncated-batch-still-known",
        module="producers",
        category=Category.VISIBLE,
        sentence="A batch that a truncation removed is still known, and so acknowledged when it is sent again.",
        breaks="Kafka's ProducerStateManager.truncateAndReload",
        edits=(
            (
                "    end = replica.log.end_offset\n    at = replica.sequences.cut(end)\n",
                "    end = at = replica.log.end_offset\n",
            ),
        ),
    ),
    Mutant(
        name="truncation-forgets-producers",
        module="producers",
        category=Category.VISIBLE,
        sentence="After a truncation nothing is known of the producers of what is left.",
        breaks="Kafka's ProducerStateManager.truncateAndReload: snapshots, and what follows in the log",
        edits=(("    while at < end:\n", "    while at < 0:\n"),),
    ),
    # --- what a log says ---------------------------------------------------------------------------------------
    Mutant(
        name="batch-of-another-epoch-known",
        module="sequences",
        category=Category.VISIBLE,
        sentence="A batch counts as sent again if one of an older epoch of its producer had its sequences.",
        breaks="Kafka's ProducerStateEntry.maybeUpdateProducerEpoch, which clears the batches",
        edits=((" if old is not None and old.epoch == epoch else ()", " if old is not None else ()"),),
    ),
    Mutant(
        name="one-producer-known",
        module="sequences",
        category=Category.MANY,
        sentence="Of a log's producers only the last one is known.",
        breaks="KIP-98: a state for each producer id",
        edits=(("        if len(self.known) > self.producers_max:\n", "        if len(self.known) > 1:\n"),),
    ),
    Mutant(
        name="one-batch-known",
        module="sequences",
        category=Category.MANY,
        sentence="Of a producer only the last batch is known, and one before it is out of order.",
        breaks="KAFKA-5494: five requests in flight",
        edits=(("(*before, last)[-BATCHES_KEPT:]", "(last,)"),),
        unreachable="a simulated producer has one request under way",
    ),
    Mutant(
        name="later-state-kept",
        module="sequences",
        category=Category.MANY,
        sentence="A truncation goes back to the newest state that was kept, though it is of what was removed.",
        breaks="Kafka's ProducerStateManager.truncateAndReload, which deletes later snapshots",
        edits=(("        while self.earlier and self.earlier[-1].offset > end:\n", "        while False:\n"),),
        unreachable="no simulated log has the 4,096 batches after which a state is kept",
    ),
    # --- ids ---------------------------------------------------------------------------------------------------
    Mutant(
        name="every-block-begins-at-0",
        module="producer_ids",
        category=Category.VISIBLE,
        sentence="Each broker gives the ids from 0 on.",
        breaks="KIP-98: a producer id is unique in the cluster",
        edits=(("    start, end = newest + 1, newest", "    start, end = _FIRST_ID, newest"),),
    ),
    Mutant(
        name="id-given-twice",
        module="producer_ids",
        category=Category.VISIBLE,
        sentence="A broker gives all producers of a block the same id.",
        breaks="KIP-98: a producer id is unique in the cluster",
        edits=(("        ids.next += 1\n", "        ids.next += 0\n"),),
    ),
    Mutant(
        name="block-asked-for-again-and-again",
        module="producer_ids",
        category=Category.MANY,
        sentence="Each request that waits has a block reserved of its own.",
        breaks="Kafka's ZkProducerIdManager.generateProducerId, which reserves under a lock",
        edits=(("    elif not ids.asked:\n", "    else:\n"),),
        equivalent="ids are skipped, which nobody sees",
    ),
)
