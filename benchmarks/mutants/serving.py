"""Mutants of what is read from a leader: fetches, fences, questions."""

from __future__ import annotations

from typing import Final

from benchmarks.mutants.mutant import Category, Mutant

MUTANTS: Final = (
    # --- fetches ---------------------------------------------------------------------------------------------
    Mutant(
        name="batch-across-the-high-watermark",
        module="fetches",
        category=Category.VISIBLE,
        sentence="A consumer gets the whole batch in which the high watermark lies.",
        breaks="Kafka's Log.read: a consumer reads up to the high watermark",
        edits=(("if batch.last_offset < limit)", "if batch.base_offset < limit)"),),
        unreachable=(
            "the ends of logs that agree on epochs are ends of batches, and so is a high watermark; one "
            "within a batch takes a protocol that cuts elsewhere"
        ),
    ),
    Mutant(
        name="what-a-leader-began-with-is-committed",
        module="fetches",
        category=Category.VISIBLE,
        sentence="A new leader serves consumers all that its log held when it began to lead.",
        breaks="V3 C: consumers read below the high watermark, which may lag at a new leader (KIP-207)",
        edits=(
            (
                "if _is_follower(request) else replica.high_watermark",
                "if _is_follower(request) else max(replica.high_watermark, replica.epoch_start)",
            ),
        ),
    ),
    Mutant(
        name="consumers-served-by-followers",
        module="fetches",
        category=Category.VISIBLE,
        sentence="A broker that does not lead serves consumers.",
        breaks="V3 C; before KIP-392 only the leader is read",
        edits=(
            (
                "if replica.role is not Role.LEADER or (follower >= 0 and",
                "if follower >= 0 and (replica.role is not Role.LEADER or",
            ),
        ),
    ),
    Mutant(
        name="consumer-given-what-a-follower-read",
        module="fetches",
        category=Category.VISIBLE,
        sentence="A consumer that is woken together with a follower gets the follower's records.",
        breaks="Kafka's ReplicaManager.readFromLocalLog: each reader has its own limit",
        edits=(("key = part.tp, part.fetch_offset, limit,", "key = part.tp, part.fetch_offset, 0,"),),
        unreachable=(
            "a follower asks for one byte, so one that waits has the whole log and counts for the high "
            "watermark: when a consumer is woken with it, both may read the same"
        ),
    ),
    Mutant(
        name="one-waiting-fetch-woken",
        module="fetches",
        category=Category.MANY,
        sentence="Of the fetches that wait for a partition one is woken; the others time out.",
        breaks="Kafka's DelayedOperationPurgatory.checkAndComplete: all watchers of a key are tried",
        edits=(
            ("number, waiting in core.state.fetches.on(tp):", "number, waiting in core.state.fetches.on(tp)[:1]:"),
        ),
    ),
    Mutant(
        name="bytes-of-the-first-partition",
        module="fetches",
        category=Category.MANY,
        sentence="A fetch waits for the bytes of its first partition alone.",
        breaks="Kafka's DelayedFetch.tryComplete: the bytes of all partitions count",
        edits=(
            (
                "size = min(there, max(part.max_bytes, 1))",
                "size = min(there, max(part.max_bytes, 1)) if part is request.partitions[0] else 0",
            ),
        ),
    ),
    Mutant(
        name="rest-of-the-fetch-forgotten",
        module="fetches",
        category=Category.MANY,
        sentence="A fetch's partitions after one that has an error are left out of the answer.",
        breaks="Kafka's ReplicaManager.readFromLocalLog: a result for each partition",
        edits=(
            (
                "        results.append(result)\n",
                "        results.append(result)\n"
                "        if result.error is not ErrorCode.NONE:\n            break\n",
            ),
        ),
    ),
    # --- fences ----------------------------------------------------------------------------------------------
    Mutant(
        name="newer-epoch-passes",
        module="fences",
        category=Category.PROTOCOL,
        sentence="A leader serves requests of an epoch that is newer than its own.",
        breaks="KIP-320: UNKNOWN_LEADER_EPOCH, as this leader may have been replaced",
        edits=(
            (
                "if current in (UNDEFINED_EPOCH, replica.leader_epoch):",
                "if current == UNDEFINED_EPOCH or current >= replica.leader_epoch:",
            ),
        ),
    ),
    Mutant(
        name="older-epoch-passes",
        module="fences",
        category=Category.PROTOCOL,
        sentence="A leader serves requests of an epoch that is older than its own.",
        breaks="KIP-320: FENCED_LEADER_EPOCH, as that follower missed an election",
        edits=(("if current in (UNDEFINED_EPOCH, replica.leader_epoch):", "if current <= replica.leader_epoch:"),),
    ),
    Mutant(
        name="fenced-and-unknown-exchanged",
        module="fences",
        category=Category.PROTOCOL,
        sentence="A follower that knows a newer epoch is fenced for good, an older one tries again for ever.",
        breaks="KIP-320: the fenced one waits for a command, the other tries again",
        edits=(("older = current < replica.leader_epoch", "older = current > replica.leader_epoch"),),
    ),
    # --- questions -------------------------------------------------------------------------------------------
    Mutant(
        name="answers-while-it-waits-to-lead",
        module="questions",
        category=Category.PROTOCOL,
        sentence="A broker that does not lead answers where epochs end.",
        breaks="KIP-101, Request Semantics 2: only the leader answers",
        edits=(("elif replica.role is not Role.LEADER:", "elif replica.leader_epoch < 0:"),),
    ),
    Mutant(
        name="first-question-alone",
        module="questions",
        category=Category.MANY,
        sentence="Of several questions in one request only the first is answered.",
        breaks="KIP-101: an answer for each partition",
        edits=(("for question in request.questions:", "for question in request.questions[:1]:"),),
    ),
    Mutant(
        name="epoch-ends-at-the-high-watermark",
        module="questions",
        category=Category.PROTOCOL,
        sentence="A leader answers that its last epoch ends at its high watermark, not at its log's end.",
        breaks="KIP-101, step 4.3: the log end offset",
        edits=(
            (
                "end_offset_for(question.leader_epoch, replica.log.end_offset)",
                "end_offset_for(question.leader_epoch, replica.high_watermark)",
            ),
        ),
    ),
    Mutant(
        name="latest-is-the-log-end",
        module="questions",
        category=Category.VISIBLE,
        sentence="A client that asks for the latest offset is told the log's end.",
        breaks="KIP-207; Kafka's Partition.fetchOffsetForTimestamp: the high watermark",
        edits=(
            (
                "offset = replica.log.end_offset if replica_id >= 0 else replica.high_watermark",
                "offset = replica.log.end_offset",
            ),
        ),
    ),
    Mutant(
        name="time-beyond-the-high-watermark",
        module="questions",
        category=Category.VISIBLE,
        sentence="A client that asks by time is told an offset that is not committed.",
        breaks="KIP-207; Kafka's Partition.fetchOffsetForTimestamp: below the high watermark",
        edits=(
            (
                "offset, timestamp = found if found.offset < replica.high_watermark else NEVER_YET",
                "offset, timestamp = found",
            ),
        ),
    ),
    Mutant(
        name="offsets-told-by-followers",
        module="questions",
        category=Category.VISIBLE,
        sentence="A broker that does not lead any more tells clients its offsets.",
        breaks="KIP-79; Kafka's Partition.localLogWithEpochOrException: only the leader",
        edits=(
            (
                "if replica.role is not Role.LEADER:\n        return",
                "if replica.role is Role.NONE:\n        return",
            ),
        ),
    ),
)
