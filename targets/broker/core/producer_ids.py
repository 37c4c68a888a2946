"""
Ids of idempotent producers (InitProducerId): unique in the whole cluster, and never given twice.

A broker reserves a block of ids by a conditional write of one node of ZooKeeper, and gives them from memory. If
the answer to a write is lost, the block may be this broker's or not: it gives none of it, clients ask again, and
then what is the next block by now is reserved. The rest of a block is lost with its broker's process.
Source:  KIP-98; Kafka, ZkProducerIdManager, ProducerIdBlockZNode.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from targets.broker.core import readable
from targets.broker.core.events import Answer, Caller
from targets.broker.core.messages import ErrorCode, InitProducerIdRequest, InitProducerIdResponse
from targets.broker.core.state import Core
from targets.broker.core.zookeeper import (
    PRODUCER_IDS,
    ZkCreate,
    ZkDone,
    ZkError,
    ZkGet,
    ZkMulti,
    ZkNode,
    ZkResult,
    ZkSet,
    encode_block,
)

BLOCK_IDS: Final = 1_000
_FIRST_ID: Final = 0
_LAST_ID: Final = 2**63 - 1
# The epoch of a new producer.
_FIRST_EPOCH: Final = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class AwaitLastBlock:
    """The node with the newest block is being read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AwaitBlock:
    """A block is being reserved, from this id on."""

    start: int


def on_init_producer_id(core: Core, caller: Caller, request: InitProducerIdRequest) -> None:
    """Give a producer an id, at once or after a block was reserved; there are no transactions here."""
    if request.transactional:
        response = InitProducerIdResponse(error=ErrorCode.UNSUPPORTED_VERSION)
        core.effects.append(Answer(to=caller, response=response))
        return
    ids = core.state.producer_ids
    ids.waiting.append(caller)
    if ids.next < ids.end:
        _give(core)
    elif not ids.asked:
        _read(core)


def on_read(core: Core, result: ZkResult) -> None:
    """Reserve the block after the newest one."""
    if result is not ZkError.NO_NODE and not isinstance(result, ZkNode):
        _refuse(core, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
        return
    newest = readable.read_block_end(core, result) if isinstance(result, ZkNode) else _FIRST_ID - 1
    if newest is None or newest > _LAST_ID - BLOCK_IDS:
        _refuse(core, ErrorCode.UNKNOWN_SERVER_ERROR)
        return
    start, end = newest + 1, newest + BLOCK_IDS
    data = encode_block(core.config.broker_id, start, end)
    write: ZkCreate | ZkSet = ZkCreate(path=PRODUCER_IDS, data=data)
    if isinstance(result, ZkNode):
        write = ZkSet(path=PRODUCER_IDS, data=data, version=result.version)
    core.ask(AwaitBlock(start=start), ZkMulti(ops=(write,)))


def on_written(core: Core, continuation: AwaitBlock, result: ZkResult) -> None:
    """Give ids of the block; if another broker was faster, read again."""
    ids = core.state.producer_ids
    if isinstance(result, ZkDone):
        ids.asked = False
        ids.next, ids.end = continuation.start, continuation.start + BLOCK_IDS
        _give(core)
    elif result is ZkError.LOST:
        _refuse(core, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
    else:
        _read(core)


def drop(core: Core, connection: int) -> None:
    """Forget the requests of a connection that ended."""
    ids = core.state.producer_ids
    ids.waiting = [caller for caller in ids.waiting if caller.connection != connection]


def _read(core: Core) -> None:
    core.state.producer_ids.asked = True
    core.ask(AwaitLastBlock(), ZkGet(path=PRODUCER_IDS))


def _give(core: Core) -> None:
    """Answer those who wait, the first ones first; reserve another block if this one is too small."""
    ids = core.state.producer_ids
    while ids.waiting and ids.next < ids.end:
        response = InitProducerIdResponse(error=ErrorCode.NONE, producer_id=ids.next, producer_epoch=_FIRST_EPOCH)
        core.effects.append(Answer(to=ids.waiting.pop(0), response=response))
        ids.next += 1
    if ids.waiting:
        _read(core)


def _refuse(core: Core, error: ErrorCode) -> None:
    """Answer all who wait with an error; those who ask again have ZooKeeper asked again."""
    ids = core.state.producer_ids
    for caller in ids.waiting:
        core.effects.append(Answer(to=caller, response=InitProducerIdResponse(error=error)))
    ids.waiting, ids.asked = [], False
