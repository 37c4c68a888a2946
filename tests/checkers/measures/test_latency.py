"""Buckets hold what they say, and histograms add up to that of all."""

from __future__ import annotations

import random
from collections import Counter

import numpy as np
import pytest

from checkers.measures.latency import NS_MAX, bounds_of, buckets_of, quantile


def _bucket(ns: int) -> int:
    return int(buckets_of(np.array([ns], dtype=np.int64))[0])


def test_buckets_follow_each_other_without_a_gap_and_are_narrow() -> None:
    before = -1
    for bucket in range(_bucket(NS_MAX) + 1):
        first, last = bounds_of(bucket)
        assert before + 1 == first
        assert bucket == _bucket(first) == _bucket(last)
        assert last - first <= first / 16
        before = last
    assert NS_MAX == before


@pytest.mark.parametrize(
    ("ns", "bucket"),
    [(0, 0), (15, 15), (16, 16), (31, 31), (32, 32), (33, 32), (34, 33), (1_000_000, 270), (-5, 0)],
)
def test_bucket_of_a_latency_by_hand(ns: int, bucket: int) -> None:
    # 1,000,000 has 20 binary digits: 15 are left out, 15 times 16, and the upper five are 11110.
    assert bucket == _bucket(ns)


def test_latency_beyond_all_buckets_is_in_the_last() -> None:
    assert _bucket(NS_MAX) == _bucket(2**62)


def test_quantiles_by_hand() -> None:
    counts = {5: 50, 20: 49, 270: 1}
    assert [5, 20, 20, 1_000_100] == [quantile(counts, share, 1_000_100) for share in (0.5, 0.501, 0.99, 1)]
    assert quantile({}, 0.5, 0) is None
    # The greatest latency is exact, however wide its bucket is.
    assert 1_000_000 == quantile({270: 1}, 0.5, 1_000_000)


def test_merged_histograms_say_what_one_of_all_says_and_are_near_the_truth() -> None:
    rng = random.Random(4)
    parts = [[rng.randrange(10 ** rng.randrange(1, 10)) for _ in range(rng.randrange(200))] for _ in range(20)]
    merged: Counter[int] = Counter()
    for part in parts:
        merged.update(buckets_of(np.array(part, dtype=np.int64)).tolist())
    every = sorted(ns for part in parts for ns in part)
    assert Counter(buckets_of(np.array(every)).tolist()) == merged
    for share in (0.1, 0.5, 0.9, 0.99, 1.0):
        exact = every[max(0, -int(-share * len(every) // 1) - 1)]
        found = quantile(merged, share, every[-1])
        assert found is not None
        assert exact <= found <= exact * 17 / 16
