"""Lineage and differences: every divergence in content is found, and nothing else is reported."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from harness.logs.lineage import DifferenceKind, behind, differences, holes, lineage
from harness.logs.replica import ReplicaLog
from tests.logs.replicas import replica, seen


def vector(log: ReplicaLog) -> list[tuple[int | None, int, int]]:
    """Return a replica's lineage as plain tuples."""
    return [(s.epoch, s.start, s.end) for s in lineage(log)]


def ranges(*logs: ReplicaLog) -> list[tuple[str, int, int]]:
    """Return (kind, first, end) of every difference."""
    found = differences({chr(ord("A") + index): log for index, log in enumerate(logs)})
    return [(d.kind.value, d.first, d.end) for d in found]


def test_lineage_folds_batches_of_one_epoch_and_begins_anew_with_the_next() -> None:
    log = replica(seen(0, "a b"), seen(2, "c"), seen(3, "d", epoch=2), seen(4, "e", epoch=2))
    assert [(0, 0, 3), (2, 3, 5)] == vector(log)


def test_lineage_shows_a_hole_when_no_batch_holds_its_offsets() -> None:
    """Source: KAFKA-6361, with n=25: B lacks 11 to 20."""
    log = replica(seen(0, "a b"), seen(5, "c", epoch=3))
    assert [(0, 0, 2), (None, 2, 5), (3, 5, 6)] == vector(log)
    assert ((2, 5),) == holes(log)


def test_lineage_begins_at_the_log_s_start_when_a_batch_reaches_before_it() -> None:
    assert [(0, 1, 3)] == vector(replica(seen(0, "a b c"), start=1))
    assert [(1, 2, 3)] == vector(replica(seen(0, "a b"), seen(2, "c", epoch=1), start=2))


def test_lineage_keeps_file_order_when_offsets_go_back() -> None:
    assert [(0, 0, 3), (1, 1, 2)] == vector(replica(seen(0, "a b c"), seen(1, "x", epoch=1)))


def test_holes_are_none_where_bytes_were_not_read_or_compaction_passed() -> None:
    batches = (seen(0, "a"), seen(5, "b"), seen(8, "c"))
    assert ((1, 5), (6, 8)) == holes(replica(*batches))
    assert ((6, 8),) == holes(replica(*batches, unread=((1, 5),)))
    assert ((4, 5), (6, 8)) == holes(replica(*batches, unread=((0, 4),)))
    assert ((7, 8),) == holes(replica(*batches, cleaned_to=7))
    assert [(0, 0, 6), (None, 7, 8), (0, 8, 9)] == vector(replica(*batches, cleaned_to=7))


def test_holes_show_when_a_batch_lacks_a_record_or_the_log_its_first_one() -> None:
    assert ((0, 2), (3, 4)) == holes(replica(seen(2, "a _ b")))


def test_differences_are_none_when_logs_are_equal_or_cut_into_other_batches() -> None:
    assert [] == ranges(replica(seen(0, "a b"), seen(2, "c")), replica(seen(0, "a"), seen(1, "b c")))


def test_differences_give_the_maximal_range_and_what_each_holds_when_content_differs() -> None:
    """Source: KIP-101, Scenario 2: m2 on A and m3 on B at one offset."""
    a = replica(seen(0, "m1"), seen(1, "m2 m4"), seen(3, "m5", epoch=1))
    b = replica(seen(0, "m1"), seen(1, "m3 m6"), seen(3, "m5", epoch=1))
    (found,) = differences({"A": a, "B": b})
    assert (DifferenceKind.CONTENT, 1, 3) == (found.kind, found.first, found.end)
    assert [("A", 0, (0,), ("m2", "m4")), ("B", 1, (0,), ("m3", "m6"))] == [
        (h.replica, h.group, h.epochs, h.sample) for h in found.holdings
    ]


def test_differences_part_when_an_offset_between_agrees() -> None:
    assert [("content", 0, 1), ("content", 2, 3)] == ranges(replica(seen(0, "a b c")), replica(seen(0, "x b y")))


def test_differences_show_a_hole_when_one_holds_what_the_other_lacks_below_its_end() -> None:
    full = replica(seen(0, "a b c d"))
    lacking = replica(seen(0, "a"), seen(3, "d"))
    assert [("hole", 1, 3)] == ranges(full, lacking)
    (found,) = differences({"A": full, "B": lacking})
    assert [0, None] == [h.group for h in found.holdings]


def test_differences_show_the_epoch_when_the_same_records_stand_under_another() -> None:
    a, b = (replica(seen(0, "a"), seen(1, "b c", epoch=epoch)) for epoch in (1, 2))
    assert [("epoch", 1, 3)] == ranges(a, b)


def test_differences_show_content_when_one_claims_an_offset_twice() -> None:
    a = replica(seen(0, "a b"))
    for first, again in ("bx", "xb"):
        assert [("content", 1, 2)] == ranges(a, replica(seen(0, f"a {first}"), seen(1, again)))


def test_differences_part_by_who_agrees_with_whom_when_there_are_three() -> None:
    a, b, c = (replica(seen(0, text)) for text in ("a b c", "a x c", "z x _"))
    found = differences({"A": a, "B": b, "C": c})
    assert [(0, (0, 0, 1)), (1, (0, 1, 1)), (2, (0, 0, None))] == [
        (d.first, tuple(h.group for h in d.holdings)) for d in found
    ]


def test_differences_are_none_where_a_replica_says_nothing() -> None:
    full = replica(seen(0, "a b c d"))
    assert [] == ranges(full, replica(seen(2, "c d"), start=2))
    assert [] == ranges(full, replica(seen(0, "a")))
    assert [] == ranges(full, replica(seen(0, "a"), seen(3, "d"), unread=((1, 3),)))
    assert [] == ranges(full, replica(seen(0, "a"), seen(3, "d"), cleaned_to=3))
    assert [("hole", 2, 3)] == ranges(full, replica(seen(0, "a"), seen(3, "d"), cleaned_to=2))


def test_behind_names_the_replica_and_the_furthest_end_when_one_ends_earlier() -> None:
    logs = {"A": replica(seen(0, "a b c")), "B": replica(seen(0, "a")), "C": replica(seen(0, "a b c"))}
    assert [("B", 1, 3)] == [(each.replica, each.log_end_offset, each.furthest) for each in behind(logs)]
    assert () == behind({"A": logs["A"], "C": logs["C"]})
    assert () == behind({})


@given(st.lists(st.lists(st.sampled_from("ab_"), min_size=1, max_size=8), min_size=2, max_size=3))
def test_differences_cover_exactly_the_offsets_that_a_slow_comparison_finds(words: list[list[str]]) -> None:
    logs = {str(index): replica(seen(0, " ".join(each))) for index, each in enumerate(words)}
    slow = set()
    for offset in range(8):
        held = {each[offset] for each in words if offset < len(each)}
        if len(held) > 1:
            slow.add(offset)
    found = differences(logs)
    assert slow == {offset for each in found for offset in range(each.first, each.end)}
    assert len(slow) == sum(each.end - each.first for each in found)
