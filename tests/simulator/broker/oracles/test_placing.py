"""What brokers write of where partitions are, and take out of the operator's node, as nobody asked, is named."""

from __future__ import annotations

from typing import Any

import pytest

from targets.broker.core.assignments import Assignment, Move, encode_topic
from targets.broker.core.events import ZkAsk
from targets.broker.core.made import made_path
from targets.broker.core.messages import TopicPartition
from targets.broker.core.wishes import Wishes, encode_wishes
from targets.broker.core.zookeeper import CONTROLLER_EPOCH, ELECTIONS, ZkMulti, ZkSet, broker_path, topic_path
from targets.simulator.broker.oracles.operator_node import Asked, dropped, read_asked, taken
from targets.simulator.broker.oracles.placing import Placing
from targets.simulator.broker.oracles.violation import Violations
from targets.simulator.zookeeper import ops
from tests.simulator.worlds import IDS, cluster

TOPIC = "temp"
T0, T1, T2, T3 = (TopicPartition(TOPIC, number) for number in range(4))
AB, BC = (IDS["A"], IDS["B"]), (IDS["B"], IDS["C"])
PATH = topic_path(TOPIC)
# The node's last change, as the id of a partition that is added again.
LATER = 10**6


class Room:
    """An oracle beside a world of idle brokers, with a topic of three partitions of which they know nothing."""

    def __init__(self, **own: Any) -> None:
        self.world = cluster("kip380", replicas=("A", "B"))
        self.tree = self.world.zookeeper.tree
        self.has = Assignment(replicas={0: AB, 1: AB, 2: AB}, **own)
        self.tree.write((ops.Create(path=PATH, data=encode_topic(self.has)),), ops.OPERATOR)
        self._violations = Violations(self.world)
        self.placing = Placing(self.world, self._violations, T0)
        self._epoch = self.tree.nodes[CONTROLLER_EPOCH].version

    def asks(self, wishes: Wishes) -> None:
        data = encode_wishes(wishes)
        there = ELECTIONS in self.tree.nodes
        write = (
            ops.Set(path=ELECTIONS, data=data, version=ops.ANY_VERSION)
            if there
            else ops.Create(path=ELECTIONS, data=data)
        )
        self.tree.write((write,), ops.OPERATOR)

    def writes(self, *more: ops.Write, **changes: Any) -> None:
        """Have C write the topic with these changes, as a controller does."""
        fields = {name: getattr(self.has, name) for name in ("replicas", "moves", "ids", "once", "made")}
        data = encode_topic(Assignment(**{**fields, **changes}))
        session = self.world.zookeeper.session_of(broker_path(IDS["C"]))
        check = ops.Check(path=CONTROLLER_EPOCH, version=self._epoch)
        self.tree.write((check, *more, ops.Set(path=PATH, data=data, version=ops.ANY_VERSION)), session)

    @property
    def said(self) -> str:
        """What the oracle said first, of any partition."""
        return next((each.sentence.split(": ", 1)[1] for each in self._violations.found.values()), "")


TAKES = ops.Delete(path=ELECTIONS, version=ops.ANY_VERSION)


def test_what_was_asked_for_may_be_done() -> None:
    """V3, F; on_partitions_add; on_partitions_remove."""
    room = Room()
    room.asks(Wishes(moves={T0: BC}))
    move = {0: Move(origin=AB, target=BC)}
    room.writes(TAKES, moves=move)
    room.writes(replicas={0: (*AB, IDS["C"]), 1: AB, 2: AB}, moves=move)
    room.writes(replicas={0: BC, 1: AB, 2: AB})
    room.asks(Wishes(removals=(T2,)))
    room.writes(TAKES, replicas={0: BC, 1: AB}, once=3)
    room.writes(replicas={0: BC, 1: AB, 2: AB}, once=3, ids={2: LATER})
    room.writes(replicas={}, once=3)  # a large topic is deleted in several writes
    assert "" == room.said


def test_topic_gets_one_mark_and_keeps_it() -> None:
    room = Room()
    room.writes(ops.Create(path=made_path("temp", "1-2")), made="1-2")
    assert "" == room.said
    room.writes(ops.Create(path=made_path("temp", "1-3")), made="1-3")
    assert room.said.endswith("and the mark '1-3'; expected '1-2', which it has.")


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"replicas": {0: AB, 2: AB}, "once": 2}, "with partitions [0, 2]; expected them to be numbered from 0."),
        ({"replicas": {0: AB, 1: AB}}, "and remembers 0 that it once had; expected 3."),
        ({"replicas": {0: AB, 1: AB}, "once": 3}, "and nobody asked for 2 to be removed."),
        ({"ids": {1: LATER}}, "for partition 1."),
        ({"made": "1-2"}, "and the mark '1-2'; expected '', or one that only it has."),
        ({"replicas": {0: BC, 1: AB, 2: AB}}, "C moves temp-0 from [1, 2] to [2, 3], as nobody asked."),
    ],
)
def test_change_that_nobody_asked_for_is_named(changes: dict[str, Any], told: str) -> None:
    room = Room()
    room.writes(**changes)
    assert room.said.endswith(told)


