"""
Generates a random schedule from a seed: nodes, produced records, faults and their order, as a scenario.

Its text (harness/scenario/text.py) is that of a scenario file, so that it can be stored, read, replayed in any
environment and shortened. It does not depend on the run: `RandomPlay` skips a step that is not applicable when its
turn comes.

Source:  every counterexample of hachikuji/kafka-specification consists of elections while commands to a
         replica, its questions about epochs, or its fetches are held; the moves reproduce this.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from decimal import Decimal
from random import Random
from typing import Final

from harness.cluster.fault import Fault
from harness.effect import DOWN, Effect
from harness.random_schedule.alone import full_rate, kind_alone, with_one_kind
from harness.random_schedule.final_records import FINAL_RECORDS
from harness.random_schedule.hardware import with_hardware
from harness.random_schedule.older_format import has_older_format, older_format_schedule
from harness.random_schedule.own_words import word_or_own
from harness.random_schedule.patterns import PATTERNS, WIDE_PATTERNS, Wish
from harness.random_schedule.predicted_state import PredictedState
from harness.random_schedule.profile import ALWAYS, DEFAULT, NAMED_MOVES, Profile
from harness.random_schedule.removals import has_removals, with_removals
from harness.random_schedule.seed_name import seed_name
from harness.random_schedule.shape import has_one_replica, is_lone, shaped
from harness.random_schedule.stops import DEPOSE, with_stops
from harness.random_schedule.tombstones import with_tombstones
from harness.random_schedule.upgrades import (
    for_epochless,
    has_upgrades,
    is_epochless,
    one_by_one,
    upgradable,
    with_upgrades,
)
from harness.random_schedule.width import KEYED_SEGMENT_BYTES, draw_width, is_wide, keyed_clients
from harness.scenario.file import PARTITION, TOPIC, Scenario, Step
from harness.scenario.heads import Count
from harness.scenario.steps import (
    MEANWHILE,
    Act,
    Cut,
    Delay,
    Double,
    Hold,
    Inject,
    Pass,
    Produce,
    Release,
    ReleaseAll,
)
from harness.scenario.text import first_step_line
from harness.target.settings import Settings
from harness.target.wire import ANY, METADATA, Word
from harness.workload.plan import Place

REPLICAS: Final = ("A", "B", "C")
ALL: Final = -1  # acks=all
COMMAND: Final = Word.COMMAND.value
FETCH: Final = Word.FETCH.value
QUESTION: Final = Word.EPOCH_QUESTION.value
REQUEST: Final = Word.METADATA_REQUEST.value
HOLDS: Final = {
    "hold-command": ("requests", COMMAND),
    "hold-fetch": ("requests", FETCH),
    "hold-answer": ("answers", FETCH),
    "hold-question": ("requests", QUESTION),
    "hold-word": ("answers", QUESTION),
}
# An election of a further partition: it moves nothing that the steps are about.
ELECT_ELSEWHERE: Final = "elect elsewhere"
# In wide runs alone: the metadata are late for a broker, whose writes may arrive after its session ended.
LATE: Final[Mapping[str, float]] = {"hold-metadata": 1.5, "delay-metadata": 1.0}
# Moves of which the main partition's replicas are the ends, or that choose among them.
_BETWEEN_REPLICAS: Final = frozenset({*HOLDS, "elect", "pattern", "cut", "delay", "double"})
# How often an election returns leadership to the previous leader: only its log diverges from the new leader's.
BACK_SHARE: Final = 0.5
# How often a pass follows a move, so that the move can take effect.
PAUSE_SHARE: Final = {"elect": 0.6, "produce": 0.4, "zombie": 0.7, "kill": 0.5, "restart": 0.5, "return": 0.4}


def draw_schedule(seed: int, faults: Mapping[str, Fault], profile: Profile = DEFAULT) -> Scenario:
    """
    Return the schedule of a seed; the same seed, faults and profile always draw the same one, for any protocol.

    It has no expectation: the checkers decide whether what they find is a violation.
    """
    if has_older_format(seed, faults, profile):
        return older_format_schedule(seed)
    return _Drawing(seed, faults, profile).schedule()


class _Drawing:
    """Draws one schedule."""

    def __init__(self, seed: int, faults: Mapping[str, Fault], profile: Profile) -> None:
        self._seed = seed
        self._chance = chance = Random(f"schedule {seed}")
        self._profile = profile
        self._faults = faults
        self._steps: list[Act] = []
        self._records: list[Count] = []
        three = chance.random() < profile.three_replicas
        self._replicas: tuple[str, ...] = REPLICAS if three else REPLICAS[:2]
        wide = is_wide(seed, profile.breadth)
        if is_lone(seed) if wide else has_one_replica(seed, profile.lone):
            self._replicas = REPLICAS[:1]
        self._alone = "" if wide else kind_alone(seed, profile, faults)
        apart = chance.random() < profile.apart
        self._controller = ("D" if three else "C") if apart else chance.choice(self._replicas)
        if not profile.controller:
            self._controller = self._replicas[0]
        others = tuple(name for name in self._replicas if name != self._controller)
        self._nodes = (self._controller, *others)
        self._width = draw_width(seed, profile.breadth, Place(TOPIC, PARTITION), self._nodes)
        if self._alone:
            self._width = replace(self._width, clients=full_rate(Place(TOPIC, PARTITION)))
        self._nodes += self._width.others
        # Where faults may be injected: elsewhere no log of the main partition is.
        self._machines = self._nodes if self._width.wide else self._replicas
        leader, *followers = self._replicas
        before = followers[0] if followers else leader
        self._predicted = PredictedState(leader=leader, before=before, faults=faults)
        self._moves: dict[str, Callable[[], bool]] = {
            "produce": self._produce,
            "pass": self._pass,
            **{kind: self._hold(kind) for kind in HOLDS},
            "release": self._release,
            "cut": self._cut,
            "heal": self._heal,
            "delay": self._delay,
            "double": self._double,
            "pattern": self._pattern,
            ELECT_ELSEWHERE: self._elect_elsewhere,
            "hold-metadata": self._hold_metadata,
            "delay-metadata": self._delay_metadata,
            **{name: self._fault(fault) for name, fault in faults.items()},
        }

    def schedule(self) -> Scenario:
        """Draw the schedule and return it as reading its text would."""
        profile, chance = self._profile, self._chance
        min_isr = 2 if chance.random() < profile.min_isr_two else 1
        lag = chance.choice(profile.lags_ms)
        self._begin()
        kinds, weights = with_one_kind(self._alone, self._faults) if self._alone else self._temper()
        if profile.lone and len(self._replicas) == 1:
            able = [each for each in zip(kinds, weights, strict=True) if each[0] not in _BETWEEN_REPLICAS]
            kinds, weights = [kind for kind, _ in able], [weight for _, weight in able]
        for _ in range(chance.randint(*profile.moves)):
            kind = chance.choices(kinds, weights)[0]
            if len(self._replicas) == 1 and kind in _BETWEEN_REPLICAS:
                continue
            if self._moves[kind]() and chance.random() < PAUSE_SHARE.get(kind, 0.0):
                self._pass()
        width, steps = self._width, self._steps
        if width.wide and profile.only is None:
            steps = with_hardware(self._seed, steps, self._nodes, self._stores(), self._faults)
        upgraded = upgradable(width.clients) and has_upgrades(self._seed)
        going = has_removals(self._seed, profile.breadth, width.clients)
        if width.wide and profile.only is None and going:
            steps = with_removals(self._seed, steps, width.further)
        if width.clients.churners and profile.only is None:  # nemeses that were chosen come alone
            nodes = sorted({name for churner in width.clients.churners for name in churner.nodes})
            controller = self._controller if DEPOSE in self._faults else ""
            steps = with_stops(self._seed, steps, nodes, profile.delay_s, controller)
        clients, keys = keyed_clients(self._seed, width.clients) if width.wide else (width.clients, 0)
        if width.wide and profile.only is None and upgraded:
            steps = with_upgrades(self._seed, steps, self._nodes, self._replicas, self._faults, quiet=not keys)
            if is_epochless(steps):
                steps, clients = one_by_one(steps), for_epochless(clients)
        settings = Settings(
            min_isr=min(min_isr, len(self._replicas)) if self._profile.lone else min_isr,
            replica_lag_ms_max=lag or None,
            flush_messages=width.flush_messages,
            segment_bytes=width.segment_bytes or (KEYED_SEGMENT_BYTES if keys else None),
            keys=keys,
            heal_within_s=profile.heal_within_s,
        )
        settings, clients = with_tombstones(self._seed, settings, clients, [each.name for each in self._records])
        first = first_step_line(len(width.further), clients)
        return Scenario(
            name=seed_name(self._seed),
            title=f"Drawn from seed {self._seed}",
            sources=("chance",),
            replicas=self._replicas,
            nodes=self._nodes,
            names_controller=profile.controller,
            records=(*self._records, *(_count(name, 1) for name in FINAL_RECORDS)),
            steps=tuple(Step(line=line, act=act) for line, act in enumerate(steps, start=first)),
            expectations={},
            settings=shaped(self._seed, settings, len(self._replicas)) if width.wide else settings,
            further=width.further,
            clients=clients,
        )

    def _temper(self) -> tuple[list[str], list[float]]:
        """Return the kinds of moves that this schedule has, and the weight of each."""
        weights = {**self._profile.weights, **self._profile.weights_of(self._faults)}
        for kind in weights:
            if kind not in ALWAYS and kind not in NAMED_MOVES:
                weights[kind] *= self._chance.choice(self._profile.tempers)
        if self._width.wide and self._profile.only is None:
            weights |= {kind: weight * self._chance.choice(self._profile.tempers) for kind, weight in LATE.items()}
        if any(len(replicas) > 1 for replicas in self._width.further.values()):
            weights[ELECT_ELSEWHERE] = weights.get("elect", 0.0) / 2
        return list(weights), list(weights.values())

    def _add(self, step: Act) -> bool:
        self._steps.append(step)
        self._predicted.note(step)
        return True

    def _up(self) -> list[str]:
        return [name for name in self._machines if self._predicted.is_up(name)]

    def _fault(self, fault: Fault) -> Callable[[], bool]:
        """Return the move that injects a fault into a node on which its effect is applicable."""
        moves = {Effect.LEADER_MOVED: self._elect, Effect.POWER_LOST: self._power_loss}
        move = moves.get(fault.effect, self._inject)
        return lambda: move(fault)

    def _inject(self, fault: Fault) -> bool:
        found = self._sufferers(fault)
        return bool(found) and self._add(Inject(fault.name, (self._chance.choice(found),)))

    def _sufferers(self, fault: Fault) -> list[str]:
        """Return the nodes that a fault may be injected into, by the predicted state."""
        if fault.heals:
            return self._predicted.under(fault.heals)
        match fault.effect:
            case Effect.SESSION_ENDED:
                return list(self._machines)
            case Effect.OFFICE_LOST | Effect.ANSWER_LOST:
                return [self._controller, *self._machines]
            case Effect.LOG_CUT | Effect.DISK_LOST:
                return self._predicted.under(DOWN)
        already = self._predicted.under({fault.effect})
        return [name for name in self._up() if name not in already]

    # --- what clients do, and time ---------------------------------------------------------------------------
    def _begin(self) -> None:
        """Produce first, and mostly wait for it, so that there are acknowledged records to lose."""
        self._produce_with(ALL, 2)
        if self._chance.random() < self._profile.begun:
            self._pass(1)
        if self._chance.random() < self._profile.pattern_first and not self._alone:
            self._pattern()

    def _produce(self) -> bool:
        acks = ALL if self._chance.random() < self._profile.acks_all else 1
        return self._produce_with(acks, self._chance.choice((1, 1, 1, 2, 3)))

    def _produce_with(self, acks: int, count: int) -> bool:
        acks = ALL if self._profile.acks_all == 1.0 else acks  # patterns have others
        name = f"m{len(self._records) + 1}"
        self._records.append(_count(name, count))
        singly = self._chance.random() < 0.15
        return self._add(Produce(name, acks=acks, singly=singly, outcome=MEANWHILE))

    def _pass(self, kind: int | None = None) -> bool:
        waits = self._profile.pass_ms
        if kind is None:
            kind = self._chance.choices(range(len(waits)), [share for share, _, _ in waits])[0]
        _, low, high = waits[kind]
        return self._add(Pass(Decimal(f"{self._chance.uniform(low, high):.1f}")))

    # --- leaders and nodes -----------------------------------------------------------------------------------
    def _elect(self, fault: Fault) -> bool:
        leader, before = self._predicted.leader, self._predicted.before
        others = [name for name in self._replicas if name != leader]
        back = before in others and self._chance.random() < BACK_SHARE
        return self._add(Inject(fault.name, (before if back else self._chance.choice(others),)))

    def _elect_elsewhere(self) -> bool:
        """Elect a replica of a further partition, whoever leads it now."""
        further = [(place, replicas) for place, replicas in self._width.further.items() if len(replicas) > 1]
        place, replicas = self._chance.choice(further)
        return self._add(Inject("elect", (self._chance.choice(replicas),), place))

    def _power_loss(self, fault: Fault) -> bool:
        stores = self._stores()
        up = [name for name in self._up() if name in stores]
        if not up:
            return False
        together = self._chance.randint(1, len(up)) if self._chance.random() < 0.3 else 1
        return self._add(Inject(fault.name, tuple(sorted(self._chance.sample(up, together)))))

    def _stores(self) -> list[str]:
        """Return the nodes whose disk holds a replica."""
        holders = {name for replicas in self._width.further.values() for name in replicas} | set(self._replicas)
        return [name for name in self._nodes if name in holders]

    def _pattern(self) -> bool:
        """Add a pattern, if three replicas are predicted to be up; draw its passes, records and releases."""
        leader = self._predicted.leader
        up = [name for name in self._replicas if self._predicted.is_up(name)]
        others = [name for name in up if name != leader]
        if len(others) < 2 or leader not in up:
            return False
        self._chance.shuffle(others)
        names, known = self._profile.patterns, PATTERNS
        if self._width.wide and self._profile.only is None:
            # As often as all others together: narrow runs have these.
            names, known = (*names, *len(names) * (*WIDE_PATTERNS,)), PATTERNS | WIDE_PATTERNS
        for step in known[self._chance.choice(names)](self._chance, (leader, others[0], others[1])):
            match step:
                case Wish.PASS:
                    self._pass(self._chance.choice((0, 1, 1, 1)))
                case Wish.PASS_FETCH:
                    self._pass(2)
                case Wish.PRODUCE_ALL | Wish.PRODUCE_ONE:
                    acks = ALL if step is Wish.PRODUCE_ALL else 1
                    self._produce_with(acks, self._chance.choice((1, 1, 2)))
                case Wish.RELEASE_ONE:
                    self._release()
                case Wish.NEW_CONTROLLER:
                    if DEPOSE in self._faults:
                        self._add(Inject(DEPOSE, (self._controller,)))
                case _:
                    self._add(step)
        return True

    # --- links -----------------------------------------------------------------------------------------------
    def _link(self) -> tuple[str, str]:
        """Return a link from a follower to a leader, mostly to the predicted one."""
        leader = self._predicted.leader
        src = self._chance.choice([name for name in self._replicas if name != leader])
        if self._chance.random() < 0.4:
            return src, ANY
        others = [name for name in self._replicas if name != src]
        return src, leader if self._chance.random() < 0.6 else self._chance.choice(others)

    def _hold(self, kind: str) -> Callable[[], bool]:
        def hold() -> bool:
            src, dst = (ANY, self._chance.choice(self._replicas)) if kind == "hold-command" else self._link()
            step = Hold(*self._has(*HOLDS[kind]), src, dst)
            return step not in self._predicted.holds and self._add(step)

        return hold

    def _has(self, direction: str, api: str) -> tuple[str, str]:
        return word_or_own(self._chance, self._profile.own, direction, api)

    def _hold_metadata(self) -> bool:
        """Hold what a broker asks the metadata, or what it hears of it: mostly the controller's."""
        step = Hold(self._chance.choice(("requests", "answers")), REQUEST, self._keeper(), METADATA)
        return step not in self._predicted.holds and self._add(step)

    def _delay_metadata(self) -> bool:
        direction = self._chance.choice(("requests", "answers"))
        seconds = Decimal(f"{self._chance.uniform(*self._profile.delay_s):.3f}")
        return self._add(Delay(direction, REQUEST, self._keeper(), METADATA, seconds))

    def _keeper(self) -> str:
        return self._controller if self._chance.random() < 0.5 else self._chance.choice(self._machines)

    def _release(self) -> bool:
        holds = self._predicted.holds
        if not holds:
            return False
        if self._chance.random() < 0.1:
            return self._add(ReleaseAll())
        held = self._chance.choice(holds)
        return self._add(Release(held.api, held.src, held.dst, held.direction))

    def _cut(self) -> bool:
        src, dst = self._chance.sample(self._replicas, 2)
        both_ways, close = self._chance.choice((False, True)), self._chance.choice((False, True))
        return self._add(Cut(src, both_ways, dst, close))

    def _delay(self) -> bool:
        direction, api = self._chance.choice(list(HOLDS.values()))
        src, dst = self._chance.sample(self._replicas, 2)
        seconds = Decimal(f"{self._chance.uniform(*self._profile.delay_s):.3f}")
        return self._add(Delay(*self._has(direction, api), ANY if api == COMMAND else src, dst, seconds))

    def _double(self) -> bool:
        src, dst = self._chance.sample(self._replicas, 2)
        api = self._chance.choice((COMMAND, COMMAND, FETCH, QUESTION))
        return self._add(Double(api, ANY if api == COMMAND else src, dst))

    def _heal(self) -> bool:
        rules = self._predicted.rules
        return bool(rules) and self._add(self._chance.choice(rules))


def _count(name: str, number: int) -> Count:
    return Count(name=name, low=number, high=number)
