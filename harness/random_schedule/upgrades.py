"""
Adds a rolling downgrade and upgrade to a schedule: each broker is restarted to speak an older protocol, and later,
one by one again, its own. It has neither churned topics, which without an identity take what was meant for their
predecessors (KIP-516), nor keys, nor records that are deleted by age or size.

A random schedule does not know which protocol is played, so that it goes down first: what a cluster of the older
protocol has written is on the disks when the upgrade begins. Between two restarts the cluster must be whole, as an
operator would see to it; clients work all the time, and all other faults come before and after. An older protocol
loses records to some of them whether it is upgraded or not (KIP-101, Motivation); to a restart at a time it must
lose none.

They have a random source of their own, so that all other steps of a seed are the same with them and without.

Source:  KIP-101, Compatibility, Deprecation, and Migration Plan; Apache Kafka's upgrade notes: one broker at a
         time.
"""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from random import Random
from typing import Final

from harness.cluster.cluster import OWN
from harness.scenario.steps import Act, Inject, Install, Pass, Settle

# How often a wide run has one.
SHARE: Final = 0.12
# What the older protocol may be, as a cluster of a newer one speaks it. Not hw: a member of the ISR that cuts its
# log to its high watermark lacks for a moment what is committed, also when nothing fails (KIP-101, Motivation).
OLDER: Final = ("@kip101", "@kip279", "@kip279-2.0.1", "@kip320")
# How long the cluster stays as it is between the two, in milliseconds.
STAYS_MS: Final = (5.0, 120.0)
# How often some brokers are upgraded before the last of them was set back.
HALF_SHARE: Final = 0.3


def has_upgrades(seed: int) -> bool:
    """Return True if the wide run of a seed has a rolling upgrade."""
    return Random(f"upgrades {seed}").random() < SHARE


def with_upgrades(seed: int, steps: Sequence[Act], nodes: Sequence[str]) -> list[Act]:
    """Return the steps with a rolling downgrade and upgrade of these brokers among them, after the first step."""
    chance = Random(f"upgrade {seed}")
    older = chance.choice(OLDER)
    down = chance.sample(nodes, len(nodes))
    if chance.random() < HALF_SHARE:
        down = down[: chance.randint(1, len(down))]
    up = chance.sample(down, len(down))
    stay = Pass(Decimal(f"{chance.uniform(*STAYS_MS):.1f}"))
    rolled = [Settle(), *_rolled(down, older), stay, *_rolled(up, OWN)]
    at = chance.randint(1, len(steps))
    return [*steps[:at], *rolled, *steps[at:]]


def _rolled(nodes: Sequence[str], protocol: str) -> list[Act]:
    """Return steps that restart the nodes with another protocol, one after another."""
    found: list[Act] = []
    for name in nodes:
        found += [Inject("stop", (name,)), Install(protocol, (name,)), Inject("restart", (name,)), Settle()]
    return found
