"""`fencepost check --jepsen` prints verdicts as Jepsen's checker gives them, and ends with the code for them."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from harness.cli import check_jepsen
from harness.cli.main import main
from harness.input_file import numbered_lines
from harness.model import EXIT_CODES
from tests.checkers.jepsen.story import Story, values
from tests.checkers.jepsen.test_cycles import interleaved

HISTORIES = Path(__file__).parents[1] / "checkers" / "jepsen" / "histories"
# Column by column, G1c-realtime is valid, invalid and valid; poll-skip is invalid, invalid and valid.
VALID, POLL_SKIP, G1C = (str(HISTORIES / f"{name}.jsonl") for name in ("valid-plain", "poll-skip", "G1c-realtime"))

Write = Callable[..., str]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    def write(name: str, *lines: bytes) -> str:
        (tmp_path / name).write_bytes(b"".join(lines))
        return str(tmp_path / name)

    return write


@pytest.fixture
def crashing(write: Write) -> str:
    return write("crashing.jsonl", *Story().filled().poll(1, {0: [[0, 99]]}).encoded())


@pytest.fixture
def damaged(write: Write) -> str:
    first, *rest = Story().filled().poll(1, {0: values(0, 2)}).encoded()
    return write("damaged.jsonl", first, b"{torn\n", *rest[1:])


def output(capsys: pytest.CaptureFixture[str], code: str, *words: str) -> str:
    assert EXIT_CODES[code] == main(["check", "--jepsen", *words])
    printed = capsys.readouterr()
    assert "" == printed.err
    return printed.out


def objects(capsys: pytest.CaptureFixture[str], code: str, *words: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in output(capsys, code, *words, "--json").splitlines()]


def test_valid_history_ends_with_0(capsys: pytest.CaptureFixture[str]) -> None:
    printed = output(capsys, "valid", VALID)
    assert f"{VALID}: valid" in printed
    assert 3 == sum(" valid " in line for line in printed.splitlines())


def test_invalid_history_ends_with_4_and_has_sentences(capsys: pytest.CaptureFixture[str]) -> None:
    printed = output(capsys, "invalid", POLL_SKIP)
    assert f"{POLL_SKIP}: invalid" in printed
    assert (
        "poll-skip: key 0: op 7 (line 8: ok poll of process 1) ended with value 10 at offset 0, and op 9 (line "
        "10: ok poll of process 1) began with 12 at 2, over 11" in printed
    )


def test_line_that_cannot_be_used_makes_its_file_unknown_and_no_other(
    capsys: pytest.CaptureFixture[str], damaged: str
) -> None:
    printed = output(capsys, "unknown", damaged, VALID)
    assert f"{damaged}: unknown" in printed
    assert f"? {damaged}:2: no JSON (" in printed
    assert f"{VALID}: valid" in printed
    assert "2 files: 1 valid, 1 unknown, 0 invalid" in printed


def test_invalid_outweighs_unknown(capsys: pytest.CaptureFixture[str], damaged: str, crashing: str) -> None:
    printed = output(capsys, "invalid", damaged, POLL_SKIP, crashing)
    assert "3 files: 0 valid, 2 unknown, 1 invalid" in printed


def test_what_jepsens_checker_throws_at_is_unknown(capsys: pytest.CaptureFixture[str], crashing: str) -> None:
    assert "? Jepsen's checker throws no-writer-of-value: value 99 of key 0" in output(capsys, "unknown", crashing)
    (raw,) = objects(capsys, "unknown", crashing)
    for verdict in raw["verdicts"].values():
        assert {"valid", "error"} == verdict.keys()
        assert "crashed" == verdict["valid"]
        assert verdict["error"].startswith("no-writer-of-value")


def test_json_is_one_object_a_file_in_jepsens_form(capsys: pytest.CaptureFixture[str], damaged: str) -> None:
    one, other, third = objects(capsys, "invalid", POLL_SKIP, damaged, VALID)
    assert ["invalid", "unknown", "valid"] == [each["verdict"] for each in (one, other, third)]
    assert [POLL_SKIP, damaged, VALID] == [each["file"] for each in (one, other, third)]
    expected = json.loads((HISTORIES / "poll-skip.expected.json").read_text(encoding="utf-8"))["verdicts"]
    assert expected.keys() == one["verdicts"].keys()
    for column, verdict in expected.items():
        assert verdict.keys() == one["verdicts"][column].keys()
        for key in ("valid", "error-types", "bad-error-types", "counts"):
            assert verdict[key] == one["verdicts"][column][key]
    assert {} == other["verdicts"]
    assert other["problems"][0].startswith(f"{damaged}:2: ")


@pytest.mark.parametrize(
    ("words", "file", "code", "column"),
    [
        ("", G1C, "valid", "assign+ww"),
        ("--no-ww-deps", G1C, "invalid", "assign"),
        ("--ww-deps", G1C, "valid", "assign+ww"),
        ("--sub-via assign", G1C, "valid", "assign+ww"),
        ("--sub-via assign", POLL_SKIP, "invalid", "assign+ww"),
        ("--sub-via subscribe", POLL_SKIP, "valid", "subscribe+ww"),
        ("--sub-via subscribe --no-ww-deps", POLL_SKIP, "valid", "subscribe"),
        ("--sub-via subscribe --no-ww-deps", G1C, "invalid", "subscribe"),
    ],
)
def test_options_choose_the_column_that_decides(
    capsys: pytest.CaptureFixture[str], words: str, file: str, code: str, column: str
) -> None:
    (raw,) = objects(capsys, code, file, *words.split())
    assert column == next(iter(raw["verdicts"]))
    assert (3 if not words else 1) == len(raw["verdicts"])


def test_findings_of_other_columns_are_named_with_theirs(capsys: pytest.CaptureFixture[str], write: Write) -> None:
    """A G0 hides a G1c of its component, which only the column without ww edges shows."""
    printed = output(capsys, "valid", write("hidden.jsonl", *interleaved(reading=True).encoded()))
    assert "  G0: op " in printed
    assert "  G1c (assign): op " in printed


def test_many_findings_of_a_kind_are_cut_with_how_many_more(
    capsys: pytest.CaptureFixture[str], write: Write
) -> None:
    story = Story().filled(20)
    for _ in range(9):
        story.poll(1, {0: values(0, 19)})
    printed = output(capsys, "invalid", write("many.jsonl", *story.encoded()))
    assert check_jepsen._FINDINGS_MAX == printed.count("nonmonotonic-poll: key 0")
    assert "nonmonotonic-poll: 3 more" in printed


def test_control_characters_of_a_history_do_not_reach_the_terminal(
    capsys: pytest.CaptureFixture[str], write: Write
) -> None:
    story = Story().send(0, ("\x1b[31m", 0, "\ud800\x1b")).send(0, ("\x1b[31m", 0, "b")).poll(1, {})
    file = write("strange.jsonl", *story.encoded())
    assert "\x1b" not in output(capsys, "invalid", file)
    assert "inconsistent-offsets" in objects(capsys, "invalid", file)[0]["verdicts"]["assign"]["counts"]


def test_file_beyond_the_limit_is_unknown(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(check_jepsen, "JEPSEN_BYTES_MAX", 100)
    assert f"? {VALID}: 1,109 bytes; expected at most 100" in output(capsys, "unknown", VALID)


def test_line_beyond_the_limit_is_cut_and_the_next_is_whole(tmp_path: Path) -> None:
    (tmp_path / "lines").write_bytes(b"a" * 25 + b"\nb\n" + b"c" * 10 + b"\n" + b"d" * 10)
    with (tmp_path / "lines").open("rb") as file:
        assert [(1, b"a" * 11), (2, b"b\n"), (3, b"c" * 10 + b"\n"), (4, b"d" * 10)] == [*numbered_lines(file, 10)]


@pytest.mark.parametrize("name", ["missing", "folder", "pipe"])
def test_file_that_is_none_is_named_before_any_is_judged(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, name: str
) -> None:
    (tmp_path / "folder").mkdir()
    os.mkfifo(tmp_path / "pipe")
    assert EXIT_CODES["usage"] == main(["check", "--jepsen", VALID, str(tmp_path / name)])
    printed = capsys.readouterr()
    assert "" == printed.out
    assert f"{name}: " in printed.err
    assert "expected a history of Jepsen's" in printed.err
