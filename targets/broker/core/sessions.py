"""
Fetch sessions: a fetch names what has changed since the one before it, and its answer what has news.

`Sessions` is what a leader keeps, `Asking` what a follower keeps of its session with one leader. What an answer
leaves out the follower puts back as it was told it last, so that nothing else here knows of sessions.
A fetch and its answer are in step as long as each request awaits the answer before it. Whoever cannot wait for
that, has lost a connection, or was refused, begins anew with a fetch that names everything.
Source:  KIP-227; KAFKA-9338; Kafka's FetchSession, FetchSessionCache and FetchSessionHandler.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from targets.broker.core.epochs import UNDEFINED_EPOCH
from targets.broker.core.messages import (
    FIRST_SESSION_EPOCH,
    NO_FETCH_SESSION,
    NO_SESSION_EPOCH,
    ErrorCode,
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchResult,
    TopicPartition,
)

# Refusals after which the same is asked again at once, in full.
REFUSALS: Final = (ErrorCode.FETCH_SESSION_ID_NOT_FOUND, ErrorCode.INVALID_FETCH_SESSION_EPOCH)
_INT_MAX: Final = 2**31 - 1
# A session that was not used for so long gives way to any other (MIN_INCREMENTAL_FETCH_SESSION_EVICTION_MS).
_UNUSED_NS: Final = 120_000_000_000
# Numbers of registrations follow each other closely, the ids of two lives must not.
_SPREAD: Final = 1_000_003


def is_full(request: FetchRequest) -> bool:
    """Return True if a fetch names all partitions that it is about."""
    return request.session_epoch in (NO_SESSION_EPOCH, FIRST_SESSION_EPOCH)


def epoch_after(epoch: int) -> int:
    """Return the session epoch that follows; the first one and those below it have a meaning of their own."""
    return epoch + 1 if epoch < _INT_MAX else FIRST_SESSION_EPOCH + 1


# --- the leader's side -------------------------------------------------------------------------------
@dataclass(slots=True, kw_only=True)
class Kept:
    """A partition of a session: what is asked of it, and the high watermark and log start that were told last."""

    part: FetchPartition
    told: tuple[int, int] | None = None


@dataclass(slots=True, kw_only=True)
class Session:
    """
    One session.

    Attributes:
        epoch: that the next fetch must have.
        follower: whether a broker has it; else a consumer has.
    """

    follower: bool
    used_ns: int
    epoch: int = FIRST_SESSION_EPOCH + 1
    parts: dict[TopicPartition, Kept] = field(default_factory=dict)

    def take(self, parts: Iterable[FetchPartition], forgotten: Iterable[TopicPartition], *, blind: bool) -> None:
        """Keep what a fetch names; blind: without leader epochs, so that none is checked (KAFKA-9338)."""
        for part in parts:
            found = replace(part, current_leader_epoch=UNDEFINED_EPOCH) if blind else part
            kept = self.parts.get(part.tp)
            if kept is None:
                self.parts[part.tp] = Kept(part=found)
            else:
                kept.part = found
        for tp in forgotten:
            self.parts.pop(tp, None)

    def tell(self, result: FetchResult) -> bool:
        """Return True if this is news, and keep it; who was given records has its turn after all others."""
        kept = self.parts.get(result.tp)
        if kept is None:
            return True
        failed = result.error is not ErrorCode.NONE
        bounds = None if failed else (result.high_watermark, result.log_start_offset)
        news = failed or bool(result.batches) or bounds != kept.told
        kept.told = bounds
        if result.batches:
            self.parts[result.tp] = self.parts.pop(result.tp)
        return news


@dataclass(slots=True, kw_only=True)
class Sessions:
    """A leader's sessions by id, the one that was used least recently first."""

    by_id: dict[int, Session] = field(default_factory=dict)
    made: int = 0

    def begin(self, request: FetchRequest, *, now_ns: int, most: int, life: int, blind: bool) -> FetchRequest:
        """
        Return a fetch that names everything with the session that it begins, if it begins one.

        Args:
            most: so many sessions may there be.
            life: differs between the lives of this broker, so that no id is one of an earlier life; 0: not known.
        """
        follower = request.replica_id >= 0
        before = self.by_id.get(request.session_id)
        if before is not None and before.follower is follower:
            del self.by_id[request.session_id]
        if request.session_epoch != FIRST_SESSION_EPOCH or not request.partitions or not life:
            return replace(request, session_id=NO_FETCH_SESSION)
        if len(self.by_id) >= most and not self._make_room(now_ns, follower=follower):
            return replace(request, session_id=NO_FETCH_SESSION)
        session = Session(follower=follower, used_ns=now_ns)
        session.take(request.partitions, (), blind=blind)
        self.made += 1
        number = 1 + (life * _SPREAD + self.made) % _INT_MAX
        self.by_id[number] = session
        return replace(request, session_id=number)

    def _make_room(self, now_ns: int, *, follower: bool) -> bool:
        """End one session, the least recently used: not used for long, or a consumer's for a follower's."""
        oldest = next(iter(self.by_id), NO_FETCH_SESSION)
        if oldest and now_ns - self.by_id[oldest].used_ns <= _UNUSED_NS:
            consumers = (number for number, session in self.by_id.items() if not session.follower)
            oldest = next(consumers, NO_FETCH_SESSION) if follower else NO_FETCH_SESSION
        return self.by_id.pop(oldest, None) is not None

    def go_on(self, request: FetchRequest, *, now_ns: int, most: int, blind: bool) -> FetchRequest | ErrorCode:
        """
        Return a fetch with all partitions of its session; an error if that is over, or not in step.

        Args:
            most: so many partitions may a session have.
        """
        session = self.by_id.get(request.session_id)
        if session is None or session.follower is not (request.replica_id >= 0):
            return ErrorCode.FETCH_SESSION_ID_NOT_FOUND  # a consumer has no business in a follower's
        if session.epoch != request.session_epoch:
            self.by_id[request.session_id] = self.by_id.pop(request.session_id)
            return ErrorCode.INVALID_FETCH_SESSION_EPOCH
        del self.by_id[request.session_id]
        session.take(request.partitions, request.forgotten, blind=blind)
        if len(session.parts) > most:
            return ErrorCode.FETCH_SESSION_ID_NOT_FOUND
        session.epoch, session.used_ns = epoch_after(session.epoch), now_ns
        if session.parts:
            self.by_id[request.session_id] = session
        return replace(request, partitions=tuple(kept.part for kept in session.parts.values()))

    def at(self, request: FetchRequest) -> Session | None:
        """Return the session that a fetch goes on with, None if it is over or a later fetch goes on with it."""
        session = self.by_id.get(request.session_id)
        return session if session is not None and session.epoch == epoch_after(request.session_epoch) else None

    def answer(self, request: FetchRequest, results: tuple[FetchResult, ...]) -> FetchResponse:
        """Return the answer to a fetch with all its partitions: within its session, what has news."""
        session = self.by_id.get(request.session_id)
        if session is None:  # it is over, or there never was one
            return FetchResponse(results=results)
        news = tuple(result for result in results if session.tell(result))
        told = results if is_full(request) else news
        return FetchResponse(results=told, session_id=request.session_id)


