"""What is known of a partition's records: exact in the window, a sum below it, and never more than the limits."""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from checkers.live.known import KnownRecords

Records = Sequence[tuple[int, str]]


def value(offset: int) -> str:
    return f"m1.{offset}"


def upto(end: int, **other: str) -> list[tuple[int, str]]:
    """Return the records of a whole log; `other` changes some, as o3="x"."""
    return [(offset, other.get(f"o{offset}", value(offset))) for offset in range(end)]


def known_upto(end: int, *, window: int = 8, blocks: int = 4, stride: int = 4) -> KnownRecords:
    """Return records that were acknowledged one after another."""
    known = KnownRecords(window=window, blocks_max=blocks, stride=stride)
    for offset, text in upto(end):
        assert known.learn(offset, text, 100 + offset, acked=True) is None
    return known


def test_another_record_at_a_known_offset_is_told_with_the_op_that_said_so() -> None:
    known = known_upto(4)
    assert (102, True) == known.learn(2, "other", 200, acked=True)[1:]  # type: ignore[index]
    assert known.learn(2, value(2), 201, acked=False) is None


def test_read_that_differs_within_the_window_is_told_at_its_offset() -> None:
    known = known_upto(6)
    assert (3, 4, 103, True) == known.compare(upto(6, o3="other"))
    assert known.compare(upto(6)) is None


def test_read_that_differs_below_the_window_is_told_at_its_block() -> None:
    known = known_upto(20)  # 12 to 19 are in the window, and three blocks of four below it
    assert (4, 8, 107, None) == known.compare(upto(20, o5="other"))
    assert known.compare(upto(20)) is None


def test_block_of_which_an_offset_is_unknown_is_not_compared() -> None:
    known = KnownRecords(window=2, stride=4)
    for offset in (0, 1, 3, 4, 5, 6, 7):
        known.learn(offset, value(offset), offset, acked=True)
    assert known.compare(upto(8, o1="other")) is None


def test_block_that_a_read_shows_in_part_is_not_compared() -> None:
    assert known_upto(20).compare(upto(20, o5="other")[5:]) is None


def test_blocks_grow_when_there_are_too_many_and_still_tell_what_differs() -> None:
    known = known_upto(1000, blocks=4)
    assert known.stride > 4
    found = known.compare(upto(1000, o100="other"))
    assert found is not None
    assert found.first <= 100 < found.end


def test_entries_have_a_limit_however_many_offsets_are_learned() -> None:
    known = known_upto(50_000, window=64, blocks=16)
    assert len(known) <= 64 + 16


def test_offsets_that_are_far_apart_fill_no_more_than_the_limits() -> None:
    known = KnownRecords(window=4, blocks_max=4, stride=4)
    for power in range(62):
        known.learn(2**power, "x", power, acked=True)
    assert len(known) <= 8


def test_skipped_is_the_first_known_offset_that_a_read_passes_over() -> None:
    known = known_upto(8)
    offset, found = known.skipped([each for each in upto(8) if each[0] not in (3, 5)], 8) or (-1, None)
    assert (3, 103) == (offset, found and found.op)
    assert known.skipped(upto(8), 8) is None
    assert (7, True) == ((tail := known.skipped(upto(7), 8)) and tail[0], tail is not None)


def test_skipped_says_nothing_below_the_first_record_or_of_a_read_that_shows_none() -> None:
    known = known_upto(8)
    assert known.skipped(upto(8)[4:], 8) is None
    assert known.skipped([], 8) is None


def test_gap_of_billions_costs_no_more_than_the_window() -> None:
    known = known_upto(8)
    before = known.touched
    assert (1, 101) == (
        (found := known.skipped([(0, "m1.0"), (10**12, "x")], 10**12 + 1)) and found[0],
        found[1].op,
    )  # type: ignore[index]
    assert known.touched - before <= 8


def test_what_a_fault_may_have_ended_is_forgotten() -> None:
    known = known_upto(20)
    known.forget()
    assert 0 == len(known)
    assert known.compare(upto(20, o5="other", o15="other")) is None
    assert known.learn(3, "other", 300, acked=True) is None


@given(
    st.lists(st.tuples(st.integers(0, 40), st.sampled_from("ab")), max_size=60),
    st.sets(st.integers(0, 40)),
    st.sampled_from("ab"),
)
def test_what_differs_differs_from_what_was_learned(learned: Records, shown: set[int], text: str) -> None:
    """Held against a memory without limits: what is told is so, and within the window all of it is told."""
    known, truth = KnownRecords(window=8, blocks_max=3, stride=2), dict[int, str]()
    for index, (offset, said) in enumerate(learned):
        before = known.learn(offset, said, index, acked=True)
        if before is not None:
            assert truth[offset] != said
        truth.setdefault(offset, said)
    read = [(offset, text) for offset in sorted(shown)]
    unlike, differing = known.compare(read), {o for o, said in read if truth.get(o, said) != said}
    if unlike is not None:
        assert differing & set(range(unlike.first, unlike.end))
    if len(truth) <= 8:
        assert (unlike is not None) is bool(differing)
