"""What a fetch within a session is about, as it is seen from outside: also what it does not name."""

from __future__ import annotations

from targets.broker.core.messages import FetchPartition, FetchRequest, TopicPartition
from targets.broker.core.sessions import is_full


def parts_of(known: dict[TopicPartition, FetchPartition], request: FetchRequest) -> tuple[FetchPartition, ...]:
    """Return all partitions of a fetch, given those that earlier ones of its session named, and note them."""
    if is_full(request):
        known.clear()
    known.update((part.tp, part) for part in request.partitions)
    for tp in request.forgotten:
        known.pop(tp, None)
    return tuple(known.values())
