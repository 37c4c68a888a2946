"""
Many writes in one request to ZooKeeper, all or none, as bytes at once.

kazoo's own transaction takes each path apart and makes four objects for each write: for ten thousand partitions
whose leaders change, some seconds of a processor.
Source:  Apache ZooKeeper, ZooDefs.OpCode.multi, MultiOperationRecord, MultiResponse, CreateRequest.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar, Final, TypeAlias

from kazoo.client import KazooClient
from kazoo.exceptions import EXCEPTIONS

from targets.broker.core.zookeeper import ZkCheck, ZkCreate, ZkDelete, ZkSet

Write: TypeAlias = ZkCreate | ZkSet | ZkDelete | ZkCheck

_CREATE: Final = 1
_DELETE: Final = 2
_SET: Final = 5
_CHECK: Final = 13
_ERROR: Final = -1
_HEADER: Final = struct.Struct(">i?i")  # type, whether it is the last, error
_HEADERS: Final = {kind: _HEADER.pack(kind, False, -1) for kind in (_CREATE, _DELETE, _SET, _CHECK)}
_END: Final = _HEADER.pack(-1, True, -1)
_INT: Final = struct.Struct(">i")
_EPHEMERAL: Final = 1
_STAT_BYTES: Final = 68


def _sized(data: bytes) -> bytes:
    return _INT.pack(len(data)) + data


# Everybody may do everything: one entry with all five permissions.
_OPEN: Final = _INT.pack(1) + _INT.pack(31) + _sized(b"world") + _sized(b"anyone")


@dataclass(frozen=True, slots=True)
class MultiWrite:
    """A request as kazoo sends it: serialized with its type before, and its answer deserialized."""

    chroot: str
    writes: tuple[Write, ...]
    type: ClassVar[int] = 14

    def serialize(self) -> bytes:
        """Return the writes."""
        return b"".join((*(_written(self.chroot, write) for write in self.writes), _END))

    @staticmethod
    def deserialize(answer: bytes, offset: int) -> list[Exception | None]:
        """
        Return of each write why it failed, None if it did not.

        Raises:
            ValueError, struct.error: the answer is no such list; kazoo passes it to the result.
        """
        return [*_results(answer, offset)]


def _written(chroot: str, write: Write) -> bytes:
    path = _sized(f"{chroot}{write.path}".encode())
    match write:
        case ZkSet(data=data, version=version):
            return _HEADERS[_SET] + path + _sized(data) + _INT.pack(version)
        case ZkCheck(version=version):
            return _HEADERS[_CHECK] + path + _INT.pack(version)
        case ZkCreate(data=data, ephemeral=ephemeral):
            flags = _INT.pack(_EPHEMERAL if ephemeral else 0)
            return _HEADERS[_CREATE] + path + _sized(data) + _OPEN + flags
        case ZkDelete(version=version):
            return _HEADERS[_DELETE] + path + _INT.pack(version)


def _results(answer: bytes, offset: int) -> Iterator[Exception | None]:
    while True:
        kind, last, _ = _HEADER.unpack_from(answer, offset)
        offset += _HEADER.size
        if last:
            return
        if kind == _ERROR:
            (number,) = _INT.unpack_from(answer, offset)
            offset += _INT.size
            yield EXCEPTIONS[number]()
            continue
        if kind == _SET:
            offset += _STAT_BYTES
        elif kind == _CREATE:
            (length,) = _INT.unpack_from(answer, offset)
            offset += _INT.size + max(0, length)
        elif kind not in (_DELETE, _CHECK):
            raise ValueError(f"a result of type {kind} in a multi of writes; expected one of {sorted(_HEADERS)}")
        yield None


def write_together(client: KazooClient, writes: Sequence[Write]) -> None:
    """Send the writes; the handler's linked callback gets a list of what `deserialize` returns."""
    # kazoo's public calls are each such a request of its own.
    client._call(MultiWrite(client.chroot, tuple(writes)), client.handler.async_result())
