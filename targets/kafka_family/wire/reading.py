"""
Identify the frames of one connection: source node, api, offsets, and the request that each answer belongs to.

Nothing here does IO. A reading receives frame heads, requests and answers each in their order. It never
raises: a frame that it cannot read gets api "?", which only a rule for "*" matches.

Source:  client ids of Kafka's fetchers (0.11 on: `broker-<id>-fetcher-<n>`) and controllers (`<id>`); before
         0.11 a fetcher's client id does not name its broker, but the replica id in its Fetch requests does.
"""

from __future__ import annotations

import re
import struct
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final, Protocol, TypeAlias

from harness.fabric.core.rules import CLIENTS, UNKNOWN, ZOOKEEPER_API, Direction, Link, Seen
from harness.fabric.limits import PENDING_REQUESTS_MAX
from targets.kafka_family.wire.bodies import FetchBody, epoch_answers, epoch_questions, fetch_body
from targets.kafka_family.wire.commands import (
    Command,
    Commands,
    LeaderAndIsrAnswer,
    leader_and_isr,
    leader_and_isr_answer,
)
from targets.kafka_family.wire.frames import (
    FETCH,
    LEADER_AND_ISR,
    LENGTH,
    OFFSET_FOR_LEADER_EPOCH,
    RequestHeader,
    Unreadable,
    answer_correlation,
    api_name,
    is_whole,
    request_header,
)
from targets.kafka_family.wire.witness import Answers, Commanded, CommandResult, Fetched, Note, Questions, Witness

# The head of ZooKeeper's requests, and the type of a multi.
_ZOOKEEPER_HEAD: Final = struct.Struct(">ii")
_MULTI: Final = 14

BROKER_CLIENT: Final = re.compile(r"broker-(\d+)(?:-.*)?|(\d+)", re.DOTALL)

Read: TypeAlias = tuple[Seen, Note | None]
# (topic, partition) and the offset that a Fetch is about.
Places: TypeAlias = tuple[tuple[tuple[str, int], int], ...]


class Reading(Protocol):
    """Identifies the frames of one connection."""

    link: Link

    def request(self, frame: bytes) -> Read:
        """Identify a request; the frame begins with its length."""

    def answer(self, frame: bytes) -> Read:
        """Identify an answer; the frame begins with its length."""

    def sent_again(self, correlation: int) -> None:
        """Expect a second answer to a request."""


class ZooKeeperReading:
    """
    The frames of a broker's ZooKeeper link, which differ by direction, and by being multis or not.

    Source:  zookeeper.jute: a request begins with xid and type, its answer with xid; the first of each direction,
             which begin a session, have neither.
    """

    def __init__(self, link: Link) -> None:
        self.link = link
        self._request = Seen(link=link, api=ZOOKEEPER_API, direction=Direction.REQUEST)
        self._answer = Seen(link=link, api=ZOOKEEPER_API, direction=Direction.ANSWER)
        self._begun = {Direction.REQUEST: False, Direction.ANSWER: False}
        self._multis: deque[int] = deque(maxlen=PENDING_REQUESTS_MAX)

    def sent_again(self, correlation: int) -> None:
        """Raise AssertionError: a ZooKeeper server would accept the copy of a packet as a new packet."""
        raise AssertionError(f"ZooKeeper packet {correlation} was sent again; expected no packet to have a number")

    def request(self, frame: bytes) -> Read:
        """Return a packet to ZooKeeper."""
        if self._is_first(Direction.REQUEST) or len(frame) < LENGTH.size + _ZOOKEEPER_HEAD.size:
            return self._request, None
        xid, kind = _ZOOKEEPER_HEAD.unpack_from(frame, LENGTH.size)
        if kind != _MULTI:
            return self._request, None
        self._multis.append(xid)
        return replace(self._request, multi=True), None

    def answer(self, frame: bytes) -> Read:
        """Return a packet from ZooKeeper."""
        if self._is_first(Direction.ANSWER) or len(frame) < 2 * LENGTH.size:
            return self._answer, None
        (xid,) = LENGTH.unpack_from(frame, LENGTH.size)
        if xid not in self._multis:
            return self._answer, None
        self._multis.remove(xid)
        return replace(self._answer, multi=True), None

    def _is_first(self, direction: Direction) -> bool:
        first, self._begun[direction] = not self._begun[direction], True
        return first


