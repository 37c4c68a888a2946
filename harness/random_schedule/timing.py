"""
The timing of random schedules: unchanged in virtual time, slower on real processes.

Systems start, elect and answer at different speeds, and each step of a schedule should find them in the same
state. So on real processes passes are longer, and some steps wait for a condition, up to a limit.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final


@dataclass(frozen=True, slots=True, kw_only=True)
class Timing:
    """
    How much time steps get, and which elections are applicable.

    Attributes:
        tempo: the factor by which a pass takes longer than the schedule says.
        slack: the factor by which the cluster's time limits grow: to catch up, to be healed.
        alike: ask for an election only when every target could grant it, Apache Kafka included: there it is a
            reassignment, which needs a working controller and all replicas up and in the ISR. And ask for a move
            only once the one before is over.
        ends_when_stuck: end the wait for a healed cluster once all but stuck replicas have settled.
        elected_s_max: how long to wait for an election that was asked for, in seconds; 0 for no wait.
        begun_s_max: how long to wait for the outcome of the first records, in seconds; 0 for no wait.
        moved_s_max: how long to wait, before another move is asked for, until the one before is over, in seconds;
            0 for no wait. All else goes on while a partition moves.
        removed_s_max: how long to wait until partitions are removed, in seconds: no controller may be at work.
        settled_s_max: how much longer a pass that is meant for an election may take while records have no outcome,
            in seconds; it ends when they have one. 0 for no extension.
        hopes: whether a pass is extended after one that was extended in vain, while no fault and no link changed.
    """

    tempo: float = 1.0
    slack: float = 1.0
    alike: bool = False
    ends_when_stuck: bool = False
    elected_s_max: float = 0.0
    begun_s_max: float = 0.0
    moved_s_max: float = 0.0
    removed_s_max: float = 0.2
    settled_s_max: float = 0.0
    hopes: bool = True

    def for_elections(self, election_s: float) -> Timing:
        """Return the timing for a system that may be without a leader for so long; 0: as long as any."""
        if not self.settled_s_max or election_s / 2 <= self.settled_s_max:
            return self
        return replace(self, settled_s_max=election_s / 2, hopes=False)


VIRTUAL: Final = Timing()
# Steps that wait for conditions need little time besides, and must not have more: violations occur when a step
# comes before the last one's effects have spread. A follower learns a high watermark up to 50 ms after the client.
REAL: Final = Timing(
    tempo=2.0,
    slack=8.0,
    ends_when_stuck=True,
    elected_s_max=1.0,
    begun_s_max=5.0,
    moved_s_max=3.0,
    removed_s_max=2.0,
    settled_s_max=0.7,
)
# A pass of at least this length, before `tempo`, is meant for an election (harness/random_schedule/profile.py).
ELECTION_MS: Final = 8.0
# Without epochs one of at least this length lets followers learn the last high watermark: it lasts, also
# once records have an outcome.
QUIET_MS: Final = 400
