"""
Profiles of random schedules: how long they are, and how often each kind of move occurs.

Every schedule first draws its temper: which kinds of moves it has at all, and which are frequent. Schedules that
each omit some kinds of moves find more than schedules that all have every kind (swarm testing).

Source:  Groce, Zhang, Eide, Chen, Regehr: "Swarm Testing", ISSTA 2012.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from harness.cluster.fault import Fault
from harness.random_schedule.width import NARROW, Breadth
from harness.registry import pick
from harness.scenario.words import FAULT, present

# How often each kind of move occurs, relative to the others, in a schedule that has it. Elections while messages
# are held matter most: every counterexample of the specification consists of them.
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
    "pattern": 2.0,
}
# These moves are in every schedule: among them those that undo another move.
ALWAYS: Final = frozenset({"produce", "elect", "pass", "release", "return", "restart", "resume", "heal"})
# The factors from which a schedule draws one for the weight of each other kind.
TEMPERS: Final = (0.0, 0.0, 0.0, 0.5, 1.0, 1.0, 2.0)
# With chosen nemeses, every schedule has all of them.
TEMPERS_CHOSEN: Final = (0.5, 1.0, 1.0, 2.0)

NO_FAULTS: Final[Mapping[str, Fault]] = {}

# A nemesis's old name -> its current one; options may have either, for one release.
_RENAMED: Final[Mapping[str, str]] = {"story": "pattern"}

# A nemesis that a command may choose -> its moves.
ALL: Final = "all"
# An operator's moves, which a schedule has only if a command names them: their weights are none of the others'.
OPERATIONS: Final[Mapping[str, Mapping[str, float]]] = {"move-away": {"move-away": 16.0, "move-back": 6.0}}
NAMED_MOVES: Final = frozenset(move for moves in OPERATIONS.values() for move in moves)
NEMESES: Final[Mapping[str, tuple[str, ...]]] = {
    ALL: tuple(WEIGHTS),
    "hold": tuple(kind for kind in WEIGHTS if kind.startswith("hold-")),
    **{kind: (kind,) for kind in WEIGHTS if kind not in ALWAYS or kind == "elect"},
    **{name: tuple(moves) for name, moves in OPERATIONS.items()},
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile:
    """
    How schedules are drawn.

    Attributes:
        moves: the least and the greatest number of moves.
        pass_ms: kinds of passes as (share, least, most) in milliseconds, from the shortest to the longest. The
            second is long enough for an election, the third for a fetch that waits for records.
        lags_ms: the choices for replica_lag_ms_max; with None no slow follower leaves the ISR.
        three_replicas: the share of schedules with three replicas; the others have two.
        lone: the share of all schedules that have one replica instead.
        alone: the share of schedules that have one kind of fault, or of an operator's requests, again and again,
            beside a producer that never pauses: a kind that others hide shows by itself.
        controller: whether the system has one; without, no node is there for it alone.
        apart: the share of schedules in which the controller is no replica.
        min_isr_two: the share of schedules with min.insync.replicas 2.
        acks_all: the share of produces with acks=all; the others have acks=1.
        begun: the share of schedules that wait for the first records before anything else.
        pattern_first: the share of schedules that begin with a pattern.
        patterns: the names of the patterns (harness/random_schedule/patterns.py) that may be drawn.
        tempers: the factors that a kind's weight may be multiplied by.
        delay_s: the shortest and the longest delay of frames, in seconds.
        heal_within_s: how long the cluster has to become whole at the end, in seconds.
        weights: kind of move -> how often it occurs, relative to the others.
        breadth: how wide runs are: brokers, partitions and clients.
        only: the faults that may be drawn by their own weight; None for every fault that weights does not name.
        own: names of messages of the system alone, which are held where a drawn word means none of its messages.
    """

    moves: tuple[int, int]
    pass_ms: tuple[tuple[float, float, float], ...]
    lags_ms: tuple[int | None, ...]
    three_replicas: float = 0.75
    lone: float = 0.0
    alone: float = 0.0
    controller: bool = True
    apart: float = 0.75
    min_isr_two: float = 0.3
    acks_all: float = 0.6
    begun: float = 0.75
    pattern_first: float = 0.45
    patterns: tuple[str, ...] = ("flip", "laggard", "recall")
    tempers: tuple[float, ...] = TEMPERS
    delay_s: tuple[float, float] = (0.002, 0.06)
    heal_within_s: float = 10.0
    weights: Mapping[str, float] = field(default_factory=lambda: WEIGHTS)
    only: frozenset[str] | None = None
    breadth: Breadth = field(default_factory=Breadth)
    own: tuple[str, ...] = ()

    def weights_of(self, faults: Mapping[str, Fault]) -> dict[str, float]:
        """Return fault -> its own weight, for each fault that `WEIGHTS` does not name and that may be drawn."""
        return {
            name: fault.weight
            for name, fault in faults.items()
            if name not in self.weights and name not in WEIGHTS and fault.weight and self._may_draw(name)
        }

    def _may_draw(self, name: str) -> bool:
        return self.only is None or name in self.only


# For virtual time: a frame mostly takes up to 2 ms, and an election takes about ten frames. Environments with real
# processes have another timing (harness/random_schedule/timing.py).
DEFAULT: Final = Profile(
    moves=(12, 40),
    pass_ms=((0.45, 0.5, 5.0), (0.4, 8.0, 40.0), (0.15, 50.0, 110.0)),
    lags_ms=(None, None, 60, 150, 400),
)
# On real processes a schedule takes seconds, and no oracle checks every step: a violation must show in the final
# logs. So schedules are shorter, and have more patterns, which leave such evidence. Lag limits are longer: a JVM
# that has just started is slow, and must not leave the ISR for that, because then no leader can be elected.
REAL: Final = replace(
    DEFAULT,
    moves=(6, 20),
    lone=0.1,
    alone=0.2,
    lags_ms=(None, None, None, 250, 400),
    pattern_first=0.7,
    patterns=("flip", "laggard", "recall", "relapse", "relapse", "fork"),
    weights={**WEIGHTS, "pattern": 4.0},
    breadth=NARROW,
)

# No member of a quorum is told who leads, or registers: what a schedule would do about that is none of its moves.
_NOT_OF_A_QUORUM: Final = frozenset({"zombie", "return", "expire", "double"})
# One more kind of pass: an election by a timeout takes seconds.
_QUORUM_PASS_MS: Final = ((0.4, 0.5, 5.0), (0.3, 8.0, 40.0), (0.15, 50.0, 110.0), (0.15, 500.0, 5000.0))


def of_quorum(base: Profile, messages: Collection[str]) -> Profile:
    """Return a profile for a quorum of two or more, whose wire has these messages that no general word fits."""
    weights = {kind: weight for kind, weight in base.weights.items() if kind not in _NOT_OF_A_QUORUM}
    return replace(base, weights=weights, pass_ms=_QUORUM_PASS_MS, own=tuple(sorted(messages)), lone=0.0)


def without(base: Profile, kinds: Collection[str]) -> Profile:
    """Return a profile that has none of these kinds of moves: a schedule of one of them alone would do nothing."""
    return replace(base, weights={kind: weight for kind, weight in base.weights.items() if kind not in kinds})


def profile_of(
    names: Collection[str], base: Profile = DEFAULT, faults: Mapping[str, Fault] = NO_FAULTS
) -> Profile:
    """
    Return the profile of schedules that have only these nemeses and the moves that undo them.

    Args:
        names: names of NEMESES or of faults. With "all" alone the base is returned unchanged, so that its seeds
            keep their schedules; it has all but the operator's.
        faults: the table of faults; NEMESES need not name all of them.

    Raises:
        UsageError: a name is unknown.
    """
    own = {name: (name,) for name, fault in faults.items() if name not in WEIGHTS and fault.weight}
    known = {**own, **NEMESES}
    current = [_RENAMED.get(name, present(FAULT, name)) for name in names]
    chosen = frozenset(kind for name in current for kind in pick("nemesis", known, name))
    asked = {kind: weight for name in current for kind, weight in OPERATIONS.get(name, {}).items()}
    if ALL in names:
        return replace(base, weights={**base.weights, **asked}) if asked else base
    kept = chosen | (ALWAYS - {"elect"})
    weights = {kind: weight for kind, weight in base.weights.items() if kind in kept} | asked
    pattern_first = base.pattern_first if "pattern" in chosen else 0.0
    return replace(base, weights=weights, pattern_first=pattern_first, tempers=TEMPERS_CHOSEN, only=chosen)
