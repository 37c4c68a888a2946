"""
The servers of a run's own ZooKeeper on a host: frozen, killed and restarted like nodes, seen by `srvr` and `cons`.

Nothing here touches the ZooKeeper that the runs of a suite share.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from harness import limits
from harness.cleanup.process import until
from harness.hosts.base import Host
from harness.model import PreconditionError
from harness.target.metadata import Metadata
from targets.kafka_family.zookeeper.server import Server, mode_of, sessions_at
from targets.kafka_family.zookeeper.view import RealZooKeeperView

LEADER: Final = "leader"
# Within which a client that lost its connection is connected to another server: its retries grow to half a second.
# One that dials a container that is gone first waits for the kernel to say so.
MOVED_WITHIN_S: Final = 30.0


class OwnZooKeeper:
    """The servers of one run; see harness.cluster.interfaces.ZooKeeperServers for every call."""

    def __init__(self, host: Host, servers: Sequence[Server], view: Metadata) -> None:
        assert isinstance(view, RealZooKeeperView), "a target with servers of ZooKeeper has its metadata there"
        self._host = host
        self._servers = {server.name: server for server in servers}
        self._view = view
        self._frozen: list[str] = []

    @property
    def out(self) -> bool:
        """Whether all servers that run are frozen."""
        return bool(self._frozen)

    def halt(self) -> str:
        """Freeze all servers that run; return when none of them answers."""
        if self._frozen:
            raise PreconditionError("ZooKeeper is out already; expected it to serve")
        self._view.expect_silence("its servers are frozen")
        seen: list[str] = []
        for name in self._running():
            seen.append(f"{name} {self._host.pause(name)}")
            self._frozen.append(name)
        answered = [name for name in self._frozen if self._mode(name)]
        if answered:
            raise PreconditionError(f"{', '.join(answered)} answers srvr; expected it frozen")
        return f"{'; '.join(seen)}; srvr is not answered"

    def lose_leader(self) -> str:
        """Kill the leader; return when another leads, with what became of the sessions."""
        modes = self._modes()
        led = next((name for name, mode in modes.items() if mode == LEADER), None)
        if led is None or len(modes) <= 1 or self.lacking():
            raise PreconditionError(f"{_shown(modes)}; expected an ensemble of which every server serves")
        before = self._sessions()
        self._view.expect_silence(f"{led} led it and was killed")
        seen = self._host.kill(led)
        if not until(lambda: LEADER in self._modes().values(), limits.ZOOKEEPER_START_S_MAX):
            raise PreconditionError(f"{led} was killed, and no other server leads: {_shown(self._modes())}")
        self._view.await_answer()
        return f"{led} led, {seen}; now {_shown(self._modes())}; {self._became(before)}"

    def lacking(self) -> str:
        """Return which servers do not serve."""
        gone = [name for name in self._servers if not self._mode(name)]
        return f"{', '.join(gone)} does not serve" if gone else ""

    def mend(self) -> str:
        """Thaw and restart servers; return when all serve, and the harness is connected again."""
        seen = [f"{name} {self._host.resume(name)}" for name in self._frozen]
        self._frozen.clear()
        for name, server in self._servers.items():
            if not self._host.alive(name):
                self._host.start(name, server.launch)
                seen.append(f"{name} started")
        if not until(lambda: not self.lacking(), limits.ZOOKEEPER_START_S_MAX):
            raise PreconditionError(f"{'; '.join(seen)}; but {self.lacking()}")
        self._view.await_answer()
        return f"{'; '.join(seen)}; now {_shown(self._modes())}"

    def _running(self) -> list[str]:
        return [name for name in self._servers if self._host.alive(name)]

    def _mode(self, name: str) -> str:
        return mode_of(self._servers[name].address) if self._host.alive(name) else ""

    def _modes(self) -> Mapping[str, str]:
        return {name: self._mode(name) for name in self._servers}

    def _sessions(self) -> Mapping[int, str]:
        """Return the server to which each session of a broker is connected now."""
        return {
            session: name
            for name in self._running()
            for session in sessions_at(self._servers[name].address) - {self._view.session}
        }

    def _became(self, before: Mapping[int, str]) -> str:
        """Wait until each session is connected again, if it is in time; return how many were kept, and moved."""
        until(lambda: before.keys() <= self._sessions().keys(), MOVED_WITHIN_S)
        now = self._sessions()
        kept = before.keys() & now.keys()
        moved = sum(before[session] != now[session] for session in kept)
        return f"{len(kept)} of {len(before)} sessions kept, {moved} on another server"


def _shown(modes: Mapping[str, str]) -> str:
    return ", ".join(f"{name} {mode or 'gone'}" for name, mode in modes.items())
