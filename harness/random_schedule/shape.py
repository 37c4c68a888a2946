"""
Draws the settings of a wide run's cluster: unclean election, min ISR, lag, flushes, segments, a lone replica.

It has a random source of its own: all else of a seed is the same, but for a lone main partition, which no step
can move. Narrow runs keep their settings.

A loss by an unclean election is permitted (checkers/facts/proof.py), so few clusters allow them: what is lost
there hides what else could be.
"""

from __future__ import annotations

from dataclasses import replace
from random import Random
from typing import Final

from harness.target.settings import Settings

# The share of wide runs that allow unclean elections, and of those whose main partition has one replica.
UNCLEAN_SHARE: Final = 0.15
LONE_SHARE: Final = 0.06
# Choices of settings; None keeps what was drawn before.
MIN_ISRS: Final = (None, None, None, 1, 2, 3)
LAGS_MS: Final = (None, None, None, 30, 100, 250)
FLUSHES: Final = (None, None, None, 2, 16)
SEGMENTS: Final = (None, None, None, 90, 300)


def is_lone(seed: int) -> bool:
    """Return True if a wide run's main partition has a single replica: its leader is never another broker."""
    return Random(f"lone {seed}").random() < LONE_SHARE


def has_one_replica(seed: int, share: float) -> bool:
    """Return True if a narrow run's partition has a single replica, as it has in so many of them."""
    return Random(f"replication {seed}").random() < share


def shaped(seed: int, settings: Settings, replicas: int) -> Settings:
    """
    Return the settings of a wide run.

    Args:
        replicas: how many the main partition has; min ISR is no more, or nothing would ever be acknowledged.
    """
    chance = Random(f"shape {seed}")
    min_isr = chance.choice(MIN_ISRS) or settings.min_isr
    return replace(
        settings,
        unclean_election=chance.random() < UNCLEAN_SHARE,
        min_isr=min(min_isr, replicas),
        replica_lag_ms_max=chance.choice(LAGS_MS) or settings.replica_lag_ms_max,
        flush_messages=chance.choice(FLUSHES) or settings.flush_messages,
        segment_bytes=chance.choice(SEGMENTS) or settings.segment_bytes,
    )
