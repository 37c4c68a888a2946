"""The produce steps of a scenario: to a named node, refused, and in progress while the scenario continues."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from harness.model import PreconditionError, UsageError
from harness.scenario.offsets import Mark, RecordOffsets
from harness.scenario.produce_steps import Produces
from tests.scenario.fakes import FakeClient, FakeCluster
from tests.scenario.words import step


class Slow:
    """A produce in progress, which ends when the test sets `done`."""

    def __init__(self, offsets: list[int]) -> None:
        self.done = False
        self.offsets = offsets

    def result(self) -> list[int]:
        return self.offsets


class Client(FakeClient):
    """A client that can also be slow or refuse."""

    def __init__(self) -> None:
        super().__init__()
        self.refuses = False
        self.slow = Slow([2, 3])

    def produce(self, topic: str, partition: int, name: str, values: Sequence[str], **options: Any) -> list[int]:
        if self.refuses:
            raise PreconditionError("not acknowledged")
        return super().produce(topic, partition, name, values, **options)

    def begin_produce(self, *what: Any, **options: Any) -> Slow:
        self.sent.append(("begin", what[2], options))
        return self.slow


class Room:
    """The produce steps of one run."""

    def __init__(self, cluster: FakeCluster) -> None:
        self.client = Client()
        self.record_offsets = RecordOffsets(counts={"m1": 2})
        self.produces = Produces(cluster, self.client, self.record_offsets)  # type: ignore[arg-type]

    def act(self, options: str) -> None:
        """Run the step `produce m1 OPTIONS`."""
        self.produces.act(step(f"produce m1 {options}"))


@pytest.fixture
def room(cluster: FakeCluster) -> Room:
    return Room(cluster)


def test_record_is_sent_to_whom_the_step_names_and_for_as_long(room: Room) -> None:
    room.act("acks=all via A for=800ms codec=gzip")
    assert [("m1", 2, {"acks": -1, "via": "127.0.0.1:1", "timeout_s": 0.8, "codec": "gzip"})] == room.client.sent
    assert 2 == room.record_offsets.number(Mark("end", "m1"))


def test_records_may_be_older_than_they_are(room: Room) -> None:
    room.act("acks=all age=3600000ms")
    assert [("m1", 2, {"acks": -1, "age_ms": 3_600_000})] == room.client.sent


def test_node_without_an_address_is_named(room: Room, cluster: FakeCluster) -> None:
    cluster.addresses = {}
    room.act("acks=1 via B")
    assert "B" == room.client.sent[0][2]["via"]


def test_refused_produce_must_not_be_acknowledged(room: Room) -> None:
    with pytest.raises(PreconditionError, match=r"acks=all refused: acknowledged at \[0, 1\]; expected no ackn"):
        room.act("acks=all refused")
    room.client.refuses = True
    room.act("acks=all refused")
    assert {} == room.record_offsets.offsets
    with pytest.raises(PreconditionError, match="not acknowledged"):
        room.act("acks=all")


def test_produce_meanwhile_is_acknowledged_when_its_outcome_is_there(room: Room) -> None:
    room.act("acks=all meanwhile")
    assert [("begin", "m1", {"acks": -1})] == room.client.sent
    assert (False, 4) == (room.produces.acked("m1"), room.record_offsets.number(Mark("end", "m1")))
    room.client.slow.done = True
    assert room.produces.acked("m1")
    room.produces.end()
    with pytest.raises(UsageError, match="acked m1: not produced meanwhile"):
        room.produces.acked("m1")
