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
COMMANDS: Final = frozenset((LeaderAndIsrRequest, StopReplicaRequest))


class Calls:
    """
    Consumers' fetches, produces that want an answer, and the controller's commands.

    Attributes:
        waiting: by node and caller.
    """

    def __init__(self, nodes: Iterable[str]) -> None:
        """Start without a request."""
        self.waiting: dict[str, dict[Caller, Request]] = {name: {} for name in nodes}

    def note(self, name: str, event: Event) -> None:
        """Note a request, or that the callers of a connection, or all, get no answer any more."""
        waiting = self.waiting[name]
        if isinstance(event, Received):
            if _is_judged(event.request):
                waiting[event.caller] = event.request
        elif isinstance(event, Hungup):
            for caller in [caller for caller in waiting if caller.connection == event.connection]:
                del waiting[caller]
        elif isinstance(event, Start):
            waiting.clear()

    def told(self, name: str, effects: Sequence[Effect]) -> Sequence[Told]:
        """Return the requests that a step answered, with their answers, in order."""
        waiting = self.waiting[name]
        return [
            (waiting.pop(effect.to), effect.response)
            for effect in effects
            if type(effect) is Answer and effect.to in waiting
        ]


def _is_judged(request: Request) -> bool:
    if isinstance(request, FetchRequest):
        return request.replica_id < 0
    return request.acks != 0 if isinstance(request, ProduceRequest) else type(request) in COMMANDS
