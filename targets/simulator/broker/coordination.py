"""
Between our broker's words for ZooKeeper and ZooKeeper's own: asks out; answers, watches and sessions back.

Source:  targets/broker/coordination, which does the same with kazoo.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from targets.broker.core.events import ZkAnswered, ZkFired, ZkSession
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
    ZkResult,
    ZkSet,
    ZkSync,
    decode_state,
)
from targets.simulator.zookeeper import ops
from targets.simulator.zookeeper.client import Announced, Answered, Fired

_WRITES: Final[Mapping[type, Callable[[Any], ops.Write]]] = {
    ZkCreate: lambda part: ops.Create(path=part.path, data=part.data, ephemeral=part.ephemeral),
    ZkSet: lambda part: ops.Set(path=part.path, data=part.data, version=part.version),
    ZkDelete: lambda part: ops.Delete(path=part.path, version=part.version),
    ZkCheck: lambda part: ops.Check(path=part.path, version=part.version),
}
_OPS: Final[Mapping[type, Callable[[Any], ops.Op]]] = {
    ZkGet: lambda op: ops.Get(path=op.path),
    ZkExists: lambda op: ops.Exists(path=op.path, watch=op.watch),
    ZkChildren: lambda op: ops.Children(path=op.path, watch=op.watch),
    ZkSync: lambda op: ops.Sync(path=op.path),
    ZkCreate: lambda op: ops.Create(path=op.path, data=op.data, ephemeral=op.ephemeral),
    ZkMulti: lambda op: ops.Multi(parts=writes(op.ops)),
}
_ERRORS: Final = {error: ZkError(error.value) for error in ops.Error}
_DONE: Final = ZkDone()


def asked(wanted: Iterable[ZkOp]) -> tuple[ops.Op, ...]:
    """Return what the core asks, as ZooKeeper's client takes it."""
    return tuple([_OPS[type(op)](op) for op in wanted])


def writes(parts: Iterable[ZkCreate | ZkSet | ZkDelete | ZkCheck]) -> tuple[ops.Write, ...]:
    """Return what is to be written at once, as ZooKeeper's tree takes it."""
    return tuple([_WRITES[type(part)](part) for part in parts])


def answer(result: ops.Result) -> ZkResult:
    """Return a result as the core reads it."""
    if type(result) is ops.Node:
        return _node(result)
    if isinstance(result, ops.Error):
        return _ERRORS[result]
    if isinstance(result, ops.Names):
        return ZkNames(names=result.names)
    assert isinstance(result, ops.Done), f"{result!r}: expected a result of {ops.Result}"
    return _DONE


def heard(event: Answered | Fired | Announced) -> ZkAnswered | ZkFired | ZkSession:
    """Return what a client has heard, as an event of the core."""
    if isinstance(event, Answered):
        return ZkAnswered(tag=event.tag, session=event.session, results=tuple(map(answer, event.results)))
    return ZkFired(path=event.path) if isinstance(event, Fired) else ZkSession(session=event.session)


def state_in(node: ops.Node) -> PartitionState:
    """
    Return a partition's state as a node has it.

    Raises:
        NodeError: the node holds something else.
    """
    return decode_state(_node(node))


def state_written(data: bytes) -> PartitionState:
    """Return a partition's state as it is to be written; its version is not known yet."""
    return decode_state(ZkNode(data=data, version=0, owner=0, czxid=0))


def _node(node: ops.Node) -> ZkNode:
    return ZkNode(data=node.data, version=node.version, owner=node.owner, czxid=node.czxid, mzxid=node.mzxid)
