"""The command `lineage` on data directories of Apache Kafka: equal, tampered with, torn, and without a log."""

from __future__ import annotations

import argparse
import json
import shutil
import struct
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import crc32c
import pytest

from harness.cli import lineage
from harness.model import EXIT_CODES, UsageError
from tests.cli.watched import TELLS, WATCH, lineage_watched
from tests.kafka_release import DATA
from tests.targets.kafka_family.logs.build import batch, partition
from tests.targets.kafka_family.logs.scans import find_partitions

RELEASES = ("1.1.1", "3.9.1")
VALID, UNKNOWN, INVALID = EXIT_CODES["valid"], EXIT_CODES["unknown"], EXIT_CODES["invalid"]
SEGMENT = f"{0:020d}.log"
PAIRS = [
    (release, path.name) for release in RELEASES for path in find_partitions(DATA / f"kafka-{release}" / "b1")
]


def run(*arguments: str | Path) -> int:
    """Run the command as the command line does, and return its exit code."""
    parser = argparse.ArgumentParser()
    lineage.configure(parser)
    return lineage.run(parser.parse_args([str(each) for each in arguments]))


@pytest.fixture(params=RELEASES)
def pair(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[Path, Path]:
    """Return copies of both brokers' data directories, for the test to tamper with."""
    for broker in ("b1", "b2"):
        shutil.copytree(DATA / f"kafka-{request.param}" / broker, tmp_path / broker)
    return tmp_path / "b1", tmp_path / "b2"


def tamper(data: Path, change: Callable[[bytearray], bytes | bytearray], topic: str = "plain") -> None:
    """Rewrite a topic's first segment."""
    path = data / f"{topic}-0" / SEGMENT
    path.write_bytes(change(bytearray(path.read_bytes())))


def starts(data: bytes) -> list[int]:
    """Return the start of each batch, computed from the batch lengths alone, and the end of the last one."""
    found = [0]
    while found[-1] < len(data):
        found.append(found[-1] + 12 + int(struct.unpack_from(">i", data, found[-1] + 8)[0]))
    return found


def change_a_record(data: bytearray) -> bytearray:
    """Change one byte of the second batch's last record, and its checksum with it."""
    begin, end = starts(data)[1:3]
    data[end - 2] ^= 1
    struct.pack_into(">I", data, begin + 17, crc32c.crc32c(bytes(data[begin + 21 : end])))
    return data


def change_an_epoch(data: bytearray) -> bytearray:
    """Change the leader epoch of the last batch, which no checksum covers."""
    struct.pack_into(">i", data, starts(data)[-2] + 12, 7)
    return data


def put_another_tail(data: bytearray) -> bytes:
    """Replace the last batch by another one with the same offsets and epoch."""
    return bytes(data[: starts(data)[-2]]) + batch(9, "x", "y", "z", epoch=2)


def cut_a_middle_batch(data: bytearray) -> bytearray:
    """Remove the second batch, which leaves a hole in the offsets."""
    first, second = starts(data)[1:3]
    return data[:first] + data[second:]


def repeat_a_batch(data: bytearray) -> bytearray:
    """Append the first batch again after the last one."""
    return data + data[: starts(data)[1]]


@pytest.mark.parametrize(("release", "name"), PAIRS)
def test_lineage_exits_0_when_both_replicas_are_as_kafka_left_them(
    release: str, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    pair = [DATA / f"kafka-{release}" / broker / name for broker in ("b1", "b2")]
    assert VALID == run(*pair)
    text = capsys.readouterr().out
    end = 8 if name == "transactions-0" else 6
    assert 2 == text.count(f"epoch 0 [0, {end}) epoch 2 [{end}, {2 * end});")
    assert "no disagreement: 1 of 1 partitions compared" in text


@pytest.mark.parametrize("release", RELEASES)
def test_lineage_compares_every_partition_when_it_is_given_data_directories(
    release: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert VALID == run(DATA / f"kafka-{release}" / "b1", DATA / f"kafka-{release}" / "b2")
    count = len([1 for each, _ in PAIRS if each == release])
    assert f"no disagreement: {count} of {count} partitions compared" in capsys.readouterr().out


@pytest.mark.parametrize("release", ["0.10.2.2", *RELEASES])
def test_lineage_exits_0_when_one_replica_is_cleaned_and_the_other_is_not(
    release: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert VALID == run(DATA / f"kafka-{release}-cleaned" / "b1", DATA / f"kafka-{release}-cleaned" / "b2")
    text = capsys.readouterr().out
    count = 3 if release == "0.10.2.2" else 4
    assert f"no disagreement: {count} of {count} partitions compared" in text
    assert "doomed" not in text


@pytest.mark.parametrize(
    ("change", "fork", "says"),
    [
        (change_a_record, 5, "offset 5 differ: other records"),
        (change_an_epoch, 9, "offsets [9, 12) differ: the same records under another leader epoch"),
        (put_another_tail, 9, "offsets [9, 12) differ: other records"),
        (cut_a_middle_batch, 3, "offsets [3, 6) differ: records here, a hole there"),
    ],
)
def test_lineage_exits_4_and_names_the_offsets_when_one_directory_was_tampered_with(
    pair: tuple[Path, Path],
    change: Callable[[bytearray], bytes],
    fork: int,
    says: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    tamper(pair[1], change)
    assert INVALID == run(*pair)
    text = capsys.readouterr().out
    assert says in text
    assert f"histories fork at offset {fork}: {pair[0]} | {pair[1]}" in text
    assert "1 of " in text.splitlines()[-1]
    assert INVALID == run(pair[1] / "plain-0", pair[0] / "plain-0")


@pytest.mark.parametrize("topic", ["gzip", "snappy", "broker-snappy", "lz4", "broker-lz4"])
def test_lineage_exits_4_when_a_compressed_tail_was_replaced(
    pair: tuple[Path, Path], topic: str, capsys: pytest.CaptureFixture[str]
) -> None:
    tamper(pair[0], put_another_tail, topic)
    assert INVALID == run(*pair)
    assert f"b1: epoch 2: 'x', 'y', 'z'\n    {pair[1]}: epoch 2: '{topic}, epoch" in capsys.readouterr().out


@pytest.mark.parametrize("change", [change_an_epoch, repeat_a_batch, cut_a_middle_batch])
def test_lineage_exits_4_when_a_replica_contradicts_itself_with_nothing_beside_it(
    pair: tuple[Path, Path], change: Callable[[bytearray], bytes]
) -> None:
    assert VALID == run(pair[0])
    tamper(pair[0], change)
    assert INVALID == run(pair[0])


def test_lineage_exits_4_when_both_replicas_are_equal_and_both_in_disorder(
    pair: tuple[Path, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    for data in pair:
        tamper(data, repeat_a_batch)
    assert INVALID == run(*pair)
    assert 2 == capsys.readouterr().out.count("base offset is 0; expected 12 or later")


@pytest.mark.parametrize("entries", ["0 0\n2 5", "0 0\n1 6", "0 0\n2 6\n9 40"])
def test_lineage_exits_4_when_an_epoch_checkpoint_contradicts_the_log(
    pair: tuple[Path, Path], entries: str, capsys: pytest.CaptureFixture[str]
) -> None:
    count = entries.count("\n") + 1
    (pair[0] / "plain-0" / "leader-epoch-checkpoint").write_text(f"0\n{count}\n{entries}\n")
    assert INVALID == run(*pair)
    assert f"{pair[0]}: checkpoint at " in capsys.readouterr().out


def test_lineage_exits_0_and_says_who_is_behind_when_a_log_merely_ends_earlier(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    tail = batch(2, "c")
    a = partition(tmp_path / "a", batch(0, "a", "b"), tail, epochs=[(0, 0)])
    b = partition(tmp_path / "b", batch(0, "a", "b"), epochs=[(0, 0)])
    assert VALID == run(a, b)
    assert f"{b} is behind: it ends at 2, another at 3" in capsys.readouterr().out


@pytest.mark.parametrize("tail", [b"\x00" * 700, batch(12, "torn", epoch=2)[:-3]], ids=["zeros", "torn"])
def test_lineage_exits_3_when_a_tail_is_torn_and_nothing_that_was_read_differs(
    pair: tuple[Path, Path], tail: bytes, capsys: pytest.CaptureFixture[str]
) -> None:
    tamper(pair[1], lambda data: bytes(data) + tail)
    assert UNKNOWN == run(*pair)
    text = capsys.readouterr().out
    assert f"{pair[1]}: not read: {SEGMENT}, position " in text
    assert "could not be read whole; nothing that was read differs" in text


def test_lineage_exits_4_when_a_tail_is_torn_and_something_before_it_differs(pair: tuple[Path, Path]) -> None:
    tamper(pair[1], lambda data: bytes(change_a_record(data)) + bytes(80))
    assert INVALID == run(*pair)


def test_lineage_exits_3_when_a_replica_lost_its_last_batch_to_damage(pair: tuple[Path, Path]) -> None:
    tamper(pair[1], lambda data: data[:-1])
    assert UNKNOWN == run(*pair)


def test_lineage_gives_json_with_everything_that_the_text_says(
    pair: tuple[Path, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    tamper(pair[1], put_another_tail)
    assert INVALID == run("--json", pair[0] / "plain-0", pair[1] / "plain-0")
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    (only,) = found["partitions"]
    assert ("invalid", "plain-0", "invalid") == (found["verdict"], only["partition"], only["verdict"])
    (difference,) = only["differences"]
    assert ("content", 9, 12) == (difference["kind"], difference["first"], difference["end"])
    assert ["x", "y", "z"] == difference["holdings"][1]["sample"]
    names = [str(data / "plain-0") for data in pair]
    assert [{"offset": 9, "branches": [[name] for name in names]}] == only["forks"]
    assert [[0, 0], [2, 6]] == only["replicas"][names[1]]["epochs"][:2]
    assert {"epoch": 2, "start": 6, "end": 12} == only["replicas"][names[0]]["lineage"][1]


def test_lineage_prints_names_and_values_as_they_are_when_they_look_like_markup(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    a = partition(tmp_path / "[red]a", batch(0, "[bold]\x1b[31mm1"))
    b = partition(tmp_path / "[red]b", batch(0, "m2"))
    assert INVALID == run(a, b)
    text = capsys.readouterr().out
    assert "[red]a/t-0: epoch 0: '[bold]\\x1b[31mm1'" in text
    assert "\x1b" not in text


def test_lineage_compares_no_records_when_directories_are_of_two_topics_of_one_name(
    pair: tuple[Path, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    tamper(pair[1], put_another_tail)
    for data, topic_id in zip(pair, ("one", "two"), strict=True):
        (data / "plain-0" / "partition.metadata").write_text(f"version: 0\ntopic_id: {topic_id}")
    assert UNKNOWN == run(pair[0] / "plain-0", pair[1] / "plain-0")
    text = capsys.readouterr().out
    assert f"different topics of one name, by their topic ids: {pair[0]}/plain-0 has one, {pair[1]}" in text
    assert "differ:" not in text
    (pair[1] / "plain-0" / "partition.metadata").unlink()
    assert INVALID == run(pair[0] / "plain-0", pair[1] / "plain-0")


def test_lineage_names_a_transaction_s_marker_where_replicas_differ(
    pair: tuple[Path, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    """The fixture's last marker is an abort marker; the other replica has a client's record in its place."""
    path = pair[1] / "transactions-0" / f"{3:020d}.log"
    data = path.read_bytes()
    path.write_bytes(data[: starts(data)[-2]] + batch(15, "x", epoch=2))
    assert INVALID == run(pair[0] / "transactions-0", pair[1] / "transactions-0")
    text = capsys.readouterr().out
    assert f"{pair[0]}/transactions-0: epoch 2: 'abort marker'" in text
    assert f"{pair[1]}/transactions-0: epoch 2: 'x'" in text


@pytest.mark.slow
def test_lineage_opens_nothing_for_writing_and_changes_no_file(tmp_path: Path) -> None:
    data = shutil.copytree(DATA / "kafka-3.9.1", tmp_path / "data")
    code, text, touched = lineage_watched(data, data / "b1", data / "b2")
    assert (VALID, []) == (code, touched), text


def test_watch_reports_writes_locks_and_renames_and_no_reading(tmp_path: Path) -> None:
    (tmp_path / "old").touch()
    (tmp_path.parent / "outside").touch()
    old, new, outside = (str(path) for path in (tmp_path / "old", tmp_path / "new", tmp_path.parent / "outside"))
    does = (
        f"import fcntl\nopen({new!r}, 'w')\nread = open({old!r})\n"
        f"fcntl.flock(read, fcntl.LOCK_SH)\nfcntl.lockf(read, fcntl.LOCK_SH)\nos.rename({outside!r}, {new!r})\n"
    )
    watch = WATCH.partition("import argparse")[0] + does
    ended = subprocess.run(
        [sys.executable, "-c", watch, str(tmp_path)], capture_output=True, text=True, check=True
    )
    expected = [("open", new), ("fcntl.flock", old), ("fcntl.lockf", old), ("os.rename", new)]
    assert [f"{TELLS} {event} {path}" for event, path in expected] == ended.stderr.splitlines()


def test_lineage_refuses_a_path_when_it_is_no_log_directory(tmp_path: Path) -> None:
    directory = partition(tmp_path / "a", batch(0, "a"))
    (tmp_path / "empty").mkdir()
    for path, says in (
        (tmp_path / "empty", "no logs of broker; expected segments"),
        (tmp_path / "missing", "expected a directory that can be listed"),
        (directory / SEGMENT, "expected a directory that can be listed"),
    ):
        with pytest.raises(UsageError, match=says):
            run(directory, path)


def test_lineage_refuses_directories_when_there_is_nothing_to_compare(tmp_path: Path) -> None:
    directory = partition(tmp_path / "a", batch(0, "a"))
    other = shutil.copytree(directory, tmp_path / "a" / "u-0")
    with pytest.raises(UsageError, match="nothing to compare"):
        run(directory, other)
    with pytest.raises(UsageError, match="named twice"):
        run(directory, directory)


def test_lineage_says_how_many_were_not_compared_when_one_directory_alone_holds_them(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("a", "b"):
        partition(tmp_path / name, batch(0, "a"), epochs=[(0, 0)])
    shutil.copytree(tmp_path / "a" / "t-0", tmp_path / "a" / "u-0")
    assert VALID == run(tmp_path / "a", tmp_path / "b")
    assert "1 of 2 partitions compared; 1 checked alone, held by one directory" in capsys.readouterr().out
