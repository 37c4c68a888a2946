"""
What one connection's frames are: whose they are, which api, which offsets, which answer to which request.

Nothing here does IO. A reading is fed whole heads of frames, requests and answers each in their order, and
never fails: a frame that it cannot read is one of api "?", which only a rule for "*" is about.

Source:  client ids of Kafka's fetchers (0.11 on: `broker-<id>-fetcher-<n>`) and controllers (`<id>`); before
         0.11 a fetcher does not name itself, and the replica id in its Fetch requests does.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final, Protocol, TypeAlias

from harness.fabric.bodies import FetchBody, epoch_answers, epoch_questions, fetch_body
from harness.fabric.commands import Command, Commands, Obeyed, leader_and_isr, obeyed
from harness.fabric.core.rules import UNKNOWN, ZOOKEEPER_API, Direction, Link, Seen
from harness.fabric.frames import (
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
from harness.fabric.limits import PENDING_REQUESTS_MAX
from harness.fabric.witness import Answers, Commanded, Fetched, Note, Obedience, Questions, Witness

BROKER_CLIENT: Final = re.compile(r"broker-(\d+)(?:-.*)?|(\d+)", re.DOTALL)

Read: TypeAlias = tuple[Seen, Note | None]
# (topic, partition) and the offset that a Fetch is about.
Places: TypeAlias = tuple[tuple[tuple[str, int], int], ...]


class Reading(Protocol):
    """How a connection's frames are understood."""

    link: Link

    def request(self, frame: bytes) -> Read:
        """Say what a request is; frame begins with its length."""

    def answer(self, frame: bytes) -> Read:
        """Say what an answer is; frame begins with its length."""

    def sent_again(self, correlation: int) -> None:
        """Expect a second answer to a request."""


class ZooKeeperReading:
    """All frames of a broker's own way to ZooKeeper: told apart by direction alone."""

    def __init__(self, link: Link) -> None:
        self.link = link
        self._request = Seen(link=link, api=ZOOKEEPER_API, direction=Direction.REQUEST)
        self._answer = Seen(link=link, api=ZOOKEEPER_API, direction=Direction.ANSWER)

    def sent_again(self, correlation: int) -> None:
        """Fail: a session's packets are numbered, and its server would accept a second one as a new one."""
        raise AssertionError(f"ZooKeeper packet {correlation} was sent again; expected no packet to have a number")

    def request(self, frame: bytes) -> Read:  # noqa: ARG002
        """Say that it is a packet to ZooKeeper."""
        return self._request, None

    def answer(self, frame: bytes) -> Read:  # noqa: ARG002
        """Say that it is a packet from ZooKeeper."""
        return self._answer, None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Pending:
    """A request whose answer is still to come."""

    correlation: int
    api_key: int
    version: int
    places: Places
    commands: tuple[Command, ...] = ()


class KafkaReading:
    """
    One connection to a broker's inter-broker listener.

    Shapes:  names gives a node's name for its broker id. link's source is "?" until a request tells it, and
             then stays. A Fetch inside a fetch session is about every partition of the session, named or not.
             topics: what LeaderAndIsr, which comes before any Fetch of a topic, tells of names of topic ids (as
             hex), for all connections; None: it is not as Apache Kafka lays it out, and neither commands nor
             answered fetches are told of.
    """

    def __init__(
        self, dst: str, names: Mapping[int, str], witness: Witness, topics: dict[str, str] | None = None
    ) -> None:
        self.link: Link = (UNKNOWN, dst)
        self._names = names
        self._witness = witness
        # Answers come in the order of their requests; a produce without acks has none and is passed over.
        self._pending: deque[_Pending] = deque(maxlen=PENDING_REQUESTS_MAX)
        self._session: dict[tuple[str, int], int] = {}
        self._topics = topics
        self._answered: dict[tuple[str, int], int] = {}

    def request(self, frame: bytes) -> Read:
        """Say what a request is, and remember it for its answer."""
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
        """Say what an answer is, through the request that it belongs to."""
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
        """Read the body of the two apis that the fabric looks into."""
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
        """Read the body of the answers that the fabric looks into; raise Unreadable."""
        if request.api_key == OFFSET_FOR_LEADER_EPOCH:
            _check_whole(frame)
            answers, _ = epoch_answers(frame, offset, request.version)
            return Answers(answers=answers)
        if request.commands:
            _check_whole(frame)
            return self._commanded(request.commands, obeyed(frame, offset, request.version)[0])
        return self._fetched(request) if request.api_key == FETCH else None

    def _commands(self, header: RequestHeader, frame: bytes, offset: int) -> tuple[Command, ...]:
        """Read what a controller commands, and learn the names of topics from it."""
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

    def _commanded(self, commands: tuple[Command, ...], answer: Obeyed) -> Commanded:
        """Join what was commanded with what was answered to it."""
        named = self._named
        errors = {(named(topic), partition): error for (topic, partition), error in answer.errors.items()}
        return Commanded(
            partitions=tuple(
                Obedience(
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
        """Tell of a follower's answered Fetch, once for every offset; a consumer's is nobody's business."""
        if self._topics is None or self.link[0] == UNKNOWN:
            return None
        fresh = {place: offset for place, offset in request.places if self._answered.get(place) != offset}
        self._answered.update(fresh)
        return Fetched(offsets=tuple(fresh.items())) if fresh else None

    def _named(self, topic: str) -> str:
        """A topic's name, where a message has only its id and that is known; else what stands there."""
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
        """Give the offsets that a Fetch is about: a session's are kept, named anew only when they change."""
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
    """Name the node whose broker id the client id tells; None when it tells none, or one not known."""
    found = BROKER_CLIENT.fullmatch(client_id)
    return names.get(int(found[1] or found[2])) if found else None


def _by_topic(places: Places) -> tuple[tuple[str, int], ...]:
    return tuple((topic, offset) for (topic, _), offset in places)


def _check_whole(frame: bytes) -> None:
    if not is_whole(frame):
        raise Unreadable(f"a frame of {LENGTH.unpack_from(frame)[0]} bytes; expected one that is not streamed")
