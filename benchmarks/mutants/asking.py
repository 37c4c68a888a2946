"""Mutants of fetch sessions, on both sides."""

from __future__ import annotations

from typing import Final

from benchmarks.mutants.mutant import Category, Mutant

MUTANTS: Final = (
    # --- the leader --------------------------------------------------------------------------------------------
    Mutant(
        name="session-keeps-the-first-offset",
        module="sessions",
        category=Category.VISIBLE,
        sentence="A session keeps of each partition what was asked of it first.",
        breaks="KIP-227: a fetch names what has changed; FetchSession.CachedPartition.updateRequestParams",
        edits=(("                kept.part = found\n", "                kept.part = kept.part\n"),),
    ),
    Mutant(
        name="session-forgets-nobody",
        module="sessions",
        category=Category.MANY,
        sentence="A partition that leaves a session is fetched on, from where it was.",
        breaks="KIP-227: forgotten_topics_data; Kafka's FetchSession.update",
        edits=(
            ("        for tp in forgotten:\n            self.parts.pop(tp, None)\n", "        del forgotten\n"),
        ),
    ),
    Mutant(
        name="high-watermark-is-no-news",
        module="sessions",
        category=Category.VISIBLE,
        sentence="An answer leaves out partitions of which only the high watermark or the log's start has moved.",
        breaks="FetchSession.CachedPartition.maybeUpdateResponseData",
        edits=(("bool(result.batches) or bounds != kept.told", "bool(result.batches) or kept.told is None"),),
    ),
    Mutant(
        name="error-is-told-once",
        module="sessions",
        category=Category.MANY,
        sentence="An answer leaves out a partition whose error was told before.",
        breaks="FetchSession.CachedPartition.maybeUpdateResponseData: an error is always sent",
        edits=(
            (
                "        news = failed or bool(result.batches) or bounds != kept.told\n",
                "        news = bool(result.batches) or bounds != kept.told\n",
            ),
        ),
    ),
    Mutant(
        name="session-out-of-step-goes-on",
        module="sessions",
        category=Category.COMMAND,
        sentence="A leader serves a fetch of a session in any order, also one that is delivered twice.",
        breaks="KIP-227: INVALID_FETCH_SESSION_EPOCH",
        edits=(("if session.epoch != request.session_epoch:", "if session.epoch < request.session_epoch:"),),
    ),
    Mutant(
        name="session-without-its-epochs",
        module="sessions",
        category=Category.PROTOCOL,
        sentence="A session keeps no leader epochs, so that only the fetch that begins it is fenced.",
        breaks="KAFKA-9338",
        edits=(("if blind else part", "if blind or part.topic_id else part"),),
    ),
    Mutant(
        name="whoever-lags-is-quiet",
        module="quiet",
        category=Category.MANY,
        sentence="A partition that a fetch does not name is passed over also when it has records to give.",
        breaks="KIP-227: an answer has every partition with new data",
        edits=(
            (
                "            or part.fetch_offset != (end := replica.log.end_offset)\n"
                "            or progress.end != end\n",
                "            or (end := replica.log.end_offset) < part.fetch_offset\n",
            ),
        ),
    ),
    Mutant(
        name="quiet-fetch-counts-for-nothing",
        module="quiet",
        category=Category.PROTOCOL,
        sentence="A fetch that does not name a partition says nothing of when its follower had caught up.",
        breaks="Kafka's Replica.updateFetchState: it is called for each partition of a session",
        edits=(
            (
                "            progress.caught_up_ns = max(progress.caught_up_ns, now_ns)\n"
                "            progress.last_fetch_ns = now_ns\n",
                "",
            ),
        ),
    ),
    Mutant(
        name="moved-high-watermark-is-quiet",
        module="quiet",
        category=Category.VISIBLE,
        sentence="A partition that a fetch does not name is passed over when its high watermark has moved.",
        breaks="FetchSession.CachedPartition.maybeUpdateResponseData: a new high watermark is told",
        edits=(("            or told[0] != replica.high_watermark\n", ""),),
    ),
    # --- the follower ------------------------------------------------------------------------------------------
    Mutant(
        name="changed-epoch-is-no-change",
        module="sessions",
        category=Category.PROTOCOL,
        sentence="A follower does not name a partition of which only the leader epoch has changed.",
        breaks="KIP-320; Kafka's FetchRequest.PartitionData.equals",
        edits=(
            (
                "if (kept := known.get(tp)) is not part and kept != part",
                "if tp not in known or known[tp].fetch_offset != part.fetch_offset",
            ),
        ),
    ),
    Mutant(
        name="what-is-left-out-falls-back",
        module="round_answers",
        category=Category.VISIBLE,
        sentence="A follower takes what an answer leaves out for a partition of which nothing is committed.",
        breaks="KIP-227: what an answer leaves out has not changed",
        edits=(
            (
                "            again[tp] = ask\n",
                "            again[tp] = ask\n            replica.high_watermark = start\n",
            ),
        ),
    ),
    Mutant(
        name="what-is-named-counts-as-left-out",
        module="round_answers",
        category=Category.VISIBLE,
        sentence="A follower passes over what an answer names, as over what it leaves out.",
        breaks="KIP-227: what an answer names is new",
        edits=(("            or tp in news\n", ""),),
    ),
)
