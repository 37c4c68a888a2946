"""The command `lineage` on a stranger's disk: what cannot be read is unreadable, and all else is read."""

from __future__ import annotations

import json
import os
import re
import shutil
import socket
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import pytest

from harness import limits
from harness.model import UsageError
from targets.kafka_family.logs import checkpoint
from tests.cli.test_lineage import INVALID, SEGMENT, UNKNOWN, VALID, run
from tests.little_memory import ROOT, printed_with_little_memory
from tests.needs import needs
from tests.targets.kafka_family.logs.build import batch, compress, partition

# Where the command reads, from a data directory on; and what the replica's problem names.
READ: Final = {
    "t-1": "t-1",
    f"t-0/{3:020d}.log": f"{3:020d}.log",
    f"t-0/{0:020d}.log.swap": f"{0:020d}.log.swap",
    "t-0/leader-epoch-checkpoint": "leader-epoch-checkpoint",
    "t-0/partition.metadata": "partition.metadata",
    "replication-offset-checkpoint": "replication-offset-checkpoint",
    "log-start-offset-checkpoint": "log-start-offset-checkpoint",
    "cleaner-offset-checkpoint": "cleaner-offset-checkpoint",
}
# What it does not read, and so cannot lack.
UNREAD: Final = (
    ".lock",
    "meta.properties",
    "recovery-point-offset-checkpoint",
    f"t-0/{0:020d}.index",
    f"t-0/{0:020d}.log.cleaned",
    f"t-0/{0:020d}.log.deleted",
)


def make_socket(path: Path) -> None:
    # A socket's path is short, and those of tests are long.
    with socket.socket(socket.AF_UNIX) as made:
        here = os.open(path.parent, os.O_RDONLY)
        try:
            made.bind(f"/proc/self/fd/{here}/{path.name}")
        finally:
            os.close(here)


def make_device(path: Path) -> None:
    os.mknod(path, 0o600 | stat.S_IFCHR, os.makedev(1, 5))


MAKERS: Final[dict[str, tuple[Callable[[Path], None], str]]] = {
    "fifo": (os.mkfifo, "a FIFO; expected a "),
    "socket": (make_socket, "a socket; expected a "),
    "device": (make_device, "a character device; expected a "),
    "zero": (lambda path: path.symlink_to("/dev/zero"), "a link; expected a "),
    "out": (lambda path: path.symlink_to("/etc/passwd"), "a link; expected a "),
    "folder out": (lambda path: path.symlink_to("/etc"), "a link; expected a "),
    "loop": (lambda path: path.symlink_to(path.name), "a link; expected a "),
}
KINDS: Final = [pytest.param(kind, marks=needs("root") if kind == "device" else ()) for kind in MAKERS]


@pytest.fixture
def pair(tmp_path: Path) -> tuple[Path, Path]:
    """Return two equal data directories with the partitions t-0 and u-0."""
    for name in "ab":
        partition(tmp_path / name, batch(0, "a", "b"), batch(2, "c"), epochs=[(0, 0)])
        shutil.copytree(tmp_path / name / "t-0", tmp_path / name / "u-0")
    return tmp_path / "a", tmp_path / "b"


def put(kind: str, path: Path) -> None:
    path.unlink(missing_ok=True)
    MAKERS[kind][0](path)


def found_by(capsys: pytest.CaptureFixture[str], *paths: Path) -> dict[str, Any]:
    """Run with --json, and return the object."""
    code = run("--json", *paths)
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    assert code == found["exit_code"]
    return found


def problems_of(found: dict[str, Any], directory: Path) -> dict[str, list[str]]:
    """Return each partition's problems in a directory."""
    held = {each["partition"]: each["replicas"].get(str(directory)) for each in found["partitions"]}
    return {name: replica["problems"] for name, replica in held.items() if replica is not None}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("place", READ)
