"""Our broker's words for ZooKeeper and ZooKeeper's own say the same."""

from __future__ import annotations

from typing import get_args

import pytest

from targets.broker.core.events import ZkAnswered, ZkFired, ZkSession
from targets.broker.core.messages import TopicPartition
from targets.broker.core.zookeeper import (
    PartitionState,
    ZkCheck,
    ZkChildren,
    ZkCreate,
    ZkDelete,
    ZkDone,
    ZkError,
    ZkExists,
    ZkGet,
    ZkMulti,
    ZkNames,
    ZkNode,
    ZkOp,
    ZkSet,
    ZkSync,
    encode_state,
    leader_and_isr_path,
)
from targets.simulator.broker.coordination import answer, asked, heard, state_in, state_written
from targets.simulator.zookeeper import ops
from targets.simulator.zookeeper.client import Announced, Answered, Fired

PATH = leader_and_isr_path(TopicPartition("t", 0))
ASKED: list[tuple[ZkOp, ops.Op]] = [
    (ZkGet(path="/a"), ops.Get(path="/a")),
    (ZkExists(path="/a", watch=True), ops.Exists(path="/a", watch=True)),
    (ZkChildren(path="/a", watch=True), ops.Children(path="/a", watch=True)),
    (ZkSync(path="/a"), ops.Sync(path="/a")),
    (ZkCreate(path="/a", data=b"1", ephemeral=True), ops.Create(path="/a", data=b"1", ephemeral=True)),
    (
        ZkMulti(
            ops=(
                ZkCheck(path="/c", version=3),
                ZkCreate(path="/a", data=b"1"),
                ZkSet(path="/s", data=b"2", version=4),
                ZkDelete(path="/d", version=5),
            )
        ),
        ops.Multi(
            parts=(
                ops.Check(path="/c", version=3),
                ops.Create(path="/a", data=b"1"),
                ops.Set(path="/s", data=b"2", version=4),
                ops.Delete(path="/d", version=5),
            )
        ),
    ),
]
NODE = ops.Node(data=b"1", version=2, owner=3, czxid=4, mzxid=5)
RESULTS = [
    (NODE, ZkNode(data=b"1", version=2, owner=3, czxid=4, mzxid=5)),
    (ops.Names(names=("a", "b")), ZkNames(names=("a", "b"))),
    (ops.Done(), ZkDone()),
    *zip(ops.Error, ZkError, strict=True),
]


def test_each_operation_of_the_core_is_asked_as_the_one_of_zookeeper() -> None:
    assert {*get_args(ZkOp)} == {type(op) for op, _ in ASKED}
    assert tuple(op for _, op in ASKED) == asked(op for op, _ in ASKED)


@pytest.mark.parametrize(("told", "read"), RESULTS)
def test_each_result_is_read_as_the_cores_own(told: ops.Result, read: object) -> None:
    assert read == answer(told)
    assert type(read) is type(answer(told))


def test_result_of_another_vocabulary_is_refused() -> None:
    with pytest.raises(AssertionError, match="expected a result"):
        answer(ZkDone())  # type: ignore[arg-type]


def test_what_a_client_hears_is_an_event_of_the_core() -> None:
    answered = Answered(tag=1, session=7, results=(ops.Error.LOST, ops.Done()))
    assert ZkAnswered(tag=1, session=7, results=(ZkError.LOST, ZkDone())) == heard(answered)
    assert (ZkFired(path="/a"), ZkSession(session=7)) == (heard(Fired(path="/a")), heard(Announced(session=7)))


def test_state_has_the_version_of_its_node_and_none_before_it_is_written() -> None:
    state = PartitionState(leader=1, leader_epoch=2, isr=(1, 3), controller_epoch=4, zk_version=6)
    node = ops.Node(data=encode_state(state), version=6, owner=0, czxid=1)
    assert state == state_in(node)
    assert (0, state.isr) == ((found := state_written(node.data)).zk_version, found.isr)
