"""
Quiet partitions of a follower's session: of thousands most have no news, and a round is about the others.

A quiet one has nothing to read, to count or to tell that the fetch before did not have. What changes later, while
the fetch waits, is stirred: whatever changes a leader's replica says so by `fetches.wake` or `fetches.stir`.
Source:  KIP-227, "Motivation": the work of a fetch is to grow with what has changed, not with the partitions.
"""

from __future__ import annotations

from collections.abc import Iterator

from targets.broker.core.epochs import UNDEFINED_EPOCH
from targets.broker.core.messages import NO_TOPIC_ID, FetchPartition, FetchRequest
from targets.broker.core.sessions import Session, is_full
from targets.broker.core.state import Core, Role


def session_of(core: Core, request: FetchRequest) -> Session | None:
    """Return the session of a follower's fetch that has quiet partitions; None: each is looked at."""
    if request.replica_id < 0 or request.min_bytes <= 0 or is_full(request):
        return None
    return core.state.sessions.at(request)


def count_quiet(core: Core, session: Session, follower: int) -> Iterator[FetchPartition]:
    """
    Count a fetch as an acknowledgement of its quiet partitions, and yield the others, which the caller counts.

    It is the loop of a round that has thousands of turns in a second, so it calls nothing.
    """
    replicas, now_ns, leads = core.state.replicas, core.now_ns, Role.LEADER
    # A copy: what is counted may answer another fetch of this session, which turns its partitions.
    for tp, kept in list(session.parts.items()):
        replica, part, told = replicas.get(tp), kept.part, kept.told
        if (
            replica is None
            or told is None
            or replica.role is not leads
            or (progress := replica.progress.get(follower)) is None
            or follower not in replica.isr
            or follower not in replica.replicas
            or (part.topic_id != replica.topic_id and NO_TOPIC_ID not in (part.topic_id, replica.topic_id))
            or part.current_leader_epoch not in (UNDEFINED_EPOCH, replica.leader_epoch)
            or part.fetch_offset != (end := replica.log.end_offset)
            or progress.end != end
            or told[0] != replica.high_watermark
            or told[1] != replica.log.start_offset
        ):
            yield part
        else:
            progress.start = part.log_start_offset
            progress.caught_up_ns = max(progress.caught_up_ns, now_ns)
            progress.last_fetch_ns = now_ns
            progress.leader_end_at_last_fetch = end
