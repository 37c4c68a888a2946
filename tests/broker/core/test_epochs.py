"""
The leader epoch cache against the numbers that Kafka's own LeaderEpochFileCacheTest expects.

Where releases differ there are three columns: v11 (0.11.0 to 1.1.1), v20 (2.0.0), v21 (2.0.1 and later); each
protocol is compared with its own. Ids E, A and T number that class's cases: endOffsetFor, contents after assign,
truncation.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from targets.broker.core.epochs import EpochCache, EpochEntry, recovered_cache
from targets.broker.core.rules import PROTOCOLS, EpochCut, EpochTrim, Rules, UnknownEpoch
from targets.broker.core.truncation import walk

V11, V20, V21 = PROTOCOLS["kip101"], PROTOCOLS["kip279"], PROTOCOLS["kip320"]
COLUMNS = {
    "kip101": "v11",
    "kip101-text": "v11",
    "kip279": "v20",
    "kip279-2.0.1": "v21",
    "kip320": "v21",
    "kip380": "v21",
}

Entries = Sequence[tuple[int, int]]
U = (-1, -1)


def cache_of(rules: Rules, assigns: Entries) -> EpochCache:
    cache = EpochCache(rules)
    for epoch, start in assigns:
        cache.assign(epoch, start)
    return cache


# (id, assigns, query, log end offset, v11 offset, v20, v21)
END_OFFSETS: list[tuple[str, Entries, int, int, int, tuple[int, int], tuple[int, int]]] = [
    ("E1", [(2, 10)], 2, 11, 11, (2, 11), (2, 11)),
    ("E2", [(2, 11), (2, 12)], 2, 14, 14, (2, 14), (2, 14)),
    ("E3", [(2, 11), (3, 12)], -1, 0, -1, U, U),
    ("E4", [], 0, 0, -1, U, U),
    ("E5", [], -1, 73, 73, U, U),
    ("E6", [], 7, 0, -1, U, U),
    ("E7", [(5, 11), (6, 12), (7, 13)], 4, 0, -1, U, (4, 11)),
    ("E8", [(1, 11), (1, 12), (2, 13), (2, 14), (3, 15), (3, 16)], 2, 17, 15, (2, 15), (2, 15)),
    ("E9a", [(0, 10), (2, 13), (4, 17)], 1, 0, 13, (0, 13), (0, 13)),
    ("E9b", [(0, 10), (2, 13), (4, 17)], 2, 0, 17, (2, 17), (2, 17)),
    ("E9c", [(0, 10), (2, 13), (4, 17)], 3, 0, 17, (2, 17), (2, 17)),
    ("E10", [(2, 100)], 3, 100, -1, U, U),
    ("E11", [(2, 6)], 2, 7, 7, (2, 7), (2, 7)),
    ("E12a", [(1, 5), (2, 6), (1, 7)], 1, 8, 6, (1, 6), (1, 8)),
    ("E12b", [(1, 5), (2, 6), (1, 7)], 2, 8, 8, (2, 8), U),
    ("E13a", [(5, 11), (6, 12), (7, 13), (7, 12)], 5, 0, 12, (5, 12), (5, 12)),
    ("E13b", [(5, 11), (6, 12), (7, 13), (7, 12)], 6, 0, 13, (6, 13), (5, 12)),
    ("E14-1", [(0, 0), (1, 0)], 1, 0, 0, (1, 0), (1, 0)),
    ("E14-0", [(0, 0), (1, 0)], 0, 0, 0, (0, 0), (0, 0)),
    ("E14b-1", [(0, 0), (1, 0)], 1, 5, 5, (1, 5), (1, 5)),
    ("E14b-0", [(0, 0), (1, 0)], 0, 5, 0, (0, 0), (0, 0)),
    ("E14c-2", [(0, 0), (1, 0), (2, 5)], 2, 10, 10, (2, 10), (2, 10)),
    ("E14c-1", [(0, 0), (1, 0), (2, 5)], 1, 10, 5, (1, 5), (1, 5)),
    ("E14c-0", [(0, 0), (1, 0), (2, 5)], 0, 10, 0, (0, 0), (0, 0)),
    ("E15-0", [(o // 3, o) for o in range(9)], 0, 9, 3, (0, 3), (0, 3)),
    ("E15-1", [(o // 3, o) for o in range(9)], 1, 9, 6, (1, 6), (1, 6)),
    ("E15-2", [(o // 3, o) for o in range(9)], 2, 9, 9, (2, 9), (2, 9)),
    ("E15b-0", [(0, 0), (0, 1), (0, 2)], 0, 3, 3, (0, 3), (0, 3)),
    ("E15b-1", [(o // 3, o) for o in range(6)], 1, 6, 6, (1, 6), (1, 6)),
]


@pytest.mark.parametrize("case", END_OFFSETS, ids=lambda case: case[0])
@pytest.mark.parametrize("protocol", COLUMNS)
def test_end_offset_for_answers_as_kafkas_own_test(
    case: tuple[str, Entries, int, int, int, tuple[int, int], tuple[int, int]], protocol: str
) -> None:
    """Source: Kafka LeaderEpochFileCacheTest; KIP-101 step 4.3, Request Semantics 1."""
    _, assigns, query, log_end, v11, v20, v21 = case
    found = cache_of(PROTOCOLS[protocol], assigns).end_offset_for(query, log_end)
    if COLUMNS[protocol] == "v11":  # its answer on the wire has no epoch
        assert v11 == found.end
    else:
        assert (v20 if COLUMNS[protocol] == "v20" else v21) == tuple(found)


@pytest.mark.parametrize("query", range(6))
def test_unknown_epoch_is_answered_by_rule_and_known_ones_alike(query: int) -> None:
    """Source: KAFKA-6361, its first suggestion: to answer "undefined" for an epoch between two known ones."""
    known = [(0, 10), (2, 13), (4, 17)]
    suggested = cache_of(replace(V21, unknown_epoch=UnknownEpoch.UNDEFINED), known).end_offset_for(query, 20)
    as_shipped = cache_of(V21, known).end_offset_for(query, 20)
    assert (U if query in (1, 3, 5) else as_shipped) == suggested
    assert (query == 5) == (as_shipped == U)


# (id, assigns, entries in v11 and v20, entries in v21)
CONTENTS: list[tuple[str, Entries, Entries, Entries]] = [
    ("A1", [(2, 9), (2, 10)], [(2, 9)], [(2, 9)]),
    ("A2", [(2, 9), (3, 9)], [(2, 9), (3, 9)], [(3, 9)]),
    ("A3", [(2, 6), (2, 10)], [(2, 6)], [(2, 6)]),
    ("A4", [(2, 6), (2, 7)], [(2, 6)], [(2, 6)]),
    ("A5", [(1, 5), (2, 6), (1, 7)], [(1, 5), (2, 6)], [(1, 7)]),
    ("A6", [(2, 6), (3, 5)], [(2, 6)], [(3, 5)]),
    ("A8", [], [], []),
]


@pytest.mark.parametrize("case", CONTENTS, ids=lambda case: case[0])
@pytest.mark.parametrize("protocol", COLUMNS)
def test_assign_leaves_the_entries_of_kafkas_own_test(
    case: tuple[str, Entries, Entries, Entries], protocol: str
) -> None:
    """Source: Kafka LeaderEpochFileCacheTest."""
    _, assigns, before, after = case
    expected = after if COLUMNS[protocol] == "v21" else before
    cache = cache_of(PROTOCOLS[protocol], assigns)
    assert list(expected) == list(cache.entries)
    assert (expected[-1][0] if expected else -1) == cache.latest


@pytest.mark.parametrize("protocol", COLUMNS)
def test_a7_entries_survive_being_written_and_read_again(protocol: str) -> None:
    """Source: Kafka LeaderEpochFileCacheTest, shouldPersistEpochsBetweenInstances (A7)."""
    entries = cache_of(PROTOCOLS[protocol], [(2, 6)]).entries
    assert recovered_cache(PROTOCOLS[protocol], entries, (), 0, 7).entries == [(2, 6)]


@pytest.mark.parametrize(("epoch", "start"), [(-1, 0), (0, -1)])
@pytest.mark.parametrize("protocol", COLUMNS)
def test_a9_assign_refuses_negative_values(epoch: int, start: int, protocol: str) -> None:
    """
    Source:  Kafka LeaderEpochFileCacheTest (A9): an error from 2.0.1 on; before, an assertion for the epoch and
             nothing for the offset. No protocol here ever assigns such values, so all refuse them.
    """
    with pytest.raises(ValueError, match="expected both to be at least 0"):
        EpochCache(PROTOCOLS[protocol]).assign(epoch, start)


START: Entries = [(2, 6), (3, 8), (4, 11)]

# (id, operation, offset, start state, entries after)
TRUNCATIONS: list[tuple[str, str, int, Entries, Entries]] = [
    ("T1", "end", 8, START, [(2, 6)]),
    ("T2", "end", 9, START, [(2, 6), (3, 8)]),
    ("T3", "end", -1, START, START),
    ("T4", "start", 8, START, [(3, 8), (4, 11)]),
    ("T5", "start", 9, START, [(3, 9), (4, 11)]),
    ("T6", "start", 1, START, START),
    ("T7", "start", 6, START, START),
    ("T8", "start", 11, START, [(4, 11)]),
    ("T9", "start", 15, START, [(4, 15)]),
    ("T10", "start", 5, [(0, 0), (1, 7), (2, 10)], [(0, 5), (1, 7), (2, 10)]),
    ("T11", "start", -1, START, START),
    ("T13s", "start", 7, [], []),
    ("T13e", "end", 7, [], []),
]


# What is left by the letter of KIP-101, where that differs.
LETTER: dict[str, Entries] = {
    "T1": [(2, 6), (3, 8)],
    "T4": [(4, 11)],
    "T5": [(4, 11)],
    "T7": [(3, 8), (4, 11)],
    "T8": [],
    "T9": [],
    "T10": [(1, 7), (2, 10)],
}


@pytest.mark.parametrize("case", TRUNCATIONS, ids=lambda case: case[0])
@pytest.mark.parametrize("protocol", COLUMNS)
def test_truncation_leaves_the_entries_of_kafkas_own_test(
    case: tuple[str, str, int, Entries, Entries], protocol: str
) -> None:
    """
    Source:  Kafka LeaderEpochFileCacheTest; KIP-101 step 4.4, whose text keeps an epoch at the new end, and
             Maintaining the LeaderEpochSequenceFile, whose text removes those up to the new start.
    """
    name, side, offset, before, after = case
    if protocol == "kip101-text":
        after = LETTER.get(name, after)
    cache = EpochCache(PROTOCOLS[protocol], [EpochEntry(*entry) for entry in before])
    changed = cache.truncate_from_end(offset) if side == "end" else cache.truncate_from_start(offset)
    assert list(after) == list(cache.entries)
    assert (list(before) != list(after)) == changed


def test_t12_clear_leaves_nothing() -> None:
    """Source: Kafka LeaderEpochFileCacheTest, shouldClearAllEntries (T12)."""
    cache = cache_of(V11, START)
    assert cache.clear()
    assert cache.entries == []


@pytest.mark.parametrize("protocol", COLUMNS)
def test_t14_previous_epoch_of_the_latest_follows_assign_and_truncation(protocol: str) -> None:
    """Source: Kafka LeaderEpochFileCacheTest, testPreviousEpoch and testFindPreviousEpoch (T14, T15)."""
    cache = EpochCache(PROTOCOLS[protocol])
    assert cache.previous(2) == -1
    seen = []
    for epoch, start in [(2, 10), (4, 15), (10, 20)]:
        cache.assign(epoch, start)
        seen.append(cache.previous(cache.latest))
    cache.truncate_from_end(18)
    assert [*seen, cache.previous(cache.latest)] == [-1, 2, 4, 2]


def test_t16_next_epoch_is_the_first_larger_one() -> None:
    """Source: Kafka LeaderEpochFileCacheTest, testFindNextEpoch (T16)."""
    cache = cache_of(V21, [(0, 0), (1, 100), (2, 200)])
    assert [cache.next(epoch) for epoch in (-1, 0, 1, 2, 100)] == [0, 1, 2, -1, -1]


def test_t17_start_of_an_epoch_is_its_first_offset() -> None:
    """Source: Kafka LeaderEpochFileCacheTest, testGetEpochEntry (T17)."""
    cache = cache_of(V21, [(2, 100), (3, 500), (5, 1000)])
    assert [cache.start_of(epoch) for epoch in (2, 3, 5, 4)] == [100, 500, 1000, -1]


def test_t18_epoch_at_an_offset_is_the_last_that_began_before_it() -> None:
    """Source: Kafka LeaderEpochFileCacheTest, shouldFetchEpochForGivenOffset (T18)."""
    cache = cache_of(V21, [(0, 10), (1, 20), (5, 30)])
    assert [cache.epoch_at(offset) for offset in (25, 20, 30, 50, 5)] == [1, 1, 5, 5, -1]


def test_l10_recovery_rebuilds_what_the_checkpoint_lacks() -> None:
    """Source: Kafka UnifiedLogTest, testLogRecoversForLeaderEpoch (L10); KIP-101, footnote to step 3."""
    batches = [(1, 0), (2, 1), (3, 3)]
    assert recovered_cache(V21, [(1, 0), (2, 1)], batches, 0, 4).entries == [(1, 0), (2, 1), (3, 3)]


def test_l11_recovery_rebuilds_the_whole_cache_from_batches() -> None:
    """Source: Kafka LogLoaderTest, testRecoveryRebuildsEpochCache (L11)."""
    batches = [(0, 104), (1, 106), (2, 110)]
    assert recovered_cache(V11, (), batches, 104, 112).entries == [(0, 104), (1, 106), (2, 110)]


@pytest.mark.parametrize(("cut", "expected"), [("at_or_past", [(0, 0)]), ("past", [(0, 0), (1, 4)])])
def test_unclean_shutdown_drops_epochs_past_the_logs_end(cut: str, expected: Entries) -> None:
    """Source: KIP-101, Unclean Shutdown: entries "where the offset is greater than the log end offset"."""
    rules = replace(V11, epoch_cut=EpochCut(cut))
    assert list(expected) == recovered_cache(rules, [(0, 0), (1, 4), (2, 6)], (), 0, 4).entries


def test_entries_past_the_end_do_not_hide_what_the_batches_say() -> None:
    """Source: KIP-101, Unclean Shutdown. Epoch 7 has no record in the log that is left."""
    assert recovered_cache(V11, [(0, 0), (7, 9)], [(0, 0), (1, 3)], 0, 5).entries == [(0, 0), (1, 3)]


@pytest.mark.parametrize(("file", "batches", "expected"), [
    # Batches without an epoch stand where the checkpoint says that epoch 2 begins.
    ([(0, 0), (2, 5)], [(0, 0), (-1, 4)], []),
    ([(0, 0), (2, 5)], [(0, 0), (-1, 4), (7, 8)], [(7, 8)]),
    # What began after them is right, also where what was before them is not known any more.
    ([(0, 0), (7, 8)], [(0, 0), (-1, 4), (7, 8)], [(7, 8)]),
    # The batch at 4 is of epoch 3, copied without a note of it: epoch 2 begins nowhere.
    ([(0, 0), (2, 5)], [(0, 0), (3, 4)], [(0, 0), (3, 4)]),
])  # fmt: skip
def test_what_a_broker_without_epochs_has_left_of_a_checkpoint_is_not_believed(
    file: list[tuple[int, int]], batches: list[tuple[int, int]], expected: list[tuple[int, int]]
) -> None:
    """Source: KIP-101, Compatibility, Deprecation, and Migration Plan; KAFKA-7897."""
    for rules in (V11, V21):
        assert expected == recovered_cache(rules, file, batches, 0, 9).entries


def test_step_4_4_to_the_letter_resets_the_last_epoch_to_the_answer() -> None:
    """Source: KIP-101 step 4.4: "it resets its last Leader Epoch Sequence to be the leader's LastOffset"."""
    letter = EpochCache(replace(V11, epoch_cut=EpochCut.PAST), [EpochEntry(0, 0), EpochEntry(2, 11)])
    assert letter.reset_last_to(5)
    assert letter.entries == [(0, 0), (2, 5)]
    code = EpochCache(V11, [EpochEntry(0, 0), EpochEntry(2, 11)])
    assert code.reset_last_to(5)
    assert code.entries == [(0, 0)]


@pytest.mark.parametrize(("file", "batches", "end", "expected"), [
    # The truncation to 2 was undone: the batch at 2 is of epoch 0 again, and only the batch shows it.
    ([(0, 0), (2, 2), (3, 4)], [(0, 0)], 3, [(0, 0)]),
    ([(0, 0), (2, 2)], [(0, 0), (1, 2)], 3, [(0, 0), (1, 2)]),
    ([(0, 0), (5, 1)], [(0, 0), (3, 4)], 9, [(0, 0), (3, 4)]),
    # An epoch without records, at the end or between two that have some, contradicts nothing.
    ([(0, 0), (2, 2), (3, 2)], [(0, 0), (3, 2)], 3, [(0, 0), (2, 2), (3, 2)]),
    ([(0, 0), (2, 2)], [(0, 0), (2, 2)], 3, [(0, 0), (2, 2)]),
    # Batches without an epoch contradict no entry; which entries they end is a separate question.
    ([(1, 0)], [(1, 0)], 4, [(1, 0)]),
])  # fmt: skip
def test_recovery_believes_batches_where_the_checkpoint_says_that_they_were_cut(
    file: list[tuple[int, int]],
    batches: list[tuple[int, int]],
    end: int,
    expected: list[tuple[int, int]],
) -> None:
    """
    An undone truncation leaves the checkpoint ahead of the log; if trusted, the old records are never truncated.

    Source:  found by search, seed 1332 of kip380; Kafka's LogSegment.recover adds only newer epochs.
    """
    assert expected == recovered_cache(PROTOCOLS["kip380"], file, batches, 0, end).entries


def test_epoch_whose_records_compaction_removed_keeps_its_entry() -> None:
    """
    Epoch 2 was 3..5, of which nothing is left; without its entry epoch 1 would seem to end at 6.

    Source: KIP-101, Maintaining the LeaderEpochSequenceFile, compacted topics; Kafka keeps the cache as it is.
    """
    file, batches = [(1, 0), (2, 3), (3, 6)], [(1, 0), (3, 6)]
    assert file == recovered_cache(V21, file, batches, 0, 8, batch_ends=(3, 8)).entries
    assert [(1, 0), (3, 6)] == recovered_cache(V21, file, batches, 0, 8, batch_ends=(4, 8)).entries


@pytest.mark.parametrize(
    ("file", "expected"),
    [
        ([], [(0, 4), (1, 6)]),  # trimmed by the letter: its batches bring back what the file lacks
        ([(1, 6)], [(1, 6)]),  # what comes before an entry that the file has is not looked for
        ([(0, 0), (1, 6)], [(1, 6)]),  # the start was durable, and then the power failed
    ],
)
def test_recovery_takes_epochs_of_what_is_left_from_its_batches_by_the_letter(
    file: Entries, expected: Entries
) -> None:
    """Source: KIP-101, Maintaining the LeaderEpochSequenceFile and the footnote on flushing."""
    rules = replace(V11, epoch_trim=EpochTrim.UP_TO_START)
    assert list(expected) == recovered_cache(rules, file, [(0, 3), (1, 6)], 4, 8).entries


def test_end_of_an_epoch_without_an_entry_is_not_known_by_the_letter() -> None:
    """
    By Kafka's code the leader answers with its log's end.

    Source:  KIP-101, Maintaining the LeaderEpochSequenceFile; step 4.3.
    """
    answers = []
    for trim in EpochTrim:
        cache = EpochCache(replace(V11, epoch_trim=trim), [EpochEntry(0, 0)])
        assert cache.truncate_from_start(5)
        answers.append(cache.end_offset_for(0, 9))
    assert [(0, 9), U] == answers


def test_file_regenerated_after_a_compaction_would_let_the_epoch_before_end_later() -> None:
    """
    Epoch 1 began at 3, and compaction removed its records at 3 and 4.

    Source:  KIP-101, Maintaining the LeaderEpochSequenceFile: "For compacted topics", which Kafka's code ignores.
    """
    left = [(0, 0), (1, 5)]
    kept = recovered_cache(V21, [(0, 0), (1, 3)], left, 0, 7, batch_ends=(3, 7))
    regenerated = recovered_cache(V21, [], left, 0, 7)
    ends = [cache.end_offset_for(0, 7) for cache in (kept, regenerated)]
    assert [(0, 3), (0, 5)] == ends
    follower = EpochCache(V21, [EpochEntry(0, 0)])
    cuts = [walk(end, follower, log_end_offset=5, fallback=0).to for end in ends]
    assert [3, 5] == cuts  # what the follower wrote alone at 3 and 4 stays, for good
