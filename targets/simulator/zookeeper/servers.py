"""
The servers of a world's ZooKeeper as faults see them: alone, or an ensemble of three, of which one leads.

The world has one state of ZooKeeper, and so has an ensemble: what a new leader has is all that was ever answered.
Source:  ZooKeeper Internals, "Leader Activation"; SessionTracker (a new leader gives sessions their timeout anew).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from harness.model import PreconditionError
from targets.simulator.engine.clock import NS_PER_MS
from targets.simulator.engine.simulation import Simulation
from targets.simulator.zookeeper.server import ZooKeeper

KIND: Final = "zookeeper"
SEVERAL: Final = 3
# From the death of a leader until another serves: a tick or two until it is missed, and an election.
ELECTION_MS: Final = 300
CALL: Final = "zookeeper election"
_DOWN: Final = "down"
_PAUSED: Final = "paused"


class SimZooKeeperServers:
    """
    One world's servers; see harness.cluster.interfaces.Services for every call.

    Args:
        count: how many there are, 1 or 3; the last one leads at first, as it has the highest id.
    """

    def __init__(self, world: Simulation[Any], zookeeper: ZooKeeper, count: int = SEVERAL) -> None:
        """All serve."""
        self._world = world
        self._zookeeper = zookeeper
        self._all = tuple(f"{KIND}-{number}" for number in range(1, count + 1))
        self._leader = self._all[-1]
        self._frozen = False
        # What `lose_leader` killed, and what faults of single servers have taken away, with how.
        self._killed: list[str] = []
        self._lost: dict[str, str] = {}
        world.on_call(CALL, self._elected)

    @property
    def names(self) -> Mapping[str, tuple[str, ...]]:
        """The one kind."""
        return {KIND: self._all}

    @property
    def linked(self) -> tuple[str, ...]:
        """None: nodes reach them as the metadata."""
        return ()

    @property
    def out(self) -> bool:
        """Whether nobody is answered."""
        return self._frozen or self._too_few()

    # --- faults of all servers ---------------------------------------------------------------------------------
    def halt(self, kind: str) -> str:
        """Freeze all servers."""
        if self.out:
            raise PreconditionError(f"{kind} is out already; expected it to serve")
        self._frozen = True
        self._zookeeper.halt()
        return f"{len(self._able())} servers frozen, {len(self._zookeeper.sessions)} sessions wait"

    def lose_leader(self, kind: str) -> str:
        """Kill the leader, and let another lead after an election."""
        was = self._leader
        if self.out or self._killed or self._lost or len(self._all) < SEVERAL:
            raise PreconditionError(f"{self._away() or f'one {kind}'}; expected all servers to serve")
        before = set(self._zookeeper.sessions)
        self._killed.append(was)
        self._elect()
        return f"{was} led and was killed; {self._leader} leads; {self._kept(before)}"

    def lacking(self) -> str:
        """Return which servers do not serve, but for those that a fault of their own has taken away."""
        if self._frozen:
            return "all servers are frozen"
        return f"{', '.join(self._killed)} is gone" if self._killed else ""

    def mend(self) -> str:
        """Let all servers serve again that the faults above took away."""
        lacked, before = self.lacking(), set(self._zookeeper.sessions)
        self._killed.clear()
        if self._frozen:
            self._frozen = False
            self._zookeeper.go_on()
        return f"{lacked}; now all {len(self._able())} serve, {self._leader} leads, {self._kept(before)}"

    # --- faults of single servers ------------------------------------------------------------------------------
    def alive(self, name: str) -> bool:
        """Return True if the server has a process, paused or not."""
        return name not in self._killed and self._lost.get(name) != _DOWN

    def paused(self, name: str) -> bool:
        """Return True if the server's process is paused."""
        return self._lost.get(name) == _PAUSED or (self._frozen and self.alive(name))

    def kill(self, name: str) -> str:
        """End the server's process; what it promised is on its disk."""
        if not self.alive(name):
            raise PreconditionError(f"kill {name}: no process is there; expected one that runs")
        self._lose(name, _DOWN)
        return f"killed; {self._serving()}"

    def pause(self, name: str) -> str:
        """Stop the server's process without ending it."""
        if not self.alive(name) or name in self._lost:
            raise PreconditionError(f"pause {name}: {self._lost.get(name, 'gone')}; expected a process that runs")
        self._lose(name, _PAUSED)
        return f"stopped; {self._serving()}"

    def resume(self, name: str) -> str:
        """Resume a paused server."""
        if self._lost.get(name) != _PAUSED:
            raise PreconditionError(f"resume {name}: it is not paused; expected a paused server")
        self._regain(name)
        return f"runs; {self._serving()}"

    def start(self, name: str) -> str:
        """Start a server again."""
        if self._lost.get(name) != _DOWN:
            raise PreconditionError(f"start {name}: it runs already; expected it to be down")
        self._regain(name)
        return f"{name} started; {self._serving()}"

    def _lose(self, name: str, how: str) -> None:
        served = not self._too_few()
        self._lost[name] = how
        if self._frozen or not served:
            return
        if self._too_few():
            # A lone server that is paused keeps its connections; without a majority the others end theirs.
            lone = len(self._all) == 1 and how == _PAUSED
            (self._zookeeper.halt if lone else self._zookeeper.lose_leader)()
        elif name == self._leader:
            self._elect()

    def _regain(self, name: str) -> None:
        lacked = self._too_few()
        how = self._lost.pop(name)
        if not lacked or self._too_few():
            return
        if len(self._all) == 1 and how == _PAUSED:
            self._zookeeper.go_on()
        else:
            self._elect()

    # --- helpers -----------------------------------------------------------------------------------------------
    def _able(self) -> list[str]:
        return [name for name in self._all if name not in self._killed and name not in self._lost]

    def _too_few(self) -> bool:
        """Return True if no majority is left, which alone elects a leader."""
        return len(self._able()) < len(self._all) // 2 + 1

    def _elect(self) -> None:
        """Let another server lead after an election; return when it does."""
        zookeeper, was = self._zookeeper, self._leader
        if not zookeeper.electing:
            zookeeper.lose_leader()
        self._world.clock.after(ELECTION_MS * NS_PER_MS, ("call", CALL))
        self._leader = max(self._able())
        if not self._world.until(lambda: not zookeeper.electing or self._too_few(), 2 * ELECTION_MS / 1000):
            raise PreconditionError(f"{was} is gone, and no other server leads")

    def _elected(self) -> None:
        if not self._too_few():
            self._zookeeper.lead_again()

    def _away(self) -> str:
        gone = [*self._killed, *self._lost]
        return "all servers are frozen" if self._frozen else f"{', '.join(gone)} is gone" if gone else ""

    def _serving(self) -> str:
        return "no majority of the servers is left" if self._too_few() else f"{self._leader} leads"

    def _kept(self, before: set[int]) -> str:
        return f"{len(before & set(self._zookeeper.sessions))} of {len(before)} sessions kept"
