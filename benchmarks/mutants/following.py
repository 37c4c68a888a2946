"""Mutants of the follower: truncation, epochs, phases, fetching."""

from __future__ import annotations

from typing import Final

from benchmarks.mutants.mutant import Category, Mutant

MUTANTS: Final = (
    # --- follower --------------------------------------------------------------------------------------------
    Mutant(
        name="high-watermark-beyond-the-log",
        module="follower",
        category=Category.VISIBLE,
        sentence="A follower takes its leader's high watermark, even past the end of its own log.",
        breaks="V3 G: the smaller of the leader's high watermark and the own log end",
        edits=(("min(leaders, replica.log.end_offset))", "leaders)"),),
    ),
    Mutant(
        name="high-watermark-kept-by-a-cut",
        module="cuts",
        category=Category.VISIBLE,
        sentence="A follower keeps its high watermark when its log is truncated below it.",
        breaks="Kafka's Log.truncateTo: the high watermark is at most the log end",
        edits=(("min(replica.high_watermark, end)", "min(replica.high_watermark, before)"),),
    ),
    Mutant(
        name="answer-of-an-earlier-fetch",
        module="follower",
        category=Category.PROTOCOL,
        sentence="A follower appends what it asked for before it truncated, or of an earlier leader.",
        breaks="Kafka's AbstractFetcherThread: an answer counts if its offset is still the one to fetch",
        edits=(
            (
                "replica.generation != continuation.generation or replica.phase is not phase:",
                "replica.phase is not phase:",
            ),
        ),
    ),
    Mutant(
        name="walk-is-not-written",
        module="cuts",
        category=Category.PROTOCOL,
        sentence="The epochs that a step of the walk removes stay in the checkpoint.",
        breaks="KIP-101, step 4.4: the checkpoint follows the log",
        edits=(("    if changed:\n", "    if changed and cut.done:\n"),),
    ),
    Mutant(
        name="epochs-kept-by-a-cut",
        module="cuts",
        category=Category.VISIBLE,
        sentence="A follower that truncates its log keeps the epochs of what it removes.",
        breaks="KIP-101, step 4.4: the epochs are truncated with the log",
        edits=(("replica.epochs.truncate_from_end(min(cut.to, before))", "False"),),
    ),
    Mutant(
        name="first-epoch-of-a-fetch-alone",
        module="follower",
        category=Category.MANY,
        sentence="Of a fetch's batches only the first one's epoch is noted.",
        breaks="KIP-101, step 4.7.1: every new epoch, before its first batch",
        edits=(("for batch in result.batches:", "for batch in result.batches[:1]:"),),
    ),
    Mutant(
        name="asks-about-its-leaders-epoch",
        module="rounds",
        category=Category.PROTOCOL,
        sentence="A follower asks where its leader's epoch ends, not the last epoch of its own log.",
        breaks="KIP-101, step 4.2: the latest epoch of the follower's log",
        edits=(("leader_epoch=replica.epochs.latest,", "leader_epoch=replica.leader_epoch,"),),
    ),
    Mutant(
        name="no-answer-ends-the-fetcher",
        module="follower",
        category=Category.MANY,
        sentence="A follower whose request got no answer asks no more.",
        breaks="Kafka's AbstractFetcherThread: it tries again after a back-off",
        edits=(("    proceed(core, replica)\n\n\ndef _waits(", "\n\ndef _waits("),),
    ),
    Mutant(
        name="fallback-is-the-log-end",
        module="follower",
        category=Category.PROTOCOL,
        sentence="A follower whose leader knows nothing keeps its whole log.",
        breaks="KIP-101, step 4.5: it falls back to its high watermark",
        edits=(("replica.fallback = replica.high_watermark", "replica.fallback = replica.log.end_offset"),),
    ),
    Mutant(
        name="log-longer-than-the-leaders-kept",
        module="follower",
        category=Category.PROTOCOL,
        sentence="A follower that was told that its offset is out of range leaves its log as it is.",
        breaks="Kafka's AbstractFetcherThread.fetchOffsetAndTruncate; V3 C",
        edits=(
            ("and result.offset < replica.log.end_offset:\n", "and result.offset < replica.high_watermark:\n"),
        ),
        unreachable=(
            "a follower that has asked for the ends of epochs holds no more than its leader, and a leader's "
            "log does not get shorter in its epoch (`returning_leader=awaits`)"
        ),
    ),
    # --- fetcher ---------------------------------------------------------------------------------------------
    Mutant(
        name="turn-lost-in-a-full-request",
        module="fetcher",
        category=Category.MANY,
        sentence="Partitions that have no place in a request never get one.",
        breaks="Kafka's AbstractFetcherThread.buildFetch: every partition that is ready is fetched",
        edits=(("        for tp, _ in taken:\n            del wishes[tp]\n", "        wishes.clear()\n"),),
    ),
    Mutant(
        name="given-records-asked-first",
        module="fetcher",
        category=Category.MANY,
        sentence="A partition that was given records keeps its place, and full answers have none of the others'.",
        breaks="Kafka's PartitionStates.updateAndMoveToEnd",
        edits=(("                wishes[tp] = wishes.pop(tp)\n", "                pass\n"),),
    ),
    Mutant(
        name="older-answer-ends-the-newest-wait",
        module="fetcher",
        category=Category.PROTOCOL,
        sentence="The answer to a request that nobody awaited counts as the newest one's, and two are in flight.",
        breaks="Kafka's AbstractFetcherThread: one request at a time",
        edits=(("if kind in self.flights and self.flights[kind].tag == tag:", "if kind in self.flights:"),),
    ),
    # --- rounds ----------------------------------------------------------------------------------------------
    Mutant(
        name="void-request-holds-up-the-next",
        module="rounds",
        category=Category.MANY,
        sentence="A request that nobody awaits any more is waited for all the same.",
        breaks="V3 C: a new leadership begins to fetch at once; Kafka ends the fetcher of a leader that is left",
        edits=(("    return True\n\n\ndef _is_awaited", "    return False\n\n\ndef _is_awaited"),),
    ),
    Mutant(
        name="first-part-of-an-answer-alone",
        module="round_answers",
        category=Category.MANY,
        sentence="Of the partitions of a request the first alone is given its part of the answer.",
        breaks="Kafka's AbstractFetcherThread.processFetchRequest: each partition's data",
        edits=(
            ("    for ask in asks:\n        if response", "    for ask in list(asks)[:1]:\n        if response"),
        ),
    ),
    Mutant(
        name="fetches-while-bounds-are-asked",
        module="rounds",
        category=Category.MANY,
        sentence="A Fetch of others is sent, and may wait, while a partition asks for its leader's bounds.",
        breaks="Kafka's AbstractFetcherThread.handleOutOfRangeError: the next Fetch names that partition again",
        edits=(
            (
                "MappingProxyType({Kind.FETCH: tuple(Kind)})",
                "MappingProxyType({Kind.FETCH: (Kind.FETCH, Kind.EPOCH_END)})",
            ),
        ),
    ),
    Mutant(
        name="question-overtakes-a-fetch",
        module="rounds",
        category=Category.PROTOCOL,
        sentence="A question does not wait behind an earlier fetch of its partition.",
        breaks="Kafka's AbstractFetcherThread: one request at a time, on one connection",
        edits=(
            (
                "kind is Kind.FETCH or fetcher.is_fetched(asks)",
                "kind is Kind.FETCH",
            ),
        ),
        unreachable="a fetch of an earlier epoch counts for nothing (`fence_high_watermark=yes`)",
    ),
    # --- phases ----------------------------------------------------------------------------------------------
    Mutant(
        name="fetching-goes-on",
        module="phases",
        category=Category.PROTOCOL,
        sentence="A follower that fetched goes on from a new leader without truncating.",
        breaks="KIP-101, step 4.1; V3 C (becomeFollower)",
        edits=(
            (
                "Phase.FETCHING: {\n        Turn.FOLLOW: Phase.TRUNCATING",
                "Phase.FETCHING: {\n        Turn.FOLLOW: Phase.FETCHING",
            ),
        ),
    ),
    Mutant(
        name="fenced-then-fetching",
        module="phases",
        category=Category.PROTOCOL,
        sentence="A follower that was fenced fetches from its next leader without truncating.",
        breaks="KIP-320: it truncates as with every new epoch",
        edits=(("Phase.FENCED: {Turn.FOLLOW: Phase.TRUNCATING}", "Phase.FENCED: {Turn.FOLLOW: Phase.FETCHING}"),),
    ),
    Mutant(
        name="fetching-from-the-start",
        module="phases",
        category=Category.PROTOCOL,
        sentence="A replica that follows for the first time since it started does not truncate.",
        breaks="KIP-101, step 4.1: a follower that restarts asks first",
        edits=(("Phase.FAILED: {Turn.FOLLOW: Phase.TRUNCATING,", "Phase.FAILED: {Turn.FOLLOW: Phase.FETCHING,"),),
    ),
    Mutant(
        name="out-of-range-asks-for-ever",
        module="phases",
        category=Category.PROTOCOL,
        sentence="A follower whose offset is out of range waits for an answer in a phase that takes none.",
        breaks="Kafka's AbstractFetcherThread.handleOutOfRangeError: it truncates and fetches on",
        edits=(
            (
                "Turn.CUT: Phase.FETCHING,\n        Turn.OUT_OF_RANGE: Phase.FETCHING",
                "Turn.CUT: Phase.FETCHING,\n        Turn.OUT_OF_RANGE: Phase.TRUNCATING",
            ),
        ),
    ),
    # --- truncation ------------------------------------------------------------------------------------------
    Mutant(
        name="no-information-keeps-the-log",
        module="truncation",
        category=Category.PROTOCOL,
        sentence="If the leader knows no epoch, nothing is truncated.",
        breaks='KIP-101: "fall back to the current approach by truncating the log to its high watermark"',
        edits=(("to=min(fallback, log_end_offset)", "to=log_end_offset"),),
    ),
    Mutant(
        name="own-epoch-end-ignored",
        module="truncation",
        category=Category.PROTOCOL,
        sentence="A follower truncates where the leader's epoch ends, even if its own ends before.",
        breaks="KIP-279: the smaller end of the last epoch that both know",
        edits=(("min(mine.end, answer.end, log_end_offset)", "min(answer.end, log_end_offset)"),),
    ),
    Mutant(
        name="leaders-epoch-end-ignored",
        module="truncation",
        category=Category.PROTOCOL,
        sentence="A follower truncates where its own epoch ends, even if the leader's ends before.",
        breaks="KIP-279: the smaller end of the last epoch that both know",
        edits=(("min(mine.end, answer.end, log_end_offset)", "min(mine.end, log_end_offset)"),),
    ),
    Mutant(
        name="walk-of-one-step",
        module="truncation",
        category=Category.PROTOCOL,
        sentence="A follower that lacks the leader's epoch goes one epoch back and fetches.",
        breaks="KIP-279: it asks again until both know the epoch",
        edits=(("reason=Reason.EPOCH_ANSWER, done=False)", "reason=Reason.EPOCH_ANSWER)"),),
    ),
    # --- epochs ----------------------------------------------------------------------------------------------
    Mutant(
        name="answer-names-the-asked-epoch",
        module="epochs",
        category=Category.PROTOCOL,
        sentence="An answer about an epoch that the leader lacks names that epoch, not the one before it.",
        breaks="KIP-279: the largest epoch that is not larger than the asked one",
        edits=(("return EpochEnd(earlier[-1], later.start)", "return EpochEnd(query, later.start)"),),
    ),
    Mutant(
        name="newer-epoch-ends-at-the-log-end",
        module="epochs",
        category=Category.PROTOCOL,
        sentence="A leader answers its log end for an epoch that is newer than all that it knows.",
        breaks="KIP-101, Request Semantics 1: undefined",
        edits=(("if query == self.latest:", "if query >= self.latest:"),),
    ),
    Mutant(
        name="epoch-of-one-record-cut",
        module="epochs",
        category=Category.PROTOCOL,
        sentence="A truncation that leaves an epoch one record removes that epoch.",
        breaks="KIP-101, step 4.4: entries from the new end on",
        edits=(("if entry.start < end or (past", "if entry.start + 1 < end or (past"),),
    ),
    Mutant(
        name="empty-epochs-stay",
        module="epochs",
        category=Category.PROTOCOL,
        sentence="An epoch in which nothing was appended stays, with the same start as the next one.",
        breaks="Kafka's LeaderEpochFileCache.assign: the vector rises in both",
        edits=(("epoch >= epoch or self.entries[-1].start >= start):", "epoch >= epoch):"),),
    ),
    Mutant(
        name="batch-without-epoch-ignored",
        module="epochs",
        category=Category.PROTOCOL,
        sentence="A batch without an epoch leaves the cache as it is, which then answers for that batch.",
        breaks="KAFKA-7897: the cache is cleared",
        edits=(
            (
                "return self.clear() if epoch == UNDEFINED_EPOCH else",
                "return False if epoch == UNDEFINED_EPOCH else",
            ),
        ),
    ),
    Mutant(
        name="checkpoint-contradicts-the-log",
        module="epochs",
        category=Category.PROTOCOL,
        sentence="After a power loss the checkpoint is believed where it contradicts the batches.",
        breaks="KIP-101, Unclean Shutdown: the epochs are those of the log",
        edits=(("cache.entries = _uncontradicted(cache.entries, runs, ends)\n", "\n"),),
    ),
    Mutant(
        name="one-missing-epoch-rebuilt",
        module="epochs",
        category=Category.MANY,
        sentence="Of the epochs that the checkpoint lacks after a crash only the first is rebuilt.",
        breaks="KIP-101, Unclean Shutdown and its footnote: every epoch of the scanned log",
        edits=(
            (
                "            cache.assign(epoch, base_offset)\n",
                "            cache.assign(epoch, base_offset)\n            break\n",
            ),
        ),
    ),
)
