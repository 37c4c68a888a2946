"""Windows that were tried, those that were available, and the longest stretch without an acknowledgement."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from checkers.measures.availability import REAL_NS, WINDOWS_MAX, Availability, WindowsSoFar, windows_of
from harness.model import HistoryError


def _windows(*produces: tuple[float, float, bool]) -> dict[int, bool]:
    sent, ended, acked = zip(*produces, strict=True)
    return windows_of(
        np.array([round(s * REAL_NS) for s in sent]),
        np.array([round(s * REAL_NS) for s in ended]),
        np.array(acked),
        REAL_NS,
    )


@pytest.mark.parametrize(
    ("produces", "expected"),
    [
        ([(0.1, 0.2, True)], {0: True}),
        ([(0.1, 0.2, False)], {0: False}),
        # Sent at the end of a window, and acknowledged soon: both are available.
        ([(0.9, 1.1, True)], {0: True, 1: True}),
        # One that took exactly a window's length is soon enough; a nanosecond more is not.
        ([(0.5, 1.5, True)], {0: True, 1: True}),
        ([(0.5, 1.500000001, True)], {0: False, 1: True}),
        ([(0.5, 3.5, True)], {0: False, 1: False, 2: False, 3: True}),
        # A failure takes nothing from what another client got.
        ([(0.5, 2.5, False), (1.1, 1.2, True)], {0: False, 1: True, 2: False}),
        # Nothing was tried in window 1.
        ([(0.1, 0.2, True), (2.0, 2.1, False)], {0: True, 2: False}),
        # At its very end, a window is the next one.
        ([(0.0, 1.0, False)], {0: False, 1: False}),
    ],
)
def test_windows_by_hand(produces: list[tuple[float, float, bool]], expected: dict[int, bool]) -> None:
    assert expected == _windows(*produces)


def test_windows_of_parts_are_those_of_all_together() -> None:
    parts = [[(0.5, 3.5, True), (1.0, 1.1, False)], [(2.2, 2.3, True)], [(7.0, 9.0, False)]]
    merged: dict[int, bool] = {}
    for part in parts:
        for window, available in _windows(*part).items():
            merged[window] = available or merged.get(window, False)
    assert _windows(*(produce for part in parts for produce in part)) == merged


def test_no_produce_is_no_window() -> None:
    none = np.empty(0, dtype=np.int64)
    assert {} == windows_of(none, none, none.astype(bool), REAL_NS)


@pytest.mark.parametrize(
    ("windows", "expected"),
    [
        ("", (0, 0, None)),
        ("++", (2, 2, None)),
        ("+--+", (4, 2, (1, 3))),
        # Of two of one length, the earlier.
        ("-+-", (3, 1, (0, 1))),
        # What was not tried neither begins nor ends a stretch.
        ("+.-..-.+", (4, 2, (2, 6))),
        ("-.+---", (5, 1, (3, 6))),
    ],
)
def test_longest_stretch_by_hand(windows: str, expected: tuple[int, int, tuple[int, int] | None]) -> None:
    found = Availability.of({place: sign == "+" for place, sign in enumerate(windows) if sign != "."})
    assert expected == (found.windows, found.available, found.stretch)


def test_run_of_years_is_refused_before_its_windows_are_counted() -> None:
    with pytest.raises(HistoryError, match="expected windows from 0 to"):
        _windows((0.0, float(WINDOWS_MAX), False))


@given(st.lists(st.tuples(st.integers(0, 9_000), st.integers(0, 4_000), st.booleans()), min_size=1))
def test_windows_of_a_run_that_goes_on_are_those_of_all_its_produces(
    produces: list[tuple[int, int, bool]],
) -> None:
    so_far = WindowsSoFar(window_ns=1_000)
    for sent_ns, took_ns, acked in produces:
        so_far.add(sent_ns, sent_ns + took_ns, acked)
    sent, took, acked = zip(*produces, strict=True)
    ended = np.array(sent) + np.array(took)
    assert windows_of(np.array(sent), ended, np.array(acked), 1_000) == so_far.found
