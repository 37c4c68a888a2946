"""
Latencies as histograms that can be added up, with sixteen buckets to each doubling: a bound is 1/16 off at most.

A bucket is a number, the same in every run, so that the histogram of many runs is the sum of theirs.
Source: HdrHistogram's buckets, with four bits of precision.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, TypeAlias

import numpy as np

Ints: TypeAlias = np.ndarray[Any, np.dtype[np.int64]]

_BITS: Final = 4
_EACH: Final = 1 << _BITS
# Beyond this, a float does not hold each nanosecond: 104 days.
NS_MAX: Final = 2**53 - 1


def buckets_of(ns: Ints) -> Ints:
    """Return the number of the bucket of each latency; one below 0 counts as 0, one above NS_MAX as that."""
    inside = np.clip(ns, 0, NS_MAX).astype(np.int64)
    _, digits = np.frexp(inside.astype(np.float64))  # the binary digits of each; exact up to NS_MAX
    shift = np.maximum(digits.astype(np.int64) - 1 - _BITS, 0)
    found: Ints = shift * _EACH + (inside >> shift)
    return found


def bounds_of(bucket: int) -> tuple[int, int]:
    """Return the least and the greatest latency of a bucket, both inclusive."""
    shift = max(bucket // _EACH - 1, 0)
    first = (bucket - shift * _EACH) << shift
    return first, first + (1 << shift) - 1


def quantile(counts: Mapping[int, int], share: float, max_ns: int) -> int | None:
    """
    Return a latency that this share of all is not above, and that is at most 1/16 too high; None without any.

    Args:
        counts: how many are in each bucket.
        share: 0.5 for the median.
        max_ns: the greatest latency of all.
    """
    rank = share * sum(counts.values())
    seen = 0
    for bucket in sorted(counts):
        seen += counts[bucket]
        if counts[bucket] and seen >= rank:
            return min(bounds_of(bucket)[1], max_ns)
    return None
