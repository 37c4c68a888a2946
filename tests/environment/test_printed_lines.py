"""Lines that nodes print are recorded in the history, each line once, up to a limit for each kind."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.cleanup.process import until
from harness.environment import printed_lines as prints
from harness.environment.printed_lines import LINES_MAX, PrintedLines
from harness.history.file import History, read_history
from harness.model import Op
from harness.target.target import Printed


def read(line: str) -> Printed | None:
    """Parse `cut N` as a truncation to offset N; ignore every other line."""
    word, _, number = line.partition(" ")
    return Printed(what="truncate", topic="log", partition=0, to=int(number)) if word == "cut" else None


def following(tmp_path: Path, texts: dict[str, str]) -> tuple[PrintedLines, History]:
    history = History(tmp_path / "history.jsonl")
    return PrintedLines(texts, texts.__getitem__, read, history, "toy"), history


def told(history: History) -> list[Op]:
    return read_history(history.path)


def test_line_is_told_once_and_only_when_it_has_ended(tmp_path: Path) -> None:
    texts = {"A": "hello\ncut 1"}
    followed, history = following(tmp_path, texts)
    followed.look("A")
    assert [] == told(history)
    texts["A"] += "7\ncut 3\n"
    followed.look("A")
    followed.look("A")
    assert [("A", "cut 17", 17), ("A", "cut 3", 3)] == [
        (op.process, op.value["line"], op.value["to"]) for op in told(history)
    ]


def test_lines_of_one_kind_are_limited(tmp_path: Path) -> None:
    followed, history = following(tmp_path, {"A": "cut 1\n" * (LINES_MAX + 1), "B": "cut 2\n"})
    followed.look("A")
    followed.look("B")
    assert LINES_MAX + 1 == len(told(history))


def test_follower_sees_what_is_printed_later_and_ends(tmp_path: Path) -> None:
    texts = {"A": ""}
    followed, history = following(tmp_path, texts)
    followed.start()
    texts["A"] = "cut 1\n"
    assert until(lambda: bool(told(history)), 10)
    followed.close()
    followed.close()
    texts["A"] += "cut 2\n"
    assert 1 == len(told(history))


def test_follower_goes_on_when_a_node_cannot_be_read_for_a_moment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(prints, "LOOK_S", 0.001)
    history = History(tmp_path / "history.jsonl")
    tries: list[str] = []

    def text_of(name: str) -> str:
        tries.append(name)
        if len(tries) == 1:
            raise OSError("not yet")
        return "cut 1\n"

    followed = PrintedLines(["A"], text_of, read, history, "toy")
    followed.start()
    assert until(lambda: bool(told(history)), 10)
    followed.close()
