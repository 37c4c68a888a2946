"""What ZooKeeper did not answer is tried again in time: a broker that forgets it, or waits too long, is named."""

from __future__ import annotations

from typing import Any

import pytest

from harness.fabric.core.rules import METADATA
from targets.broker.core import (
    controller,
    isr,
    membership,
    moves,
    neighbours,
    office,
    partitions,
    permanent_paths,
    reading,
)
from targets.broker.core.assignments import Move, encode_assignment
from targets.broker.core.decided import Decided
from targets.broker.core.events import Caller
from targets.broker.core.messages import (
    AlterReassignmentsRequest,
    CreatePartitionsRequest,
    TopicPartition,
    WantedReplicas,
)
from targets.broker.core.state import Core, State
from targets.broker.core.state_writes import AwaitStateWrites
from targets.broker.core.zookeeper import PartitionState, ZkDone, ZkError, ZkNames, ZkNode, ZkResult, topic_path
from targets.simulator.broker.oracles import Rule
from targets.simulator.broker.oracles.retries import unmoved, unread, untried
from targets.simulator.broker.world import World
from targets.simulator.engine.clock import NS_PER_MS
from targets.simulator.engine.node_clock import Drift
from targets.simulator.zookeeper import ops
from tests.simulator.broker.oracles.planted import patch, sentence_of, watched
from tests.simulator.worlds import TP, WAIT_S, state

SESSION, EPOCH, NOW_NS = 7, 2, 1_000 * NS_PER_MS
DECIDED = Decided(
    tp=TP,
    state=PartitionState(leader=1, leader_epoch=1, isr=(1,), controller_epoch=EPOCH, zk_version=1),
    replicas=(1, 2),
    unclean=False,
)
WRITE = AwaitStateWrites(office=EPOCH, decisions=(DECIDED,))
NODE = ZkNode(data=b"1", version=0, owner=0, czxid=1)
STATES = reading.AwaitStates(office=EPOCH, live=(), assignments=(), topics=())
NAMES = reading.AwaitNames(office=EPOCH)
READING = ("controller-read",)
WRITTEN = membership.AwaitRegistrationWrite(taken_over=False)


def broker() -> State:
    """Return the state of a controller."""
    world, _ = watched()
    made = State(config=world.nodes["C"].config, session=SESSION, registered=True)
    made.controller.active, made.controller.epoch = True, EPOCH
    return made


@pytest.mark.parametrize(("about", "results", "key"), [
    (WRITE, (ZkError.LOST,), READING),
    (NAMES, (ZkError.LOST, ZkNames(names=()), NODE), READING),
    (STATES, (NODE, ZkError.LOST), READING),
    (office.AwaitLook(tried=3), (ZkError.LOST, ZkError.LOST), ("office", 3)),
    (permanent_paths.AwaitPaths(), (ZkDone(), ZkError.LOST), ("paths",)),
    (membership.AwaitRegistrationWatched(), (ZkDone(), ZkError.LOST), ("registration",)),
    (membership.AwaitRegistrationRead(), (ZkError.LOST,), ("register",)),
    (WRITTEN, (ZkDone(), NODE, ZkNames(names=()), ZkError.LOST, ZkError.LOST), ("register",)),
    (neighbours.AwaitNeighbours(brokers=(2,), is_before=True), (ZkError.LOST,), ("register",)),
    (neighbours.AwaitNeighbours(brokers=(2,)), (ZkError.LOST,), ("neighbours",)),
    (WRITTEN, (ZkDone(), NODE, ZkError.LOST, NODE, NODE), ("neighbours",)),
    (WRITTEN, (ZkDone(), NODE, ZkNames(names=("2",)), ZkError.LOST, NODE, NODE), ("neighbours",)),
    (WRITTEN, (ZkDone(), ZkError.LOST, ZkNames(names=()), NODE, NODE), ("registration",)),
    (membership.AwaitTopicNames(), (ZkError.LOST,), ("startup",)),
])  # fmt: skip
def test_what_was_lost_is_tried_again_after_the_back_off(
    about: Any, results: tuple[ZkResult, ...], key: tuple[Any, ...]
) -> None:
    there = broker()
    backoff_ms = there.config.controller_backoff_ms
    assert backoff_ms == there.config.register_backoff_ms
    assert untried(about, results, {SESSION}, there, NOW_NS).startswith("does not try")
    there.timers.set(key, NOW_NS + NS_PER_MS)
    assert f"in 1.0 ms, not in {backoff_ms}" in untried(about, results, {SESSION}, there, NOW_NS)
    there.timers.set(key, NOW_NS + backoff_ms * NS_PER_MS)
    assert "" == untried(about, results, {SESSION}, there, NOW_NS)


def test_decision_that_was_refused_is_read_again_at_once() -> None:
    there = broker()
    there.timers.set(READING, NOW_NS + there.config.controller_backoff_ms * NS_PER_MS)
    assert "not in 1" in untried(WRITE, (ZkError.BAD_VERSION,), {SESSION}, there, NOW_NS)
    there.timers.set(READING, NOW_NS + NS_PER_MS)
    assert "" == untried(WRITE, (ZkError.BAD_VERSION,), {SESSION}, there, NOW_NS)


