"""
A client of a wide world that alters what topics have of their own, while a schedule is played.

Each change is drawn from the seed alone: when, which topic, which setting, and the broker that is asked. Files of
any topic may begin at another size. Age and size limit topics that come and go, and others where the brokers
delete old records anyway: so the rules know from the start where records may go. min.insync.replicas is left
alone: clients would be promised less, or more, than the set-up says, and a partition that was moved to fewer
replicas could take no record at the end.
Source:  KIP-339, IncrementalAlterConfigs; kafka-configs.sh --alter.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from random import Random
from typing import Final

from harness.model import Op
from targets.broker.core.configs import ResourceKind
from targets.broker.core.messages import AlterConfigsRequest, AlteredResource, AlteredSetting, AlterOperation
from targets.simulator.broker.clients.caller import Caller
from targets.simulator.broker.world import World
from targets.simulator.engine.clock import NS_PER_MS
from targets.simulator.engine.play_time import PlayTime

NAME: Final = "client-alterer"
# How often a wide world has one, how many changes it asks for, within which time, and how long each may take.
SHARE: Final = 0.4
CHANGES_MAX: Final = 8
WITHIN_NS: Final = 1_500 * NS_PER_MS
TIMEOUT_NS: Final = 400 * NS_PER_MS
# How often it is about a topic whose age and size may be limited, if there is one.
LIMITED_SHARE: Final = 0.6
# How often a setting is taken back.
BACK_SHARE: Final = 0.15
FILES: Final[Mapping[str, Sequence[int]]] = {"segment.bytes": (150, 400, 1_500)}
LIMITS: Final[Mapping[str, Sequence[int]]] = {"retention.ms": (100, 400), "retention.bytes": (300, 900)}


class Alterer:
    """
    One such client.

    Attributes:
        asked: how many changes it has asked for.

    Args:
        topics: whose files may begin at another size.
        limited: those of them whose age and size may be limited.
        last_line: of the schedule's last step, with which it stops.
    """

    def __init__(
        self, world: World, seed: int, topics: Sequence[str], limited: Sequence[str], last_line: int
    ) -> None:
        self.asked = 0
        self._world = world
        self._topics, self._limited = topics, limited
        self._chance = Random(f"alterer {seed}")
        self._caller = Caller(world, NAME)
        self._time = PlayTime(last_line)

    def listen(self, op: Op) -> None:
        """Start with the first step."""
        if self._time.begins(op) and self._chance.random() < SHARE:
            for _ in range(self._chance.randint(1, CHANGES_MAX)):
                self._caller.later(int(self._chance.random() * WITHIN_NS), self._act)

    def _act(self) -> None:
        chance = self._chance
        may_be_limited = bool(self._limited) and chance.random() < LIMITED_SHARE
        topic = chance.choice(self._limited if may_be_limited else self._topics)
        known = {**FILES, **(LIMITS if topic in self._limited else {})}
        name = chance.choice(list(known))
        value, back = str(chance.choice(known[name])), chance.random() < BACK_SHARE
        node = chance.choice(list(self._world.nodes))
        setting = AlteredSetting(name, value)
        if back:
            setting = AlteredSetting(name, None, AlterOperation.DELETE)
        resource = AlteredResource(kind=ResourceKind.TOPIC, name=topic, settings=(setting,))
        if not self._time.over:
            self.asked += 1
            request = AlterConfigsRequest(resources=(resource,), incremental=True)
            self._caller.ask(node, request, TIMEOUT_NS, lambda _outcome: None)
