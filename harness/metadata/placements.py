"""The replicas of watched partitions, as the metadata show them one after another: what is new is an event."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from harness.events import Assigned


class Placements:
    """
    The last replicas of each watched partition; those that it had at first are in the set-up, and no event.

    Args:
        places: (topic, partition), of each that is watched.
    """

    def __init__(self, places: Iterable[tuple[str, int]]) -> None:
        self._known: dict[tuple[str, int], tuple[str | None, ...]] = dict.fromkeys(places, ())

    def moved(self, topic: str, found: Mapping[int, tuple[str | None, ...]]) -> Iterator[Assigned]:
        """Yield what is new of a topic whose node was read: partition -> its nodes."""
        for partition, nodes in found.items():
            before = self._known.get((topic, partition))
            if before is None or not nodes or nodes == before:
                continue
            self._known[topic, partition] = nodes
            if before:
                yield Assigned(topic=topic, partition=partition, replicas=nodes)
