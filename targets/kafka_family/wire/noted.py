"""
What frames of Kafka say, as events: truncation questions and answers, fetch offsets, answered commands.

Brokers create internal topics (__consumer_offsets) once a client asks for a group: no run is about them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from harness import events
from harness.events import Event, OfLinkAndPartition
from harness.target.length_prefix import changed
from harness.target.wire import UNKNOWN, Link
from targets.kafka_family.wire.bodies import EpochAnswer, EpochQuestion, FetchBody
from targets.kafka_family.wire.commands import Command, LeaderAndIsrAnswer

_BROKERS_OWN: Final = "__"

# (topic, partition) and an offset.
Places = tuple[tuple[tuple[str, int], int], ...]


def fetch(link: Link, body: FetchBody, last_offsets: dict[tuple[str, int], int]) -> tuple[Event, ...]:
    """Return a follower's fetch offsets, the connection's first ones and every change; update `last_offsets`."""
    if link[0] == UNKNOWN:
        return ()
    return _of_runs(
        events.Fetch(link=link, topic=topic, partition=partition, offset=offset)
        for (topic, partition), offset in changed(body.offsets, last_offsets).items()
    )


def fetched(link: Link, places: Places, answered: dict[tuple[str, int], int]) -> tuple[Event, ...]:
    """Return the offsets of a follower's answered fetch that have changed; update `answered`."""
    if link[0] == UNKNOWN:
        return ()
    return _of_runs(
        events.Fetched(link=link, topic=topic, partition=partition, offset=offset)
        for (topic, partition), offset in changed(places, answered).items()
    )


def asked(link: Link, version: int, questions: Iterable[EpochQuestion]) -> tuple[Event, ...]:
    """Return the questions of a request for the ends of epochs."""
    return _of_runs(
        events.EpochQuestion(
            link=link,
            topic=question.topic,
            partition=question.partition,
            leader_epoch=question.leader_epoch,
            version=version,
        )
        for question in questions
    )


def told(link: Link, answers: Iterable[EpochAnswer]) -> tuple[Event, ...]:
    """Return the answers to such questions."""
    return _of_runs(
        events.EpochAnswer(
            link=link,
            topic=answer.topic,
            partition=answer.partition,
            error=answer.error,
            leader_epoch=answer.leader_epoch,
            end_offset=answer.end_offset,
        )
        for answer in answers
    )


def learned(
    link: Link,
    commands: Iterable[Command],
    answer: LeaderAndIsrAnswer,
    *,
    names: Mapping[int, str],
    topics: Mapping[str, str],
) -> tuple[Event, ...]:
    """Return the commands of a LeaderAndIsr, each with the error of its answer; leader None: no leader."""
    errors = {(topics.get(topic, topic), partition): error for (topic, partition), error in answer.errors.items()}
    return _of_runs(
        events.Learned(
            link=link,
            topic=each.topic,
            partition=each.partition,
            leader=names.get(each.leader),
            epoch=each.leader_epoch,
            isr=tuple(names.get(member, str(member)) for member in each.isr),
            error=answer.error or errors.get((each.topic, each.partition), 0),
        )
        for each in commands
    )


def _of_runs(found: Iterator[OfLinkAndPartition]) -> tuple[Event, ...]:
    """Leave out topics that brokers make for themselves."""
    return tuple(event for event in found if not event.topic.startswith(_BROKERS_OWN))
