"""The oracle of fetch sessions: it puts back what a leader leaves out, and names what must not be left out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

import pytest

from targets.broker.core.events import Answer, Caller, Received
from targets.broker.core.messages import (
    ErrorCode,
    FetchRequest,
    FetchResponse,
    Request,
    StopReplica,
    StopReplicaRequest,
    TopicPartition,
)
from targets.simulator.broker.oracles.sessions import Sessions
from tests.broker.core.asks import fetch, given, leading, produce
from tests.broker.core.bench import TP, Bench

Change = Callable[[FetchResponse], FetchResponse]


class Watched:
    """A leader whose steps the oracle sees, with answers changed on the way, and what it found."""

    def __init__(self, protocol: str = "kip380") -> None:
        self.bench: Bench = leading(protocol, (5, 2), epoch=5)
        self.found: list[str] = []
        node = SimpleNamespace(config=self.bench.broker.state.config, broker=self.bench.broker)
        world, violations = SimpleNamespace(nodes={"A": node}), SimpleNamespace(add=self._add)
        self.oracle = Sessions(cast(Any, world), cast(Any, violations))
        self.numbers = 0

    def _add(self, *_: Any) -> None:
        self.found.append(cast(str, _[-1]))

    def take(self, request: Request) -> Sequence[Any]:
        """Have the leader and the oracle see a request; return the step's effects as other oracles see them."""
        self.numbers += 1
        event = Received(caller=Caller(connection=7, number=self.numbers), request=request)
        return self.oracle.whole("A", event, self.bench.step(event))[1]

    def fetch(self, session: int, epoch: int, offset: int = -1, change: Change | None = None) -> FetchResponse:
        """Fetch as a follower, from an offset if it has changed; return the answer as other oracles see it."""
        named = () if offset < 0 else (TP,)
        asked = replace(fetch(offset, replica=2, tps=named, epoch=5), session_id=session, session_epoch=epoch)
        self.numbers += 1
        event = Received(caller=Caller(connection=7, number=self.numbers), request=asked)
        stepped: list[Any] = list(self.bench.step(event))
        if change is not None:
            stepped = [replace(e, response=change(e.response)) if is_fetched(e) else e for e in stepped]
        seen, effects = self.oracle.whole("A", event, stepped)
        assert isinstance(seen, Received) and isinstance(seen.request, FetchRequest)
        (answer,) = [effect.response for effect in cast(list[Any], effects) if is_fetched(effect)]
        assert [part.tp for part in seen.request.partitions] == [result.tp for result in answer.results]
        return cast(FetchResponse, answer)


def is_fetched(effect: Any) -> bool:
    return isinstance(effect, Answer) and isinstance(effect.response, FetchResponse)


def without(response: FetchResponse) -> FetchResponse:
    return replace(response, results=())


def test_what_is_left_out_is_put_back_as_it_was_told() -> None:
    watched = Watched()
    session = watched.fetch(0, 0, 2).session_id
    (result,) = watched.fetch(session, 1).results
    assert (ErrorCode.NONE, 2, ()) == (result.error, result.high_watermark, result.batches)
    assert [] == watched.found


def test_high_watermark_that_is_left_out_twice_is_found() -> None:
    watched = Watched()
    session = watched.fetch(0, 0, 2).session_id
    watched.bench.request(produce())
    watched.fetch(session, 1)  # it is given the record
    watched.fetch(session, 2, 3, change=without)  # and has it, so that it is committed
    assert [] == watched.found  # what a step changes after it has answered is told next
    watched.fetch(session, 3, change=without)
    assert ["A leaves out t-0: high watermark and log start were told as (2, 0), are (3, 0)"] == watched.found


def test_topic_that_is_deleted_twice_is_left_out_twice_by_who_stops_one_replica_after_the_other() -> None:
    """The answer to who waits goes out when the first is stopped: then the second is still as it was told."""
    watched, other = Watched(), TopicPartition(TP.topic, 1)
    watched.bench.command(leader=1, epoch=5, tp=other)
    asked = fetch(0, replica=2, tps=(TP, other), epoch=5)
    (answer,) = (effect.response for effect in watched.take(replace(asked, session_epoch=0)))
    asked = replace(asked, session_id=answer.session_id, max_wait_ms=100)
    at_the_end = (replace(asked.partitions[0], fetch_offset=2),)
    replicas = (StopReplica(tp=TP), StopReplica(tp=other))
    stop = StopReplicaRequest(controller_id=9, controller_epoch=1, ack_timeout_ms=1, partitions=replicas)
    for epoch, parts in enumerate((at_the_end, asked.partitions), start=1):
        assert not any(map(is_fetched, watched.take(replace(asked, session_epoch=epoch, partitions=parts))))
        (answer,) = (effect.response for effect in watched.take(stop) if is_fetched(effect))
        assert [ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.NONE] == [each.error for each in answer.results]
        for tp in (TP, other):
            watched.bench.command(leader=1, epoch=5, tp=tp)
    assert [] == watched.found


def test_leader_that_leaves_out_what_it_has_never_told_is_found() -> None:
    watched = Watched()
    session = watched.fetch(0, 0, 9).session_id  # an error, after which nothing is known
    asked = replace(fetch(2, replica=2, epoch=5), session_id=session, session_epoch=1)
    event = Received(caller=Caller(connection=8, number=1), request=asked)
    answers: list[Any] = [effect for effect in watched.bench.step(event) if is_fetched(effect)]
    watched.oracle.whole("A", event, [replace(effect, response=without(effect.response)) for effect in answers])
    assert ["A leaves out t-0, of which it has told nothing before"] == watched.found


def test_refusal_is_about_nothing_and_right_only_where_who_asks_is_out_of_step() -> None:
    watched = Watched()
    session = watched.fetch(0, 0, 2).session_id
    assert ErrorCode.INVALID_FETCH_SESSION_EPOCH is watched.fetch(session, 2, 2).error
    assert ErrorCode.FETCH_SESSION_ID_NOT_FOUND is watched.fetch(99, 1, 2).error
    assert [] == watched.found


@pytest.mark.parametrize(("epoch", "does"), [(1, "refuses"), (2, "serves")])
def test_wrong_refusal_and_wrong_service_are_found(epoch: int, does: str) -> None:
    watched = Watched()
    session = watched.fetch(0, 0, 2).session_id
    refused = FetchResponse(results=(), error=ErrorCode.INVALID_FETCH_SESSION_EPOCH)
    change: Change = (lambda _: refused) if does == "refuses" else (lambda _: FetchResponse(results=(given(TP),)))
    watched.fetch(session, epoch, 2, change=change)
    assert [f"A {does} a fetch of session {session}, epoch {epoch}: due is epoch 1"] == watched.found


def test_blind_session_is_seen_without_epochs() -> None:
    """Source: KAFKA-9338: or the other oracles would expect the fence to hold."""
    watched = Watched("kip320")
    session = watched.fetch(0, 0, 2).session_id
    asked = replace(fetch(2, replica=2, tps=(TP,), epoch=4), session_id=session, session_epoch=1)
    event = Received(caller=Caller(connection=8, number=1), request=asked)
    seen, _ = watched.oracle.whole("A", event, watched.bench.step(event))
    assert isinstance(seen, Received) and isinstance(seen.request, FetchRequest)
    assert [-1] == [part.current_leader_epoch for part in seen.request.partitions]
