"""NATS's log reader as a part of its target: which replicas a node has, its two stores, ends, what may rot."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from harness import limits
from harness.beneath import Folder
from harness.bit_rot import Flip, Where
from harness.hosts.trees import exchange
from harness.logs.record import Record
from harness.logs.stream import Unread, read_whole
from harness.target.logs import Logs, NodeFiles, QuickEnds, ReplicaFolders, Rots, Segments
from targets.nats.logs import raft_log, survey
from targets.nats.logs.reader import LOGS
from tests.targets.nats.logs.build import TOMBSTONE, appended, group, message, record, stream
from tests.targets.nats.logs.scans import N1, beside, offsets, replicas, scan, values

SIX = [record(f"t-0-{1 + (at > 3)}", at, b"m%d" % at) for at in range(1, 7)]
GROUP = "S-R3F-abcdefgh"


def logged(index: int, term: int, last: int, payload: bytes, *, name: str = GROUP) -> bytes:
    """Encode a record of a Raft log that holds one record of the stream."""
    return record(f"{name}-1", index, appended(term, b"\x04" + message(last, payload)))


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """A store directory with a stream of two blocks, of three records each, and its Raft log."""
    stream(tmp_path, "t-0", SIX[:3], SIX[3:])
    group(tmp_path, GROUP, "t-0", [logged(at, 1 + (at > 4), at - 1, b"m%d" % at) for at in range(2, 7)])
    return tmp_path


@pytest.fixture
def node(data: Path) -> Iterator[NodeFiles]:
    with Folder.at(data) as folder:
        yield NodeFiles(folder=folder)


def flip_byte(node: NodeFiles, flip: Flip | None) -> Flip:
    assert flip is not None
    before, after = bytes((flip.before,)), bytes((flip.after,))
    assert before == exchange(node.folder, flip.path, flip.position, before, after)
    assert flip == Flip.of(str(flip))
    return flip


def test_reader_has_every_ability_but_folders_that_are_named_alone() -> None:
    for ability in (QuickEnds, Rots, Segments):
        assert isinstance(LOGS, ability)
    assert not isinstance(LOGS, ReplicaFolders)
    assert LOGS.expected.startswith("a folder jetstream/ACCOUNT/streams/STREAM/msgs")
    logs: Logs = LOGS
    assert logs


def test_folder_without_streams_has_no_replicas(tmp_path: Path) -> None:
    assert [] == replicas(tmp_path)
    (tmp_path / "jetstream" / "$G").mkdir(parents=True)
    (tmp_path / "t-0").mkdir()
    assert [] == replicas(tmp_path)
    log = scan(tmp_path)
    assert ("t-0: no folder of a stream of this name; expected one",) == log.problems
    assert ((0, None),) == log.unread


def test_numbered_stream_counts_and_another_account_is_a_part_of_the_topic(tmp_path: Path) -> None:
    for name in ("x", "x-0", "x-1", "y"):
        stream(tmp_path, name, [record(f"{name}-1", 1, name.encode())])
    stream(tmp_path, "x-0", [record("x-0-1", 1, b"of another")], account="ACC")
    assert [("ACC.x", 0), ("x", 0), ("x", 1), ("y", 0)] == replicas(tmp_path)
    assert [["of another"], ["x-0"], ["y"]] == [values(scan(tmp_path, topic)) for topic in ("ACC.x", "x", "y")]


def test_links_and_fifos_in_place_of_a_stream_are_replicas_that_cannot_be_read(data: Path) -> None:
    streams = data / "jetstream" / "$G" / "streams"
    (streams / "t-1").symlink_to(streams / "t-0")
    os.mkfifo(streams / "t-2")
    (streams / "t-3").mkdir()
    (streams / "a file").touch()
    assert [("t", number) for number in range(4)] == replicas(data)
    for number, text in ((1, "a link; expected a folder"), (2, "a FIFO; expected a folder"), (3, "No such file")):
        log = scan(data, "t", number)
        assert (True, ((0, None),)) == (text in log.problems[0], log.unread)


@pytest.mark.parametrize("kind", ["link", "fifo", "folder"])
def test_links_and_fifos_in_place_of_blocks_are_not_opened(data: Path, kind: str) -> None:
    path = data / "jetstream" / "$G" / "streams" / "t-0" / "msgs" / "1.blk"
    path.rename(path.with_suffix(".kept"))
    if kind == "link":
        path.symlink_to(path.with_suffix(".kept"))
    elif kind == "fifo":
        os.mkfifo(path)
    else:
        path.mkdir()
    log = scan(data)
    assert (["m4", "m5", "m6"], 1) == (values(log), len(log.problems))
    assert "expected a regular file" in log.problems[0]


def test_accounts_that_are_links_are_not_looked_into(data: Path) -> None:
    (data / "jetstream" / "ACC").symlink_to(data / "jetstream" / "$G")
    assert [("t", 0)] == replicas(data)


def test_too_many_streams_and_blocks_are_refused(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "FOLDER_NAMES_MAX", 1)
    assert "more than 1 segments" in scan(data).problems[0]
    stream(data, "u", [])
    with pytest.raises(OSError, match="more than 1 streams"):
        replicas(data)
    assert "more than 1 streams" in scan(data).problems[0]


def test_blocks_are_read_by_their_numbers(tmp_path: Path) -> None:
    folder = stream(tmp_path, "t-0", *([record(f"t-0-{at}", at, b"m%d" % at)] for at in range(1, 12)))
    (folder / "12.blk.tmp").write_bytes(b"x")
    (folder / "012.blk").write_bytes(b"x")
    assert (list(range(1, 12)), ()) == (offsets(scan(tmp_path)), scan(tmp_path).problems)


def test_encrypted_block_is_said_to_be_one(data: Path, node: NodeFiles) -> None:
    (data / "jetstream" / "$G" / "streams" / "t-0" / "msgs" / "2.key").write_bytes(b"k")
    log = scan(data)
    assert (["m1", "m2", "m3"], ((4, None),)) == (values(log), log.unread)
    assert "msgs/2.blk, it is encrypted, as 2.key beside it says" in log.problems[0]
    assert (None, None) == (LOGS.end(node, "t", 0), LOGS.to_flip(node, "t", 0, Where.ACTIVE))


def test_log_whose_first_block_cannot_be_read_has_an_unknown_beginning(data: Path) -> None:
    (data / "jetstream" / "$G" / "streams" / "t-0" / "msgs" / "1.key").write_bytes(b"k")
    log = scan(data)
    assert (["m4", "m5", "m6"], ((1, 4),), 1) == (values(log), log.unread, log.log_start_offset)


def test_terms_are_joined_by_sequence_and_content(data: Path) -> None:
    log = scan(data)
    assert [-1, 1, 1, 1, 2, 2] == [batch.epoch for batch in log.batches]
    assert ((1, 2), (2, 5)) == log.epochs


def test_stores_that_differ_at_one_sequence_show_it_by_content_and_term(tmp_path: Path) -> None:
    """As after a loss of power: the Raft log was cut and written anew, the store was not."""
    stream(tmp_path, "t-0", SIX[:3])
    other = logged(3, 2, 2, b"another")
    group(tmp_path, GROUP, "t-0", [logged(1, 1, 0, b"m1"), logged(2, 1, 1, b"m2"), other])
    log = scan(tmp_path)
    assert (["m1", "m2", "m3"], [1, 1, -1]) == (values(log), [batch.epoch for batch in log.batches])
    held = {batch.base: digest for batch in log.batches for _, digest, _ in batch.records}
    found = [each for each in beside(tmp_path) if isinstance(each, Record)]
    assert [(3, 2, b"another")] == [(r.offset, r.epoch, r.value) for r in found if r.digest != held[r.offset]]


def test_sequence_that_the_leader_s_failures_made_higher_is_joined(tmp_path: Path) -> None:
    stream(tmp_path, "t-0", SIX[:2])
    late = appended(1, b"\x04" + message(4, b"m2", time_ns=1_800_000_000_000_000_002))
    early = appended(3, b"\x04" + message(0, b"m2", time_ns=1_800_000_000_000_000_002))
    group(tmp_path, GROUP, "t-0", [record(f"{GROUP}-1", 1, early), record(f"{GROUP}-1", 2, late)])
    assert [-1, 1] == [batch.epoch for batch in scan(tmp_path).batches]


def test_compacted_entries_are_read_while_their_bytes_are_there(data: Path) -> None:
    with (data / "jetstream" / "$SYS" / "_js_" / GROUP / "msgs" / "1.blk").open("ab") as file:
        file.write(b"".join(record(f"{GROUP}-1", at | TOMBSTONE) for at in range(2, 7)))
    assert [-1, 1, 1, 1, 2, 2] == [batch.epoch for batch in scan(data).batches]


def test_raft_log_of_another_stream_or_without_a_label_is_not_joined(data: Path) -> None:
    label = data / "jetstream" / "$SYS" / "_js_" / GROUP / "meta.inf"
    for text in (label.read_text().replace("t-0", "t-1"), "{", "[]", '{"metadata": 5}', "[" * 60_000):
        label.write_text(text)
        assert ({-1}, []) == ({batch.epoch for batch in scan(data).batches}, beside(data))


def test_damage_of_the_raft_log_is_a_problem_and_no_hole_of_the_stream(data: Path) -> None:
    path = data / "jetstream" / "$SYS" / "_js_" / GROUP / "msgs" / "1.blk"
    path.write_bytes(path.read_bytes().replace(b"m4", b"mX") + b"torn")
    log = scan(data)
    assert ([-1, 1, 1, -1, 2, 2], ()) == ([batch.epoch for batch in log.batches], log.unread)
    assert f"_js_/{GROUP}/msgs/1.blk, position " in log.problems[0]
    assert [str, Unread] == [type(log.problems[0]), type(beside(data)[2])]


def test_entry_that_is_malformed_is_a_problem(data: Path) -> None:
    path = data / "jetstream" / "$SYS" / "_js_" / GROUP / "msgs" / "1.blk"
    path.write_bytes(record(f"{GROUP}-1", 1, b"short") + record(f"{GROUP}-1", 2, appended(1, b"\x04short")))
    problems = scan(data).problems
    assert "position 0: entry 1, append entry of 5 bytes; expected at least 42" in problems[0]
    assert "entry 2, record of 5 bytes; expected at least 16" in problems[1]


def test_terms_and_tombstones_have_a_limit(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(raft_log, "TERMS_MAX", 2)
    monkeypatch.setattr(survey, "TOMBSTONES_MAX", 1)
    with (data / "jetstream" / "$G" / "streams" / "t-0" / "msgs" / "2.blk").open("ab") as file:
        file.write(record("t-0-2", 1 | TOMBSTONE) + record("t-0-2", 2 | TOMBSTONE))
    log = scan(data)
    assert [1, 1, -1, -1, -1] == [batch.epoch for batch in log.batches]
    assert "later ones have no term here" in log.remarks[0]
    assert "tombstones, the limit of this reader" in log.problems[0]


def test_end_is_that_of_a_whole_reading(data: Path, node: NodeFiles) -> None:
    assert (7, None, None) == (LOGS.end(node, "t", 0), LOGS.end(node, "t", 1), LOGS.end(node, "u", 0))
    newest = data / "jetstream" / "$G" / "streams" / "t-0" / "msgs" / "2.blk"
    moved = record("t-0-2", 9 | TOMBSTONE)
    cuts = (SIX[3], 5), (b"", 4), (SIX[3] + SIX[4][:25], 5), (SIX[3] + SIX[4][:3], 5), (SIX[3] + moved, 10)
    for cut, end in cuts:
        newest.write_bytes(cut)
        assert (end, end) == (LOGS.end(node, "t", 0), scan(data).log_end_offset)
    newest.write_bytes(SIX[3] + b"\1\0\0\0" + SIX[4][4:])
    assert LOGS.end(node, "t", 0) is None


def test_stream_that_never_had_a_record_begins_at_1(tmp_path: Path) -> None:
    stream(tmp_path, "t-0", [])
    log = scan(tmp_path)
    with Folder.at(tmp_path) as folder:
        assert (1, 1, 1) == (log.log_start_offset, log.log_end_offset, LOGS.end(NodeFiles(folder=folder), "t", 0))


@pytest.mark.parametrize(("where", "offset"), [(Where.CLOSED, 2), (Where.ACTIVE, 5)])
def test_flipped_byte_of_a_record_is_found_by_its_checksum(
    data: Path, node: NodeFiles, where: Where, offset: int
) -> None:
    flip = flip_byte(node, LOGS.to_flip(node, "t", 0, where))
    assert (offset, offset, b"%d" % offset) == (flip.base, flip.last, bytes((flip.before,)))
    log = scan(data)
    assert (((offset, offset + 1),), 7) == (log.unread, log.log_end_offset)
    assert f"checksum of sequence {offset} is 0x" in log.problems[0]


@pytest.mark.parametrize(
    ("topic", "partition", "where"),
    [
        ("orders", 0, Where.ACTIVE),
        ("holes", 1, Where.ACTIVE),
        ("squeezed", 0, Where.ACTIVE),
        ("squeezed", 0, Where.CLOSED),
        ("orders", 0, Where.CHECKPOINT),
        ("gone", 0, Where.CHECKPOINT),
    ],
)
def test_flipped_byte_of_a_real_log_is_found(tmp_path: Path, topic: str, partition: int, where: Where) -> None:
    shutil.copytree(N1, tmp_path / "n1")
    with Folder.at(tmp_path / "n1") as folder:
        node = NodeFiles(folder=folder)
        flip = flip_byte(node, LOGS.to_flip(node, topic, partition, where))
    log = scan(tmp_path / "n1", topic, partition)
    assert 1 == len(log.problems)
    assert flip.path in log.problems[0]
    assert (where is Where.CHECKPOINT) == (not log.unread) == (flip.base is None)
    assert scan(N1, topic, partition).log_end_offset == log.log_end_offset


def test_nothing_is_flipped_of_what_there_is_not(node: NodeFiles, data: Path) -> None:
    stream(data, "v-0", [record("v-0-1", 1, b"a")])
    for topic in ("u", "v"):
        assert LOGS.to_flip(node, topic, 0, Where.CLOSED) is None
        assert LOGS.to_flip(node, topic, 0, Where.CHECKPOINT) is None


def test_newest_segment_is_the_newest_block(data: Path, node: NodeFiles) -> None:
    assert ["jetstream/$G/streams/t-0/msgs/2.blk"] == LOGS.newest_segment(node, "t", 0)
    assert [] == LOGS.newest_segment(node, "u", 0)


def test_files_that_change_while_they_are_read_are_read_again(data: Path, node: NodeFiles) -> None:
    first = data / "jetstream" / "$G" / "streams" / "t-0" / "msgs" / "1.blk"
    changes = iter((True, False))

    def opened() -> object:
        reading = LOGS.reading(node, "t", 0)
        if next(changes, False):
            written = first.with_suffix(".tmp")
            written.write_bytes(first.read_bytes())
            written.rename(first)
        return reading

    log = read_whole(opened)  # type: ignore[arg-type]
    assert ((), 6) == (log.problems, len(log.batches))
