"""
The servers of a world's ZooKeeper as faults see them: an ensemble of three, whose leader can be lost.

The world has one state of ZooKeeper, and so has an ensemble: what a new leader has is all that was ever answered.
Source:  ZooKeeper Internals, "Leader Activation"; SessionTracker (a new leader gives sessions their timeout anew).
"""

from __future__ import annotations

from typing import Final

from harness.model import PreconditionError
from targets.simulator.clock import NS_PER_MS
from targets.simulator.world import World

NAMES: Final = ("zookeeper-1", "zookeeper-2", "zookeeper-3")
# From the death of a leader until another serves: a tick or two until it is missed, and an election.
ELECTION_MS: Final = 300
CALL: Final = "zookeeper election"
# A majority elects a leader; with one server of three there is none.
GONE_MAX: Final = 1


class SimZooKeeperServers:
    """One world's servers; see harness.cluster.interfaces.ZooKeeperServers for every call."""

    def __init__(self, world: World) -> None:
        """All three serve, and the last one leads, as it has the highest id."""
        self._world = world
        self._gone: list[str] = []
        self._leader = NAMES[-1]
        world.on_call(CALL, world.zookeeper.lead_again)

    @property
    def out(self) -> bool:
        """Whether nobody is answered."""
        return self._world.zookeeper.out

    def halt(self) -> str:
        """Freeze all servers."""
        zookeeper = self._world.zookeeper
        if zookeeper.out:
            raise PreconditionError("ZooKeeper is out already; expected it to serve")
        zookeeper.halt()
        return f"{len(NAMES) - len(self._gone)} servers frozen, {len(zookeeper.sessions)} sessions wait"

    def lose_leader(self) -> str:
        """Kill the leader, and let another lead after an election."""
        zookeeper, was = self._world.zookeeper, self._leader
        if zookeeper.out or len(self._gone) >= GONE_MAX:
            raise PreconditionError(f"{self.lacking()}; expected all servers to serve")
        before = set(zookeeper.sessions)
        zookeeper.lose_leader()
        self._world.clock.after(ELECTION_MS * NS_PER_MS, ("call", CALL))
        self._gone.append(was)
        self._leader = next(name for name in reversed(NAMES) if name not in self._gone)
        if not self._world.until(lambda: not zookeeper.electing, 2 * ELECTION_MS / 1000):
            raise PreconditionError(f"{was} was killed, and no other server leads")
        kept = f"{len(before & set(zookeeper.sessions))} of {len(before)} sessions kept"
        return f"{was} led and was killed; {self._leader} leads; {kept}"

    def lacking(self) -> str:
        """Return which servers do not serve."""
        if self.out:
            return "all servers are frozen"
        return f"{', '.join(self._gone)} is gone" if self._gone else ""

    def mend(self) -> str:
        """Let all servers serve again."""
        zookeeper, lacked = self._world.zookeeper, self.lacking()
        before = set(zookeeper.sessions)
        self._gone.clear()
        if zookeeper.out:
            zookeeper.go_on()
        kept = f"{len(before & set(zookeeper.sessions))} of {len(before)} sessions kept"
        return f"{lacked}; now all {len(NAMES)} serve, {self._leader} leads, {kept}"
