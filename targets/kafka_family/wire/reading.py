"""
Identify the frames between two brokers: source node, word, offsets, and the request that each answer belongs to.

Nothing here does IO. A reading receives frame heads, requests and answers each in their order. It never
raises: a frame that it cannot read gets the word "?", which only a rule for "*" matches.

Source:  client ids of Kafka's fetchers (0.11 on: `broker-<id>-fetcher-<n>`) and controllers (`<id>`); before
         0.11 a fetcher's client id does not name its broker, but the replica id in its Fetch requests does.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final

from harness.events import Event
from harness.target.length_prefix import LENGTH, PENDING_REQUESTS_MAX, LengthPrefixed, is_whole
from harness.target.wire import UNKNOWN, Direction, Link, Message, Seen
from targets.kafka_family.wire import noted
from targets.kafka_family.wire.bodies import FetchBody, epoch_answers, epoch_questions, fetch_body
from targets.kafka_family.wire.commands import Command, leader_and_isr, leader_and_isr_answer
from targets.kafka_family.wire.frames import (
    FETCH,
    LEADER_AND_ISR,
    OFFSET_FOR_LEADER_EPOCH,
    RequestHeader,
    Unreadable,
    answer_correlation,
    api_word,
    request_header,
)
from targets.kafka_family.wire.noted import Places

BROKER_CLIENT: Final = re.compile(r"broker-(\d+)(?:-.*)?|(\d+)", re.DOTALL)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Pending:
    """A request that has no answer yet."""

    correlation: int
    api_key: int
    version: int
    places: Places
    commands: tuple[Command, ...] = ()


class KafkaReading(LengthPrefixed):
    """
    One connection to a broker's inter-broker listener.

    A Fetch inside a fetch session is about every partition of the session, also those that it does not name.

    Args:
        link: Its source is UNKNOWN until a request names it, and stays the same afterwards.
        names: Node names by broker id.
        topics: Topic names by topic id (as hex), shared by all connections. LeaderAndIsr requests fill it: they
            come before any Fetch of a topic. None: LeaderAndIsr does not have Apache Kafka's layout, and neither
            commands nor answered fetches are recorded.
    """

    def __init__(self, link: Link, names: Mapping[int, str], topics: dict[str, str] | None = None) -> None:
        self._link = link
        self._names = names
        # Answers come in the order of their requests. A produce with acks 0 has no answer and is skipped.
        self._pending: deque[_Pending] = deque(maxlen=PENDING_REQUESTS_MAX)
        self._session: dict[tuple[str, int], int] = {}
        self._topics = topics
        self._asked_from: dict[tuple[str, int], int] = {}
        self._answered: dict[tuple[str, int], int] = {}

    def sent_again(self, correlation: int) -> None:
        """Expect a second answer to a request."""
        for place, request in enumerate(self._pending):
            if request.correlation == correlation and len(self._pending) < PENDING_REQUESTS_MAX:
                self._pending.insert(place + 1, request)
                return

    # --- requests --------------------------------------------------------------------------------------------
    def _request(self, frame: bytes) -> Message:
        try:
            header, size = request_header(frame, LENGTH.size)
        except Unreadable as error:
            return Message(seen=self._seen(UNKNOWN, Direction.REQUEST), error=str(error))
        self._name_source(client_source(header.client_id, self._names))
        places: Places = ()
        commands: tuple[Command, ...] = ()
        events: tuple[Event, ...] = ()
        unreadable = ""
        try:
            if header.api_key == FETCH:
                body = self._fetch(header, frame, LENGTH.size + size)
                places = self._session_places(body)
                events = noted.fetch(self._link, body, self._asked_from)
            elif header.api_key == LEADER_AND_ISR:
                commands = self._commands(header, frame, LENGTH.size + size)
            elif header.api_key == OFFSET_FOR_LEADER_EPOCH:
                _check_whole(frame)
                questions, _ = epoch_questions(frame, LENGTH.size + size, header.version)
                events = noted.asked(self._link, header.version, questions)
        except Unreadable as error:
            unreadable = str(error)
        self._pending.append(
            _Pending(
                correlation=header.correlation,
                api_key=header.api_key,
                version=header.version,
                places=places,
                commands=commands,
            )
        )
        correlation = header.correlation if is_whole(frame) else -1
        seen = self._seen(header.api, Direction.REQUEST, header.version, places, correlation)
        return Message(seen=seen, events=events, error=unreadable)

    def _fetch(self, header: RequestHeader, frame: bytes, offset: int) -> FetchBody:
        """Read a Fetch, with names of topics; its replica names the source too."""
        _check_whole(frame)
        body, _ = fetch_body(frame, offset, header.version)
        self._name_source(None if body.replica_id is None else self._names.get(body.replica_id))
        named = self._named
        return replace(
            body,
            offsets=tuple(((named(topic), partition), at) for (topic, partition), at in body.offsets),
            forgotten=tuple((named(topic), partition) for topic, partition in body.forgotten),
        )

    def _commands(self, header: RequestHeader, frame: bytes, offset: int) -> tuple[Command, ...]:
        """Read a LeaderAndIsr's commands, and add its topic names to `topics`."""
        if self._topics is None:
            return ()
        _check_whole(frame)
        found, _ = leader_and_isr(frame, offset, header.version)
        self._topics.update(found.topics)
        return found.commands

    def _session_places(self, body: FetchBody) -> Places:
        """Return the offsets that a Fetch is about: inside a session it names only those that have changed."""
        if body.full:
            self._session.clear()
        self._session.update(body.offsets)
        for partition in body.forgotten:
            self._session.pop(partition, None)
        return tuple(self._session.items())

    # --- answers ---------------------------------------------------------------------------------------------
    def _answer(self, frame: bytes) -> Message:
        correlation = -1
        try:
            correlation, size = answer_correlation(frame, LENGTH.size)
            request = self._take_pending(correlation)
        except Unreadable as error:
            seen = self._seen(UNKNOWN, Direction.ANSWER, correlation=correlation)
            return Message(seen=seen, error=str(error))
        events: tuple[Event, ...] = ()
        unreadable = ""
        try:
            events = self._told(request, frame, LENGTH.size + size)
        except Unreadable as error:
            unreadable = str(error)
        word = api_word(request.api_key)
        seen = self._seen(word, Direction.ANSWER, request.version, request.places, correlation)
        return Message(seen=seen, events=events, error=unreadable)

    def _told(self, request: _Pending, frame: bytes, offset: int) -> tuple[Event, ...]:
        """Read the body of an answer, if its api is one that the history has; raise Unreadable."""
        if request.api_key == OFFSET_FOR_LEADER_EPOCH:
            _check_whole(frame)
            return noted.told(self._link, epoch_answers(frame, offset, request.version)[0])
        if self._topics is None:
            return ()
        if request.commands:
            _check_whole(frame)
            answer, _ = leader_and_isr_answer(frame, offset, request.version)
            return noted.learned(self._link, request.commands, answer, names=self._names, topics=self._topics)
        return noted.fetched(self._link, request.places, self._answered) if request.api_key == FETCH else ()

    def _take_pending(self, correlation: int) -> _Pending:
        for place, request in enumerate(self._pending):
            if request.correlation == correlation:
                for _ in range(place + 1):
                    self._pending.popleft()
                return request
        raise Unreadable(f"answer with correlation id {correlation}; expected that of a request before it")

    # --- helpers ---------------------------------------------------------------------------------------------
    def _named(self, topic: str) -> str:
        """Return the name of a topic id, if it is known; else return the argument."""
        return topic if self._topics is None else self._topics.get(topic, topic)

    def _name_source(self, name: str | None) -> None:
        if self._link[0] == UNKNOWN and name is not None:
            self._link = (name, self._link[1])

    def _seen(
        self, api: str, direction: Direction, version: int = -1, places: Places = (), correlation: int = -1
    ) -> Seen:
        return Seen(
            link=self._link,
            api=api,
            direction=direction,
            version=version,
            offsets=tuple((topic, offset) for (topic, _), offset in places),
            correlation=correlation,
        )


def client_source(client_id: str, names: Mapping[int, str]) -> str | None:
    """Return the node whose broker id is in the client id; None if there is no id, or it is unknown."""
    found = BROKER_CLIENT.fullmatch(client_id)
    return names.get(int(found[1] or found[2])) if found else None


def _check_whole(frame: bytes) -> None:
    if not is_whole(frame):
        raise Unreadable(f"a frame of {LENGTH.unpack_from(frame)[0]} bytes; expected one that is not streamed")
