"""What a broker makes of ZooKeeper's answers: what it must not make of them is named."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from targets.broker.core import election, isr, membership, office, readable, reading, topics
from targets.broker.core.assignments import Assignment
from targets.broker.core.controller_state import Channel
from targets.broker.core.decided import Decided
from targets.broker.core.events import Answer, Arm, Caller, Effect, Observe, Tick, ZkAnswered, ZkAsk
from targets.broker.core.made import made_path
from targets.broker.core.messages import CreateTopicsRequest, ErrorCode, NewTopic, TopicErrors, TopicPartition
from targets.broker.core.state import AwaitRest, State
from targets.broker.core.state_writes import AwaitStateWrites
from targets.broker.core.wishes import Wishes, encode_wishes
from targets.broker.core.zookeeper import (
    PartitionState,
    ZkDone,
    ZkError,
    ZkExists,
    ZkGet,
    ZkNode,
    ZkResult,
    encode_state,
    topic_path,
)
from targets.simulator.broker.clients.client import SimClient
from targets.simulator.broker.oracles import Rule
from targets.simulator.broker.oracles.heard import Heard
from targets.simulator.broker.oracles.violation import Violations
from targets.simulator.broker.world import World
from targets.simulator.zookeeper import ops
from tests.simulator.broker.oracles.planted import patch, post, replica_of, sentence_of, watched
from tests.simulator.worlds import TP, WAIT_S, state

CALLER = Caller(connection=1, number=1)
EARLIER = 5
READ = ZkNode(data=b"", version=0, owner=0, czxid=1)
ASKS = ZkAsk(tag=10**6, ops=(ZkGet(path="/x"),))


def state_of(world: World, name: str) -> State:
    broker = world.nodes[name].broker
    assert broker is not None
    return broker.state


class Room:
    """An oracle beside a world, which is told of steps of the controller that nothing has made."""

    def __init__(self) -> None:
        self.world, _ = watched()
        self.name = next(name for name in self.world.nodes if state_of(self.world, name).controller.active)
        self.state = state_of(self.world, self.name)
        self._violations = Violations(self.world)
        self._heard = Heard(self.world, self._violations, TP)
        self._tag = 10**7

    def step(self, event: Any, *effects: Effect) -> str:
        """Return what is found in a step, "" if nothing; its timers, which nothing has set, are not looked at."""
        self._violations.found.clear()
        self._heard.on_step(self.name, event, effects, self.state)
        found = {rule: violation.sentence for (rule, _), violation in self._violations.found.items()}
        return " ".join(sentence for rule, sentence in found.items() if rule is not Rule.DUE)

    def asks(self, pending: Any) -> ZkAsk:
        """Return a new ask, which waits."""
        self._tag += 1
        self.state.pending[self._tag] = pending
        return ZkAsk(tag=self._tag, ops=())

    def answered(self, about: Any, results: Sequence[ZkResult], *effects: Effect, session: int = 0) -> str:
        """Return what is found when an ask is answered, by default in the present session."""
        asked = self.asks(about)
        assert self.step(Tick(), asked) == ""
        del self.state.pending[asked.tag]
        told = session or self.state.session
        return self.step(ZkAnswered(tag=asked.tag, session=told, results=tuple(results)), *effects)


@pytest.fixture(name="room", scope="module")
def fixture_room() -> Room:
    return Room()


LOOK = office.AwaitLook()
STATES = membership.AwaitPartitionStates(assigned=(), ids=())


def test_what_another_session_was_told_is_void(room: Room) -> None:
    """Source: KAFKA-7165."""
    assert room.answered(LOOK, [READ, READ], ASKS) == ""
    assert room.answered(LOOK, [READ, READ], Arm(at_ns=1), session=EARLIER) == ""
    assert "though session 0x5 was told them" in room.answered(LOOK, [READ, READ], ASKS, session=EARLIER)


def test_what_two_sessions_were_told_in_parts_is_void(room: Room) -> None:
    rest = AwaitRest(continuation=LOOK, left=[])
    first, second = room.asks(rest), room.asks(rest)
    assert room.step(Tick(), first) == ""
    assert room.step(ZkAnswered(tag=first.tag, session=EARLIER, results=(READ,)), second) == ""
    last = ZkAnswered(tag=second.tag, session=room.state.session, results=(READ,))
    assert "session 0x5, 0x1" in room.step(last, ASKS)


def test_reading_of_which_a_part_was_lost_decides_nothing(room: Room) -> None:
    ready = Observe(f="ready", value={})
    assert room.answered(STATES, [READ], ready) == ""
    assert room.answered(STATES, [READ, ZkError.LOST], Arm(at_ns=1)) == ""
    assert "though a part of them was lost" in room.answered(STATES, [READ, ZkError.LOST], ready)


def test_reading_of_an_earlier_office_decides_nothing(room: Room) -> None:
    before = reading.AwaitNames(office=room.state.controller.epoch - 1)
    assert room.answered(reading.AwaitNames(office=room.state.controller.epoch), [READ] * 3, ASKS) == ""
    assert "and it left that office" in room.answered(before, [READ] * 3, ASKS)


def test_registration_of_another_session_is_not_its_own(room: Room) -> None:
    registered, write = Observe(f="member", value={}), membership.AwaitRegistrationWrite(taken_over=False)
    own = ZkNode(data=b"", version=0, owner=room.state.session, czxid=1)
    assert room.answered(write, [ZkDone(), own], registered) == ""
    other = ZkNode(data=b"", version=0, owner=EARLIER, czxid=1)
    assert "the registration is of session 0x5" in room.answered(write, [ZkDone(), other], registered)


# --- an ISR --------------------------------------------------------------------------------------------------
def test_isr_of_an_answer_to_another_session_is_not_taken(room: Room) -> None:
    write = isr.AwaitIsrWrite(tp=TP, generation=replica_of(room.world, "A").generation, isr=(1,))
    taken = Observe(f="isr", value={})
    assert room.answered(write, [ZkDone()], taken) == ""
    assert room.answered(write, [ZkDone()], ASKS, session=EARLIER) == ""
    assert "from the answer to another session" in room.answered(write, [ZkDone()], taken, session=EARLIER)


def test_isr_that_may_have_been_written_counts_on() -> None:
    """Source: KIP-497: of a lost write that another one followed, the members that it added may be electable."""
    room = Room()
    room.name, room.state = "A", state_of(room.world, "A")
    replica, asked = replica_of(room.world, "A"), (1, 2)
    other = PartitionState(leader=2, leader_epoch=9, isr=(2,), controller_epoch=9, zk_version=0)
    node = ZkNode(data=encode_state(other), version=replica.zk_version + 2, owner=0, czxid=1)
    read = isr.AwaitIsrRead(tp=TP, generation=replica.generation, isr=asked)
    replica.isr_asked = asked
    assert room.answered(read, [node]) == ""
    replica.isr_asked = None
    assert "forgets the ISR (1, 2) of log-0" in room.answered(read, [node])


# --- a controller's reading ----------------------------------------------------------------------------------
def read_of(room: Room, wanted: ZkNode | None = None) -> tuple[reading.AwaitStates, list[ZkResult]]:
    """Return a reading of the one partition that there is, with an operator's elections, and what it found."""
    there = state(room.world)
    node = ZkNode(data=encode_state(there), version=there.zk_version, owner=0, czxid=1)
    about = reading.AwaitStates(
        office=room.state.controller.epoch,
        live=(),
        assignments=((TP, (1, 2, 3)),),
        topics=((TP.topic, there.topic_id, 0),),
        asked=wanted,
        read=(TP,),
    )
    return about, [node]


