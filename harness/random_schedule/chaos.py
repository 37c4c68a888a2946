"""
Draws the schedule of a long run: one cluster lives through rounds of faults, and must become whole after each.

A round has a few kinds of faults, drawn anew each time, so that kinds that hide each other are also apart. Each
fault is aimed (harness/cluster/aims.py): who leads, and who is left in the ISR, is only known when its turn comes.
A round ends with `settle`. A schedule is longer than the time that it is drawn for, so that the time ends it.

Source:  Groce, Zhang, Eide, Chen, Regehr: "Swarm Testing", ISSTA 2012; Jepsen, nemesis packages and their targets.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from decimal import Decimal
from random import Random
from typing import Final

from harness import limits
from harness.cluster.fault import Fault, undoing
from harness.effect import Effect
from harness.model import UsageError
from harness.random_schedule.final_records import FINAL_RECORDS
from harness.random_schedule.generate import HOLDS
from harness.random_schedule.own_words import word_or_own
from harness.random_schedule.profile import ALL
from harness.random_schedule.timing import Timing
from harness.registry import pick
from harness.scenario.file import PARTITION, TOPIC, Scenario, Step
from harness.scenario.heads import Count
from harness.scenario.steps import Act, Delay, Double, Hold, Inject, Pass, Produce, ReleaseAll, Settle
from harness.scenario.text import first_step_line
from harness.scenario.words import FAULT, present
from harness.target.settings import Settings
from harness.target.wire import ANY, Word
from harness.workload.plan import ACKS_ALL, Clients, Place

REPLICAS: Final = ("A", "B", "C")
# A fourth node, so that the controller need not lead or follow the main partition.
OTHER: Final = "D"
FURTHER: Final[Mapping[Place, tuple[str, ...]]] = {
    Place(TOPIC, PARTITION + 1): ("B", "C", "D"),
    Place(TOPIC, PARTITION + 2): ("C", "D", "A"),
}
FIRST_RECORDS: Final = "m1"
# How many replicas a further partition has: the first ones of FURTHER, in any order.
REPLICATION: Final = (1, 2, 3)
# Kinds of a round, and moves in it; the waits between them, in milliseconds (before `tempo`). Kinds hide each
# other: some rounds have one, again and again.
KINDS: Final = (2, 5)
ALONE_SHARE: Final = 0.3
MOVES: Final = (3, 9)
WAIT_MS: Final = (50, 1200)
# How many waits are as long as an election, of a system that says how long it may be without a leader; and which
# part of that time.
ELECTION_SHARE: Final = 0.2
ELECTION_PART: Final = (0.25, 0.6)
# What a round takes besides its waits, at least, in seconds.
SETTLE_S: Final = 1.0
# How long the cluster has to become whole: a node that lost its disk has everything to copy. Longer is a hang.
WHOLE_WITHIN_S: Final = 90.0
# How often a fault that lasts is undone before its round ends, and how many moves later at most.
UNDONE_SHARE: Final = 0.6
UNDONE_AFTER: Final = (1, 3)
# Short enough for a slow follower to leave the ISR within a round, and for a segment to be closed.
LAGS_MS: Final = (100, 200, 400)
SEGMENT_BYTES: Final = 1 << 18

# Steps of a schedule at most: the head has lines too.
LINES_MAX: Final = limits.SCENARIO_LINES_MAX - 100

# Before the name of a kind that is left out.
LEFT_OUT: Final = "-"

# Moves that change links; all are undone by `settle`.
HOLD, HOLD_COMMAND, DELAY, DOUBLE = "hold", "hold-command", "delay", "double"
LINK_MOVES: Final = (HOLD, HOLD_COMMAND, DELAY, DOUBLE)
_HELD: Final = (
    ("requests", Word.COMMAND.value),
    ("requests", Word.FETCH.value),
    ("answers", Word.FETCH.value),
    ("requests", Word.EPOCH_QUESTION.value),
)
_DELAY_S: Final = (0.02, 0.3)

CONTROLLER: Final = "controller"
# The effects of which more than these aims would mean no other node, or none at all.
_AIMS: Final[Mapping[Effect, Sequence[str]]] = {
    Effect.LEADER_MOVED: ("follower",),
    Effect.OFFICE_LOST: (CONTROLLER,),
    Effect.LOG_CUT: ("one",),
    Effect.DISK_LOST: ("one",),
    # A follower copies a damaged batch again. A leader's stays until another leads, and who needs it cannot go on.
    Effect.BIT_ROT: ("follower",),
}
# The others are mostly aimed at one node: a cluster of which all nodes are hit shows little but that.
AIMS: Final[Mapping[str, float]] = {
    "leader": 4.0,
    "follower": 3.0,
    CONTROLLER: 2.0,
    "one": 3.0,
    "minority": 1.5,
    "majority": 0.7,
    "all": 0.5,
    "last-in-isr": 1.0,
}
# What must have happened to a node before it can suffer these.
BEFORE: Final[Mapping[Effect, str]] = {Effect.LOG_CUT: "kill", Effect.DISK_LOST: "kill"}


def kinds_of(names: Collection[str], faults: Mapping[str, Fault]) -> tuple[str, ...]:
    """
    Return the kinds of moves that chosen nemeses mean: every one for "all", and none that a name after `-` has.

    Raises:
        UsageError: a name is unknown, or is of a fault that only undoes others, which come by themselves; or
            nothing is left.
    """
    known = {name: name for name, fault in faults.items() if not fault.heals} | {name: name for name in LINK_MOVES}
    left_out = [present(FAULT, name.removeprefix(LEFT_OUT)) for name in names if name.startswith(LEFT_OUT)]
    without = {pick("nemesis", known, name) for name in left_out}
    named = [present(FAULT, name) for name in names if not name.startswith(LEFT_OUT)]
    chosen = [pick("nemesis", {ALL: ALL, **known}, name) for name in named]
    kinds = tuple(known) if ALL in chosen or not chosen else tuple(dict.fromkeys(chosen))
    left = tuple(kind for kind in kinds if kind not in without)
    if not left:
        raise UsageError(f"nemeses {', '.join(names)}: none is left; expected one at least")
    return left


def draw_chaos(
    seed: int,
    faults: Mapping[str, Fault],
    kinds: Sequence[str],
    seconds: float,
    *,
    timing: Timing,
    clients: Clients,
    controller: bool = True,
    partitions: bool = True,
    election_s: float = 0.0,
    own: Collection[str] = (),
) -> Scenario:
    """
    Return the schedule of a seed; the same arguments always draw the same one.

    Args:
        kinds: names of faults and LINK_MOVES that rounds are made of.
        seconds: how long it must go on at least.
        timing: how it will be played: by how much waits and time limits grow.
        controller: whether the system has one.
        partitions: whether it can have more than one partition, each on nodes of its own.
        election_s: how long it may take to have a leader again; 0 for what a wait of any length has room for.
        own: messages of the system alone, which are held where a drawn word means none of its messages.

    Raises:
        UsageError: it would have more steps than a schedule can have.
    """
    chance = Random(f"chaos {seed}")
    further = _further(seed) if partitions else {}
    nodes = (OTHER, *REPLICAS) if controller or partitions else REPLICAS
    aims = {aim: weight for aim, weight in AIMS.items() if controller or aim != CONTROLLER}
    drawing = _Drawing(chance, faults, tuple(kinds), nodes, aims, apart=_Apart(seed, timing, election_s, own))
    steps: list[Act] = [Produce(FIRST_RECORDS, acks=ACKS_ALL), Settle()]
    left_ms = 1000 * seconds
    while left_ms > 0:
        round_ = drawing.round()
        steps += round_
        left_ms -= 1000 * SETTLE_S + timing.tempo * sum(float(act.ms) for act in round_ if isinstance(act, Pass))
        if len(steps) > LINES_MAX:
            raise UsageError(
                f"a schedule of {seconds:g} s: too many steps; expected a shorter time for one cluster"
            )
    first = first_step_line(len(further), clients)
    return Scenario(
        name=f"chaos-{seed}",
        title=f"Chaos, drawn from seed {seed}",
        sources=("chance",),
        replicas=REPLICAS,
        nodes=nodes,
        names_controller=controller,
        records=tuple(Count(name=name, low=1, high=1) for name in (FIRST_RECORDS, *FINAL_RECORDS)),
        steps=tuple(Step(line=line, act=act) for line, act in enumerate(steps, start=first)),
        expectations={},
        settings=Settings(
            min_isr=chance.choice((1, 2)),
            replica_lag_ms_max=chance.choice(LAGS_MS),
            segment_bytes=SEGMENT_BYTES,
            heal_within_s=WHOLE_WITHIN_S / timing.slack,
        ),
        further=further,
        clients=clients,
    )


def _further(seed: int) -> Mapping[Place, tuple[str, ...]]:
    """Return the further partitions, each with as many replicas as the seed draws."""
    chance = Random(f"chaos replication {seed}")
    return {place: replicas[: chance.choice(REPLICATION)] for place, replicas in FURTHER.items()}


class _Apart:
    """Draws apart from the rounds, so that what systems have of their own leaves all other draws as they are."""

    def __init__(self, seed: int, timing: Timing, election_s: float, own: Collection[str]) -> None:
        self._lonely = Random(f"one kind alone {seed}")
        self._chance = Random(f"of its own {seed}")
        self._own = sorted(own)
        # Before `tempo`, in milliseconds.
        self._election_ms = [1000 * part * election_s / timing.tempo for part in ELECTION_PART]

    def is_alone(self) -> bool:
        """Return whether a round has one kind."""
        return self._lonely.random() < ALONE_SHARE

    def waits(self, wait: Pass) -> Pass:
        """Return a wait, or one as long as an election in its place."""
        if not self._election_ms[1] or self._chance.random() >= ELECTION_SHARE:
            return wait
        return Pass(Decimal(f"{self._chance.uniform(*self._election_ms):.0f}"))

    def held(self, direction: str, api: str) -> tuple[str, str]:
        """Return a direction and a word, or others for a word that means no message of this system."""
        return word_or_own(self._chance, self._own, direction, api)


class _Drawing:
    """Draws rounds, one after another."""

    def __init__(
        self,
        chance: Random,
        faults: Mapping[str, Fault],
        kinds: tuple[str, ...],
        nodes: Sequence[str],
        aims: Mapping[str, float],
        *,
        apart: _Apart,
    ) -> None:
        self._chance = chance
        self._apart = apart
        self._nodes = sorted(nodes)
        self._weights = aims
        self._faults = faults
        self._kinds = kinds
        self._undoes = {name: undoing(faults, fault) for name, fault in faults.items()}

    def round(self) -> list[Act]:
        """Return the steps of one round."""
        chance = self._chance
        kinds = chance.sample(self._kinds, min(len(self._kinds), chance.randint(*KINDS)))
        if self._apart.is_alone():
            kinds = kinds[:1]
        due: dict[int, list[Act]] = {}
        steps: list[Act] = []
        for turn in range(chance.randint(*MOVES)):
            steps += due.pop(turn, [])
            kind = chance.choice(kinds)
            steps += self._move(kind)
            undo = self._undo(kind)
            if undo is not None and chance.random() < UNDONE_SHARE:
                due.setdefault(turn + chance.randint(*UNDONE_AFTER), []).append(undo)
            steps.append(self._wait())
        return [*steps, Settle()]

    def _move(self, kind: str) -> list[Act]:
        fault = self._faults.get(kind)
        if fault is None:
            return [self._on_link(kind)]
        before = self._faults.get(BEFORE.get(fault.effect, ""))
        acts: list[Act] = [] if before is None else [Inject(before.name, (self._aim(before),))]
        return [*acts, Inject(kind, (self._aim(fault),))]

    def _aim(self, fault: Fault) -> str:
        aims = _AIMS.get(fault.effect)
        if aims:
            return self._chance.choice(aims)
        return self._chance.choices(list(self._weights), list(self._weights.values()))[0]

    def _undo(self, kind: str) -> Act | None:
        if kind in LINK_MOVES:
            return ReleaseAll() if kind in (HOLD, HOLD_COMMAND) else None
        undoes = self._undoes[kind]
        return Inject(undoes, (self._chance.choice(("one", "all")),)) if undoes else None

    def _on_link(self, kind: str) -> Act:
        chance = self._chance
        node = chance.choice(self._nodes)
        src, dst = chance.choice(((node, ANY), (ANY, node)))
        direction, api = chance.choice(_HELD)
        match kind:
            case "hold":
                return Hold(*self._apart.held(direction, api), src, dst)
            case "hold-command":  # who does not learn that another leads goes on leading
                return Hold(*self._apart.held(*HOLDS[kind]), ANY, node)
            case "delay":
                seconds = Decimal(f"{chance.uniform(*_DELAY_S):.3f}")
                return Delay(*self._apart.held(direction, api), src, dst, seconds)
            case _:
                return Double(api, src, dst)

    def _wait(self) -> Pass:
        return self._apart.waits(Pass(Decimal(f"{self._chance.uniform(*WAIT_MS):.0f}")))
