"""Which byte of a file without records may rot, what shows it afterwards, and files that lie."""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Iterator
from pathlib import Path

import pytest

from harness.beneath import Folder
from harness.bit_rot import Flip, Where
from harness.hosts.trees import exchange
from harness.target.logs import NodeFiles, RotsState
from targets.nats.logs import state
from targets.nats.logs.reader import LOGS
from tests.targets.nats.logs.build import group, highway, record, stream

GROUP = "S-R3F-abcdefgh"
STATES = tuple(where for where in Where if where.is_state)
A, B, C = b"AAAAAAAA", b"BBBBBBBB", b"CCCCCCCC"


def summed(name: str, text: bytes) -> bytes:
    """Return a checksum as a server makes it."""
    return struct.pack("<Q", highway(hashlib.sha256(name.encode()).digest(), text))


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """A store directory of a stream that has every file of a state."""
    messages = stream(tmp_path, "t-0", [record("t-0-1", 1, b"m1")])
    folder = group(tmp_path, GROUP, "t-0", []).parent
    (folder / "tav.idx").write_bytes(struct.pack("<Q8s", 6, B))
    (folder / "peers.idx").write_bytes(struct.pack("<II", 3, 3) + C + A + B + b"\0\0")
    (folder / "snapshots").mkdir()
    for term, index in ((2, 11), (10, 9), (10, 11)):
        text = struct.pack("<QQI", term, index, 4) + b"peers" + b"%d" % index
        (folder / "snapshots" / f"snap.{term}.{index}").write_bytes(text + summed(GROUP, text))
    (messages / "index.db").write_bytes(b"what follows" + summed("t-0", b"what follows"))
    (messages.parent / "meta.inf").write_bytes(b'{"name": "t-0"}')
    (messages.parent / "meta.sum").write_bytes(summed("t-0", b'{"name": "t-0"}').hex().encode())
    return tmp_path


@pytest.fixture
def node(data: Path) -> Iterator[NodeFiles]:
    with Folder.at(data) as folder:
        yield NodeFiles(folder=folder)


def chosen(node: NodeFiles, where: Where) -> Flip | None:
    return LOGS.to_flip(node, "t", 0, where)


def file_of(data: Path, where: Where) -> Path:
    """Return the file of a kind, as the reader chooses it."""
    with Folder.at(data) as folder:
        flip = chosen(NodeFiles(folder=folder), where)
    assert flip is not None
    return data / flip.path


@pytest.mark.parametrize(
    ("where", "file", "position", "seen"),
    [
        (Where.TERM, "tav.idx", 0, "term 6 is now 4"),
        (Where.MEMBERS, "peers.idx", 15, "a member is now CCCCCCCB, which is none"),
        (Where.SNAPSHOT, "snap.10.11", 13, "checksum is "),
        (Where.INDEX, "index.db", 6, "checksum is "),
        (Where.META, "meta.inf", 7, "checksum in meta.sum is "),
    ],
)
def test_flipped_byte_of_each_kind_is_seen(
    node: NodeFiles, where: Where, file: str, position: int, seen: str
) -> None:
    flip = chosen(node, where)
    assert flip is not None
    assert (file, position, None, where) == (flip.file, flip.position, flip.base, flip.state)
    assert flip == Flip.of(f"{flip}; and more")
    assert "" == LOGS.read_again(node, flip)
    exchange(node.folder, flip.path, flip.position, bytes((flip.before,)), bytes((flip.after,)))
    assert LOGS.read_again(node, flip).startswith(seen)
    again = chosen(node, where)
    assert (where in (Where.TERM, Where.MEMBERS)) == (again is not None)


def test_reader_reads_files_of_a_state() -> None:
    assert isinstance(LOGS, RotsState)


@pytest.mark.parametrize("where", STATES)
def test_nothing_is_flipped_of_a_stream_that_is_not_there(node: NodeFiles, where: Where) -> None:
    assert LOGS.to_flip(node, "u", 0, where) is None


@pytest.mark.parametrize("where", STATES)
def test_file_that_is_absent_empty_short_or_none_has_no_byte_to_flip(
    data: Path, node: NodeFiles, where: Where
) -> None:
    file = file_of(data, where)
    for other in file.parent.glob("snap.*"):
        other.unlink(missing_ok=other != file)
    whole = file.read_bytes() if file.exists() else struct.pack("<QQ", 1, 1)
    for length in (0, 1, 7, len(whole) - 1):
        file.write_bytes(whole[:length])
        assert chosen(node, where) is None
    file.unlink()
    assert chosen(node, where) is None
    file.mkdir()
    assert chosen(node, where) is None


@pytest.mark.parametrize("where", STATES)
def test_file_that_is_longer_than_a_server_makes_it_has_no_byte_to_flip(
    data: Path, node: NodeFiles, where: Where, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = file_of(data, where)
    monkeypatch.setattr(state, "_SUMMED_BYTES_MAX", 100)
    with file.open("ab") as more:
        more.truncate(1 << 40)  # sparse
    assert chosen(node, where) is None


@pytest.mark.parametrize("count", [0, 1, 2, 4, 33, 0xFFFFFFFF])
def test_members_of_which_another_number_is_listed_are_left_alone(data: Path, node: NodeFiles, count: int) -> None:
    file = file_of(data, Where.MEMBERS)
    file.write_bytes(struct.pack("<II", 3, count) + A + B + C + b"\0\0")
    assert chosen(node, Where.MEMBERS) is None


def test_name_that_becomes_another_member_is_flipped_elsewhere(data: Path, node: NodeFiles) -> None:
    file = file_of(data, Where.MEMBERS)
    file.write_bytes(struct.pack("<II", 2, 2) + b"AAAAAAA@" + A)
    flip = chosen(node, Where.MEMBERS)
    assert flip is not None
    assert (23, ord("A"), ord("C")) == (flip.position, flip.before, flip.after)


@pytest.mark.parametrize(("term", "position", "after"), [(1, 0, 0), (5, 0, 4), (4, 0, 0), (1 << 63, 7, 0)])
def test_flipped_term_is_a_lower_one(data: Path, node: NodeFiles, term: int, position: int, after: int) -> None:
    file_of(data, Where.TERM).write_bytes(struct.pack("<Q", term))
    flip = chosen(node, Where.TERM)
    assert flip is not None
    assert (position, after) == (flip.position, flip.after)


def test_term_of_zero_has_no_lower_one(data: Path, node: NodeFiles) -> None:
    file_of(data, Where.TERM).write_bytes(struct.pack("<Q8s", 0, A))
    assert chosen(node, Where.TERM) is None


def test_configuration_without_its_checksum_is_left_alone(data: Path, node: NodeFiles) -> None:
    file_of(data, Where.META).with_name("meta.sum").unlink()
    assert chosen(node, Where.META) is None


def test_file_that_a_server_wrote_again_shows_no_flip(data: Path, node: NodeFiles) -> None:
    for where in STATES:
        flip = chosen(node, where)
        assert flip is not None
        (data / flip.path).write_bytes(b"")
        assert "" == LOGS.read_again(node, flip)
        (data / flip.path).unlink()
        assert "" == LOGS.read_again(node, flip)