def test_election_that_an_operator_asked_for_takes_place(room: Room) -> None:
    follower = room.world.ids["B"]
    asked = {TopicPartition("gone", 0): 1, TP: follower}
    wanted = ZkNode(data=encode_wishes(Wishes(elections=asked)), version=0, owner=0, czxid=1)
    about, found = read_of(room, wanted)
    assert f"does not elect broker {follower} in log-0" in room.answered(about, found)
    decided = PartitionState(leader=follower, leader_epoch=1, isr=(1, 2), controller_epoch=1, zk_version=1)
    decision = Decided(tp=TP, state=decided, replicas=(1, 2), unclean=False)
    write = room.asks(AwaitStateWrites(office=room.state.controller.epoch, decisions=(decision,)))
    assert room.answered(about, found, write) == ""


def test_commands_for_a_broker_that_is_gone_are_not_kept(room: Room) -> None:
    room.state.controller.channels[77] = Channel()
    assert "keeps commands for broker 77" in room.answered(*read_of(room))
    del room.state.controller.channels[77]
    assert room.answered(*read_of(room)) == ""


def test_first_isr_with_a_dead_broker_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def all_of(_original: Any, replicas: tuple[int, ...], _live: Any) -> election.Decision:
        return election.Decision(leader=replicas[0], leader_epoch=0, isr=replicas)

    world, oracles = watched()
    patch(monkeypatch, election, "init_leader", all_of)
    _write_topic(world, [world.ids["A"], 99])
    assert any("puts broker 99 into a partition's" in v.sentence for v in oracles.violations.values())


