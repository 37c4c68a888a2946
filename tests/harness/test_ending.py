"""The edge of every command: whatever is wrong becomes one line and a code; tests/endings has the list of uses."""

from __future__ import annotations

import sys

import pytest

from harness import limits
from harness.ending import INTERRUPTED, Parser, end, one_line, seconds, whole_number
from harness.model import EXIT_CODES, FencepostError, HistoryError, UsageError


def test_code_of_the_work_is_the_code_of_the_command(capsys: pytest.CaptureFixture[str]) -> None:
    assert [0, 3, 4] == [end("x", lambda code=code: code) for code in (0, 3, 4)]  # type: ignore[misc]
    assert ("", "") == capsys.readouterr()


@pytest.mark.parametrize(("error", "code", "line"), [
    (UsageError("a: 1; expected 2"), EXIT_CODES["usage"], "x: a: 1; expected 2\n"),
    (HistoryError("two\n  lines\n"), EXIT_CODES["crash"], "x: two; lines\n"),
    (FencepostError("red \x1b[31m, right to left \u202e, half \udcff"), EXIT_CODES["crash"],
     "x: red \\x1b[31m, right to left \\u202e, half \\udcff\n"),
    (KeyboardInterrupt(), INTERRUPTED, "x: interrupted\n"),
])  # fmt: skip
def test_error_is_one_line_and_its_code(
    error: BaseException, code: int, line: str, capsys: pytest.CaptureFixture[str]
) -> None:
    def work() -> int:
        print("so far")
        raise error

    before = sys.stdout
    assert code == end("x", work)
    assert ("so far\n", line) == capsys.readouterr()
    assert sys.stdout is before


def test_bug_of_ours_is_no_error_of_the_user() -> None:
    """It leaves its traceback, and Python's code 1: hiding it would hide the bug."""

    def work() -> int:
        raise KeyError("bug")

    with pytest.raises(KeyError):
        end("x", work)


def test_long_error_keeps_its_beginning_and_its_end() -> None:
    shown = one_line(f"begins {'x' * 100_000} Did you mean 'y'?")
    assert limits.ERROR_CHARACTERS_MAX + 3 == len(shown)
    assert shown.startswith("begins xxx")
    assert shown.endswith("xxx Did you mean 'y'?")


@pytest.mark.parametrize(("words", "says"), [
    (["--colur", "red"], "unrecognized arguments: --colur red. Did you mean '--colour'? See `x --help`"),
    (["--col", "red"], "unrecognized arguments: --col red. Did you mean '--colour'? See `x --help`"),
    (["--colour", "rot"], "argument --colour: 'rot'; expected one of red, blue. See `x --help`"),
    (["--colour", "ret"], "argument --colour: 'ret'; expected one of red, blue. Did you mean 'red'? See `x"),
    (["--colour"], "argument --colour: expected one argument. See `x --help`"),
    (["--number", "-1"], "argument --number: '-1': expected a whole number from 0 to 9. See `x --help`"),
    (["--time", "inf"], "argument --time: 'inf': expected a number above 0, up to 2678400. See `x --help`"),
])  # fmt: skip
def test_wrong_argument_is_told_with_what_was_expected_and_where_to_read_on(words: list[str], says: str) -> None:
    parser = Parser(prog="x")
    parser.add_argument("--colour", choices=("red", "blue"))
    parser.add_argument("--number", type=whole_number(0, 9))
    parser.add_argument("--time", type=seconds)
    with pytest.raises(UsageError) as raised:
        parser.parse_args(words)
    assert f"{says.partition(' See ')[0]} See `x --help`" == str(raised.value)
