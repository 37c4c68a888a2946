"""Sessions end right after an ask in some worlds; the answer comes in the next one, and brokers live on."""

from __future__ import annotations

from functools import partial

import pytest

from harness.model import OpType
from targets.broker.core.events import ZkAnswered
from targets.broker.core.messages import CreatePartitionsRequest, ErrorCode, MorePartitions, TopicErrors
from targets.broker.core.rules import PROTOCOLS, as_text
from targets.broker.core.zookeeper import CONTROLLER
from targets.simulator.broker.clients.caller import Caller, Outcome
from targets.simulator.broker.disturbances.by_hand import EXPIRE, depose_controller
from targets.simulator.broker.disturbances.session_ends import SessionEnds
from targets.simulator.broker.world import World
from targets.simulator.zookeeper.server import Ending
from tests.kept import exhaustive
from tests.simulator.broker.disturbances.test_administrator import LAST_LINE, step
from tests.simulator.worlds import IDS, TOPIC, WAIT_S, Ops, cluster, registered

SEEDS = range(40)


class Stage:
    """A running cluster, the session ends of its seed, and how often an answer came in a later session."""

    def __init__(self, seed: int, protocol: str = "kip380") -> None:
        self.ops = Ops()
        self.late = 0
        self.world: World = cluster(protocol, replicas=("A", "B", "C"), session_timeout_ms=1_500)
        self.world.record_into(self.ops)
        self.world.watchers.append(self._note)
        self.ends = SessionEnds(self.world, seed, LAST_LINE)

    def _note(self, name: str, event: object, effects: object) -> None:
        del effects
        broker = self.world.nodes[name].broker
        if isinstance(event, ZkAnswered) and broker is not None:
            self.late += event.session not in (0, broker.state.session) and broker.state.session != 0


def test_sessions_end_in_some_worlds_and_every_broker_registers_again() -> None:
    ended = late = 0
    for seed in SEEDS:
        stage = Stage(seed)
        stage.ends.listen(step(0))
        stage.world.run(2.0)
        stage.ends.listen(step(LAST_LINE))
        ended, late = ended + (stage.ends.ended > 0), late + (stage.late > 0)
        for name in IDS:
            assert stage.world.until(partial(registered, stage.world, name), WAIT_S), f"seed {seed}: {name}"
    assert 0 < late <= ended < len(SEEDS)


@exhaustive
def test_registration_that_goes_is_in_the_history_as_a_fault_that_took_effect() -> None:
    told = set()
    for seed in SEEDS:
        stage = Stage(seed)
        stage.ends.listen(step(0))
        stage.world.run(2.0)
        told |= {type_ for _, _, type_, f, _ in stage.ops.found if f == EXPIRE}
    assert {OpType.INVOKE, OpType.OK} == told


@exhaustive
def test_last_step_ends_it() -> None:
    for seed in SEEDS:
        stage = Stage(seed)
        before = stage.world.zookeeper.ended
        stage.ends.listen(step(0))
        stage.ends.listen(step(LAST_LINE))
        stage.world.run(2.0)
        zookeeper = stage.world.zookeeper
        assert (0, before, {}) == (stage.ends.ended, zookeeper.ended, zookeeper.ending)


def test_process_that_starts_is_hit_now_and_then_and_registers_all_the_same() -> None:
    hit = 0
    for seed in SEEDS:
        stage = Stage(seed)
        stage.ends.listen(step(0))
        stage.world.nodes["B"].kill()
        stage.world.nodes["B"].boot()
        hit += "B" in stage.world.zookeeper.ending
        stage.ends.listen(step(LAST_LINE))
        assert stage.world.until(partial(registered, stage.world, "B"), WAIT_S), f"seed {seed}"
    assert 0 < hit < len(SEEDS)


def test_end_of_a_session_of_the_process_before_leaves_the_present_one_alone() -> None:
    """What a process asked before it was killed arrives when the next one has a session of its own already."""
    stage = Stage(0)
    node, old = stage.world.nodes["B"], stage.world.zookeeper.session_of(f"/brokers/ids/{IDS['B']}")
    node.kill()
    node.boot()
    process = node.process
    assert process is not None
    assert stage.world.until(lambda: process.zookeeper.announced not in (0, old), WAIT_S)
    stage.world.zookeeper.on_ending("B", old)
    assert 0 == stage.ends.ended
    assert stage.world.until(partial(registered, stage.world, "B"), WAIT_S)


def test_broker_that_is_elected_and_does_not_hear_of_it_takes_office_all_the_same() -> None:
    stage = Stage(0)
    for name in IDS:
        stage.world.zookeeper.ending[name] = Ending(left=1, writes=True, session=False, silent=True)
    depose_controller(stage.world)
    assert stage.world.until(lambda: stage.world.zookeeper.dropped > 0, WAIT_S)
    holder = stage.world.zookeeper.sessions[stage.world.zookeeper.session_of(CONTROLLER)].owner
    broker = stage.world.nodes[holder].broker
    assert broker is not None
    assert not broker.state.controller.active
    assert stage.world.until(lambda: broker.state.controller.active, WAIT_S)


def test_controller_does_not_hear_of_partitions_that_it_adds_now_and_then() -> None:
    """A lost connection says nothing about the write."""
    told: dict[ErrorCode, int] = {}
    for seed in SEEDS:
        stage = Stage(seed)
        stage.ends.listen(step(0))
        office = stage.world.zookeeper.tree.nodes[CONTROLLER]
        name = stage.world.name_of(int(office.data))
        assert name is not None
        more = MorePartitions(topic=TOPIC, count=2)
        caller = Caller(stage.world, "client")
        caller.ask(name, CreatePartitionsRequest(topics=(more,), timeout_ms=100), 10**9, partial(_note, told))
        stage.world.run(0.1)
    assert {ErrorCode.NONE, ErrorCode.REQUEST_TIMED_OUT} <= told.keys()


def _note(told: dict[ErrorCode, int], outcome: Outcome) -> None:
    if isinstance(outcome.response, TopicErrors):
        ((_, error, _),) = outcome.response.errors
        told[error] = told.get(error, 0) + 1


@pytest.mark.parametrize(("own", "ends"), [("kip380", False), ("kip320", True)])
def test_no_session_ends_while_a_broker_speaks_a_protocol_that_misses_returns_within_an_upgrade(
    own: str, *, ends: bool
) -> None:
    """Source: KAFKA-1120; seed 21005: a leader registered anew unseen, and waited for a newer epoch for good."""
    told = set()
    for seed in SEEDS:
        stage = Stage(seed, own)
        node = stage.world.nodes["B"]
        node.kill()
        node.install("kip279-2.0.1", as_text(PROTOCOLS["kip279-2.0.1"]))
        node.boot()
        stage.ends.listen(step(0))
        stage.world.run(2.0)
        told |= {f for _, _, _, f, _ in stage.ops.found if f == EXPIRE}
    assert ends is bool(told)
