"""
Open the message blocks of one store: a stream's, or that of a Raft group's log; which there are, and their bytes.

    NAME/meta.inf       its configuration, JSON; encrypted if there is a meta.key
    NAME/msgs/N.blk     a block; N rises. Encrypted if there is a N.key
    NAME/msgs/index.db  what follows from the blocks, as of some minutes ago: not read

A block of a stream with `compression: s2` is compressed when it is written no more: `cmp`, 1, a length as a
varint, an S2 stream, and the last record's checksum as it is. The length is that of the block when opened, but
2.12.1 writes that of the S2 stream there; no server reads it. Such a block is opened in memory, up to a limit; any
other is read piece by piece.

Source:  nats-server 2.15.3, server/filestore.go, CompressionInfo, Decompress, loadEncryptionForMsgBlock.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

from harness.beneath import Folder
from harness.logs.files import Seen, seen_in
from harness.logs.names import shown
from harness.logs.source import BytesSource, Source, opened
from targets.nats.logs.blocks import SUM_BYTES, Damage, Stored, records
from targets.nats.logs.highway import block_key
from targets.nats.logs.s2 import S2Error, opened_stream, varint

_BLOCK: Final = re.compile(r"(?:0|[1-9][0-9]{0,9})\.blk")
_COMPRESSED: Final = b"cmp\x01"
_LENGTH_BYTES_MAX: Final = 10
# A server makes blocks of 8 MB at most, with the record that fills one.
_COMPRESSED_BYTES_MAX: Final = 16 * 1024 * 1024
_OPENED_BYTES_MAX: Final = 32 * 1024 * 1024


class OpenError(ValueError):
    """A block's bytes cannot be had; the text says why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Store:
    """
    One store's blocks.

    Attributes:
        name: From which the keys of the checksums are: the stream's, or the Raft group's.
        path: The folder of the blocks, below the node's.
        folder: The same, open.
        blocks: The names of the files by their numbers, rising.
    """

    name: str
    path: str
    folder: Folder
    blocks: Mapping[int, str]

    def file(self, number: int) -> str:
        """Return a block's path, for people."""
        return shown(f"{self.path}/{self.blocks[number]}")

    @contextmanager
    def source(self, number: int) -> Iterator[tuple[Source, str]]:
        """
        Open a block for a time; yield its bytes, and why they are not all of them, "" if they are.

        Raises:
            OpenError: It is encrypted, or compressed and larger than this reader takes.
            OSError: It cannot be read.
        """
        if is_there(self.folder, f"{number}.key"):
            raise OpenError(f"it is encrypted, as {number}.key beside it says; expected a block in plain bytes")
        with opened(self.folder, self.blocks[number]) as source:
            if source.at(0, len(_COMPRESSED)) != _COMPRESSED:
                yield source, ""
                return
            yield _decompressed(source)

    def is_compressed(self, number: int) -> bool:
        """Return whether a block is compressed; raises OSError."""
        with opened(self.folder, self.blocks[number]) as source:
            return source.at(0, len(_COMPRESSED)) == _COMPRESSED

    def records(self) -> Iterator[tuple[int, Stored | Damage]]:
        """Yield the block's number and what the walk finds, block by block; what cannot be opened is damage."""
        last = 0
        for number in self.blocks:
            try:
                with self.source(number) as (source, why):
                    for found in records(source, block_key(self.name, number), last):
                        if isinstance(found, Stored):
                            last = max(last, found.sequence)
                        yield number, found
                    if why:
                        yield number, Damage(text=why, position=source.size, end=source.size)
            except (OpenError, OSError) as error:
                yield number, Damage(text=reason(error), position=0, end=0)


def blocks_in(folder: Folder) -> dict[int, str]:
    """
    Return the blocks of a folder by their numbers, rising.

    Raises:
        OSError: It cannot be listed, or has more than FOLDER_NAMES_MAX blocks.
    """
    return {int(name.removesuffix(".blk")): name for name in sorted(seen_in(folder, _BLOCK), key=_number)}


def seen_blocks(folder: Folder) -> Seen:
    """Return the blocks of a folder, by names that sort as their numbers do; raises as blocks_in."""
    return {f"{_number(name):020d}": seen for name, seen in seen_in(folder, _BLOCK).items()}


def is_there(folder: Folder, name: str) -> bool:
    """Return whether a folder has this name, whatever it is; raises OSError if that cannot be seen."""
    try:
        folder.lstat(name)
    except FileNotFoundError:
        return False
    return True


def reason(error: Exception) -> str:
    """Return why something cannot be read."""
    return error.strerror or str(error) if isinstance(error, OSError) else str(error)


def _number(name: str) -> int:
    return int(name.removesuffix(".blk"))


def _decompressed(source: Source) -> tuple[Source, str]:
    """Return the bytes of a compressed block as far as they open, and why they do not, "" if they do."""
    if source.size > _COMPRESSED_BYTES_MAX:
        text = f"a compressed block of {source.size} bytes"
        raise OpenError(f"{text}; this reader takes at most {_COMPRESSED_BYTES_MAX}")
    try:
        _, begin = varint(source.at(0, len(_COMPRESSED) + _LENGTH_BYTES_MAX), len(_COMPRESSED))
        data = source.at(begin, source.size - begin)
        found = opened_stream(data[:-SUM_BYTES], _OPENED_BYTES_MAX)
    except S2Error as error:
        return BytesSource(error.opened), f"compressed block, {error}"
    return BytesSource(found + data[-SUM_BYTES:]), ""
