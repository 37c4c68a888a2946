"""
What random schedules are made of: how long they are, and how often each kind of move comes.

Rules:   every schedule draws a temper of its own first: which kinds of moves it has at all, and which often. Many
         schedules that each do little tell more apart than many that all do everything (swarm testing).
Source:  Groce, Zhang, Eide, Chen, Regehr: "Swarm Testing", ISSTA 2012.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from harness.cluster.fault import Fault
from harness.effect import RENAMED_FAULTS
from harness.registry import pick

# How often each kind of move comes, relative to the others, in a schedule that has it. What counts most are
# elections while messages are held: every counterexample of the specification is made of them.
WEIGHTS: Final[Mapping[str, float]] = {
    "produce": 8.0,
    "elect": 8.0,
    "pass": 5.0,
    "hold-command": 4.0,
    "hold-fetch": 3.0,
    "hold-answer": 1.5,
    "hold-question": 0.8,
    "hold-word": 0.8,
    "release": 7.0,
    "zombie": 2.0,
    "return": 2.0,
    "kill": 1.5,
    "power-loss": 1.0,
    "restart": 3.0,
    "flush": 0.7,
    "expire": 1.0,
    "pause": 1.0,
    "resume": 1.5,
    "depose-controller": 0.7,
    "cut": 1.0,
    "heal": 1.5,
    "delay": 1.0,
    "double": 0.6,
    "story": 2.0,
}
# What undoes a move is in every schedule that has the move.
ALWAYS: Final = frozenset({"produce", "elect", "pass", "release", "return", "restart", "resume", "heal"})
# How a schedule's temper changes the weight of each other kind.
TEMPERS: Final = (0.0, 0.0, 0.0, 0.5, 1.0, 1.0, 2.0)
# Where somebody has chosen, each schedule has all that was chosen.
TEMPERS_CHOSEN: Final = (0.5, 1.0, 1.0, 2.0)

NO_FAULTS: Final[Mapping[str, Fault]] = {}

# What may be chosen, and the moves that it stands for.
ALL: Final = "all"
NEMESES: Final[Mapping[str, tuple[str, ...]]] = {
    ALL: tuple(WEIGHTS),
    "hold": tuple(kind for kind in WEIGHTS if kind.startswith("hold-")),
    **{kind: (kind,) for kind in WEIGHTS if kind not in ALWAYS or kind == "elect"},
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile:
    """
    How schedules are drawn.

    Shapes:  moves is how many there are, least and most. pass_ms are kinds of waits, (share, least, most) each,
             from the shortest to the longest: the second gives an election its time, the third a fetch that waits
             for records. lags_ms are replica_lag_ms_max to choose from, None: nobody leaves the ISR for being
             slow. three_replicas, apart, min_isr_two, acks_all, begun (something is acknowledged first) and told
             (it begins with a story) are shares of 1. delay_s is how late frames are made, least and most.
             stories are those of harness/random_schedule/patterns.py that may be told, tempers what each kind's
             weight may be multiplied by. heal_within_s is the schedules' own. only: faults that may be drawn by
             their own weight, None for every fault that weights does not name.
    """

    moves: tuple[int, int]
    pass_ms: tuple[tuple[float, float, float], ...]
    lags_ms: tuple[int | None, ...]
    three_replicas: float = 0.75
    apart: float = 0.75
    min_isr_two: float = 0.3
    acks_all: float = 0.6
    begun: float = 0.75
    told: float = 0.45
    stories: tuple[str, ...] = ("flip", "laggard", "recall")
    tempers: tuple[float, ...] = TEMPERS
    delay_s: tuple[float, float] = (0.002, 0.06)
    heal_within_s: float = 10.0
    weights: Mapping[str, float] = field(default_factory=lambda: WEIGHTS)
    only: frozenset[str] | None = None

    def weights_of(self, faults: Mapping[str, Fault]) -> dict[str, float]:
        """Return the weights of the faults that `WEIGHTS` does not name, by their own."""
        return {
            name: fault.weight
            for name, fault in faults.items()
            if name not in self.weights and name not in WEIGHTS and fault.weight and self._may_draw(name)
        }

    def _may_draw(self, name: str) -> bool:
        return self.only is None or name in self.only


# In virtual time: a frame is under way for up to 2 ms, mostly, and an election takes some ten of them. On real
# processes schedules are played at another pace (harness/random_schedule/timing.py).
DEFAULT: Final = Profile(
    moves=(12, 40),
    pass_ms=((0.45, 0.5, 5.0), (0.4, 8.0, 40.0), (0.15, 50.0, 110.0)),
    lags_ms=(None, None, 60, 150, 400),
)
# On real processes a schedule costs seconds, and nobody looks on at every step: what it does must show at its end.
# So it is shorter, and tells more often what has an end to show. Who is slow there is so for long: a JVM that has
# just started must not leave the ISR for that, since then nobody can be elected.
REAL: Final = replace(
    DEFAULT,
    moves=(6, 20),
    lags_ms=(None, None, None, 250, 400),
    told=0.7,
    stories=("flip", "laggard", "recall", "relapse", "relapse", "fork"),
    weights={**WEIGHTS, "story": 4.0},
)


def profile_of(
    names: Collection[str], base: Profile = DEFAULT, faults: Mapping[str, Fault] = NO_FAULTS
) -> Profile:
    """
    Return the profile of schedules that have these nemeses alone, with what undoes them.

    Args:
        names: of NEMESES, or of faults; with "all" the base as it is, so that its seeds stay what they are.
        faults: the table of faults, of which NEMESES need not name each.

    Raises:
        UsageError: for any other name.
    """
    own = {name: (name,) for name, fault in faults.items() if name not in WEIGHTS and fault.weight}
    known = {**own, **NEMESES}
    present = [RENAMED_FAULTS.get(name, name) for name in names]
    chosen = frozenset(kind for name in present for kind in pick("nemesis", known, name))
    if ALL in names:
        return base
    kept = chosen | (ALWAYS - {"elect"})
    weights = {kind: weight for kind, weight in base.weights.items() if kind in kept}
    told = base.told if "story" in chosen else 0.0
    return replace(base, weights=weights, told=told, tempers=TEMPERS_CHOSEN, only=chosen)
