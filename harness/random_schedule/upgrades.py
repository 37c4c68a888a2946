"""
Adds a rolling downgrade and upgrade to a schedule: each broker is restarted to speak an older protocol, and later,
one by one again, its own.

A random schedule does not know which protocol is played, so that it goes down first: what a cluster of the older
protocol has written is on the disks when the upgrade begins. After each restart the cluster must be whole, as an
operator would see to it. Clients work all the time. Faults come before, among and after the steps of a restart,
and in place of its stop (disturbances.py): those that a cluster of any version from `kip279` on survives. Who
speaks `kip101` is left alone: its followers ask once, and are wrong when two elections come close (KIP-279). So is
who speaks `hw`: its followers cut their logs to a late high watermark. What is lost by that is allowed
(checkers/facts/window.py), but that replicas differ afterwards, where a fault comes between, is not. So, once it
speaks its own protocol again, every broker flushes its logs before a later step may take its power: else what a
follower has cut could be back, in place of other records, and without epochs nobody would see it.

They have a random source of their own, so that all other steps of a seed are the same with them and without.

Source:  KIP-101, Compatibility, Deprecation, and Migration Plan; Apache Kafka's upgrade notes: one broker at a
         time.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from random import Random
from typing import Final

from harness.cluster.names import OWN
from harness.random_schedule.disturbances import RESTART, SEEN_MS, disturbance, gone, is_unheard_loss, passing
from harness.random_schedule.width import HURRIED_MS
from harness.scenario.steps import Act, Inject, Install, Produce, Settle
from harness.workload.plan import Clients

# How often a wide run has one.
SHARE: Final = 0.12
# What the older protocol may be, as a cluster of a newer one speaks it.
OLDEST: Final = "@kip101"
# In place of it, as often: the one without epochs.
EPOCHLESS: Final = "@hw"
EPOCHLESS_SHARE: Final = 0.5
OLDER: Final = (OLDEST, "@kip279", "@kip279-2.0.1", "@kip320")
# Those whose requests do not say of which epoch they are.
UNFENCED: Final = frozenset({"@kip279", "@kip279-2.0.1"})
# How long the cluster stays as it is between the two, in milliseconds.
STAYS_MS: Final = (5.0, 120.0)
# How often some brokers are upgraded before the last of them was set back.
HALF_SHARE: Final = 0.3
# How often nothing disturbs it; else how many disturbances there are around one restart, at most.
CALM_SHARE: Final = 0.2
DISTURBANCES_MAX: Final = 3
# How a broker goes down that is to be installed: mostly as an operator has it go.
STOPS: Final = ("stop", "stop", "stop")


def has_upgrades(seed: int) -> bool:
    """Return True if the wide run of a seed has a rolling upgrade."""
    return Random(f"upgrades {seed}").random() < SHARE


def upgradable(clients: Clients) -> bool:
    """
    Return True if a cluster with these clients may be upgraded in use.

    It must become whole again and again while they go on, so that they may not be in a hurry.
    """
    return not any(each.every_ms == HURRIED_MS for each in clients.producers)


def with_upgrades(
    seed: int,
    steps: Sequence[Act],
    nodes: Sequence[str],
    replicas: Sequence[str],
    faults: Collection[str],
    *,
    quiet: bool = True,
) -> list[Act]:
    """
    Return the steps with a rolling downgrade and upgrade of these brokers among them, after the first step.

    Args:
        replicas: those of the main partition.
        faults: those that may be drawn.
        quiet: whether nothing is compacted; only then it may go down to OLDEST, or to EPOCHLESS.
    """
    chance = Random(f"upgrade {seed}")
    older = chance.choice([each for each in OLDER if quiet or each != OLDEST])
    is_oldest = older == OLDEST
    if is_oldest and Random(f"upgrade without epochs {seed}").random() < EPOCHLESS_SHARE:
        older = EPOCHLESS
    down = chance.sample(nodes, len(nodes))
    if chance.random() < HALF_SHARE:
        down = down[: chance.randint(1, len(down))]
    up = chance.sample(down, len(down))
    stay = passing(chance, *STAYS_MS)
    calm = is_oldest or chance.random() < CALM_SHARE
    most = 0 if calm else chance.randint(1, DISTURBANCES_MAX)
    rolling = Rolling(chance, nodes, replicas, faults, most, unfenced=older in UNFENCED)
    rolled = [
        Settle(),
        *rolling.to(down, older),
        *rolling.disturbed([stay], nodes),
        Settle(),
        *rolling.to(up, OWN),
    ]
    if older == EPOCHLESS and "power-loss" in faults:
        rolled += [Inject("flush", (name,)) for name in nodes]
    at = chance.randint(1, len(steps))
    return [*steps[:at], *rolled, *steps[at:]]


def is_epochless(steps: Iterable[Act]) -> bool:
    """Return True if a cluster has no epochs for a while."""
    return any(isinstance(act, Install) and act.protocol == EPOCHLESS for act in steps)


def one_by_one(steps: Iterable[Act]) -> list[Act]:
    """
    Return steps as a cluster without epochs can take them: each record has a batch of its own.

    Else a follower that has kept what its leader lost may end inside a batch of its leader, and is stuck for good
    (KAFKA-6361, and KIP-101, Scenario 2).
    """
    return [replace(act, singly=True) if isinstance(act, Produce) else act for act in steps]


def for_epochless(clients: Clients) -> Clients:
    """Return clients as a cluster without epochs can take them: each record in its own batch, no producer ids."""
    producers = tuple(replace(each, batch=(1, 1)) for each in clients.unnumbered().producers)
    return replace(clients, producers=producers)


@dataclass(frozen=True, slots=True)
class Rolling:
    """Draws the steps that restart brokers with another protocol, and what disturbs them."""

    chance: Random
    nodes: Sequence[str]
    replicas: Sequence[str]
    faults: Collection[str]
    # How many disturbances one restart has, at most.
    most: int
    # Whether a version of UNFENCED is spoken.
    unfenced: bool = False

    def to(self, nodes: Sequence[str], protocol: str) -> list[Act]:
        """Return steps that restart these nodes with another protocol, one after another."""
        found: list[Act] = []
        for name in nodes:
            crashes = sorted({"kill", "power-loss"} & {*self.faults}) if self.most else []
            how = self.chance.choice((*STOPS, *crashes))
            seen = [] if how == "stop" else [passing(self.chance, *SEEN_MS)]
            own = [*gone(how, name), *seen, Install(protocol, (name,)), Inject(RESTART, (name,))]
            # Who is restarted is not disturbed: it must not be up, when its turn to be installed comes.
            found += [*self.disturbed(own, [each for each in self.nodes if each != name]), Settle()]
        return found

    def disturbed(self, steps: Sequence[Act], nodes: Sequence[str]) -> list[Act]:
        """Return the steps with disturbances of these nodes before, among and after them."""
        found, left = list(steps), list(nodes)
        for _ in range(self.chance.randint(0, self.most)):
            acts = disturbance(self.chance, left, self.replicas, self.faults) if left else []
            if self.unfenced and is_unheard_loss([*found, *acts]):
                continue
            # Who crashes does so once: one of two restarts would come before the other's session has ended.
            left = [name for name in left if Inject(RESTART, (name,)) not in acts]
            at = 0
            for act in acts:
                at = self.chance.randint(at, len(found))
                found.insert(at, act)
                at += 1
        return found