def test_first_leader_that_is_not_the_preferred_one_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    world, oracles = watched()
    patch(monkeypatch, readable, "decode_topic", lambda original, *given: _sorted(original(*given)))
    low, _, high = sorted(world.ids.values())
    _write_topic(world, [high, low])
    assert any(f"makes broker {low} a partition's first leader" in v.sentence for v in oracles.violations.values())


def _sorted(topic: Assignment) -> Assignment:
    return replace(topic, replicas={partition: tuple(sorted(of)) for partition, of in topic.replicas.items()})


def _write_topic(world: World, replicas: list[int]) -> None:
    """Write a topic's assignment as an operator's tool does, but for its mark, and let the controller see it."""
    data = json.dumps({"partitions": {"0": replicas}, "made": "1-1"}).encode()
    creates = ops.Create(path=topic_path("made"), data=data), ops.Create(path=made_path("made", "1-1"))
    world.zookeeper.tree.write(creates, 0)
    world.run(0.2)


# --- topics --------------------------------------------------------------------------------------------------
def test_topic_that_is_only_validated_is_not_written(monkeypatch: pytest.MonkeyPatch) -> None:
    def writes(original: Any, core: Any, continuation: topics.AwaitLiveBrokers, result: ZkResult) -> None:
        original(core, continuation, result)
        core.ask(LOOK, ZkExists(path="/brokers/topics/new"))

    world, oracles = watched()
    request = CreateTopicsRequest(
        topics=(NewTopic(topic="new", partitions=1, replication_factor=1),), timeout_ms=100, validate_only=True
    )
    post(world, "A", request)
    world.run(0.1)
    assert "" == sentence_of(oracles, Rule.ANSWERS)
    patch(monkeypatch, topics, "on_live_read", writes)
    post(world, "A", request)
    world.run(0.1)
    assert "that it was only to validate" in sentence_of(oracles, Rule.ANSWERS)


def test_topic_of_whose_deletes_one_failed_is_not_deleted(room: Room) -> None:
    about = topics.AwaitTopicsWrite(caller=CALLER, errors=(), names=("t", "t"), deleting=True)

    def told(error: ErrorCode) -> Answer:
        return Answer(to=CALLER, response=TopicErrors(errors=(("t", error, ""),), deleting=True))

    assert room.answered(about, [ZkDone(), ZkDone()], told(ErrorCode.NONE)) == ""
    failed = [ZkError.NO_NODE, ZkDone()]
    assert room.answered(about, failed, told(ErrorCode.UNKNOWN_SERVER_ERROR)) == ""
    assert "says that topic t is deleted, and a write of that failed" in room.answered(
        about, failed, told(ErrorCode.NONE)
    )


def test_sound_core_is_silent_through_sessions_and_topics() -> None:
    world, oracles = watched()
    client = SimClient(world)
    for name in ("B", "A", "C"):
        for number in [each.number for each in world.zookeeper.sessions.values() if each.owner == name]:
            world.zookeeper.expire(number)
        world.run(0.05)
    assert world.until(lambda: len(state(world).isr) == 3, WAIT_S)
    client.create_topic("more", [world.ids["B"], world.ids["A"]])
    world.run(0.5)
    assert {} == oracles.violations
