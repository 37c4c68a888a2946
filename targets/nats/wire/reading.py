"""
One connection between two servers of NATS, over which both say all: who asks is known by what is said.

    frame                                      said of it, between F and L
    append entry of L, `$NRG.AE.`, `$NRG.CR.`  fetch, answer on (F, L), a heartbeat too: it says what is committed
    its answer of F, `$NRG.R.`, `$NRG.CP.`     fetch, request on (F, L): F says what it has, and is sent the next
    vote request of F, `$NRG.V.`               Vote, request on (F, L); the vote: Vote, answer on (F, L)
    proposal of F, `$NRG.P.`, `$NRG.RP.`       Proposal and RemovePeer, request on (F, L)
    stream's catch-up, `$JSC.`                 StreamSync: F asks, request; messages, answer; F takes one, request
    any other                                  Message, and Route without a message; request on (sender, receiver)

Append entries and votes of other groups than a stream's have names of their own: MetaAppendEntry, OtherVote.

A leader sends before it is asked. So a fetch is recorded by the answer that says what a follower has, and what the
leader sends is no event.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Final

from harness.events import Event, Fetch
from harness.target.wire import UNKNOWN, Direction, Link, Message, Seen
from targets.nats.streams import place_of
from targets.nats.wire.frames import Malformed, Routed, frame_size, routed
from targets.nats.wire.memory import SAID_MAX, STREAM_PREFIX, Memory, Recent, Role, append_word, vote_word
from targets.nats.wire.raft import (
    ANSWER_BYTES,
    SNAPSHOT_REQUEST_BYTES,
    VOTE_ANSWER_BYTES,
    answer,
    append_entry,
)

PROPOSAL: Final = "Proposal"
REMOVE_PEER: Final = "RemovePeer"
STREAM_SYNC: Final = "StreamSync"
MESSAGE: Final = "Message"
ROUTE: Final = "Route"
# The names of messages that no general word fits.
MESSAGES: Final = (
    *("MetaAppendEntry", "MetaVote", "OtherAppendEntry", "OtherVote", "Vote"),
    *(PROPOSAL, REMOVE_PEER, STREAM_SYNC, MESSAGE, ROUTE),
)

_SYNC_TAKEN: Final = "$JSC.ACK."


class Frames:
    """A connection whose bytes are frames of NATS, in both directions."""

    def size(self, buffer: bytes, offset: int, direction: Direction) -> int:
        """Return the size of the frame at the offset, as `frame_size`."""
        del direction
        return frame_size(buffer, offset)

    def sent_again(self, correlation: int) -> None:
        """Raise AssertionError: no frame of NATS has a number, so that none is doubled."""
        raise AssertionError(f"request {correlation} was sent again; expected no frame of NATS to be doubled")


class ClientReading(Frames):
    """A connection between a client and a server, whose frames no rule tells apart but by their direction."""

    def __init__(self, link: Link) -> None:
        self._messages = {
            direction: Message(seen=Seen(link=link, api=UNKNOWN, direction=direction)) for direction in Direction
        }

    def read(self, frame: bytes, direction: Direction) -> Message:
        """Return a request or an answer, without reading it."""
        del frame
        return self._messages[direction]


class RouteReading(Frames):
    """
    The frames of one connection between two servers, either of which may have dialled it.

    Args:
        link: (the one that dialled, the other).
    """

    def __init__(self, link: Link, memory: Memory) -> None:
        self._link = link
        self._memory = memory
        self._asked: Recent[tuple[Link, str], int] = Recent(SAID_MAX)

    def read(self, frame: bytes, direction: Direction) -> Message:
        """Return what a frame says, on the link of those who speak with each other by it."""
        # (sender, receiver).
        ends = self._link if direction is Direction.REQUEST else (self._link[1], self._link[0])
        try:
            said = routed(frame)
        except Malformed as error:
            return _asks(ends, UNKNOWN, error=str(error))
        if said is None:
            return _asks(ends, MESSAGE if frame[:4].upper() == b"LMSG" else ROUTE)
        head = ".".join(said.subject.split(".", 2)[:2])
        return _READ.get(head, RouteReading._message)(self, said, ends)

    # --- Raft groups -----------------------------------------------------------------------------------------
    def _append_entry(self, said: Routed, ends: Link) -> Message:
        return self._append(_rest(said.subject), said, ends)

    def _catch_up(self, said: Routed, ends: Link) -> Message:
        return self._append(self._memory.role(said.subject)[1], said, ends)

    def _append(self, group: str, said: Routed, ends: Link) -> Message:
        """Read what a leader appends."""
        api, link = append_word(group), (ends[1], ends[0])
        if group:
            self._memory.name(said.reply, Role.APPEND_ANSWERS, group)
        if not group.startswith(STREAM_PREFIX):
            return _answers(link, api)
        try:
            entry = append_entry(said.payload, whole=said.whole)
        except Malformed as error:
            return _answers(link, api, error=str(error))
        offset = self._memory.hear(group, entry)
        stream = self._memory.streams.get(group)
        if stream is None or offset is None:
            return _answers(link, api)
        # What a leader sends answers no question of its follower, so that it is no event of one.
        return _answers(link, api, ((place_of(stream)[0], offset),))

    def _to_inbox(self, said: Routed, ends: Link) -> Message:
        """Read what an inbox is sent: by what it was named for, else by its length."""
        role, group = self._memory.role(said.subject)
        if role is None and len(said.payload) in (ANSWER_BYTES, SNAPSHOT_REQUEST_BYTES):
            role = Role.APPEND_ANSWERS
        if role is None and len(said.payload) == VOTE_ANSWER_BYTES:
            role = Role.VOTE_ANSWERS
        match role:
            case Role.APPEND_ANSWERS:
                return self._answer(group, said, ends)
            case Role.APPEND_ENTRIES:
                return self._append(group, said, ends)
            case Role.VOTE_ANSWERS:
                return _answers((ends[1], ends[0]), vote_word(group))
        return _asks(ends, MESSAGE)

    def _answer(self, group: str, said: Routed, ends: Link) -> Message:
        """Read what a follower has; it names an inbox if it is to be sent what came before."""
        api = append_word(group)
        if group:
            self._memory.name(said.reply, Role.APPEND_ENTRIES, group)
        if not group.startswith(STREAM_PREFIX):
            return _asks(ends, api)
        try:
            has = answer(said.payload)
        except Malformed as error:
            return _asks(ends, api, error=str(error))
        stream, offset = self._memory.streams.get(group), self._memory.following.get((group, has.index))
        if stream is None or offset is None:
            return _asks(ends, api)
        topic, partition = place_of(stream)
        events: tuple[Event, ...] = ()
        if has.success and self._asked.is_news((ends, stream), offset):
            events = (Fetch(link=ends, topic=topic, partition=partition, offset=offset),)
        return _asks(ends, api, ((topic, offset),), events=events)

    def _vote(self, said: Routed, ends: Link) -> Message:
        group = _rest(said.subject)
        self._memory.name(said.reply, Role.VOTE_ANSWERS, group)
        return _asks(ends, vote_word(group))

    def _proposal(self, said: Routed, ends: Link) -> Message:
        del said
        return _asks(ends, PROPOSAL)

    def _remove_peer(self, said: Routed, ends: Link) -> Message:
        del said
        return _asks(ends, REMOVE_PEER)

    # --- the rest --------------------------------------------------------------------------------------------
    def _sync(self, said: Routed, ends: Link) -> Message:
        self._memory.name(said.reply, Role.STREAM_MESSAGES, "")
        return _asks(ends, STREAM_SYNC)

    def _sync_taken(self, said: Routed, ends: Link) -> Message:
        del said
        return _asks(ends, STREAM_SYNC)

    def _to_sync_inbox(self, said: Routed, ends: Link) -> Message:
        """Read what such an inbox is sent: servers have them for other questions too."""
        role, _ = self._memory.role(said.subject)
        if role is Role.STREAM_MESSAGES or said.reply.startswith(_SYNC_TAKEN):
            return _answers((ends[1], ends[0]), STREAM_SYNC)
        return _asks(ends, MESSAGE)

    def _message(self, said: Routed, ends: Link) -> Message:
        del said
        return _asks(ends, MESSAGE)


_READ: Final[Mapping[str, Callable[[RouteReading, Routed, Link], Message]]] = {
    "$NRG.AE": RouteReading._append_entry,
    "$NRG.CR": RouteReading._catch_up,
    "$NRG.R": RouteReading._to_inbox,
    "$NRG.CP": RouteReading._to_inbox,
    "$NRG.V": RouteReading._vote,
    "$NRG.P": RouteReading._proposal,
    "$NRG.RP": RouteReading._remove_peer,
    "$JSC.SYNC": RouteReading._sync,
    "$JSC.ACK": RouteReading._sync_taken,
    "$JSC.R": RouteReading._to_sync_inbox,
}


def _rest(subject: str) -> str:
    """Return the group that a subject of Raft names."""
    return subject.split(".", 2)[2] if subject.count(".") > 1 else ""


def _said(
    direction: Direction,
    link: Link,
    api: str,
    offsets: tuple[tuple[str, int], ...] = (),
    *,
    events: tuple[Event, ...] = (),
    error: str = "",
) -> Message:
    return Message(seen=Seen(link=link, api=api, direction=direction, offsets=offsets), events=events, error=error)


_asks: Final = partial(_said, Direction.REQUEST)
_answers: Final = partial(_said, Direction.ANSWER)