def test_partition_that_is_added_with_the_id_of_its_predecessor_is_named() -> None:
    """V3, discussion 5."""
    room = Room()
    room.asks(Wishes(removals=(T2,)))
    room.writes(TAKES, replicas={0: AB, 1: AB}, once=3)
    room.writes(replicas={0: AB, 1: AB, 2: AB}, once=3)
    assert "C adds partition 2 to topic temp with the id " in room.said


def test_move_that_is_neither_over_nor_taken_back_is_not_forgotten() -> None:
    move = {0: Move(origin=AB, target=BC)}
    room = Room(moves=move)
    room.writes(replicas={0: (*AB, IDS["C"]), 1: AB, 2: AB}, moves={})
    assert "C forgets that temp-0 is to be moved to [2, 3], and leaves it on [1, 2, 3]." == room.said
    back = Room(moves=move)
    back.writes(moves={})
    assert "" == back.said


@pytest.mark.parametrize(("version", "told"), [(ops.ANY_VERSION, f"C asks to write {PATH} over"), (3, "")])
def test_write_of_a_topic_over_what_was_not_read_is_named(version: int, told: str) -> None:
    room = Room()
    write = ZkSet(path=PATH, data=b"{}", version=version)
    room.placing.on_ask("C", ZkAsk(tag=1, ops=(ZkMulti(ops=(write,)),)))
    assert room.said.startswith(told) and bool(room.said) == bool(told)


def test_operator_may_write_what_he_likes_but_for_what_others_asked() -> None:
    room = Room()
    data = encode_topic(Assignment(replicas={0: BC, 2: AB}))
    room.tree.write((ops.Set(path=PATH, data=data, version=ops.ANY_VERSION),), ops.OPERATOR)
    assert "" == room.said
    room.asks(Wishes(moves={T0: BC}))
    room.asks(Wishes(moves={T2: BC}))
    assert "an operator drops the move of temp-0, which another operator asked for." == room.said


def test_what_is_taken_out_of_a_topic_that_is_not_written_may_have_been_gone() -> None:
    """Seed 86: a topic was deleted when the controller read, and there again when it wrote."""
    room = Room()
    room.asks(Wishes(removals=(T2,), moves={T0: BC}))
    session = room.world.zookeeper.session_of(broker_path(IDS["C"]))
    check = ops.Check(path=CONTROLLER_EPOCH, version=room.tree.nodes[CONTROLLER_EPOCH].version)
    room.tree.write((check, TAKES), session)
    assert "" == room.said


def test_topic_that_cannot_be_read_is_told_nothing_of() -> None:
    room = Room()
    room.tree.write((ops.Set(path=PATH, data=b"[1]", version=ops.ANY_VERSION),), ops.OPERATOR)
    room.writes(replicas={2: BC})
    assert "" == room.said


# --- the operator's node ---------------------------------------------------------------------------------------
ALL = Asked(elections={T0: 1}, moves={T1: BC}, leaving=frozenset({2}), removals=frozenset({T2}))


def test_node_is_read_as_it_was_written() -> None:
    written = Wishes(elections={T0: 1}, moves={T1: BC}, leaving=frozenset({2}), removals=(T2,))
    assert ALL == read_asked(encode_wishes(written))
    assert Asked() == read_asked(None) == read_asked(b"") == read_asked(b"[1]")


@pytest.mark.parametrize(
    ("now", "told"),
    [
        (ALL, []),
        (Asked(moves=ALL.moves, leaving=ALL.leaving, removals=ALL.removals), []),  # another election's place
        (Asked(leaving=ALL.leaving, removals=ALL.removals), [T1]),
        (Asked(moves=ALL.moves, removals=ALL.removals), [None]),
        (Asked(moves=ALL.moves, leaving=ALL.leaving), [T2]),
    ],
)
def test_who_asks_drops_nothing_of_others(now: Asked, told: list[TopicPartition | None]) -> None:
    assert told == [tp for tp, _ in dropped(ALL, now)]


# Where the partitions are after the write, or are to be.
NOTED = {0: frozenset({AB}), 1: frozenset({AB, BC}), 2: frozenset({AB})}
LEFT = Asked(elections=ALL.elections, leaving=ALL.leaving, removals=ALL.removals)


@pytest.mark.parametrize(
    ("was", "now", "places", "told"),
    [
        (ALL, LEFT, NOTED, []),
        (ALL, LEFT, {**NOTED, 1: frozenset({AB})}, [T1]),
        (ALL, LEFT, None, []),  # a topic that is not written may have been gone when it was read
        (ALL, Asked(leaving=ALL.leaving, removals=ALL.removals), NOTED, [T0]),
        (ALL, Asked(elections=ALL.elections, removals=ALL.removals), NOTED, [None]),
        (LEFT, Asked(elections=ALL.elections, leaving=ALL.leaving), NOTED, [T2]),
        (LEFT, Asked(elections=ALL.elections, leaving=ALL.leaving), {0: frozenset({AB}), 1: frozenset({AB})}, []),
        (LEFT, Asked(elections=ALL.elections, leaving=ALL.leaving), {**NOTED, 3: frozenset({AB})}, []),
        (Asked(elections=ALL.elections), Asked(), NOTED, []),
    ],
)
def test_what_is_taken_out_is_done_and_nothing_else_goes_with_it(
    was: Asked, now: Asked, places: Any, told: list[TopicPartition | None]
) -> None:
    assert told == [tp for tp, _ in taken(was, now, lambda _topic: places)]
