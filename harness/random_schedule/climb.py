"""
Draws the schedule of the workload `upgrade`: one cluster is upgraded version by version, one broker at a time, and
then down again one step and up, while its clients write and read.

It goes down to the oldest version first, since a run has one protocol, whose program the brokers are from the
beginning. Faults come between and within the restarts (disturbances.py), but where a version is spoken that loses
records to them by itself. After each restart the cluster must be whole and acknowledge a record of each partition.

Source:  KIP-101, Compatibility, Deprecation, and Migration Plan; Apache Kafka's upgrade notes.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from random import Random
from typing import Final

from harness.cluster.names import OWN
from harness.random_schedule.final_records import FINAL_RECORDS
from harness.random_schedule.seed_name import seed_name
from harness.random_schedule.upgrades import DISTURBANCES_MAX, OLDEST, UNFENCED, Rolling
from harness.scenario.file import PARTITION, TOPIC, Scenario, Step
from harness.scenario.heads import Count
from harness.scenario.steps import MEANWHILE, Act, Produce, Settle
from harness.scenario.text import first_step_line
from harness.target.settings import Settings
from harness.workload.plan import ACKS_ALL, NO_CLIENTS, Place

REPLICAS: Final = ("A", "B", "C")
NODES: Final = ("D", *REPLICAS)
FURTHER: Final[Mapping[Place, tuple[str, ...]]] = {
    Place(TOPIC, PARTITION + 1): ("B", "C", "D"),
    Place(TOPIC, PARTITION + 2): ("C", "D", "A"),
}
# The versions of a ladder, ours and Apache Kafka's; a run has those that are older than its own protocol.
VERSIONS: Final = (OLDEST, "@kip279", "@kip320", "@1.1", "@2.1")
# While one of these is spoken nothing disturbs the cluster.
CALM: Final = frozenset({OLDEST, "@1.1"})
HEAL_WITHIN_S: Final = 20.0


def draw_climb(seed: int, faults: Collection[str], versions: Sequence[str]) -> Scenario:
    """
    Return the schedule of a seed, as yet without clients.

    Args:
        faults: those that may be drawn.
        versions: the older ones that the run's protocol can speak, from the oldest on; one at least.
    """
    chance = Random(f"climb {seed}")
    ways = [*versions, OWN, versions[-1], OWN]
    steps: list[Act] = [Produce("m1", acks=ACKS_ALL, outcome=MEANWHILE), Settle()]
    for number, (before, version) in enumerate(zip([OWN, *ways], ways, strict=False), start=2):
        most = 0 if CALM & {before, version} else DISTURBANCES_MAX
        unfenced = bool(UNFENCED & {before, version})
        rolling = Rolling(chance, NODES, REPLICAS, faults, most, unfenced=unfenced)
        steps += rolling.to(chance.sample(NODES, len(NODES)), version)
        steps.append(Produce(f"m{number}", acks=ACKS_ALL, outcome=MEANWHILE))
    records = (*(f"m{number}" for number in range(1, len(ways) + 2)), *FINAL_RECORDS)
    return Scenario(
        name=seed_name(seed),
        title=f"A cluster is upgraded version by version, drawn from seed {seed}",
        sources=("chance",),
        replicas=REPLICAS,
        nodes=NODES,
        records=tuple(Count(name=name, low=1, high=1) for name in records),
        steps=tuple(
            Step(line=line, act=act)
            for line, act in enumerate(steps, start=first_step_line(len(FURTHER), NO_CLIENTS))
        ),
        expectations={},
        settings=Settings(min_isr=chance.choice((1, 2)), heal_within_s=HEAL_WITHIN_S),
        further=FURTHER,
    )
