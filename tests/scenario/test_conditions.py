"""Every condition holds when it should and only then; a condition about a missing hold is an error."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from harness.history.file import History
from harness.model import OpType, Source, UsageError
from harness.scenario.conditions import Conditions
from harness.scenario.link_steps import LinkSteps
from harness.scenario.offsets import RecordOffsets
from harness.scenario.produce_steps import Produces
from harness.scenario.recent_events import RecentEvents
from harness.scenario.words import MessageWords
from harness.target.metadata import PartitionTruth
from harness.target.traits import Traits
from targets.kafka_family.wire.wire import KafkaWire
from tests.events.filled import filled
from tests.scenario import words
from tests.scenario.fakes import FakeClient, FakeCluster, FakeLinks

Happening = Callable[["Room"], None]


class Room:
    """The conditions of a cluster, and methods that make events happen."""

    def __init__(self, cluster: FakeCluster, history: History) -> None:
        self.cluster = cluster
        self.recent = RecentEvents()
        history.listeners += [self.recent.listen, cluster.listen]
        self.record_offsets = record_offsets = RecordOffsets(counts={"m1": 2})
        self.links = LinkSteps(cluster, record_offsets, self.recent, MessageWords(cluster.target, {}))
        produces = Produces(cluster, FakeClient(), record_offsets)  # type: ignore[arg-type]
        self.conditions = Conditions(
            cluster,
            ("B", "A"),
            record_offsets=record_offsets,
            links=self.links,
            produces=produces,
            recent=self.recent,
        )

    def holds(self, text: str) -> bool:
        """Return whether a condition holds now."""
        return self.conditions.holds(words.condition(text))

    def fabric(self, f: str, src: str, dst: str, **more: Any) -> None:
        """Record an event of the fabric."""
        value = {"link": [src, dst], **more}
        self.cluster.history.record_line(Source.FABRIC, "fabric", OpType.INFO, f, filled(Source.FABRIC, f, value))

    def told(self, f: str, name: str, **more: Any) -> None:
        """Record an event of a node."""
        value = filled(Source.BROKER, f, more)
        if "topic" in value:
            value |= {"topic": "log", "partition": 0}
        self.cluster.history.record_line(Source.BROKER, name, OpType.INFO, f, value)

    def truth(self, **changed: Any) -> None:
        """Change the partition state in ZooKeeper."""
        self.cluster.state = replace(self.cluster.state, **changed)


@pytest.fixture
def room(cluster: FakeCluster, history: History) -> Room:
    return Room(cluster, history)


@pytest.mark.parametrize(
    ("condition", "happens"),
    [
        ("asked A -> B", lambda room: room.fabric("epoch-question", "A", "B")),
        ("answered A -> B", lambda room: room.fabric("epoch-answer", "A", "B")),
        ("truncated A", lambda room: room.told("truncate", "A")),
        ("fenced A", lambda room: room.told("fenced", "A")),
        ("epoch rises", lambda room: room.truth(epoch=1)),
    ],
)
def test_what_came_counts_until_the_scenario_does_something(
    room: Room, condition: str, happens: Happening
) -> None:
    room.conditions.turn()
    assert not room.holds(condition)
    happens(room)
    assert room.holds(condition)
    room.recent.turn()
    room.conditions.turn()
    assert not room.holds(condition)


@pytest.mark.parametrize(
    ("condition", "happens"),
    [
        ("stuck A", lambda room: room.told("stuck", "A")),
        ("awaiting A", lambda room: room.told("awaiting", "A")),
        ("heard A", lambda room: room.told("follower", "A", epoch=0)),
        ("gone A", lambda room: room.cluster.sessions.pop("A")),
        ("elected = none", lambda room: room.truth(leader=None)),
        ("isr = B", lambda room: room.truth(in_sync=("B",))),
        ("checkpoint A >= 3", lambda room: room.cluster.ends.update(A=3)),
    ],
)
def test_what_stands_holds_once_it_is_so(room: Room, condition: str, happens: Happening) -> None:
    assert not room.holds(condition)
    happens(room)
    room.recent.turn()
    room.conditions.turn()
    assert room.holds(condition)


def silent(room: Room, *, asks_first: bool = True) -> None:
    """Let nodes emit no events."""
    wire = KafkaWire(lambda _: asks_first, commands=True)
    target: Any = SimpleNamespace(name="silent", wire=wire)
    room.cluster.target = room.cluster.main.target = target
    room.cluster.traits, room.cluster.main.emits_events = Traits(), False
    room.links.words = MessageWords(target, {})


def commanded(room: Room, name: str, epoch: int, *, error: int = 0, topic: str = "log") -> None:
    room.fabric("learned", "C", name, topic=topic, epoch=epoch, error=error)


def test_silent_node_has_heard_when_it_has_obeyed_the_command_of_the_newest_epoch(room: Room) -> None:
    silent(room)
    room.truth(epoch=3)
    for epoch, error, topic in ((2, 0, "log"), (3, 11, "log"), (3, 0, "other")):
        commanded(room, "A", epoch, error=error, topic=topic)
        assert not room.holds("heard A")
    commanded(room, "A", 3)
    commanded(room, "A", 2)
    assert (True, False) == (room.holds("heard A"), room.holds("heard B"))


@pytest.mark.parametrize("condition", ["truncated A", "fenced A"])
def test_silent_node_that_prints_something_has_done_it(room: Room, condition: str) -> None:
    silent(room)
    what = {"truncated A": "truncate", "fenced A": "fenced"}[condition]
    room.told("printed", "B", what=what)
    assert not room.holds(condition)
    room.told("printed", "A", what=what)
    assert room.holds(condition)


def test_silent_node_has_truncated_when_its_fetch_is_answered_where_the_fetch_asks(room: Room) -> None:
    silent(room)
    room.fabric("fetched", "A", "B")
    assert not room.holds("truncated A")
    silent(room, asks_first=False)
    assert room.holds("truncated A")
    room.truth(leader="A")
    assert not room.holds("truncated A")


def test_silent_node_is_stuck_from_what_it_prints_until_it_obeys_a_newer_epoch(room: Room) -> None:
    silent(room)
    commanded(room, "A", 2)
    room.told("printed", "A", what="stuck")
    commanded(room, "A", 2)
    assert room.holds("stuck A")
    commanded(room, "A", 3)
    assert not room.holds("stuck A")


def test_node_that_says_it_ends_itself_never_catches_up(room: Room) -> None:
    silent(room)
    room.cluster.ends["A"] = 1
    assert not room.holds("settled A")
    room.told("printed", "A", what="exiting")
    assert room.holds("settled A")


@pytest.mark.parametrize(
    ("spans", "single", "expected"),
    [
        ([(0, 1)], False, True),
        ([(0, 0), (1, 1)], False, False),
        ([(0, 0), (1, 1)], True, True),
        ([(0, 0)], True, False),
        ([(0, 2)], False, False),
    ],
)
def test_group_lies_in_one_batch_or_in_messages_that_are_in_none(
    room: Room, spans: list[tuple[int, int]], single: bool, expected: bool
) -> None:
    batches = tuple(SimpleNamespace(base=base, last=last, single=single) for base, last in spans)
    room.cluster.log = lambda _: SimpleNamespace(batches=batches)  # type: ignore[method-assign]
    room.record_offsets.acknowledged("m1", [0, 1])
    assert expected is room.holds("one-batch m1")


@pytest.mark.parametrize("again", ["leader", "follower", "started"])
def test_node_that_goes_on_is_stuck_and_awaits_no_more(room: Room, again: str) -> None:
    room.told("stuck", "A")
    room.told("awaiting", "A")
    room.told(again, "A", epoch=1)
    assert (False, False) == (room.holds("stuck A"), room.holds("awaiting A"))


def test_controller_is_another_only_when_there_is_one(room: Room) -> None:
    assert (True, False) == (room.holds("controller != A"), room.holds("controller != C"))
    room.cluster.metadata.controller = lambda: None  # type: ignore[method-assign]
    assert not room.holds("controller != A")


def test_hold_is_known_by_its_name_and_direction(room: Room) -> None:
    links: FakeLinks = room.cluster.fabric  # type: ignore[assignment]
    room.links.act(words.step("hold answers fetch A -> B"))
    links.frames = ()
    room.links.act(words.step("hold requests fetch A -> B"))
    assert (True, False) == (room.holds("held answers fetch A -> B"), room.holds("held requests fetch A -> B"))
    with pytest.raises(UsageError, match="held Produce A -> B: no such hold"):
        room.holds("held Produce A -> B")


@pytest.mark.parametrize(
    ("step", "condition", "bite"),
    [
        ("cut A -> B", "lost A -> B", ("lost", {})),
        ("delay requests fetch A -> B 1", "delayed fetch A -> B", ("delayed", {"api": "fetch"})),
        ("double fetch A -> B", "doubled fetch A -> B", ("doubled", {"api": "fetch"})),
    ],
)
def test_rule_of_a_link_has_bitten_for_as_long_as_it_stands(
    room: Room, step: str, condition: str, bite: tuple[str, dict[str, str]]
) -> None:
    room.links.act(words.step(step))
    assert not room.holds(condition)
    room.fabric(bite[0], "A", "B", **bite[1])
    room.recent.turn()
    assert room.holds(condition)


def test_cluster_is_whole_when_its_leader_leads_and_all_have_caught_up(room: Room) -> None:
    assert room.conditions.whole()
    room.cluster.ends["A"] = 1
    assert not room.conditions.whole()
    assert "caught up with leader B; log ends {'B': 2, 'A': 1}" in room.conditions.lacking()
    room.told("stuck", "A")
    assert room.conditions.whole()


def test_log_of_a_partition_that_is_gone_is_not_caught_up_where_it_ends_like_the_leader_s(room: Room) -> None:
    room.truth(unheard=frozenset("A"))
    assert not room.holds("settled A") and not room.conditions.whole()
    assert "A to hear of the partition, whose leader is B" in room.conditions.lacking()
    room.truth(unheard=frozenset("C"))
    assert room.holds("settled A") and room.conditions.whole()


def test_what_nodes_say_of_their_part_is_told_with_the_partition(room: Room) -> None:
    assert () == room.conditions.said()
    room.cluster.said = {"B": "leads, and waits for A", "A": "waits for votes"}
    assert ("log-0 A waits for votes", "log-0 B leads, and waits for A") == room.conditions.said()


def test_replica_that_is_missing_in_the_isr_is_named_unless_it_is_stuck(room: Room) -> None:
    room.truth(in_sync=("B",))
    assert room.conditions.whole()
    assert not room.conditions.in_sync()
    assert ("log-0 A",) == room.conditions.outside()
    assert "A in the ISR, which is B; log ends {'B': 2, 'A': 2}" == room.conditions.lacking()
    assert room.conditions.in_sync(without={"A"})
    assert room.conditions.in_sync(left_out={"A"})
    room.told("stuck", "A")
    assert room.conditions.in_sync()


def test_cluster_is_not_whole_under_a_leader_that_waits_or_does_not_know_of_its_epoch(room: Room) -> None:
    """Source: KAFKA-1120."""
    room.truth(epoch=3)
    assert not room.conditions.whole()
    assert "B to lead in the epoch that it was elected for" in room.conditions.lacking()
    room.told("awaiting", "B")
    assert "B to lead; it waits for an epoch newer than 3" in room.conditions.lacking()
    room.cluster.state = PartitionTruth(leader=None, epoch=4, in_sync=("B",), version=1)
    assert "a leader, not PartitionTruth(leader=None" in room.conditions.lacking()


def test_log_is_sound_while_all_of_it_can_be_read(room: Room, monkeypatch: pytest.MonkeyPatch) -> None:
    for log, holds in (
        (SimpleNamespace(problems=()), True),
        (SimpleNamespace(problems=("CRC",)), False),
        (None, False),
    ):
        monkeypatch.setattr(room.cluster, "log", lambda _, log=log: log)
        assert holds is room.holds("sound A")
