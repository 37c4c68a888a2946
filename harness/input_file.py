"""Reads a text file that a user named: what it cannot be is told in one line, before any of it is used."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import IO, Final

from harness.model import UsageError

# Windows editors write it at the beginning of a file.
_BYTE_ORDER_MARK: Final = "\ufeff"


def read_text(path: Path, what: str, bytes_max: int) -> str:
    """
    Return the text of a regular file, without a byte order mark at its beginning.

    Args:
        path: the file as the user named it.
        what: what the file must be, for errors: "a scenario file".
        bytes_max: the size up to which it is read.

    Raises:
        UsageError: the file is missing, is no regular file, cannot be read, is larger, or is not UTF-8.
    """
    try:
        data = _read(path, what, bytes_max)
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror}; expected {what}") from error
    try:
        return data.decode("utf-8").removeprefix(_BYTE_ORDER_MARK)
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise UsageError(
            f"{path}:{line}: byte 0x{data[error.start]:02x} is not UTF-8; expected {what}, in UTF-8"
        ) from error


@contextmanager
def open_file(path: Path, what: str) -> Iterator[IO[bytes]]:
    """
    Open a regular file to read, for what is too large to be read at once.

    Args:
        path: the file as the user named it.
        what: what the file must be, for errors: "a history".

    Raises:
        UsageError: the file is missing, is no regular file, or cannot be opened.
    """
    with ExitStack() as opened:
        try:
            file = opened.enter_context(open(path, "rb", opener=at_once))
        except OSError as error:
            raise UsageError(f"{path}: {error.strerror}; expected {what}") from error
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise UsageError(f"{path}: not a regular file; expected {what}")
        yield file


def why_unread(path: Path) -> str:
    """Return why a regular file cannot be opened to read, in a few words; "" if nothing is known. Never waits."""
    try:
        mode = os.stat(path).st_mode
    except OSError as error:
        return str(error.strerror)
    if not stat.S_ISREG(mode):
        return "not a regular file"
    return "" if os.access(path, os.R_OK) else os.strerror(errno.EACCES)


def numbered_lines(file: IO[bytes], line_bytes_max: int) -> Iterator[tuple[int, bytes]]:
    """Yield each line with its number, from 1; of a longer one only its first line_bytes_max + 1 bytes."""
    number = 0
    while line := file.readline(line_bytes_max + 1):
        number += 1
        rest = line
        while len(rest) > line_bytes_max and not rest.endswith(b"\n"):
            rest = file.readline(line_bytes_max + 1)
        yield number, line


def _read(path: Path, what: str, bytes_max: int) -> bytes:
    with open(path, "rb", opener=at_once) as file:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise UsageError(f"{path}: not a regular file; expected {what}")
        data = file.read(bytes_max + 1)
    if len(data) > bytes_max:
        raise UsageError(f"{path}: more than {bytes_max:,} bytes; expected {what} of at most that size")
    return data


def at_once(path: str, flags: int) -> int:
    """Open a file without waiting: else the opening of a pipe that nobody writes to never ends."""
    return os.open(path, flags | os.O_NONBLOCK)
