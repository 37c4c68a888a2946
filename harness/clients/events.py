"""What a client of a workload records before it asks: one event for each record, or for each partition polled."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from harness.events import Event, Poll, Produce
from harness.model import OpType
from harness.workload.plan import Place
from harness.workload.script import Ask, Send


class Recorder(Protocol):
    """Where a client's ops go: the history, or whoever passes them on to it."""

    def record(self, process: str, type_: OpType, event: Event) -> object:
        """Return once the op is in the history; raise HistoryError if it takes no more."""


def produce_events(name: str, place: Place, values: Sequence[str], send: Send) -> list[Produce]:
    """Return an event for each record of a batch, without what only its outcome tells."""
    return [
        Produce(
            topic=place.topic, partition=place.partition, name=name, acks=send.acks, codec=send.codec, value=value
        )
        for value in values
    ]


def poll_event(node: str, ask: Ask) -> Poll:
    """Return the event of a poll of one partition; `node` is "" where the client does not tell."""
    return Poll(
        topic=ask.place.topic, partition=ask.place.partition, node=node, position=ask.position, sought=ask.sought
    )