class ClientReading:
    """The frames between clients and a broker, which no rule tells apart but by their direction."""

    def __init__(self, node: str) -> None:
        self.link = (CLIENTS, node)
        self._request = Seen(link=self.link, api=UNKNOWN, direction=Direction.REQUEST)
        self._answer = Seen(link=self.link, api=UNKNOWN, direction=Direction.ANSWER)

    def sent_again(self, correlation: int) -> None:
        """Raise AssertionError: a copy of a client's request would be another request."""
        raise AssertionError(f"request {correlation} was sent again; expected no client's request to be doubled")

    def request(self, frame: bytes) -> Read:  # noqa: ARG002
        """Return a request, without reading it."""
        return self._request, None

    def answer(self, frame: bytes) -> Read:  # noqa: ARG002
        """Return an answer, without reading it."""
        return self._answer, None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Pending:
    """A request that has no answer yet."""

    correlation: int
    api_key: int
    version: int
    places: Places
    commands: tuple[Command, ...] = ()


class KafkaReading:
    """
    One connection to a broker's inter-broker listener.

    A Fetch inside a fetch session is about every partition of the session, also those that it does not name.

    Args:
        names: Node names by broker id.
        topics: Topic names by topic id (as hex), shared by all connections. LeaderAndIsr requests fill it: they
            come before any Fetch of a topic. None: LeaderAndIsr does not have Apache Kafka's layout, and neither
            commands nor answered fetches are recorded.

    Attributes:
        link: Its source is "?" until a request names it, and stays the same afterwards.
    """

    def __init__(
        self, dst: str, names: Mapping[int, str], witness: Witness, topics: dict[str, str] | None = None
    ) -> None:
        self.link: Link = (UNKNOWN, dst)
        self._names = names
        self._witness = witness
        # Answers come in the order of their requests. A produce with acks 0 has no answer and is skipped.
        self._pending: deque[_Pending] = deque(maxlen=PENDING_REQUESTS_MAX)
        self._session: dict[tuple[str, int], int] = {}
        self._topics = topics
        self._answered: dict[tuple[str, int], int] = {}

    def request(self, frame: bytes) -> Read:
        """Identify a request, and keep it until its answer comes."""
        try:
            header, size = request_header(frame, LENGTH.size)
        except Unreadable as error:
            return self._unreadable(UNKNOWN, -1, Direction.REQUEST, str(error)), None
        self._name_source(client_source(header.client_id, self._names))
        note = self._request_note(header, frame, LENGTH.size + size)
        places: Places = ()
        if isinstance(note, FetchBody):
            self._name_source(None if note.replica_id is None else self._names.get(note.replica_id))
            note = self._with_names(note)
            places = self._session_places(note)
        self._pending.append(
            _Pending(
                correlation=header.correlation,
                api_key=header.api_key,
                version=header.version,
                places=places,
                commands=self._commands(header, frame, LENGTH.size + size),
            )
        )
        seen = Seen(
            link=self.link,
            api=header.api,
            direction=Direction.REQUEST,
            version=header.version,
            offsets=_by_topic(places),
            correlation=header.correlation if is_whole(frame) else -1,
        )
        return seen, note

    def sent_again(self, correlation: int) -> None:
        """Expect a second answer to a request."""
        for place, request in enumerate(self._pending):
            if request.correlation == correlation and len(self._pending) < PENDING_REQUESTS_MAX:
                self._pending.insert(place + 1, request)
                return

    def answer(self, frame: bytes) -> Read:
        """Identify an answer by the request that it belongs to."""
        correlation = -1
        try:
            correlation, size = answer_correlation(frame, LENGTH.size)
            request = self._take_pending(correlation)
        except Unreadable as error:
            seen = self._unreadable(UNKNOWN, -1, Direction.ANSWER, str(error))
            return replace(seen, correlation=correlation), None
        try:
            note = self._answer_note(request, frame, LENGTH.size + size)
        except Unreadable as error:
            note = None
            self._unreadable(api_name(request.api_key), request.version, Direction.ANSWER, str(error))
        seen = Seen(
            link=self.link,
            api=api_name(request.api_key),
            direction=Direction.ANSWER,
            version=request.version,
            offsets=_by_topic(request.places),
            correlation=correlation,
        )
        return seen, note

    def _request_note(self, header: RequestHeader, frame: bytes, offset: int) -> Note | None:
        """Read the body of a Fetch or an OffsetForLeaderEpoch; return None for every other api."""
        if header.api_key not in (FETCH, OFFSET_FOR_LEADER_EPOCH):
            return None
        try:
            _check_whole(frame)
            if header.api_key == FETCH:
                return fetch_body(frame, offset, header.version)[0]
            questions, _ = epoch_questions(frame, offset, header.version)
        except Unreadable as error:
            self._unreadable(header.api, header.version, Direction.REQUEST, str(error))
            return None
        return Questions(version=header.version, questions=questions)

    def _answer_note(self, request: _Pending, frame: bytes, offset: int) -> Note | None:
        """Read the body of an answer, if its api is one that the fabric reads; raise Unreadable."""
        if request.api_key == OFFSET_FOR_LEADER_EPOCH:
            _check_whole(frame)
            answers, _ = epoch_answers(frame, offset, request.version)
            return Answers(answers=answers)
        if request.commands:
            _check_whole(frame)
            return self._commanded(request.commands, leader_and_isr_answer(frame, offset, request.version)[0])
        return self._fetched(request) if request.api_key == FETCH else None

    def _commands(self, header: RequestHeader, frame: bytes, offset: int) -> tuple[Command, ...]:
        """Read a LeaderAndIsr's commands, and add its topic names to `topics`."""
        if self._topics is None or header.api_key != LEADER_AND_ISR:
            return ()
        try:
            _check_whole(frame)
            found: Commands = leader_and_isr(frame, offset, header.version)[0]
        except Unreadable as error:
            self._unreadable(header.api, header.version, Direction.REQUEST, str(error))
            return ()
        self._topics.update(found.topics)
        return found.commands

    def _commanded(self, commands: tuple[Command, ...], answer: LeaderAndIsrAnswer) -> Commanded:
        """Join the commands of a LeaderAndIsr with the errors in its answer."""
        named = self._named
        errors = {(named(topic), partition): error for (topic, partition), error in answer.errors.items()}
        return Commanded(
            partitions=tuple(
                CommandResult(
                    topic=each.topic,
                    partition=each.partition,
                    leader=self._names.get(each.leader),
                    epoch=each.leader_epoch,
                    isr=tuple(self._names.get(member, str(member)) for member in each.isr),
                    error=answer.error or errors.get((each.topic, each.partition), 0),
                )
                for each in commands
            )
        )

    def _fetched(self, request: _Pending) -> Fetched | None:
        """Return a follower's answered fetch offsets that have changed; None if none have, or for a consumer."""
        if self._topics is None or self.link[0] == UNKNOWN:
            return None
        fresh = {place: offset for place, offset in request.places if self._answered.get(place) != offset}
        self._answered.update(fresh)
        return Fetched(offsets=tuple(fresh.items())) if fresh else None

    def _named(self, topic: str) -> str:
        """Return the name of a topic id, if it is known; else return the argument."""
        return topic if self._topics is None else self._topics.get(topic, topic)

    def _with_names(self, body: FetchBody) -> FetchBody:
        named = self._named
        return replace(
            body,
            offsets=tuple(((named(topic), partition), offset) for (topic, partition), offset in body.offsets),
            forgotten=tuple((named(topic), partition) for topic, partition in body.forgotten),
        )

    def _name_source(self, name: str | None) -> None:
        if self.link[0] == UNKNOWN and name is not None:
            self.link = (name, self.link[1])

    def _session_places(self, body: FetchBody) -> Places:
        """Return the offsets that a Fetch is about: inside a session it names only those that have changed."""
        if body.full:
            self._session.clear()
        self._session.update(body.offsets)
        for partition in body.forgotten:
            self._session.pop(partition, None)
        return tuple(self._session.items())

    def _take_pending(self, correlation: int) -> _Pending:
        for place, request in enumerate(self._pending):
            if request.correlation == correlation:
                for _ in range(place + 1):
                    self._pending.popleft()
                return request
        raise Unreadable(f"answer with correlation id {correlation}; expected that of a request before it")

    def _unreadable(self, api: str, version: int, direction: Direction, error: str) -> Seen:
        self._witness.unreadable(self.link, api, version, direction, error)
        return Seen(link=self.link, api=api, direction=direction, version=version)


def client_source(client_id: str, names: Mapping[int, str]) -> str | None:
    """Return the node whose broker id is in the client id; None if there is no id, or it is unknown."""
    found = BROKER_CLIENT.fullmatch(client_id)
    return names.get(int(found[1] or found[2])) if found else None


def _by_topic(places: Places) -> tuple[tuple[str, int], ...]:
    return tuple((topic, offset) for (topic, _), offset in places)


def _check_whole(frame: bytes) -> None:
    if not is_whole(frame):
        raise Unreadable(f"a frame of {LENGTH.unpack_from(frame)[0]} bytes; expected one that is not streamed")
