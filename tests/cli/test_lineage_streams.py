"""The command `lineage` and its streams: progress on a terminal alone, a full disk, a reader that has gone."""

from __future__ import annotations

import fcntl
import json
import os
import struct
import subprocess
import sys
import termios
from collections.abc import Iterator
from pathlib import Path
from typing import Final, TextIO

import pytest

from harness.cli import lineage as command
from tests.cli.test_lineage import VALID, run
from tests.little_memory import ROOT
from tests.targets.kafka_family.logs.build import batch, partition

COLUMNS: Final = 60
END: Final = "<end>"
FENCEPOST: Final = (sys.executable, "-m", "harness.cli.main", "lineage")


@pytest.fixture
def pair(tmp_path: Path) -> tuple[Path, Path]:
    """Return two equal data directories; one partition has a long name, of characters that take two columns."""
    for name in "ab":
        partition(tmp_path / name, batch(0, "a"), epochs=[(0, 0)]).rename(tmp_path / name / f"{'記' * 60}-0")
        partition(tmp_path / name, batch(0, "a"), epochs=[(0, 0)])
    return tmp_path / "a", tmp_path / "b"


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> Iterator[Terminal]:
    """Return a terminal of COLUMNS columns, which can remove a line."""
    reader, writer = os.openpty()
    fcntl.ioctl(writer, termios.TIOCSWINSZ, struct.pack("HHHH", 24, COLUMNS, 0, 0))
    monkeypatch.setattr(command, "_PROGRESS_S", 0.0)
    monkeypatch.setenv("TERM", "xterm")
    with os.fdopen(writer, "w", encoding="utf-8") as file:
        yield Terminal(reader, file)
    os.close(reader)


class Terminal:
    """A terminal, from both sides."""

    def __init__(self, reader: int, file: TextIO) -> None:
        self._reader = reader
        self._file = file

    def shown_by(self, monkeypatch: pytest.MonkeyPatch, *arguments: str | Path) -> str:
        """Run with this terminal as stderr, without a difference found, and return all that was written to it."""
        with monkeypatch.context() as patch:
            patch.setattr(sys, "stderr", self._file)
            assert VALID == run(*arguments)
        print(END, end="", file=self._file, flush=True)
        found = b""
        while not found.endswith(END.encode()):
            found += os.read(self._reader, 1 << 16)
        return found.decode().removesuffix(END)


@pytest.mark.parametrize("option", [(), ("--json",)])
def test_progress_is_one_line_of_a_terminal_on_stderr_that_is_removed(
    pair: tuple[Path, Path],
    terminal: Terminal,
    option: tuple[str, ...],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    shown = terminal.shown_by(monkeypatch, *option, *pair)
    assert "0 of 2 partitions compared; now t-0\r" in shown
    assert "1 of 2 partitions compared; now 記" in shown
    # Each line, and what removes it, stays within the terminal's width, with two columns for each wide character.
    widths = [len(piece) + piece.count("記") for piece in shown.split("\r")]
    assert COLUMNS - 1 in widths
    assert COLUMNS > max(widths)
    assert shown.endswith(f"\r{' ' * (COLUMNS - 1)}\r")
    assert "partitions compared; now" not in capsys.readouterr().out


def test_progress_is_not_written_to_a_terminal_that_cannot_remove_it(
    pair: tuple[Path, Path], terminal: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TERM", "dumb")
    assert "" == terminal.shown_by(monkeypatch, *pair)


def test_progress_is_not_written_to_what_is_no_terminal(
    pair: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("TERM", "xterm")
    assert VALID == run(*pair)
    assert "" == capsys.readouterr().err


@pytest.mark.parametrize("option", [(), ("--json",)])
def test_full_disk_behind_stdout_is_one_line_and_exit_code_2(
    pair: tuple[Path, Path], option: tuple[str, ...]
) -> None:
    with Path("/dev/full").open("w", encoding="utf-8") as full:
        ended = subprocess.run(
            [*FENCEPOST, *option, *map(str, pair)],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
            cwd=ROOT,
        )
    line = "fencepost: stdout: No space left on device; expected a place that can be written\n"
    assert (2, line) == (ended.returncode, ended.stderr)


@pytest.mark.parametrize("option", [(), ("--json",)])
def test_reader_that_has_gone_is_exit_code_141_without_a_line(
    pair: tuple[Path, Path], option: tuple[str, ...]
) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    with os.fdopen(writer) as stdout:
        ended = subprocess.run(
            [*FENCEPOST, *option, *map(str, pair)],
            stdout=stdout,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
            cwd=ROOT,
        )
    assert (141, "") == (ended.returncode, ended.stderr)


def test_json_is_ascii_in_any_locale(pair: tuple[Path, Path]) -> None:
    plain = {"PATH": os.defpath, "LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    ended = subprocess.run(
        [*FENCEPOST, "--json", *map(str, pair)], capture_output=True, env=plain, check=False, cwd=ROOT
    )
    assert (0, b"") == (ended.returncode, ended.stderr)
    names = [each["partition"] for each in json.loads(ended.stdout.decode("ascii"))["partitions"]]
    assert ["t-0", r"\xe8\xa8\x98" * 60 + "-0"] == names
