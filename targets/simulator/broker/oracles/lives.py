"""
Which process of a node a leader has last heard fetch: the one that runs, or one that has ended since.

A fetch may arrive after its sender has ended, and even after it was started again; before KIP-903 a leader cannot
tell, since a fetch names no broker epoch.
"""

from __future__ import annotations

from typing import Final

from targets.broker.core.events import Event, Received, Start
from targets.broker.core.messages import FetchRequest
from targets.simulator.broker.world import World

ENDED: Final = -1


class Lives:
    """The connections on which followers fetched last, and the number of connections when each process started."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._fetched: dict[tuple[str, int], int] = {}  # (leader, id of the follower) -> connection
        self._since = dict.fromkeys(world.nodes, 0)

    def on_event(self, name: str, event: Event) -> None:
        """Note a fetch that a node has received, or that its process has started."""
        if isinstance(event, Start):
            self._since[name] = self._world.network.dialled
        elif isinstance(event, Received):
            request = event.request
            if isinstance(request, FetchRequest) and request.replica_id >= 0:
                self._fetched[name, request.replica_id] = event.caller.connection

    def now(self, name: str) -> int:
        """Return the number of a node's process, ENDED if none runs."""
        process = self._world.nodes[name].process
        return ENDED if process is None else process.life

    def heard(self, leader: str, member: str) -> int:
        """Return the number of the process whose fetch the leader has last received, ENDED if it runs no more."""
        connection = self._fetched.get((leader, self._world.ids[member]))
        return ENDED if connection is not None and connection <= self._since[member] else self.now(member)
