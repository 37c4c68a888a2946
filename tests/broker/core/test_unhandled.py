"""The core's response to unknown input: an answer to no pending request is dropped, a missing handler raises."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from targets.broker.core.events import Answered, Caller, Received, ZkAnswered, ZkFired
from tests.broker.core.asks import registered
from tests.broker.core.bench import Bench

TAG = 4711


@dataclass(frozen=True)
class Unknown:
    """A type without a handler."""


@pytest.fixture
def bench() -> Bench:
    """Return a broker in a ZooKeeper session."""
    return registered("kip380", (0, 1))


def test_event_of_an_unknown_type_raises(bench: Bench) -> None:
    with pytest.raises(AssertionError, match="Unknown"):
        bench.step(Unknown())  # type: ignore[arg-type]


def test_request_of_an_unknown_type_raises(bench: Bench) -> None:
    with pytest.raises(AssertionError, match="Unknown"):
        bench.step(Received(caller=Caller(connection=1, number=1), request=Unknown()))  # type: ignore[arg-type]


def test_answer_to_what_no_handler_is_written_for_raises(bench: Bench) -> None:
    bench.broker.state.pending[TAG] = Unknown()
    with pytest.raises(AssertionError, match=rf"answer {TAG}: Unknown\(\) has no handler"):
        bench.step(Answered(tag=TAG, response=None))


def test_zookeepers_answer_to_what_no_handler_is_written_for_raises(bench: Bench) -> None:
    bench.broker.state.pending[TAG] = Unknown()
    with pytest.raises(AssertionError, match=rf"answer {TAG}: Unknown\(\) has no handler"):
        bench.step(ZkAnswered(tag=TAG, session=bench.session, results=()))


def test_watch_on_a_path_that_the_core_does_not_watch_raises(bench: Bench) -> None:
    with pytest.raises(AssertionError, match="watch /elsewhere: no handler"):
        bench.step(ZkFired(path="/elsewhere"))


def test_answer_that_nothing_waits_for_any_more_is_void(bench: Bench) -> None:
    assert TAG not in bench.broker.state.pending
    assert [] == bench.step(Answered(tag=TAG, response=None))
    assert [] == bench.step(ZkAnswered(tag=TAG, session=bench.session, results=()))
