"""
Draws tombstones: in some runs whose records have keys, a share of these has no value, and deletes its key.

They have a random source of their own, so that all else of a seed is the same with them and without.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from random import Random
from typing import Final

from harness.target.settings import Settings
from harness.workload.plan import Clients

# How often the records of a run with keys have tombstones among them.
SHARE: Final = 0.6
# How many of them are.
SHARES: Final = (0.1, 0.3, 0.6)
# How long compaction keeps one: hardly, or through several cleanings, or through most of a run.
DELAYS_MS: Final = (20, 100, 400, 1_000)


def with_tombstones(
    seed: int, settings: Settings, clients: Clients, groups: Iterable[str]
) -> tuple[Settings, Clients]:
    """
    Return the settings and the clients of a seed's run, in some with tombstones.

    Args:
        groups: the records of the schedule's own steps.
    """
    chance = Random(f"tombstones {seed}")
    if not settings.keys or chance.random() >= SHARE:
        return settings, clients
    share = chance.choice(SHARES)
    settings = replace(
        settings,
        delete_retention_ms=chance.choice(DELAYS_MS),
        tombstones=tuple(name for name in groups if chance.random() < share),
    )
    producers = tuple(replace(each, tombstones=share if each.keys else 0.0) for each in clients.producers)
    return settings, replace(clients, producers=producers)