def test_what_is_no_file_is_unreadable_wherever_it_is_and_the_rest_is_read(
    pair: tuple[Path, Path], kind: str, place: str, capsys: pytest.CaptureFixture[str]
) -> None:
    put(kind, pair[1] / place)
    found = found_by(capsys, *pair)
    problems = problems_of(found, pair[1])
    assert "unknown" == found["verdict"]
    # The checkpoints of a data directory concern all its partitions.
    concerned = {"t-0", "u-0"} if "/" not in place and place != "t-1" else {place.partition("/")[0]}
    assert concerned == {name for name, texts in problems.items() if texts}
    expected = f"{READ[place]}: {MAKERS[kind][1]}"
    assert all(text.startswith(expected) for name in concerned for text in problems[name]), problems
    assert [] == [text for texts in problems_of(found, pair[0]).values() for text in texts]
    ends = [
        each["replicas"][str(pair[1])]["log_end_offset"]
        for each in found["partitions"]
        if "-0" in each["partition"]
    ]
    assert [3, 3] == ends
    assert UNKNOWN == run(*pair)
    assert f"{pair[1]}: not read: {expected}" in capsys.readouterr().out


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_not_read_may_be_anything(
    pair: tuple[Path, Path], kind: str, capsys: pytest.CaptureFixture[str]
) -> None:
    for place in UNREAD:
        put(kind, pair[1] / place)
    assert "unknown" not in found_by(capsys, *pair)["verdict"]


@pytest.mark.parametrize("kind", ["fifo", "socket", pytest.param("device", marks=needs("root")), "zero"])
def test_argument_that_is_no_folder_is_a_wrong_use(pair: tuple[Path, Path], tmp_path: Path, kind: str) -> None:
    put(kind, tmp_path / "thing")
    with pytest.raises(UsageError, match="thing: Not a directory; expected a directory that can be listed"):
        run(pair[0], tmp_path / "thing")


