"""
Record what the fabric sees of the brokers: truncation questions and answers, fetch offsets, answered commands.

A frame is recorded when it is forwarded, not when it arrives: a held, dropped or cut frame has reached no broker.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, TypeAlias

from harness import events
from harness.events import Event, OfLinkAndPartition
from harness.fabric.core.rules import UNKNOWN, Direction, Link
from targets.kafka_family.wire.bodies import EpochAnswer, EpochQuestion, FetchBody

Recorder: TypeAlias = Callable[[Event], None]

# Brokers create internal topics (__consumer_offsets) once a client asks for a group: no run is about them.
BROKERS_OWN: Final = "__"


@dataclass(frozen=True, slots=True, kw_only=True)
class Questions:
    """The questions of an OffsetForLeaderEpoch request, with its version."""

    version: int
    questions: tuple[EpochQuestion, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Answers:
    """The answers of an OffsetForLeaderEpoch answer."""

    answers: tuple[EpochAnswer, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandResult:
    """One partition's command with the broker's error; leader and isr are node names, leader None: no leader."""

    topic: str
    partition: int
    leader: str | None
    epoch: int
    isr: tuple[str, ...]
    error: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Commanded:
    """A LeaderAndIsr answer, with the commands of its request."""

    partitions: tuple[CommandResult, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Fetched:
    """An answered Fetch of a follower, by its request's offsets."""

    offsets: tuple[tuple[tuple[str, int], int], ...]


Note: TypeAlias = FetchBody | Questions | Answers | Commanded | Fetched


class Witness:
    """Records forwarded frames in the history; only the fabric's thread may call it."""

    def __init__(self, record: Recorder) -> None:
        self._all = record
        self._unreadable: set[tuple[Link, str, int, Direction]] = set()

    def _record(self, event: OfLinkAndPartition) -> None:
        """Record the event, unless it is about a topic of the brokers' own."""
        if not event.topic.startswith(BROKERS_OWN):
            self._all(event)

    def passed(self, link: Link, note: Note, last_offsets: dict[tuple[str, int], int]) -> None:
        """Record a frame that is forwarded; update the connection's `last_offsets`."""
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
                    commanded = events.Learned(
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
        """Record, once for every kind of frame, that the fabric could not read it; the frame passes anyway."""
        kind = (link, api, version, direction)
        if kind in self._unreadable:
            return
        self._unreadable.add(kind)
        self._all(
            events.FrameUnreadable(link=link, api=api, version=version, direction=direction.value, error=error)
        )

    def _fetch(self, link: Link, body: FetchBody, last_offsets: dict[tuple[str, int], int]) -> None:
        """Record a follower's fetch offset: the connection's first one, and every change."""
        if link[0] == UNKNOWN:
            return
        for (topic, partition), offset in body.offsets:
            if last_offsets.get((topic, partition)) == offset:
                continue
            last_offsets[topic, partition] = offset
            self._record(events.Fetch(link=link, topic=topic, partition=partition, offset=offset))
