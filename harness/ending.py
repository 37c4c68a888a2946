"""
The edge of every command: arguments in, output and an exit code out.

Whatever is wrong ends a command with one line on stderr and a code of EXIT_CODES. A traceback is always a bug of
ours.
"""

from __future__ import annotations

import argparse
import io
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final, NoReturn, TextIO, cast

from harness import limits
from harness.model import EXIT_CODES, FencepostError, UsageError
from harness.numerals import above_zero, whole
from harness.registry import nearest

# As a shell reports a process that SIGINT or SIGPIPE has ended.
INTERRUPTED: Final = 130
READER_GONE: Final = 141


class OutputError(UsageError):
    """Standard output cannot be written: its disk is full, or it is closed."""


class ReaderGoneError(FencepostError):
    """Standard output's reader has ended, as `head` does."""


def end(name: str, work: Callable[[], int], *, interrupted: Callable[[], str] = lambda: "interrupted") -> int:
    """
    Run a command's work and return its exit code; print an error as one line that begins with the command's name.

    Args:
        interrupted: called after Ctrl-C, which has ended the work; returns what is printed.
    """
    _open_standard_files()
    try:
        with _checked_output():
            _check_folder()
            return work()
    except ReaderGoneError:
        return READER_GONE
    except UsageError as error:
        _say(name, str(error))
        return EXIT_CODES["usage"]
    except FencepostError as error:
        _say(name, str(error))
        return EXIT_CODES["crash"]
    except KeyboardInterrupt:
        _say(name, interrupted())
        return INTERRUPTED


# --- arguments -------------------------------------------------------------------------------------------------
class Parser(argparse.ArgumentParser):
    """
    A parser that says in one line what is wrong, and takes no abbreviation, which a new option could change.

    Attributes:
        help_of: the command whose help an error names.
    """

    def __init__(self, **arguments: Any) -> None:
        super().__init__(**{"allow_abbrev": False, **arguments})
        self.help_of = self.prog

    def error(self, message: str) -> NoReturn:
        """Raise UsageError with the message, the option that was probably meant, and where to read on."""
        unknown = message.removeprefix("unrecognized arguments: ")
        near = nearest(unknown.split()[0].partition("=")[0], _options(self)) if unknown != message else ""
        stop = "" if message.endswith("?") else "."
        raise UsageError(f"{message}{near or stop} See `{self.help_of} --help`")

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        """Refuse a value that is none of the choices, as `harness.registry.pick` does."""
        if action.choices is not None and value not in action.choices:
            choices = list(map(str, action.choices))
            raise argparse.ArgumentError(
                action, f"{value!r}; expected one of {', '.join(choices)}{nearest(str(value), choices)}"
            )


def whole_number(least: int, most: int) -> Callable[[str], int]:
    """Return a type of arguments: a whole number within its limits."""

    def number(text: str) -> int:
        try:
            return whole(text, least, most)
        except ValueError as error:
            raise argparse.ArgumentTypeError(str(error)) from error

    return number


def seconds(text: str) -> float:
    """Parse a time in seconds."""
    try:
        return above_zero(text, limits.OPTION_S_MAX)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from error


def _options(parser: argparse.ArgumentParser) -> Sequence[str]:
    """Return the options of a parser and of its commands."""
    found: list[str] = []
    for action in parser._actions:
        found += action.option_strings
        if isinstance(action, argparse._SubParsersAction):
            found += [option for each in action.choices.values() for option in _options(each)]
    return list(dict.fromkeys(found))


# --- output ----------------------------------------------------------------------------------------------------
class _Output:
    """Standard output whose failures are errors of ours: no other file's failure can be taken for one."""

    def __init__(self, file: TextIO) -> None:
        self._file = file

    def write(self, text: str) -> int:
        with self._failing():
            return self._file.write(text)

    def flush(self) -> None:
        with self._failing():
            self._file.flush()

    @contextmanager
    def _failing(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            _discard(self._file)
            if isinstance(error, BrokenPipeError):
                raise ReaderGoneError("stdout: its reader has ended") from error
            raise OutputError(f"stdout: {error.strerror}; expected a place that can be written") from error

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file, name)


@contextmanager
def _checked_output() -> Iterator[None]:
    """Replace standard output during the block, and write all of it out at its end."""
    before = sys.stdout
    if before is None:
        raise OutputError("stdout: closed; expected an open one, such as a terminal, a file or /dev/null")
    if isinstance(before, io.TextIOWrapper):
        # A name need not be UTF-8, nor the terminal.
        before.reconfigure(errors="backslashreplace")
    checked = _Output(before)
    sys.stdout = cast(TextIO, checked)
    try:
        yield
        checked.flush()
    except (SystemExit, UsageError):
        checked.flush()
        raise
    finally:
        sys.stdout = before


def _check_folder() -> None:
    """Raise UsageError if the current folder was deleted: Python itself cannot import everything from there."""
    try:
        os.getcwd()
    except OSError as error:
        raise UsageError(f"current folder: {error.strerror}; expected one that exists; go to another") from error


def _open_standard_files() -> None:
    """Open what is closed of the three standard files, else the next file that is opened would take its place."""
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # takes the lowest free number, which is this one


def _say(name: str, text: str) -> None:
    """Print one line on stderr; without one there is only the exit code."""
    if sys.stderr is None:
        return
    try:
        print(f"{name}: {one_line(text)}", file=sys.stderr, flush=True)
    except OSError:
        _discard(sys.stderr)


def one_line(text: str) -> str:
    """Return a text as one line of bounded length, in which everything is visible."""
    joined = "; ".join(line.strip() for line in text.splitlines() if line.strip())
    shown = "".join(
        c if c.isprintable() else c.encode("unicode_escape", "backslashreplace").decode() for c in joined
    )
    if len(shown) <= limits.ERROR_CHARACTERS_MAX:
        return shown
    half = limits.ERROR_CHARACTERS_MAX // 2
    return f"{shown[:half]} … {shown[-half:]}"


def _discard(file: TextIO) -> None:
    """Send what a file still holds to nowhere: else Python fails at its end, with lines and a code of its own."""
    try:
        number = file.fileno()
    except (OSError, ValueError):  # a test's own file
        return
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, number)
    os.close(nowhere)
