"""Records what metadata show, each change once: an event equal to the last one about the same thing is none."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from harness.events import Event, OfPartition
from harness.metadata.placements import Placements
from harness.target.metadata import Place

# The kind of an event, and its partition, None for an event of the whole cluster.
_About = tuple[type[Event], Place | None]


class Recorder:
    """
    The changes of one run's metadata.

    Args:
        record: writes an event to the history.
        places: the partitions whose replicas are recorded.
    """

    def __init__(self, record: Callable[[Event], object], places: Sequence[Place]) -> None:
        self._record = record
        self._placements = Placements(places)
        self._last: dict[_About, Event] = {}

    def note(self, event: Event) -> None:
        """Record an event, unless it is the last one about the same thing."""
        about = type(event), (event.topic, event.partition) if isinstance(event, OfPartition) else None
        if self._last.get(about) != event:
            self._last[about] = event
            self._record(event)

    def note_placed(self, topic: str, found: Mapping[int, tuple[str | None, ...]]) -> None:
        """Record what is new of the replicas of a topic's partitions."""
        for event in self._placements.moved(topic, found):
            self.note(event)
