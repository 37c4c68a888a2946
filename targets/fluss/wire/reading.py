"""
One connection between servers of Fluss: what a frame asks, of which tables, and what an answer says of it.

Who sent it is known by the address that was called; no frame says so but a FetchLog.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

from harness.events import Event, Fetch, Fetched, Learned
from harness.target.length_prefix import LENGTH, PENDING_REQUESTS_MAX, LengthPrefixed, changed, is_whole
from harness.target.wire import UNKNOWN, Direction, Link, Message, Seen
from targets.fluss.tables import topic_of
from targets.fluss.wire.frames import (
    Api,
    Type,
    Unreadable,
    answer_body,
    answer_head,
    api_word,
    request_body,
    request_head,
)
from targets.fluss.wire.protobuf import Fields, Malformed, data_of, fields, messages, number, numbers

# (topic, bucket) -> an offset.
Places = Mapping[tuple[str, int], int]
_NOWHERE: Final[Places] = {}


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """What the coordinator tells a server of a bucket; server ids, leader -1 for none."""

    topic: str
    bucket: int
    leader: int
    epoch: int
    isr: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Pending:
    key: int
    version: int
    places: Places = field(default_factory=dict)
    commands: tuple[Command, ...] = ()


class FlussReading(LengthPrefixed):
    """
    The frames of one connection; answers may come in another order than their requests.

    Args:
        names: server id -> node.
    """

    def __init__(self, link: Link, names: Mapping[int, str]) -> None:
        self._link = link
        self._names = names
        self._pending: dict[int, _Pending] = {}
        self._asked_from: dict[tuple[str, int], int] = {}
        self._answered: dict[tuple[str, int], int] = {}

    def sent_again(self, correlation: int) -> None:
        """Do nothing: a request is forgotten when another takes its id, so that both answers find it."""

    def _request(self, frame: bytes) -> Message:
        try:
            key, version, request = request_head(frame)
        except Unreadable as error:
            return Message(seen=self._seen(UNKNOWN, Direction.REQUEST), error=str(error))
        places, commands, unreadable = _NOWHERE, tuple[Command, ...](), ""
        try:
            if key == Api.FetchLog:
                places = dict(_fetched_places(_whole(frame)))
            elif key == Api.NotifyLeaderAndIsr:
                commands = tuple(_commands(_whole(frame)))
        except (Malformed, Unreadable) as error:
            unreadable = f"{api_word(key)}: {error}"
        self._remember(request, _Pending(key=key, version=version, places=places, commands=commands))
        events = tuple(
            Fetch(link=self._link, topic=topic, partition=bucket, offset=offset)
            for (topic, bucket), offset in changed(places.items(), self._asked_from).items()
        )
        seen = self._seen(api_word(key), Direction.REQUEST, version, places, request if is_whole(frame) else -1)
        return Message(seen=seen, events=events, error=unreadable)

    def _answer(self, frame: bytes) -> Message:
        try:
            kind, request = answer_head(frame)
        except Unreadable as error:
            return Message(seen=self._seen(UNKNOWN, Direction.ANSWER), error=str(error))
        asked = self._pending.get(request)
        if asked is None:
            text = f"answer to request {request}; expected that of a request before it"
            return Message(seen=self._seen(UNKNOWN, Direction.ANSWER, correlation=request), error=text)
        events, unreadable = tuple[Event, ...](), ""
        try:
            if kind == Type.SUCCESS and asked.commands:
                events = tuple(self._learned(asked.commands, answer_body(_whole_frame(frame))))
            elif kind == Type.SUCCESS and asked.key == Api.FetchLog:
                events = tuple(
                    Fetched(link=self._link, topic=topic, partition=bucket, offset=offset)
                    for (topic, bucket), offset in changed(asked.places.items(), self._answered).items()
                )
        except (Malformed, Unreadable) as error:
            unreadable = f"answer to {api_word(asked.key)}: {error}"
        seen = self._seen(api_word(asked.key), Direction.ANSWER, asked.version, asked.places, request)
        return Message(seen=seen, events=events, error=unreadable)

    def _learned(self, commands: tuple[Command, ...], body: bytes) -> Iterator[Learned]:
        """Yield each command with the error of its answer."""
        errors: dict[tuple[str, int], int] = {}
        for each in messages(fields(body), 1):
            errors[_bucket(fields(data_of(each, 1)))] = number(each, 2)
        for command in commands:
            yield Learned(
                link=self._link,
                topic=command.topic,
                partition=command.bucket,
                leader=self._names.get(command.leader),
                epoch=command.epoch,
                isr=tuple(self._names.get(member, str(member)) for member in command.isr),
                error=errors.get((command.topic, command.bucket), 0),
            )

    def _remember(self, request: int, pending: _Pending) -> None:
        self._pending.pop(request, None)
        if len(self._pending) >= PENDING_REQUESTS_MAX:
            del self._pending[next(iter(self._pending))]
        self._pending[request] = pending

    def _seen(
        self,
        api: str,
        direction: Direction,
        version: int = -1,
        places: Places = _NOWHERE,
        correlation: int = -1,
    ) -> Seen:
        return Seen(
            link=self._link,
            api=api,
            direction=direction,
            version=version,
            offsets=tuple((topic, offset) for (topic, _), offset in places.items()),
            correlation=correlation,
        )


def _fetched_places(body: bytes) -> Iterator[tuple[tuple[str, int], int]]:
    """Yield the buckets of a FetchLog with the offset that each is fetched from."""
    for table in messages(fields(body), 3):
        topic = topic_of(number(table, 1))
        for bucket in messages(table, 4):
            yield (topic, number(bucket, 2)), number(bucket, 3)


def _commands(body: bytes) -> Iterator[Command]:
    """Yield the commands of a NotifyLeaderAndIsr."""
    for each in messages(fields(body), 2):
        topic, bucket = _bucket(fields(data_of(each, 2)))
        yield Command(
            topic=topic,
            bucket=bucket,
            leader=number(each, 3),
            epoch=number(each, 4),
            isr=numbers(each, 6),
        )


def _bucket(found: Fields) -> tuple[str, int]:
    return topic_of(number(found, 1)), number(found, 3)


def _whole(frame: bytes) -> bytes:
    return request_body(_whole_frame(frame))


def _whole_frame(frame: bytes) -> bytes:
    if not is_whole(frame):
        raise Unreadable(f"a frame of {LENGTH.unpack_from(frame)[0]} bytes; expected one that is not streamed")
    return frame
