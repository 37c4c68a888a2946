"""
Sessions, or their connections, that end right after an ask, at moments that no schedule would hit by chance.

The server sends the answer and ends the session; the answer then waits in the broker's process until the next
session is announced, as in a process that was paused between reading a socket and handling what it had read. So a
broker hears in one session what an earlier one of its own was told. If the connection alone ends, the session goes
on without the rest of an ask whose first part was answered.

Where a run upgrades its brokers, no session ends while one of them cannot tell a registration from the one that it
replaced: a broker that registers anew, unseen, may wait for a new epoch for good. That is a bug of the older
protocol (KAFKA-1120), and no finding about the run's own.
Source:  KAFKA-7165, KAFKA-6584: an answer of an older session that counts for the present one.
"""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import Final

from harness.model import Op
from targets.broker.core.events import Effect, Event, Received, Start
from targets.broker.core.messages import CreatePartitionsRequest
from targets.simulator.broker.disturbances.by_hand import depose_controller, end_sessions, note_registration_end
from targets.simulator.broker.world import World
from targets.simulator.engine.clock import NS_PER_MS
from targets.simulator.engine.play_time import PlayTime
from targets.simulator.zookeeper.server import Ending

CALL: Final = "session ends"
# How often a wide world has such ends, how many, and within which time.
SHARE: Final = 0.6
ENDS_MAX: Final = 5
WITHIN_NS: Final = 600 * NS_PER_MS
# How often a session ends after its next write: a leader's ISR, a decision, an election.
WRITES_SHARE: Final = 0.4
# How often instead the controller is deposed, and whoever is elected next does not hear of it.
ELECTIONS_SHARE: Final = 0.2
# How often else it is a fresh one, and after how many asks it ends: a start has about as many.
FRESH_SHARE: Final = 0.5
ASKS_MAX: Final = 8
# How often then only the connection ends.
CONNECTIONS_SHARE: Final = 0.5
# How often a process that starts is hit so, and within how many asks: those of a start of small asks.
STARTS_SHARE: Final = 0.5
STARTS_ASKS_MAX: Final = 10
STARTS_CONNECTIONS_SHARE: Final = 0.7
# How often else it is registered without knowing it, and within which time the controller is then deposed.
UNAWARE_SHARE: Final = 0.2
UNAWARE_NS: Final = 40 * NS_PER_MS
# How often a controller that is asked for more partitions does not hear of its next write.
ADDITIONS_SHARE: Final = 0.35
DEPOSALS_CALL: Final = "deposals"


class SessionEnds:
    """
    The ends of sessions of one wide world, each drawn from the seed alone: all else is drawn as without them.

    Attributes:
        ended: the number of sessions that ended right after an ask.
    """

    def __init__(self, world: World, seed: int, last_line: int) -> None:
        """Wait for the first step of a schedule whose last one is at this line."""
        self.ended = 0
        self._time = PlayTime(last_line)
        self._world = world
        self._chance = Random(f"session ends {seed}")
        self._additions = Random(f"additions {seed}")
        world.on_call(CALL, self._draw)
        world.on_call(DEPOSALS_CALL, self._depose)
        world.watchers.append(self._on_step)
        world.zookeeper.on_ending = self._on_ending

    def listen(self, op: Op) -> None:
        """Start with the first step; from the last one on leave the world alone."""
        if self._time.begins(op) and self._chance.random() < SHARE:
            for _ in range(self._chance.randint(1, ENDS_MAX)):
                self._world.clock.after(int(self._chance.random() * WITHIN_NS), ("call", CALL))
        if self._time.over:
            self._world.zookeeper.ending.clear()

    def _on_step(self, name: str, event: Event, effects: Sequence[Effect]) -> None:
        """Have what a process that starts reads end in the middle, now and then; or the addition of partitions."""
        del effects
        adds = isinstance(event, Received) and isinstance(event.request, CreatePartitionsRequest)
        if adds and not self._time.over and self._additions.random() < ADDITIONS_SHARE:
            self._world.zookeeper.ending[name] = Ending(left=1, writes=True, session=False, silent=True)
        starts = isinstance(event, Start) and self._time.begun and not self._time.over
        if not starts:
            return
        if self._misses_returns():
            for each in self._world.zookeeper.ending.values():  # drawn before it was installed
                each.session = False
        chance = self._chance.random()
        if chance < STARTS_SHARE:
            self._end_within(name, STARTS_ASKS_MAX, STARTS_CONNECTIONS_SHARE)
        elif chance < STARTS_SHARE + UNAWARE_SHARE:
            # It registers, its second write, and does not hear of it, while controllers do: each commands it.
            self._world.zookeeper.ending[name] = Ending(left=2, writes=True, session=False, part=0.5)
            self._world.clock.after(int(self._chance.random() * UNAWARE_NS), ("call", DEPOSALS_CALL))

    def _draw(self) -> None:
        """Have a session of a node end within its next asks: often a fresh one, which is about to register."""
        if self._time.over:
            return
        chance, zookeeper = self._chance, self._world.zookeeper
        name = chance.choice(list(self._world.nodes))
        kind = chance.random()
        if kind < WRITES_SHARE:
            zookeeper.ending[name] = Ending(left=1, writes=True, session=not self._misses_returns())
            return
        if kind < WRITES_SHARE + ELECTIONS_SHARE:
            for each in self._world.nodes:
                zookeeper.ending[each] = Ending(left=1, writes=True, session=False, silent=True)
            depose_controller(self._world)
            return
        if chance.random() < FRESH_SHARE and not self._misses_returns():
            end_sessions(self._world, name)
        self._end_within(name, ASKS_MAX, CONNECTIONS_SHARE)

    def _end_within(self, name: str, asks_max: int, connections_share: float) -> None:
        """If only the connection ends, of the ask under way a part is answered and the rest is lost."""
        chance = self._chance
        left, session = chance.randint(1, asks_max), chance.random() >= connections_share
        session = session and not self._misses_returns()
        self._world.zookeeper.ending[name] = Ending(left=left, session=session, part=chance.random())

    def _misses_returns(self) -> bool:
        """Return True if a broker speaks a protocol before KIP-380 in a run whose own is a later one."""
        nodes = self._world.nodes.values()
        return self._world.rules.fence_broker_epoch and not all(n.config.rules.fence_broker_epoch for n in nodes)

    def _depose(self) -> None:
        if not self._time.over:
            depose_controller(self._world)

    def _on_ending(self, name: str, session: int) -> None:
        note_registration_end(self._world, name, session)
        process = self._world.nodes[name].process
        # What a process asked before it was killed may end its session while the next one has its own already.
        if process is not None and process.zookeeper.announced == session:
            self.ended += 1
            process.zookeeper.fall_behind()
