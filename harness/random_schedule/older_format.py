"""
Schedules of a cluster that still writes the older message format, whose batches have no leader epoch.

There followers cut their logs at the high watermark, which is known to lose records (KIP-101). So these schedules
do nothing while a follower may not know the last high watermark, and disturb one thing at a time; what they do
then must lose nothing:

    tail    a leader has records that nobody else has, and another replica is elected, which may produce before the
            first leader knows of it
    fork    all replicas lose power, each what it had not flushed, and the one that lost most leads first
    roll    one replica after another is restarted, as for an upgrade

In some of them the topic's message format changes between the rounds, up or down, so that the logs hold both.
In the simulator some of the brokers may write epochs already (targets/simulator/broker/environment.py).
Source:  KIP-101, "Compatibility, Deprecation, and Migration Plan"; KAFKA-7897.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from decimal import Decimal
from random import Random
from typing import Final

from harness.cluster.fault import Fault
from harness.random_schedule.final_records import FINAL_RECORDS
from harness.random_schedule.profile import Profile
from harness.random_schedule.seed_name import seed_name
from harness.random_schedule.timing import QUIET_MS
from harness.random_schedule.width import is_wide
from harness.scenario.file import Scenario, Step
from harness.scenario.heads import Count
from harness.scenario.steps import MEANWHILE, Act, ChangeFormat, Hold, Inject, Pass, Produce, Release
from harness.scenario.text import first_step_line
from harness.target.settings import MessageFormat, Settings
from harness.target.wire import ANY, Word
from harness.workload.plan import ACKS_ALL, NO_CLIENTS

REPLICAS: Final = ("A", "B", "C")
CONTROLLER: Final = "D"
ROUNDS_MAX: Final = 3
FORK_SHARE: Final = 0.6
# How many schedules change the topic's format, and how often between two rounds.
CHANGES_SHARE: Final = 0.5
CHANGE_SHARE: Final = 0.7
# Long enough that every follower has learned the last high watermark, and written it down.
QUIET: Final = Pass(Decimal(QUIET_MS))
# Long enough for an election, or for records to reach their leader.
SOON: Final = Pass(Decimal(60))
HEAL_WITHIN_S: Final = 10.0
# The faults that these schedules have.
FAULTS: Final = frozenset({"elect", "expire", "flush", "kill", "power-loss", "restart"})


def has_older_format(seed: int, faults: Mapping[str, Fault], profile: Profile) -> bool:
    """Return True if a seed's schedule is one of these: of those that would be wide, some."""
    if profile.only is not None or not faults.keys() >= FAULTS or not is_wide(seed, profile.breadth):
        return False
    return Random(f"older {seed}").random() < profile.breadth.older


def older_format_schedule(seed: int) -> Scenario:
    """Return the schedule of a seed."""
    story = _Story(seed)
    first = first_step_line(0, NO_CLIENTS)
    steps = tuple(Step(line=line, act=act) for line, act in enumerate(story.steps(), start=first))
    return Scenario(
        name=seed_name(seed),
        title=f"Drawn from seed {seed}",
        sources=("chance",),
        replicas=REPLICAS,
        nodes=(CONTROLLER, *REPLICAS),
        records=(*story.records, *(Count(name=name, low=1, high=1) for name in FINAL_RECORDS)),
        steps=steps,
        expectations={},
        settings=Settings(message_format=MessageFormat.WITHOUT_EPOCHS, heal_within_s=HEAL_WITHIN_S),
    )


class _Story:
    """Draws the rounds of one schedule, one after another."""

    def __init__(self, seed: int) -> None:
        self.records: list[Count] = []
        self._chance = Random(f"older format {seed}")
        self._leader = REPLICAS[0]
        self._changes = Random(f"format changes {seed}")
        self._is_changing = self._changes.random() < CHANGES_SHARE

    def steps(self) -> Iterator[Act]:
        yield self._produce(ACKS_ALL)
        yield QUIET
        yield from self._change()
        rounds: tuple[Callable[[], Iterator[Act]], ...] = (self._tail, self._tail, self._roll)
        forks = self._chance.random() < FORK_SHARE
        for _ in range(self._chance.randint(0 if forks else 1, ROUNDS_MAX)):
            yield from self._chance.choice(rounds)()
            yield QUIET
            yield self._produce(ACKS_ALL)
            yield QUIET
            yield from self._change()
        if forks:
            yield from self._fork()

    def _change(self) -> Iterator[Act]:
        """Change the format while all is quiet, often with a record behind it, so that epochs begin there."""
        if self._is_changing and self._changes.random() < CHANGE_SHARE:
            yield ChangeFormat(self._changes.choice((1, 2, 2)))
            yield QUIET
            if self._changes.random() < 0.5:
                yield self._produce(ACKS_ALL)
                yield QUIET

    def _produce(self, acks: int) -> Produce:
        name = f"m{len(self.records) + 1}"
        count = self._chance.randint(1, 3)
        self.records.append(Count(name=name, low=count, high=count))
        return Produce(name, acks=acks, singly=self._chance.random() < 0.5, outcome=MEANWHILE)

    def _others(self) -> Sequence[str]:
        return self._chance.sample([name for name in REPLICAS if name != self._leader], 2)

    def _tail(self) -> Iterator[Act]:
        leader, others = self._leader, self._others()
        for name in others:
            yield Hold("answers", Word.FETCH.value, name, leader)
        yield self._produce(1)
        yield SOON
        late = self._chance.random() < 0.8
        if late:
            yield Hold("requests", Word.COMMAND.value, ANY, leader)
        self._leader = others[0]
        yield Inject("elect", (self._leader,))
        yield QUIET
        for name in others:
            yield Release(Word.FETCH.value, name, leader, "answers")
        for _ in range(self._chance.choice((0, 2, 2, 3))):
            yield self._produce(1)
            yield SOON
        if late:
            yield Release(Word.COMMAND.value, ANY, leader, "requests")

    def _fork(self) -> Iterator[Act]:
        """Come last, and after all cuts are durable: without epochs nothing shows one that a power loss undoes."""
        first, *others = self._chance.sample(REPLICAS, len(REPLICAS))
        for name in REPLICAS:
            yield Inject("flush", (name,))
        yield self._produce(ACKS_ALL)
        yield QUIET
        for name in others:
            yield Inject("flush", (name,))
        yield Inject("power-loss", REPLICAS)
        for name in (*others, first):
            yield Inject("expire", (name,))
            yield SOON
        self._leader = first
        yield Inject("restart", (first,))
        yield QUIET
        for name in others:
            yield Inject("restart", (name,))
        yield QUIET

    def _roll(self) -> Iterator[Act]:
        for name in self._others():
            yield Inject("kill", (name,))
            yield Inject("expire", (name,))
            yield SOON
            yield Inject("restart", (name,))
            yield QUIET
