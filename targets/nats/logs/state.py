"""
Choose a byte of the files of a replica that keep no record, and read them again once it is flipped.

    GROUP/tav.idx                the Raft group's term 8, and whom the server voted for, 8 letters or none
    GROUP/peers.idx              how many members vote 4, how many are listed 4, each 8 letters, and 2 bytes more
    GROUP/snapshots/snap.T.I     what stands for the entries up to index I, of term T; checksum 8
    STREAM/msgs/index.db         what follows from the stream's blocks; checksum 8
    STREAM/meta.inf              the stream's configuration, JSON; its checksum in hexadecimal is meta.sum

All numbers are little endian. A checksum is a HighwayHash-64, whose key is the SHA-256 of the group's name, or the
stream's. The first two files have none: a term that was flipped is a lower one, and a member is one that is none.

Only a sound file is chosen, as a damaged one would prove nothing. Files may be a stranger's: none is read beyond
what a server makes of them.

Source:  nats-server 2.15.3, server/raft.go, readTermVote, decodePeerState, loadLastSnapshot; server/filestore.go,
         recoverFullState, writeStreamMeta; the same in 2.12.1.
"""

from __future__ import annotations

import hashlib
import re
import struct
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Final, NamedTuple

from harness.beneath import Folder, RefusedError
from harness.bit_rot import RECORD_BIT, Flip, Where
from harness.logs.names import shown
from harness.logs.source import opened
from targets.nats.logs.blocks import SUM_BYTES
from targets.nats.logs.data import MESSAGES, META, Place
from targets.nats.logs.highway import highway

TERM: Final = "tav.idx"
MEMBERS: Final = "peers.idx"
SNAPSHOTS: Final = "snapshots"
INDEX: Final = "index.db"
SUM: Final = "meta.sum"

_TERM_BYTES: Final = 8
_ID_BYTES: Final = 8
_COUNTS: Final = struct.Struct("<II")
# A stream has five replicas at most.
_MEMBERS_MAX: Final = 32
_SNAPSHOT: Final = re.compile(r"snap\.(0|[1-9][0-9]{0,19})\.(0|[1-9][0-9]{0,19})")
# Their checksum takes this reader some ten seconds at most; a server's of few streams are of some KB.
_SUMMED_BYTES_MAX: Final = 4 * 1024 * 1024
# What is flipped is no part of the checksum, and there is a byte of it.
_LEAST_BYTES: Final = SUM_BYTES + 1


class _Kept(NamedTuple):
    """A file, and what its checksum's key is made of."""

    path: str
    name: str


def flip_of_state(data: Folder, place: Place, groups: Sequence[str], where: Where) -> Flip | None:
    """
    Choose a byte of a file of a stream's state; None if there is no such file that is sound.

    Args:
        data: The store directory.
        groups: The folders of the Raft groups that replicate the stream, from data.groups_of.

    Raises:
        OSError: A file cannot be read.
    """
    for kept in _files(data, place, groups, where):
        found = _read(data, kept.path)
        chosen = None if found is None else _CHOICES[where](data, kept, found)
        if found is not None and chosen is not None:
            position, bit = chosen
            before = found[position]
            return Flip(path=kept.path, position=position, before=before, after=before ^ bit, state=where)
    return None


def read_again(data: Folder, flip: Flip) -> str:
    """
    Return what a file says since a byte of it was flipped, "" if the byte is not there.

    Raises:
        OSError: The file cannot be read.
    """
    now = _read(data, flip.path)
    if now is None or flip.state is None or now[flip.position : flip.position + 1] != bytes((flip.after,)):
        return ""
    if flip.state is Where.TERM:
        before = now[: flip.position] + bytes((flip.before,)) + now[flip.position + 1 :]
        return f"term {_term(before)} is now {_term(now)}"
    if flip.state is Where.MEMBERS:
        at = flip.position - (flip.position - _COUNTS.size) % _ID_BYTES
        return f"a member is now {shown(now[at : at + _ID_BYTES].decode('latin-1'))}, which is none"
    kept = _Kept(path=flip.path, name=_name_of(flip))
    if flip.state is Where.META:
        told, counted = _sum_of_meta(data, kept, now)
        return "" if told == counted else f"checksum in {SUM} is {shown(told)}, its bytes have {counted}"
    told, counted = now[-SUM_BYTES:].hex(), _sum(kept.name, now[:-SUM_BYTES]).hex()
    return "" if told == counted else f"checksum is {told}, its bytes have {counted}"


