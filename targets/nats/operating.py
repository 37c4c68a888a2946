"""
What an operator can ask of a cluster of NATS: requests of its JetStream API, answered by leaders.

Source:  NATS's documentation, "JetStream wire API Reference"; jetstream_api.go (placement, preferred).
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from harness.cleanup.process import until
from harness.model import FencepostError, PreconditionError
from harness.target.metadata import Metadata, TargetRun
from harness.target.operator import Operator
from targets.nats.clients.connection import SYSTEM, Connection
from targets.nats.config import tag_of
from targets.nats.streams import stream_of

_API: Final = "$JS.API"
_META_STEPDOWN: Final = f"{_API}.META.LEADER.STEPDOWN"
_PATIENCE_S: Final = 2.0
# How long a request may take that waits for a leader: an election takes up to 9 s (raft.go).
_LEADER_S_MAX: Final = 20.0
# How long a move may have to wait for the end of the one before.
_MOVING_S_MAX: Final = 10.0


class NatsOperator(Operator):
    """An operator of one run's cluster; see harness/target/operator.py for every call."""

    def __init__(self, run: TargetRun, metadata: Metadata) -> None:
        self._run = run
        self._metadata = metadata
        self._moved: dict[tuple[str, int], tuple[str, ...]] = {}
        # What was asked for, and not granted: the answer may be lost, or that of a leader that is none any more.
        self._doubtful: dict[tuple[str, int], tuple[str, ...]] = {}
        # A step may name several nodes, each of which is asked for at once.
        self._moving = threading.Lock()

    def create(self, topic: str, assignments: Sequence[Sequence[str]]) -> str:
        """Create a stream for each partition, on exactly these nodes; the first of each leads then."""
        return self.add(topic, 0, assignments)

    def add(self, topic: str, first: int, assignments: Sequence[Sequence[str]]) -> str:
        """Create the streams of further partitions, as `create` does."""
        for partition, names in enumerate(assignments, start=first):
            stream = stream_of(topic, partition)
            settings = {
                "name": stream,
                "subjects": [stream],
                "num_replicas": len(names),
                "storage": "file",
                "placement": {"tags": [tag_of(names)]},
            }
            self._until_done(f"{_API}.STREAM.CREATE.{stream}", settings, f"create {stream}")
            self._lead(topic, partition, names[0])
            self._moved[topic, partition] = tuple(names)
        return f"streams of {topic} on {', '.join(map(' '.join, assignments))}"

    def remove(self, topic: str, partitions: Sequence[int]) -> str:
        """Delete the streams of these partitions."""
        for partition in partitions:
            stream = stream_of(topic, partition)
            self._ask(f"{_API}.STREAM.DELETE.{stream}", {}, f"delete {stream}")
            self._moved.pop((topic, partition), None)
        return f"deleted {', '.join(stream_of(topic, partition) for partition in partitions)}"

    def appoint(self, name: str) -> str:
        """Have the meta group's leader step down in favour of a node, once there is one."""
        body = {"placement": {"preferred": name}}

        def governs() -> bool:
            if self._metadata.controller() not in (None, name):
                try:
                    self._ask(_META_STEPDOWN, body, f"appoint {name}", user=SYSTEM)
                except PreconditionError:
                    return False  # asked again once it can
            return self._metadata.controller() == name

        if not until(governs, _LEADER_S_MAX):
            raise PreconditionError(f"appoint {name}: the meta leader is {self._metadata.controller()}")
        return f"{name} leads the meta group"

    def elect(self, topic: str, partition: int, name: str) -> str:
        """Have the leader step down in favour of a member."""
        stream = stream_of(topic, partition)
        truth = self._metadata.truth(topic, partition)
        if truth is not None and truth.leader == name:
            return f"{name} leads {stream} already"
        self._ask(
            f"{_API}.STREAM.LEADER.STEPDOWN.{stream}",
            {"placement": {"preferred": name}},
            f"elect {name} for {stream}",
        )
        return f"the leader of {stream} stepped down for {name}"

    def step_down(self, topic: str, partition: int) -> None:
        """Have the leader step down, with no member preferred: another one, or the same one again, leads then."""
        stream = stream_of(topic, partition)
        self._ask(f"{_API}.STREAM.LEADER.STEPDOWN.{stream}", {}, f"the leader of {stream} is to step down")

    def move(self, topic: str, partition: int, names: Sequence[str]) -> str:
        """Have a stream moved to these nodes, by the tag that they alone have together."""
        stream = stream_of(topic, partition)
        where = f"move {stream} to {', '.join(names)}"
        with self._moving:
            placement = {"tags": [tag_of(names)]}
            self._update(topic, partition, names, where, placement=placement, num_replicas=len(names))
            self._settled(topic, partition, names)
        return f"{stream} is to be on {', '.join(names)}"

    def expel(self, topic: str, partition: int, name: str) -> str:
        """
        Have a member dropped from a stream's group at once, and another server take its place, empty.

        A group that nobody could join would be left smaller, or, since 2.14, the request refused: so the stream is
        given room on one server more before.

        Raises:
            PreconditionError: no other server can take its place, or it is not granted.
        """
        stream = stream_of(topic, partition)
        where = f"remove {name} from the group of {stream}"
        with self._moving:
            members = self.wanted(topic, partition)
            spare = next((each for each in self._run.ids if each not in members), None)
            if spare is None or name not in members:
                raise PreconditionError(f"{where}: expected a member, and a server that can take its place")
            wanted = [*(str(each) for each in members if each != name), spare]
            room = [name, *wanted]
            self._update(topic, partition, room, where, placement={"tags": [tag_of(room)]})
            # Making room may have moved it already: 2.12.1 draws all members anew.
            self._until_done(
                f"{_API}.STREAM.PEER.REMOVE.{stream}",
                {"peer": name},
                where,
                unless=lambda: name not in self._metadata.assignment(topic).get(partition, (name,)),
            )
            self._settled(topic, partition, wanted)
        return f"{name} is removed from the group of {stream}, and {spare} takes its place"

    def shrink(self, topic: str, partition: int, name: str) -> str:
        """
        Have a stream scaled to one replica, that of its leader; return once the metadata show it.

        Args:
            name: a follower, which is to have no replica then.

        Raises:
            PreconditionError: it is not granted, or not seen in time; or the node led by then, and has it alone.
                It has strayed then, and is moved back with the next heal.
        """
        stream = stream_of(topic, partition)
        where = f"scale {stream} to one replica"
        with self._moving:
            self._update(topic, partition, tuple(map(str, self.wanted(topic, partition))), where, num_replicas=1)
            there: list[str] = []

            def is_alone() -> bool:
                there[:] = map(str, self._metadata.assignment(topic).get(partition, ()))
                return len(there) == 1

            if not until(is_alone, _LEADER_S_MAX):
                raise PreconditionError(f"{where}: it is on {', '.join(there)}; expected it on one server")
            if there == [name]:
                raise PreconditionError(f"{where}: {name} leads by now, and has it; expected another server to")
            self._settled(topic, partition, there)
        return f"{stream} is on {there[0]} alone"

    def _update(self, topic: str, partition: int, names: Sequence[str], where: str, **settings: object) -> None:
        """Change a stream, on nodes among these then, once no other move goes on: it is refused meanwhile."""
        stream = stream_of(topic, partition)
        config = dict(self._ask(f"{_API}.STREAM.INFO.{stream}", {}, where).get("config") or {})
        self._doubtful[topic, partition] = tuple(names)
        self._until_done(f"{_API}.STREAM.UPDATE.{stream}", config | settings, where, within_s=_MOVING_S_MAX)

    def _settled(self, topic: str, partition: int, names: Sequence[str]) -> None:
        """Keep where a stream is to be since a request that was granted."""
        del self._doubtful[topic, partition]
        self._moved[topic, partition] = tuple(names)

    def wanted(self, topic: str, partition: int) -> tuple[str | None, ...]:
        """Return the nodes that a stream was made on, or moved to last; of a stranger's, those that it is on."""
        moved = self._moved.get((topic, partition))
        return self._metadata.assignment(topic).get(partition, ()) if moved is None else moved

    def strayed(self, topic: str, partition: int) -> bool:
        """Return whether a stream is where it was asked to be last, or may be, although that was not granted."""
        doubtful = self._doubtful.get((topic, partition))
        if doubtful is None:  # nothing is asked: a look at the metadata takes its time
            return False
        there, wanted = {*self._metadata.assignment(topic).get(partition, ())}, {*self.wanted(topic, partition)}
        return there != wanted and len(there) in (1, len(wanted)) and there <= {*doubtful}

    def depose(self) -> str:
        """Have the leader of the meta group step down; return when another look shows it."""
        before, office = self._metadata.controller(), self._metadata.office()
        self._ask(_META_STEPDOWN, {}, "depose the meta leader", user=SYSTEM)
        # It may step down for a server that has just died: the others then wait for as long as an election.
        until(lambda: self._metadata.office() != office, _LEADER_S_MAX)
        return f"{before or 'the meta leader'} stepped down"

    def _lead(self, topic: str, partition: int, name: str) -> None:
        """Return once the node leads the stream."""

        def leads() -> bool:
            truth = self._metadata.truth(topic, partition)
            if truth is None or truth.leader is None:
                return False
            if truth.leader != name:
                try:
                    self.elect(topic, partition, name)
                except PreconditionError:
                    return False  # asked again once it can
            return truth.leader == name

        if not until(leads, _LEADER_S_MAX):
            raise PreconditionError(
                f"create {stream_of(topic, partition)}: {name} does not lead it; expected it to"
            )

    def _until_done(
        self,
        subject: str,
        body: Mapping[str, Any],
        what: str,
        *,
        unless: Callable[[], bool] = lambda: False,
        within_s: float | None = None,
    ) -> None:
        """Ask until it is granted, or seen to be done."""
        why = ["nobody was asked"]

        def done() -> bool:
            try:
                self._ask(subject, body, what)
            except PreconditionError as error:
                why.append(str(error))
                return unless()
            return True

        if not until(done, _LEADER_S_MAX if within_s is None else within_s):
            raise PreconditionError(why[-1])

    def _ask(self, subject: str, body: Mapping[str, Any], what: str, user: str = "") -> Mapping[str, Any]:
        """Ask through one server after another; raise PreconditionError for an error, or if none answers."""
        why = "no server runs"
        for address in self._run.nodes.values():
            try:
                connection = Connection(str(address), _PATIENCE_S, user=user)
                try:
                    text = connection.ask(subject, body, within_s=_PATIENCE_S)
                finally:
                    connection.close()
            except (OSError, FencepostError) as error:
                why = str(error)
                continue
            return _granted(what, text)
        raise PreconditionError(f"{what}: {why}; expected an answer")


def _granted(what: str, text: bytes) -> Mapping[str, Any]:
    try:
        found = json.loads(text)
        refusal = found.get("error")
    except (ValueError, AttributeError, RecursionError) as error:
        raise PreconditionError(f"{what}: answer {text[:200]!r}; expected JSON") from error
    if refusal:
        said = refusal.get("description") if isinstance(refusal, dict) else refusal
        raise PreconditionError(f"{what}: refused: {said!r:.200}")
    return dict(found)
