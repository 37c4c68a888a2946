"""
Availability of a run, by windows of its time: one second, or ten milliseconds of a simulator's virtual time.

A window is *tried* if a produce waited for its answer in it: it was sent before the window's end, and had not
ended at its start. A tried window is *available* if a produce was acknowledged in it, or if one that was sent in
it was acknowledged no later than a window's length after that. An answer that says nothing (acks=0), a failure and
an unknown outcome make no window available. A produce that never ended counts for the window in which it was sent.

An unavailable *stretch* begins with a tried window that is not available, and ends with the last such window
before the next available one. A window in which nothing was tried neither begins nor ends one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias

import numpy as np

from harness.model import HistoryError

Ints: TypeAlias = np.ndarray[Any, np.dtype[np.int64]]
Bools: TypeAlias = np.ndarray[Any, np.dtype[np.bool_]]

REAL_NS: Final = 1_000_000_000
VIRTUAL_NS: Final = 10_000_000
# A run of twelve days; of virtual time, three hours.
WINDOWS_MAX: Final = 2**20


def window_of(*, virtual: bool) -> int:
    """Return the length of a window in nanoseconds."""
    return VIRTUAL_NS if virtual else REAL_NS


def windows_of(sent_ns: Ints, ended_ns: Ints, acked: Bools, window_ns: int) -> dict[int, bool]:
    """
    Return each window that was tried, and whether it was available.

    Args:
        sent_ns: when each produce was sent.
        ended_ns: when it ended; for one that never ended, when it was sent.
        acked: whether it was acknowledged, by an answer that says so.
        window_ns: the length of a window.

    Raises:
        HistoryError: the produces spread over more than WINDOWS_MAX windows.
    """
    if not len(sent_ns):
        return {}
    first, last = sent_ns // window_ns, ended_ns // window_ns
    low, high = int(first.min()), int(last.max())
    if not 0 <= low <= high < WINDOWS_MAX:
        raise HistoryError(
            f"produces from window {low} to window {high} of {window_ns / 1e9:g} s; "
            f"expected windows from 0 to {WINDOWS_MAX - 1}"
        )
    size = high - low + 2
    # How many produces wait in each window, from where they begin and end.
    waiting = np.cumsum(np.bincount(first - low, minlength=size) - np.bincount(last - low + 1, minlength=size))
    available = np.zeros(size, dtype=bool)
    available[(last - low)[acked]] = True
    available[(first - low)[acked & (ended_ns - sent_ns <= window_ns)]] = True
    tried = np.flatnonzero(waiting > 0)
    return dict(zip((tried + low).tolist(), available[tried].tolist(), strict=True))


@dataclass(slots=True, kw_only=True)
class WindowsSoFar:
    """
    The windows of a run that goes on, produce by produce; those of `windows_of` for the same produces.

    Attributes:
        window_ns: the length of a window in nanoseconds.
        found: each window that was tried, and whether it was available.
    """

    window_ns: int
    found: dict[int, bool] = field(default_factory=dict)

    def add(self, sent_ns: int, ended_ns: int, acked: bool) -> None:
        """Take a produce into account; one that has not ended yet has `ended_ns` now and was not acknowledged."""
        first, last = sent_ns // self.window_ns, ended_ns // self.window_ns
        for window in range(first, last + 1):
            self.found.setdefault(window, False)
        if acked:
            self.found[last] = True
            if ended_ns - sent_ns <= self.window_ns:
                self.found[first] = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Availability:
    """
    How available a run was.

    Attributes:
        windows: how many windows were tried.
        available: how many of them were available.
        stretch: the first window of the longest unavailable stretch and the end of its last; None for none.
    """

    windows: int
    available: int
    stretch: tuple[int, int] | None

    @staticmethod
    def of(windows: Mapping[int, bool]) -> Availability:
        """Return the availability of tried windows; of two stretches of one length, the earlier counts."""
        longest: tuple[int, int] | None = None
        begun: int | None = None
        for window in sorted(windows):
            if windows[window]:
                begun = None
                continue
            begun = window if begun is None else begun
            if longest is None or window + 1 - begun > longest[1] - longest[0]:
                longest = (begun, window + 1)
        return Availability(windows=len(windows), available=sum(windows.values()), stretch=longest)
