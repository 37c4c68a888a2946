"""
The epoch walk over every lineage that elections can make ends at the last record that both logs share.

Lineages are drawn as KIP-279 describes: leaders write, followers truncate to the shared prefix and copy some of
the rest.

Source:  KIP-279; the TLA+ specification's Kip279, which compares whole records where a replica has epochs only.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random
from typing import TypeAlias

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from targets.broker.core.epochs import EpochCache
from targets.broker.core.rules import PROTOCOLS, Rules
from targets.broker.core.truncation import decide, walk
from tests.broker.core.stage import rules_of

REPLICAS = (0, 1, 2)
MENDED = ("kip279-2.0.1", "kip320", "kip380")


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """One leadership: the leader, how much it writes, how much each other replica copies (-1: not reached)."""

    leader: int
    writes: int
    copies: tuple[int, int, int]


TURNS: TypeAlias = list[Turn]
turns = st.lists(
    st.builds(
        Turn,
        leader=st.sampled_from(REPLICAS),
        writes=st.integers(0, 2),
        copies=st.tuples(*[st.integers(-1, 3)] * 3),
    ),
    min_size=1,
    max_size=6,
)


@dataclass(slots=True)
class Lineage:
    """One replica: its records as (epoch, number), and its epoch cache."""

    rules: Rules
    records: list[tuple[int, int]] = field(default_factory=list)
    cache: EpochCache = field(init=False)

    def __post_init__(self) -> None:
        self.cache = EpochCache(self.rules)

    def append(self, record: tuple[int, int]) -> None:
        self.cache.assign(record[0], len(self.records))
        self.records.append(record)

    def cut(self, end: int) -> None:
        del self.records[end:]
        self.cache.truncate_from_end(end)


def shared(one: Lineage, other: Lineage) -> int:
    """Return how many records two logs have in common, from their start."""
    pairs = zip(one.records, other.records, strict=False)
    return next((at for at, (a, b) in enumerate(pairs) if a != b), min(len(one.records), len(other.records)))


def after(rules: Rules, history: TURNS) -> tuple[Lineage, list[Lineage]]:
    """Play the turns; return the last leader and all replicas."""
    replicas = [Lineage(rules) for _ in REPLICAS]
    number = 0
    for epoch, turn in enumerate(history):
        leader = replicas[turn.leader]
        if rules.epoch_assigned_on_lead:
            leader.cache.assign(epoch, len(leader.records))
        for _ in range(turn.writes):
            number += 1
            leader.append((epoch, number))
        for replica, copies in zip(replicas, turn.copies, strict=True):
            if replica is not leader and copies >= 0:
                replica.cut(shared(leader, replica))
                for record in leader.records[len(replica.records) :][:copies]:
                    replica.append(record)
    return replicas[history[-1].leader], replicas


def walked(leader: Lineage, follower: Lineage) -> int:
    """Return the follower's log end offset after as many requests as it needs, with a high watermark of 0."""
    fallback = 0
    for _ in range(len(follower.cache.entries) + 1):
        if not follower.cache.entries:
            follower.cut(fallback)
            break
        answer = leader.cache.end_offset_for(follower.cache.latest, len(leader.records))
        ends = {"log_end_offset": len(follower.records), "fallback": fallback}
        one_answer = follower.rules.truncate_to.value == "one_answer"
        cut = decide(answer, **ends) if one_answer else walk(answer, follower.cache, **ends)
        follower.cut(cut.to)
        fallback = cut.to
        if cut.done:
            return len(follower.records)
    assert not follower.cache.entries, "the walk took more questions than there are epochs"
    return len(follower.records)


def strays(rules: Rules, history: TURNS) -> bool:
    """Return whether some follower's walk does not end at the last record that it shares with the leader."""
    for number in REPLICAS:
        leader, replicas = after(rules, history)
        follower = replicas[number]
        expected = shared(leader, follower)
        if follower is not leader and walked(leader, follower) != expected:
            return True
    return False


@pytest.mark.parametrize("protocol", MENDED)
@settings(max_examples=100, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
@given(history=turns)
def test_walk_ends_where_the_two_logs_part(protocol: str, history: TURNS) -> None:
    """Source: the real epoch walk reaches exactly the states of the specification that compares records."""
    assert not strays(PROTOCOLS[protocol], history)


@pytest.mark.parametrize("protocol", MENDED)
@settings(max_examples=100, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
@given(history=turns)
def test_epochs_rise_and_lie_within_the_log_whatever_happened(protocol: str, history: TURNS) -> None:
    """Source: Kafka's LeaderEpochFileCache: entries rise in epoch and in offset, strictly from 2.0.1 on."""
    _, replicas = after(PROTOCOLS[protocol], history)
    for replica in replicas:
        epochs = [entry.epoch for entry in replica.cache.entries]
        starts = [entry.start for entry in replica.cache.entries]
        assert sorted(set(epochs)) == epochs and sorted(set(starts)) == starts
        assert all(start <= len(replica.records) for start in starts)
        held = [replica.cache.epoch_at(at) for at in range(len(replica.records))]
        assert [epoch for epoch, _ in replica.records] == held


@pytest.mark.parametrize(
    "rules",
    [
        "kip101",
        "kip101-text",
        "kip279",
        "kip320 truncate_to=one_answer",
        "kip320 below_first_epoch=undefined",
        "kip320 epoch_assigned_on_lead=no",
        "kip320 unknown_epoch=undefined",
    ],
)
def test_walk_of_an_older_or_broken_protocol_strays_and_is_found(rules: str) -> None:
    """Source: KAFKA-6361, KAFKA-7415: one of the first lineages drawn violates the property above."""
    base, *changes = rules.split()
    assert any(strays(rules_of(base, *changes), drawn(seed)) for seed in range(500))


def drawn(seed: int) -> TURNS:
    """Return turns drawn from a seed, the same for every run."""
    draw = Random(seed)
    return [
        Turn(
            leader=draw.choice(REPLICAS),
            writes=draw.randint(0, 2),
            copies=(draw.randint(-1, 3), draw.randint(-1, 3), draw.randint(-1, 3)),
        )
        for _ in range(draw.randint(1, 6))
    ]