# --- which file -----------------------------------------------------------------------------------------------
def _files(data: Folder, place: Place, groups: Sequence[str], where: Where) -> Iterator[_Kept]:
    if where is Where.INDEX:
        yield _Kept(path=f"{place.path}/{MESSAGES}/{INDEX}", name=place.stream)
    elif where is Where.META:
        yield _Kept(path=f"{place.path}/{META}", name=place.stream)
    elif where is Where.SNAPSHOT:
        for group in groups:
            yield from (_Kept(path=path, name=_last(group)) for path in _newest_snapshot(data, group))
    elif where in (Where.TERM, Where.MEMBERS):
        file = TERM if where is Where.TERM else MEMBERS
        yield from (_Kept(path=f"{group}/{file}", name=_last(group)) for group in groups)


def _newest_snapshot(data: Folder, group: str) -> list[str]:
    """Return the snapshot that a server would start from: the one of the highest term, and index."""
    path = f"{group}/{SNAPSHOTS}"
    try:
        with data.folder(path) as folder:
            found = [match for entry in folder.entries() if (match := _SNAPSHOT.fullmatch(entry.name))]
    except (FileNotFoundError, NotADirectoryError, RefusedError):
        return []
    newest = sorted(found, key=lambda match: (int(match[1]), int(match[2])))[-1:]
    return [f"{path}/{match[0]}" for match in newest]


def _name_of(flip: Flip) -> str:
    """Return the name of the group or stream that a chosen file is of."""
    folders = flip.path.split("/")
    return folders[-2 if flip.state is Where.META else -3]


def _last(path: str) -> str:
    return path.rpartition("/")[2]


def _read(data: Folder, path: str) -> bytes | None:
    """Return a file's bytes; None if it is none, or larger than this reader takes."""
    with suppress(FileNotFoundError, NotADirectoryError, RefusedError), opened(data, path) as source:
        if source.size <= _SUMMED_BYTES_MAX:
            return source.at(0, source.size)
    return None


# --- which byte of it, and which bit ---------------------------------------------------------------------------
def _of_term(_: Folder, __: _Kept, found: bytes) -> tuple[int, int] | None:
    """Choose the lowest bit that the term has, so that it is a lower one."""
    term = _term(found)
    if len(found) not in (_TERM_BYTES, _TERM_BYTES + _ID_BYTES) or term == 0:
        return None
    lowest = (term & -term).bit_length() - 1
    return lowest // 8, 1 << lowest % 8


def _of_members(_: Folder, __: _Kept, found: bytes) -> tuple[int, int] | None:
    """Choose the last letter of the member that is last by name: servers list them in any order."""
    if len(found) < _COUNTS.size:
        return None
    _, count = _COUNTS.unpack_from(found)
    end = _COUNTS.size + count * _ID_BYTES
    if not 0 < count <= _MEMBERS_MAX or len(found) not in (end, end + 2):
        return None
    listed = {found[at : at + _ID_BYTES]: at for at in range(_COUNTS.size, end, _ID_BYTES)}
    chosen = max(listed)
    for bit in (RECORD_BIT << each for each in range(8)):
        if chosen[:-1] + bytes((chosen[-1] ^ bit,)) not in listed:
            return listed[chosen] + _ID_BYTES - 1, bit
    return None


def _of_summed(_: Folder, kept: _Kept, found: bytes) -> tuple[int, int] | None:
    """Choose the middle byte of what a checksum at the end covers."""
    if len(found) < _LEAST_BYTES or _sum(kept.name, found[:-SUM_BYTES]) != found[-SUM_BYTES:]:
        return None
    return (len(found) - SUM_BYTES) // 2, RECORD_BIT


def _of_meta(data: Folder, kept: _Kept, found: bytes) -> tuple[int, int] | None:
    """Choose the middle byte of a configuration."""
    told, counted = _sum_of_meta(data, kept, found)
    return (len(found) // 2, RECORD_BIT) if found and told == counted else None


_CHOICES: Final[Mapping[Where, Callable[[Folder, _Kept, bytes], tuple[int, int] | None]]] = {
    Where.TERM: _of_term,
    Where.MEMBERS: _of_members,
    Where.SNAPSHOT: _of_summed,
    Where.INDEX: _of_summed,
    Where.META: _of_meta,
}


# --- what files say ---------------------------------------------------------------------------------------------
def _term(found: bytes) -> int:
    return int.from_bytes(found[:_TERM_BYTES], "little")


def _sum(name: str, covered: bytes) -> bytes:
    key = hashlib.sha256(name.encode("utf-8", "surrogateescape")).digest()
    return highway(key, covered).to_bytes(SUM_BYTES, "little")


def _sum_of_meta(data: Folder, kept: _Kept, found: bytes) -> tuple[str, str]:
    """Return the checksum that stands beside a configuration, and that of its bytes."""
    beside = _read(data, f"{kept.path.removesuffix(META)}{SUM}") or b""
    return beside.decode("latin-1"), _sum(kept.name, found).hex()
