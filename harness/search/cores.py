"""How many processes a search takes if it is not told: the cores that this process may use, if that pays."""

from __future__ import annotations

import os
from typing import Final

# Another process takes a second to begin, in which this one plays some thirty seeds.
PAYS_SEEDS: Final = 48
PAYS_S: Final = 3.0


def cores() -> int:
    """Return the number of cores that this process may use."""
    return len(os.sched_getaffinity(0))


def jobs_for(seeds: int, seconds: float | None = None) -> int:
    """Return the number of processes for so many seeds, or for seeds for some time."""
    pays = seeds > PAYS_SEEDS if seconds is None else seconds > PAYS_S
    return cores() if pays else 1
