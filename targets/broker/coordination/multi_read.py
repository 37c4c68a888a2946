"""
Many reads in one request to ZooKeeper: kazoo has multis of writes alone.

A failover reads thousands of states. One request for each takes kazoo's threads ten times as long, and a wake-up
of the connection each; together they are one, whose reads fail one by one.
Source:  Apache ZooKeeper from 3.6 on, ZooDefs.OpCode.multiRead, MultiOperationRecord and MultiResponse.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar, Final, TypeAlias

from kazoo.client import KazooClient
from kazoo.exceptions import EXCEPTIONS
from kazoo.protocol.states import ZnodeStat

# In one request: its answer has all their data, and a topic's node may have tens of kilobytes.
READS_TOGETHER_MAX: Final = 100

_GET_DATA: Final = 4
_ERROR: Final = -1
_HEADER: Final = struct.Struct(">i?i")  # type, whether it is the last, error
_END: Final = _HEADER.pack(-1, True, -1)
_INT: Final = struct.Struct(">i")
_STAT: Final = struct.Struct(">qqqqiiiqiiq")

# The data of a node with its stat, or why it was not read.
Read: TypeAlias = tuple[bytes, ZnodeStat] | Exception


@dataclass(frozen=True, slots=True)
class MultiRead:
    """A request as kazoo sends it: serialized with its type before, and its answer deserialized."""

    paths: tuple[str, ...]
    type: ClassVar[int] = 22

    def serialize(self) -> bytes:
        """Return the reads, without watches."""
        return b"".join((*map(_asked, self.paths), _END))

    @staticmethod
    def deserialize(answer: bytes, offset: int) -> list[Read]:
        """
        Return what was read, in the order of the paths.

        Raises:
            ValueError, struct.error: the answer is no such list; kazoo passes it to the result.
        """
        return [*_results(memoryview(answer), offset)]


def _asked(path: str) -> bytes:
    name = path.encode("utf-8")
    return _HEADER.pack(_GET_DATA, False, -1) + _INT.pack(len(name)) + name + b"\0"


def _results(answer: memoryview, offset: int) -> Iterator[Read]:
    while True:
        kind, last, _ = _HEADER.unpack_from(answer, offset)
        offset += _HEADER.size
        if last:
            return
        (number,) = _INT.unpack_from(answer, offset)
        offset += _INT.size
        if kind == _ERROR:
            yield EXCEPTIONS[number]()
        elif kind == _GET_DATA:
            data = bytes(answer[offset : offset + max(0, number)])  # -1: a node without data
            offset += len(data)
            yield data, ZnodeStat._make(_STAT.unpack_from(answer, offset))
            offset += _STAT.size
        else:
            raise ValueError(f"a result of type {kind} in a multi of reads; expected {_GET_DATA} or {_ERROR}")


def read_together(client: KazooClient, paths: Sequence[str]) -> None:
    """Send the reads; the handler's linked callback gets a list of what `deserialize` returns."""
    request = MultiRead(tuple(client.chroot + path for path in paths))
    # kazoo's public calls are each such a request of its own.
    client._call(request, client.handler.async_result())