# --- the follower's side -----------------------------------------------------------------------------
@dataclass(slots=True, kw_only=True)
class Asking:
    """
    A session with one leader.

    Attributes:
        tag: of its last fetch.
        awaited: whether that has no answer yet.
        number: its id, NO_FETCH_SESSION until the leader has answered.
        epoch: of the next fetch.
        parts: what was asked of each partition.
        told: what the leader answered last, without records.
    """

    parts: dict[TopicPartition, FetchPartition]
    tag: int = 0
    awaited: bool = True
    number: int = NO_FETCH_SESSION
    epoch: int = FIRST_SESSION_EPOCH
    told: dict[TopicPartition, FetchResult] = field(default_factory=dict)

    def shorten(self, request: FetchRequest) -> FetchRequest:
        """Return a fetch that names of its partitions those that are new or changed, and those that have left."""
        asked = {part.tp: part for part in request.partitions}
        forgotten = tuple(tp for tp in self.parts if tp not in asked)
        for tp in forgotten:
            self.told.pop(tp, None)
        known = self.parts
        changed = tuple(part for tp, part in asked.items() if (kept := known.get(tp)) is not part and kept != part)
        self.parts, self.awaited = asked, True
        return replace(
            request, session_id=self.number, session_epoch=self.epoch, partitions=changed, forgotten=forgotten
        )

    def heed(self, response: FetchResponse) -> Mapping[TopicPartition, FetchResult]:
        """Go on with the session, and return what the leader told last of each partition, but for errors."""
        if response.error is not ErrorCode.NONE:
            return {}
        self.awaited = False
        self.number, self.epoch = response.session_id, epoch_after(self.epoch)
        for result in response.results:
            if result.error is ErrorCode.NONE:
                self.told[result.tp] = replace(result, batches=()) if result.batches else result
            else:
                self.told.pop(result.tp, None)
        return self.told
