"""Requests that a node's core has received and not answered; an oracle judges an answer by what was asked."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final, TypeAlias

from targets.broker.core.events import Answer, Caller, Effect, Event, Hungup, Received, Start
from targets.broker.core.messages import LeaderAndIsrRequest, ProduceRequest, Request, Response, StopReplicaRequest

# A request, its answer, and when it was received.
Told: TypeAlias = tuple[Request, Response, int]
COMMANDS: Final = frozenset((LeaderAndIsrRequest, StopReplicaRequest))


class Calls:
    """
    Every request but a produce that wants no answer.

    Attributes:
        waiting: by node and caller, each with the time at which it was received.
    """

    def __init__(self, nodes: Iterable[str]) -> None:
        """Start without a request."""
        self.waiting: dict[str, dict[Caller, tuple[Request, int]]] = {name: {} for name in nodes}

    def note(self, name: str, event: Event, now_ns: int) -> None:
        """Note a request, or that the callers of a connection, or all, get no answer any more."""
        waiting = self.waiting[name]
        if isinstance(event, Received):
            if not isinstance(event.request, ProduceRequest) or event.request.acks:
                waiting[event.caller] = (event.request, now_ns)
        elif isinstance(event, Hungup):
            for caller in [caller for caller in waiting if caller.connection == event.connection]:
                del waiting[caller]
        elif isinstance(event, Start):
            waiting.clear()

    def told(self, name: str, effects: Sequence[Effect]) -> Sequence[Told]:
        """Return the requests that a step answered, with their answers, in order."""
        waiting = self.waiting[name]
        found: list[Told] = []
        for effect in effects:
            if type(effect) is Answer and effect.to in waiting:
                request, received_ns = waiting.pop(effect.to)
                found.append((request, effect.response, received_ns))
        return found
