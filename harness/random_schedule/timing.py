"""
How a random schedule is played: in virtual time as it says, on real processes at a pace that they can keep.

Systems that differ in how fast they start, elect and answer shall meet each step of a schedule alike: so on real
processes time passes more slowly, and some steps end with a condition, each with a limit.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True, kw_only=True)
class Timing:
    """
    How much time steps get, and which of them make sense.

    Shapes:  alike: an election is only asked for where every target could grant it, Apache Kafka too: it first has
             all replicas moved, which needs a controller at work and all of them up and in the ISR.
    Units:   tempo is by how much more time passes than the schedule says, slack by how much more time the cluster
             has for what it has limits for: to catch up, to be healed. elected_s_max is how long an election
             that was asked for is awaited, begun_s_max how long the records that are sent before anything breaks,
             and settled_s_max how much longer a pass that is meant for an election may be while records wait for
             their acknowledgement; it ends with that. 0: not at all.
    """

    tempo: float = 1.0
    slack: float = 1.0
    alike: bool = False
    elected_s_max: float = 0.0
    begun_s_max: float = 0.0
    settled_s_max: float = 0.0


VIRTUAL: Final = Timing()
# Where steps end with conditions little time need pass besides, and must not: what hurts is what comes while word
# of the last step is still under way. A follower hears of a high watermark up to 50 ms after the client.
REAL: Final = Timing(tempo=2.0, slack=8.0, alike=True, elected_s_max=1.0, begun_s_max=5.0, settled_s_max=0.7)
# From so long a pass on it is meant for an election, in the schedule's own time
# (harness/random_schedule/profile.py).
ELECTION_MS: Final = 8.0
