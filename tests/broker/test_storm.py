"""A short storm of aimed and random requests: the broker lives, stays small, serves others and loses nothing."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.clusters import running
from tests.broker.aimed import KINDS
from tests.broker.storm import GOAL_BYTES, MEMORY_BYTES, OURS, peer_of, storm_at
from tests.kept import exhaustive

pytestmark = pytest.mark.slow

FRAMES = 3_000
SERVED_MIN = 10


@exhaustive
def test_broker_lives_through_a_storm_of_aimed_requests(tmp_path: Path) -> None:
    with running(peer_of(OURS, MEMORY_BYTES), tmp_path, names="A") as cluster:
        result = storm_at(cluster, FRAMES, seed=1)
        told = cluster.last_words()
    assert result.alive, told
    assert [] == result.seen.errors
    assert (0, True) == (result.seen.lost, result.seen.acknowledged >= SERVED_MIN)
    assert result.peak_bytes < GOAL_BYTES
    assert FRAMES <= result.storm.frames
    # "many" is five kinds by what they name many of.
    assert len(KINDS) <= len({kind.partition(" ")[0] for kind in result.storm.thrown} - {"random"})
