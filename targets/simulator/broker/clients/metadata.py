"""
A client's knowledge of leaders, as brokers told it: it may be stale, as that of real clients.

It is asked for again only when the client notices that it is wrong: a broker does not lead, or does not answer.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from harness.workload.plan import Place
from targets.broker.core.messages import MetadataRequest, MetadataResponse, Request
from targets.simulator.broker.clients.caller import Caller, Outcome, Then
from targets.simulator.engine.clock import NS_PER_MS

# As a real client's metadata timeout, in proportion: a node that is paused is given up.
WITHIN_NS: Final = 300 * NS_PER_MS


class Metadata:
    """
    The leaders of a client's partitions.

    Args:
        leaders: what it knows at first.
        pick: chooses the node that is asked.
    """

    def __init__(
        self, caller: Caller, leaders: dict[Place, str | None], pick: Callable[[Sequence[str]], str]
    ) -> None:
        self._caller = caller
        self._leaders = leaders
        self._pick = pick

    def leader(self, place: Place) -> str | None:
        """Return the node that leads, as far as the client knows; None if it must ask."""
        return self._leaders[place]

    def forget(self, place: Place) -> None:
        """Forget a leader that did not act as one."""
        self._leaders[place] = None

    def ask(self, then: Callable[[], None]) -> None:
        """Ask a node that accepts connections, and call `then`, whatever came of it."""

        def answered(outcome: Outcome) -> None:
            if isinstance(outcome.response, MetadataResponse):
                self._learn(outcome.response)
            then()

        topics = tuple(dict.fromkeys(place.topic for place in self._leaders))
        self.ask_any(MetadataRequest(topics=topics), answered)

    def ask_any(self, request: Request, then: Then) -> None:
        """Send a request to a node that accepts connections, and call `then` with what came of it."""
        nodes = [name for name, node in self._caller.world.nodes.items() if node.listening]
        if nodes:
            self._caller.ask(self._pick(nodes), request, WITHIN_NS, then)
        else:
            self._caller.later(WITHIN_NS, lambda: then(Outcome(error="no node accepts connections", sent=False)))

    def _learn(self, response: MetadataResponse) -> None:
        world = self._caller.world
        for topic in response.topics:
            for found in topic.partitions:
                place = Place(found.tp.topic, found.tp.partition)
                if place in self._leaders:
                    self._leaders[place] = world.name_of(found.leader)
