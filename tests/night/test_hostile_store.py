"""What a night finds in its store may be anything: one line names the file, and nothing is deleted."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from harness.model import UsageError
from harness.night.journal import LINES
from harness.night.known import LINES as KNOWN_LINES
from harness.night.tables import earlier_nights
from tests.night.nights import Fakes, options
from tests.night.test_night import play_it


def folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


def pipe(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


def holding(data: bytes) -> Callable[[Path], None]:
    def write(path: Path) -> None:
        path.write_bytes(data)

    return write


HOSTILE: dict[str, Callable[[Path], None]] = {
    "a folder": folder,
    "a pipe": pipe,
    "binary": holding(bytes(range(256)) * 9 + b"\n"),
    "too deep": holding(b"[" * 200_000 + b"]" * 200_000 + b"\n"),
    "a list": holding(b"[1, 2]\n"),
    "null": holding(b"null\n"),
    "another object": holding(b'{"what": "night", "spent_s": 1}\n'),
    "lines without their keys": holding(
        b'{"what": "night", "version": 1, "spent_s": 0}\n{"what": "ran", "spent_s": 1}\n'
    ),
}


@pytest.mark.parametrize("make", HOSTILE.values(), ids=list(HOSTILE))
@pytest.mark.parametrize("name", [f"20261120T220000-1/{LINES}", f"known/{KNOWN_LINES}"])
def test_store_that_cannot_be_read_is_one_line_with_its_file_and_stays_as_it_is(
    tmp_path: Path, fakes: Fakes, name: str, make: Callable[[Path], None]
) -> None:
    path = tmp_path / "nights" / name
    path.parent.mkdir(parents=True)
    path.write_bytes(b"")
    make(path)
    size = path.lstat().st_size
    with pytest.raises(UsageError) as error:
        play_it(options(tmp_path), fakes)
    told = str(error.value)
    assert (True, False) == (path.parent.name in told, "\n" in told)
    assert "expected" in told
    assert size == path.lstat().st_size


@pytest.mark.parametrize("make", HOSTILE.values(), ids=list(HOSTILE))
def test_earlier_night_that_cannot_be_read_is_named_and_the_others_are_compared(
    tmp_path: Path, make: Callable[[Path], None]
) -> None:
    path = tmp_path / "20261120T220000-1" / "night.json"
    path.parent.mkdir()
    path.write_bytes(b"")
    make(path)
    found, unread = earlier_nights(tmp_path, "20261128T220000-1")
    assert ([], True) == (found, unread[0].startswith(str(path)))


def test_night_whose_journal_is_torn_in_its_first_line_is_not_deleted_with_what_it_has_found(
    tmp_path: Path, fakes: Fakes
) -> None:
    night = tmp_path / "nights" / "20261120T220000-1"
    (night / "findings" / "unit").mkdir(parents=True)
    (night / LINES).write_bytes(b'{"what": "ni')
    with pytest.raises(UsageError, match=r"journal.jsonl: no whole line, beside findings; .* move"):
        play_it(options(tmp_path), fakes)
    assert (night / "findings" / "unit").is_dir()