def test_first_state_that_was_refused_before_is_given_time() -> None:
    there = broker()
    there.controller.refused.add(TP)
    backoff_ms = there.config.controller_backoff_ms
    for after_ms, says in ((1, ""), (backoff_ms, ""), (backoff_ms + 1, f"not in {backoff_ms}")):
        there.timers.set(READING, NOW_NS + after_ms * NS_PER_MS)
        assert says in (found := untried(WRITE, (ZkError.NODE_EXISTS,), {SESSION}, there, NOW_NS)), found
        assert bool(says) == bool(found)


@pytest.mark.parametrize(("about", "results"), [
    (WRITE, (ZkDone(),)),
    (NAMES, (ZkNames(names=()), ZkNames(names=()), ZkError.LOST)),
    (STATES, (NODE, NODE)),
    (WRITTEN, (ZkDone(), NODE, ZkNames(names=()), NODE, NODE)),
    (WRITTEN, (ZkError.NODE_EXISTS, NODE, ZkNames(names=()), NODE, NODE)),
    (reading.AwaitElectionsRemoval(), (ZkError.LOST,)),
    (isr.AwaitIsrRead(tp=TP, generation=1, isr=(1,)), (ZkError.LOST,)),
])  # fmt: skip
def test_what_was_answered_or_is_void_is_not_tried_again(about: Any, results: tuple[ZkResult, ...]) -> None:
    assert "" == untried(about, results, {SESSION}, broker(), NOW_NS)


def test_answer_to_another_session_or_office_is_not_tried_again() -> None:
    there = broker()
    assert "" == untried(STATES, (ZkError.LOST,), {SESSION - 1}, there, NOW_NS)
    there.controller.epoch += 1
    for about in (WRITE, NAMES, STATES):
        assert "" == untried(about, (ZkError.LOST,), {SESSION}, there, NOW_NS)


def _lose_a_reading(world: World) -> None:
    """Have the controller lose its connection while it reads a topic that has just been created."""
    world.zookeeper.tree.write((ops.Create(path=topic_path("other"), data=encode_assignment({0: (1, 2)})),), 0)
    process = world.nodes["C"].process
    assert process is not None
    assert world.until(lambda: process.broker.state.controller.reading, WAIT_S)
    world.links.close_links("C", METADATA)
    world.run(1.0)


def _forget(_: Any, core: Core) -> None:
    core.state.controller.reading = False


def test_controller_that_forgets_a_reading_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    world, oracles = watched()
    patch(monkeypatch, controller, "_read_failed", _forget)
    _lose_a_reading(world)
    assert "C does not try AwaitN" in sentence_of(oracles, Rule.DUE)


@pytest.mark.parametrize("clocks", [{}, {"C": Drift(offset_ns=10**15, rate=700)}])
def test_controller_that_reads_again_is_sound_by_its_own_clock(clocks: dict[str, Drift]) -> None:
    world, oracles = watched(clocks=clocks)
    _lose_a_reading(world)
    assert {} == oracles.violations
    assert state(world, TopicPartition("other", 0)).leader == 1


# --- what was written is read ----------------------------------------------------------------------------------
CALLER = Caller(connection=1, number=1)
MORE = CreatePartitionsRequest(topics=(), timeout_ms=1)
EXTENDED = partitions.AwaitTopicsExtended(caller=CALLER, request=MORE, errors=(), ids={"log": 1}, again=False)
MOVE = WantedReplicas(tp=TP, replicas=None)
MOVES = AlterReassignmentsRequest(partitions=(MOVE,), timeout_ms=1)
ASKED_FOR = (
    EXTENDED,
    moves.AwaitMovesNoted(caller=CALLER, request=MOVES, errors=(), noted=((MOVE,),), ids={"t": 1}, again=False),
    reading.AwaitWishesTaken(office=EPOCH),
)


@pytest.mark.parametrize("about", ASKED_FOR)
def test_controller_reads_what_it_has_written_for_others(about: Any) -> None:
    """V3, on_partitions_add and F: no watch says so."""
    there = broker()
    told = f"does not read what it has written for {type(about).__name__}"
    assert told == unread(about, (ZkDone(),), {SESSION}, there)
    there.controller.reading = True
    assert told == unread(about, (ZkDone(),), {SESSION}, there)  # that reading began before
    there.controller.read_again = True
    assert "" == unread(about, (ZkDone(),), {SESSION}, there)
    there.controller.read_again, there.pending[1] = False, NAMES
    assert "" == unread(about, (ZkDone(),), {SESSION}, there)


def test_what_was_not_written_or_is_another_ones_need_not_be_read() -> None:
    there = broker()
    assert "" == unread(EXTENDED, (ZkError.LOST,), {SESSION}, there)
    assert "" == unread(STATES, (ZkDone(),), {SESSION}, there)
    assert "" == unread(EXTENDED, (ZkDone(),), {SESSION + 1}, there)
    there.controller.active = False
    assert "" == unread(EXTENDED, (ZkDone(),), {SESSION}, there)


def test_moves_that_wait_are_looked_at_again() -> None:
    there = broker()
    told = STATES, (NODE,), (SESSION,)
    assert unmoved(*told, there) == ""
    there.controller.moves[TP] = Move(origin=(1, 2), target=(1, 3))
    assert unmoved(*told, there) == "does not look again at the moves that wait"
    assert unmoved(STATES, (ZkError.LOST,), (SESSION,), there) == "", "it reads again"
    there.timers.set(("reassignment",), NOW_NS)
    assert unmoved(*told, there) == ""
