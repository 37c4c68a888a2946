"""Requests that a node's core has received and not answered; an oracle judges an answer by what was asked."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final, TypeAlias

from targets.broker.core.events import Answer, Caller, Effect, Event, Hungup, Received, Start
from targets.broker.core.messages import (
    FetchRequest,
    LeaderAndIsrRequest,
    ProduceRequest,
    Request,
    Response,
    StopReplicaRequest,
)

Told: TypeAlias = tuple[Request, Response]
_NOTHING: Final[Sequence[Told]] = ()


class Calls:
    """Consumers' fetches, produces that want an answer, and the controller's commands, by node and caller."""

    def __init__(self, nodes: Iterable[str]) -> None:
        """Start without a request."""
        self._open: dict[str, dict[Caller, Request]] = {name: {} for name in nodes}

    def told(self, name: str, event: Event, effects: Sequence[Effect]) -> Sequence[Told]:
        """Note the request of a step; return the requests that the step answered, with their answers, in order."""
        waiting = self._open[name]
        if isinstance(event, Received):
            if _is_judged(event.request):
                waiting[event.caller] = event.request
        elif waiting and isinstance(event, Hungup):
            for caller in [caller for caller in waiting if caller.connection == event.connection]:
                del waiting[caller]
        elif isinstance(event, Start):
            waiting.clear()
        if not waiting:
            return _NOTHING
        return [
            (waiting.pop(effect.to), effect.response)
            for effect in effects
            if isinstance(effect, Answer) and effect.to in waiting
        ]

    def produces(self, name: str) -> list[ProduceRequest]:
        """Return the produces of a node that still wait."""
        return [request for request in self._open[name].values() if isinstance(request, ProduceRequest)]


def _is_judged(request: Request) -> bool:
    match request:
        case FetchRequest(replica_id=replica):
            return replica < 0
        case ProduceRequest(acks=acks):
            return acks != 0
        case _:
            return isinstance(request, LeaderAndIsrRequest | StopReplicaRequest)