def test_argument_may_be_a_link_and_one_that_cannot_be_listed_is_unreadable(
    pair: tuple[Path, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "link").symlink_to("b")
    put("loop", tmp_path / "loop")
    assert "valid" == found_by(capsys, pair[0], tmp_path / "link")["verdict"]
    found = found_by(capsys, *pair, tmp_path / "loop")
    assert {str(tmp_path / "loop"): "Too many levels of symbolic links"} == found["unreadable"]
    assert ("unknown", [2, 2]) == (found["verdict"], [len(each["replicas"]) for each in found["partitions"]])


@pytest.fixture
def as_anyone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make what has no permission bits unreadable for root as well, as it is for anyone else."""
    opened = os.open

    def refuse(path: Any, flags: int, mode: int = 0o777, *, dir_fd: int | None = None) -> int:
        if stat.S_IMODE(os.stat(path, dir_fd=dir_fd, follow_symlinks=False).st_mode) == 0:
            raise PermissionError(13, "Permission denied", path)
        return opened(path, flags, mode, dir_fd=dir_fd)

    monkeypatch.setattr(os, "open", refuse)


@pytest.mark.usefixtures("as_anyone")
@pytest.mark.parametrize("place", ["t-0", f"t-0/{SEGMENT}", "t-0/leader-epoch-checkpoint"])
def test_what_may_not_be_read_is_unreadable_and_the_rest_is_read(
    pair: tuple[Path, Path], place: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (pair[1] / place).chmod(0)
    try:
        found = found_by(capsys, *pair)
    finally:
        (pair[1] / place).chmod(0o700)
    name = place.rpartition("/")[2]
    assert {"t-0": [f"{name}: Permission denied"], "u-0": []} == problems_of(found, pair[1])
    assert "unknown" == found["verdict"]


@pytest.mark.usefixtures("as_anyone")
def test_data_directory_that_may_not_be_read_is_unreadable_and_the_others_are_compared(
    pair: tuple[Path, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    locked = shutil.copytree(pair[0], tmp_path / "c")
    locked.chmod(0)
    try:
        assert UNKNOWN == run(*pair, locked)
    finally:
        locked.chmod(0o700)
    text = capsys.readouterr().out
    assert f"{locked}: not read: Permission denied" in text
    assert "0 of 2 partitions could not be read whole; nothing that was read differs; 1 directories" in text


WATCHED: Final = """
import argparse, os
from harness.cli import lineage
from tests.little_memory import peak_bytes
parser = argparse.ArgumentParser()
lineage.configure(parser)
code = lineage.run(parser.parse_args(ARGUMENTS))
print(code, peak_bytes(os.getpid()))
"""


@pytest.mark.parametrize("codec", ["gzip", "lz4", "zstd"])
def test_batch_that_opens_to_four_gigabytes_is_unreadable_in_little_memory(
    pair: tuple[Path, Path], codec: str
) -> None:
    bomb = compress(codec, bytes(16 << 20)) * 256
    sound = [batch(0, "a", "b"), batch(3, "d")]
    segments = [sound[0], batch(2, codec=codec, payload=bomb, count=1, last_delta=0), sound[1]]
    (pair[1] / "t-0" / SEGMENT).write_bytes(b"".join(segments))
    *lines, last = in_little_memory(*pair)
    assert f"{codec}: {len(bomb)} bytes open to more than {limits.LOG_BATCH_OPENED_BYTES_MAX} bytes" in "".join(
        lines
    )
    assert any("epoch 0 [0, 4); log [0, 4)" in line for line in lines)
    check(last)


def test_sparse_files_and_a_checkpoint_of_a_million_entries_are_unreadable_in_little_memory(
    pair: tuple[Path, Path],
) -> None:
    for place in (f"t-0/{3:020d}.log", "u-0/leader-epoch-checkpoint", "t-0/partition.metadata"):
        with (pair[1] / place).open("ab") as file:
            file.truncate(100 * 10**9)
    entries = "".join(f"{epoch} {epoch}\n" for epoch in range(1_000_000))
    (pair[1] / "t-0" / "leader-epoch-checkpoint").write_text(f"0\n1000000\n{entries}")
    # Zeros, and a batch behind them: they are no end that a broker made.
    with (pair[1] / "u-0" / SEGMENT).open("r+b") as file:
        file.seek(100 * 10**9)
        file.write(batch(9, "z"))
    *lines, last = in_little_memory(*pair)
    text = "\n".join(lines)
    for says in (
        "position 0: 100000000000 bytes, all zero, to the end of the file",
        "partition.metadata: more than 33554432 bytes",
        "leader-epoch-checkpoint: more than 33554432 bytes",
        "leader-epoch-checkpoint: more than 100002 lines",
        "batch length is 0; expected at least",
    ):
        assert says in text
    check(last)


def in_little_memory(*paths: Path) -> list[str]:
    arguments = [str(path) for path in paths]
    return printed_with_little_memory(WATCHED.replace("ARGUMENTS", repr(arguments))).splitlines()


def check(last: str) -> None:
    """Check the exit code, and that the process never had more than half of what the command may take."""
    code, most = map(int, last.split())
    assert UNKNOWN == code
    assert most < 500_000_000


NAMES: Final = {
    b"x\xff\xfe-0": r"x\xff\xfe-0",
    b"esc\x1b[31m\x07-0": r"esc\x1b[31m\x07-0",
    b"c1\xc2\x9b31m-0": r"c1\x9b31m-0",
    b"new\nline-0": r"new\nline-0",
    b"back\\x1b-0": r"back\\x1b-0",
    "rtl\u202egnp-0".encode(): r"rtl\u202egnp-0",
}


def test_names_and_texts_that_a_terminal_could_obey_are_escaped_in_text_and_json(
    pair: tuple[Path, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    places = [os.path.join(os.fsencode(tmp_path), name) for name in (b"A\x1b[2J\xff", b"B\x1b[2J\xff")]
    for place, data in zip(places, pair, strict=True):
        for name in NAMES:
            shutil.copytree(os.fsencode(data / "t-0"), os.path.join(place, name))
            folder = Path(os.fsdecode(os.path.join(place, name)))
            (folder / "leader-epoch-checkpoint").write_bytes(b"0\n1\n\x1b[2J 0\n")
            (folder / "partition.metadata").write_bytes(b"version: 0\ntopic_id: \x1b[2J\xc2\x9b\n")
    odd = Path(os.fsdecode(os.path.join(places[1], b"new\nline-0")))
    (odd / "partition.metadata").write_bytes(b"version: 0\ntopic_id: \x1b]0;title\x07\n")
    (Path(os.fsdecode(places[1])) / os.fsdecode(b"x\xff\xfe-0") / SEGMENT).write_bytes(batch(0, "\x1b[2J\u202e"))
    arguments = [Path(os.fsdecode(place)) for place in places]
    assert INVALID == run(*arguments)
    text = capsys.readouterr().out
    assert INVALID == run("--json", *arguments)
    printed = capsys.readouterr().out
    for each in (text, printed):
        each.encode("utf-8")
        assert all(line.isprintable() for line in each.splitlines())
    found = json.loads(printed)
    assert sorted(NAMES.values()) == sorted(each["partition"] for each in found["partitions"])
    assert {rf"{tmp_path}/{name}\x1b[2J\xff" for name in "AB"} == set(found["partitions"][0]["replicas"])
    assert set(NAMES.values()) <= set(text.splitlines())


def test_checkpoints_of_a_data_directory_are_read_once_whatever_the_number_of_partitions(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Else the time would grow with the square of the partitions: each has a line in each checkpoint."""
    count = 60
    for name in "ab":
        made = partition(tmp_path / name, batch(0, "a"), epochs=[(0, 0)])
        for number in range(1, count):
            shutil.copytree(made, tmp_path / name / f"t-{number}")
        lines = "".join(f"t {number} 1\n" for number in range(count))
        (tmp_path / name / "replication-offset-checkpoint").write_text(f"0\n{count}\n{lines}")
    read, reads = checkpoint.read_offsets, []

    def counted(folder: Any, name: str) -> Any:
        reads.append((folder.path, name))
        return read(folder, name)

    monkeypatch.setattr(checkpoint, "read_offsets", counted)
    assert VALID == run(tmp_path / "a", tmp_path / "b")
    assert f"{count} of {count} partitions compared" in capsys.readouterr().out
    assert 6 == len(reads) == len(set(reads))


def test_folder_with_more_partitions_than_any_broker_has_is_refused(
    pair: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "FOLDER_NAMES_MAX", 1)
    with pytest.raises(UsageError, match="more than 1 partitions; name some of its partitions' directories"):
        run(*pair)


def test_partition_with_more_segments_than_the_limit_is_unreadable(
    pair: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for number in range(3, 8):
        (pair[1] / "t-0" / f"{number:020d}.log").touch()
    monkeypatch.setattr(limits, "FOLDER_NAMES_MAX", 4)
    found = found_by(capsys, *pair)
    assert "t-0: more than 4 segments, the limit of this reader" in problems_of(found, pair[1])["t-0"][0]


def test_page_has_every_key_of_the_json_and_every_limit(
    pair: tuple[Path, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """What scripts rely on is told; the pair differs, so that no list is empty."""
    (pair[1] / "t-0" / SEGMENT).write_bytes(batch(0, "a", "x"))
    put("loop", pair[1] / "replication-offset-checkpoint")
    put("loop", tmp_path / "loop")
    found = found_by(capsys, *pair, tmp_path / "loop")
    page = (ROOT / "docs" / "lineage.md").read_text(encoding="utf-8")
    told = set(re.findall(r"`([a-z_]+)`", page))
    assert keys_of(found) <= told
    assert {"holdings", "branches", "furthest", "lineage"} <= keys_of(found)
    assert f'`"{found["format"]}"`, {found["version"]} |' in page
    limit_rows = re.findall(r"^\| `([A-Z_]+)` \| (\d+) ", page, re.MULTILINE)
    assert [(name, getattr(limits, name)) for name, _ in limit_rows] == [(n, int(most)) for n, most in limit_rows]
    assert len(limit_rows) == 11


def keys_of(found: Any) -> set[str]:
    """Return every key of the objects, except those that name a directory."""
    if isinstance(found, list):
        return set().union(*map(keys_of, found))
    if not isinstance(found, dict):
        return set()
    return {key for key in found if "/" not in key}.union(*map(keys_of, found.values()))
