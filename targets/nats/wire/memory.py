"""
What the connections of one run have said: whom an inbox is for, a group's stream, the sequences at its indexes.

An inbox is a subject with a random name: no frame that is sent to it says what it answers, but the one that named
it as its reply does. All of it is bounded; what was said longest ago is forgotten first.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, auto
from typing import Final, Generic, TypeVar

from harness.target.wire import Word
from targets.nats.wire.raft import AppendEntry

K = TypeVar("K")
V = TypeVar("V")

INBOXES_MAX: Final = 10_000
GROUPS_MAX: Final = 10_000
# Of all groups together.
INDEXES_MAX: Final = 50_000
# Offsets that one connection has said last.
SAID_MAX: Final = 10_000

META_GROUP: Final = "_meta_"
STREAM_PREFIX: Final = "S-"


class Recent(Generic[K, V]):
    """What was put or asked for last, up to a limit."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._values: dict[K, V] = {}

    def __len__(self) -> int:
        return len(self._values)

    def get(self, key: K) -> V | None:
        """Return what was put, which is the newest from now on; None if nothing was, or it is forgotten."""
        value = self._values.pop(key, None)
        if value is not None:
            self._values[key] = value
        return value

    def put(self, key: K, value: V) -> None:
        """Remember a value; forget the oldest beyond the limit."""
        self._values.pop(key, None)
        if len(self._values) >= self._limit:
            del self._values[next(iter(self._values))]
        self._values[key] = value

    def forget(self, key: K) -> None:
        """Forget a value."""
        self._values.pop(key, None)

    def is_news(self, key: K, value: V) -> bool:
        """Remember a value; return True if it is not the one of before."""
        if self.get(key) == value:
            return False
        self.put(key, value)
        return True


class Role(Enum):
    """What an inbox receives."""

    APPEND_ANSWERS = auto()
    VOTE_ANSWERS = auto()
    APPEND_ENTRIES = auto()
    STREAM_MESSAGES = auto()


@dataclass(frozen=True, slots=True)
class Inbox:
    """Whom an inbox is for."""

    role: Role
    group: str


class Memory:
    """What one run's connections share."""

    def __init__(self) -> None:
        self.inboxes: Recent[str, Inbox] = Recent(INBOXES_MAX)
        self.streams: Recent[str, str] = Recent(GROUPS_MAX)
        # (group, index) -> the sequence behind the last one that the stream has, once it has applied the index.
        self.following: Recent[tuple[str, int], int] = Recent(INDEXES_MAX)

    def name(self, inbox: str, role: Role, group: str) -> None:
        """Hear that a frame about a group names an inbox as its reply; "" is none."""
        if inbox:
            self.inboxes.put(inbox, Inbox(role, group))

    def role(self, inbox: str) -> tuple[Role | None, str]:
        """Return what an inbox receives, and its group; None and "" if no frame has named it."""
        found = self.inboxes.get(inbox)
        return (None, "") if found is None else (found.role, found.group)

    def hear(self, group: str, entry: AppendEntry) -> int | None:
        """
        Hear an append entry of a stream's group.

        Returns:
            The sequence of its first message; without one, that behind the last message before it. None: unknown.
        """
        if entry.first is not None and self.streams.get(group) is None:
            self.streams.put(group, entry.first.subject)
        before = self.following.get((group, entry.previous))
        if entry.stored:
            place = group, entry.previous + 1
            following = before if entry.last is None else entry.last.sequence + 1
            if following is None or not entry.understood:
                # Another term's entry may have been there: better nothing than its sequence.
                self.following.forget(place)
            else:
                self.following.put(place, following)
        return before if entry.first is None else entry.first.sequence


def append_word(group: str) -> str:
    """Return what an append entry of this group and its answer are called; "": the group is unknown."""
    if group.startswith(STREAM_PREFIX):
        return Word.FETCH.value
    return "MetaAppendEntry" if group == META_GROUP else "OtherAppendEntry"


def vote_word(group: str) -> str:
    """Return what a request for votes of this group and its answer are called."""
    if group.startswith(STREAM_PREFIX):
        return "Vote"
    return "MetaVote" if group == META_GROUP else "OtherVote"
