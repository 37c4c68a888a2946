"""Tables that are made while the history is written are those that are made of it afterwards, or are not there."""

from __future__ import annotations

import errno
import os
import random
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from harness.cleanup.process import until
from harness.tables import follow as module
from harness.tables.follow import follow
from harness.tables.manifest import FOLDER, TablesError, table_path
from harness.tables.schema import SCHEMAS
from harness.tables.writer import TableMaker, TableWriter, make_tables, read_manifest
from tests.checkers.plants.histories import HISTORIES

FILES = ("manifest.json", *(f"{name}.parquet" for name in SCHEMAS))


@pytest.fixture(autouse=True)
def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make several row groups of few rows, and read few bytes at a time."""
    for name in ("rows", "writer"):
        monkeypatch.setattr(f"harness.tables.{name}.ROWS", 7)
    monkeypatch.setattr(module, "PIECE_BYTES", 100)
    monkeypatch.setattr(module, "LOOK_S", 0.001)


def _text(name: str = "lost-bad") -> bytes:
    return "".join(op.to_json() + "\n" for op in HISTORIES[name]).encode()


def _strange(text: bytes) -> bytes:
    """Return a history with lines that are no op, not ASCII and not UTF-8, and a torn last one."""
    lines = text.splitlines(keepends=True)
    lines[3] = b"nonsense\n"
    lines[4] = lines[4].replace(b'"process":"', '"process":"é€🙂'.encode(), 1)
    lines[5] = lines[5].replace(b'"process":"', b'"process":"\xf0\x9f', 1)
    return b"".join(lines) + '{"index":"é'.encode()[:-1]


def _files(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def _expected(folder: Path, text: bytes) -> dict[str, bytes]:
    """Return the files of the tables that are made of the whole history."""
    folder.mkdir()
    (folder / "history.jsonl").write_bytes(text)
    found = _files(make_tables(folder / "history.jsonl"))
    assert set(FILES) == set(found)
    return found


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("seed", range(3))
def test_tables_do_not_depend_on_where_the_pieces_end(tmp_path: Path, seed: int) -> None:
    rng, names = random.Random(seed), [*HISTORIES]
    for number in range(8):
        text = _text(rng.choice(names))
        text = _strange(text) if number % 2 else text
        with TableMaker(tmp_path / f"{number}", Path("history.jsonl")) as maker:
            position = 0
            while position < len(text):
                size = rng.choice((1, 2, 3, 50, 1_000, 20_000))
                maker.add(text[position : position + size])
                position += size
            maker.finish()
        assert _expected(tmp_path / f"whole-{number}", text) == _files(tmp_path / f"{number}")


class Recorder:
    """Writes a history, and has it followed in a thread."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir()
        self.history = folder / "history.jsonl"
        self.history.touch()
        self._read, self.control = os.pipe()
        self.raised: list[BaseException] = []
        self._thread = threading.Thread(target=self._follow, daemon=True)
        self._thread.start()

    def _follow(self) -> None:
        try:
            follow(self.history, self._read)
        except BaseException as error:
            self.raised.append(error)

    def write(self, text: bytes) -> None:
        """Write to the history, in two pieces, and wait until the tables have been begun."""
        with self.history.open("ab", buffering=0) as file:
            file.write(text[:777])
            until(lambda: (self.history.parent / "tables.partial").exists() or bool(self.raised), 20)
            file.write(text[777:])

    def say(self, size: int) -> None:
        """Say how large the history is."""
        os.write(self.control, b"%d\n" % size)

    def join(self) -> list[str]:
        """Wait until the follower has ended; return the names in the history's folder."""
        self._thread.join(60)
        assert not self._thread.is_alive()
        return sorted(path.name for path in self.history.parent.iterdir())

    def give_up(self) -> None:
        """End the pipe, as a killed process does."""
        if self.control >= 0:
            os.close(self.control)
        self.control = -1

    def close(self) -> None:
        """Close both ends."""
        self.give_up()
        self._thread.join(60)
        os.close(self._read)


@pytest.fixture
def recorder(tmp_path: Path) -> Iterator[Recorder]:
    """Yield a history that is followed."""
    made = Recorder(tmp_path / "run")
    yield made
    made.close()


@pytest.mark.parametrize("change", [bytes, _strange], ids=["sound", "strange"])
def test_history_has_its_tables_when_its_size_was_said(
    tmp_path: Path, recorder: Recorder, change: Callable[[bytes], bytes]
) -> None:
    text = change(_text())
    recorder.write(text)
    recorder.say(len(text))
    assert ["history.jsonl", "tables"] == recorder.join()
    assert [] == recorder.raised
    assert _expected(tmp_path / "whole", text) == _files(recorder.history.parent / FOLDER)
    assert len(text) == read_manifest(recorder.history).size


def test_size_may_be_said_before_all_was_read(tmp_path: Path, recorder: Recorder) -> None:
    text = _text() * 3
    recorder.history.write_bytes(text)
    recorder.say(len(text))
    assert ["history.jsonl", "tables"] == recorder.join()
    assert _expected(tmp_path / "whole", text) == _files(recorder.history.parent / FOLDER)


def test_nothing_is_left_when_the_process_that_wrote_the_history_was_killed(recorder: Recorder) -> None:
    recorder.write(_text()[:-5])
    recorder.give_up()
    assert ["history.jsonl"] == recorder.join()
    assert ["_GivenUpError"] == [type(error).__name__ for error in recorder.raised]


def test_tables_are_not_put_in_place_for_a_process_that_was_killed_after_it_said_the_size(
    recorder: Recorder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(TableMaker, "finish", lambda _: recorder.give_up())
    recorder.write(_text())
    recorder.say(len(_text()))
    assert ["history.jsonl"] == recorder.join()
    assert ["_GivenUpError"] == [type(error).__name__ for error in recorder.raised]


def test_history_that_is_shorter_than_was_said_has_no_tables(recorder: Recorder) -> None:
    recorder.write(_text())
    recorder.say(len(_text()) + 1)
    assert ["history.jsonl"] == recorder.join()
    (error,) = recorder.raised
    assert isinstance(error, TablesError)
    assert f"{len(_text())} bytes; expected the {len(_text()) + 1} that were written" in str(error)


def test_full_disk_leaves_nothing(recorder: Recorder, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: Any) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(TableWriter, "write_table", full)
    recorder.write(_text())
    assert ["history.jsonl"] == recorder.join()
    assert ["[Errno 28] No space left on device"] == [str(error) for error in recorder.raised]


def test_tables_of_a_killed_follower_are_made_anew(tmp_path: Path) -> None:
    history = tmp_path / "history.jsonl"
    history.write_bytes(_text())
    with TableMaker(tmp_path / "tables.partial", history) as maker:
        maker.add(_text()[:2_000])
    make_tables(history)
    assert ["history.jsonl", "tables"] == sorted(path.name for path in tmp_path.iterdir())
    assert table_path(tmp_path / FOLDER, "events").exists()


def test_text_that_no_file_can_hold_is_an_error_of_the_tables(recorder: Recorder) -> None:
    text = _text().replace(b'"process":"', b'"process":"\\ud800', 1)
    recorder.write(text)
    recorder.say(len(text))
    assert ["history.jsonl"] == recorder.join()
    with pytest.raises(
        TablesError, match=r"table events: .*surrogates not allowed; expected values that its columns"
    ):
        make_tables(recorder.history)
