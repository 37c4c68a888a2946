"""
What the fabric saw from outside: truncation questions and answers, followers' fetch offsets, obeyed commands.

A frame is noted when it is handed on, not when it comes: one that is held, dropped or cut was never heard.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, TypeAlias

from harness import events
from harness.events import Event, OfLinkAndPartition
from harness.fabric.bodies import EpochAnswer, EpochQuestion, FetchBody
from harness.fabric.core.rules import UNKNOWN, Direction, Link

Recorder: TypeAlias = Callable[[Event], None]

# Brokers make topics of their own (__consumer_offsets) once a client asks for a group: no run is about them.
BROKERS_OWN: Final = "__"


@dataclass(frozen=True, slots=True, kw_only=True)
class Questions:
    """An OffsetForLeaderEpoch request as read, with its version."""

    version: int
    questions: tuple[EpochQuestion, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Answers:
    """An OffsetForLeaderEpoch answer as read."""

    answers: tuple[EpochAnswer, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Obedience:
    """What a broker answered to one partition's command; leader and isr are names, leader None: nobody."""

    topic: str
    partition: int
    leader: str | None
    epoch: int
    isr: tuple[str, ...]
    error: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Commanded:
    """A LeaderAndIsr answer, with what had been commanded."""

    partitions: tuple[Obedience, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Fetched:
    """The answer to a follower's Fetch from these offsets."""

    offsets: tuple[tuple[tuple[str, int], int], ...]


Note: TypeAlias = FetchBody | Questions | Answers | Commanded | Fetched


class Witness:
    """Write what was handed on into the history; belongs to the fabric's thread."""

    def __init__(self, record: Recorder) -> None:
        self._all = record
        self._unreadable: set[tuple[Link, str, int, Direction]] = set()

    def _record(self, event: OfLinkAndPartition) -> None:
        """Record what is about a workload's topic."""
        if not event.topic.startswith(BROKERS_OWN):
            self._all(event)

    def passed(self, link: Link, note: Note, last_offsets: dict[tuple[str, int], int]) -> None:
        """Record a frame that is handed on; last_offsets are the connection's, and are kept up here."""
        match note:
            case FetchBody():
                self._fetch(link, note, last_offsets)
            case Questions():
                for question in note.questions:
                    asked = events.EpochQuestion(
                        link=link,
                        topic=question.topic,
                        partition=question.partition,
                        leader_epoch=question.leader_epoch,
                        version=note.version,
                    )
                    self._record(asked)
            case Answers():
                for answer in note.answers:
                    answered = events.EpochAnswer(
                        link=link,
                        topic=answer.topic,
                        partition=answer.partition,
                        error=answer.error,
                        leader_epoch=answer.leader_epoch,
                        end_offset=answer.end_offset,
                    )
                    self._record(answered)
            case Commanded():
                for each in note.partitions:
                    commanded = events.Commanded(
                        link=link,
                        topic=each.topic,
                        partition=each.partition,
                        leader=each.leader,
                        epoch=each.epoch,
                        isr=each.isr,
                        error=each.error,
                    )
                    self._record(commanded)
            case Fetched():
                for (topic, partition), offset in note.offsets:
                    self._record(events.Fetched(link=link, topic=topic, partition=partition, offset=offset))

    def unreadable(self, link: Link, api: str, version: int, direction: Direction, error: str) -> None:
        """Record, once for every kind of frame, that the fabric could not read it; it passes all the same."""
        kind = (link, api, version, direction)
        if kind in self._unreadable:
            return
        self._unreadable.add(kind)
        self._all(
            events.FrameUnreadable(link=link, api=api, version=version, direction=direction.value, error=error)
        )

    def _fetch(self, link: Link, body: FetchBody, last_offsets: dict[tuple[str, int], int]) -> None:
        """Record a follower's fetch offset: a connection's first, and from then on when it changes."""
        if link[0] == UNKNOWN:
            return
        for (topic, partition), offset in body.offsets:
            if last_offsets.get((topic, partition)) == offset:
                continue
            last_offsets[topic, partition] = offset
            self._record(events.Fetch(link=link, topic=topic, partition=partition, offset=offset))
