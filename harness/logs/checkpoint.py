"""
Read checkpoints, text files that several systems keep: a version, a number of entries, and one entry a line.

A file that is longer than any that such a system writes is refused before it is taken into memory.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Final, TypeAlias, TypeVar, cast

from harness import limits
from harness.beneath import Folder
from harness.logs.names import shown
from harness.logs.source import opened

# An offset and a count; an epoch and a partition. None of them is below 0.
LONG: Final = range(2**63)
INT: Final = range(2**31)
_DIGITS_MAX: Final = 20

T = TypeVar("T")
_Identity: TypeAlias = tuple[int, int, int]
Remembered: TypeAlias = dict[str, tuple[_Identity | None, object]]


class CheckpointError(ValueError):
    """A checkpoint file does not have its format; the text names the file and the line."""


def remembered(folder: Folder, name: str, read: Callable[[], T], known: Remembered) -> T:
    """
    Return what `read` makes of a file, and read it again only when the file has changed; raises what that raises.

    Args:
        name: The file's, in the folder.
        known: What was read before, by name, to which it adds.
    """
    identity = _identity(folder, name)
    if name not in known or known[name][0] != identity:
        try:
            known[name] = identity, read()
        except (CheckpointError, OSError) as error:
            known[name] = identity, error
    found = known[name][1]
    if isinstance(found, Exception):
        raise found
    return cast(T, found)


def _identity(folder: Folder, name: str) -> _Identity | None:
    try:
        stat = folder.lstat(name)
    except OSError:
        return None
    return stat.st_ino, stat.st_mtime_ns, stat.st_size


def lines_of(folder: Folder, name: str, *, lines_max: int) -> list[str] | None:
    """
    Return the lines of a file, after the last end of a line too; None if there is no file.

    Raises:
        CheckpointError: It is no text, or longer than such a file may be.
        OSError: It cannot be read.
    """
    try:
        with opened(folder, name) as source:
            data = source.at(0, limits.CHECKPOINT_BYTES_MAX + 1)
    except FileNotFoundError:
        return None
    if len(data) > limits.CHECKPOINT_BYTES_MAX:
        raise CheckpointError(f"{name}: more than {limits.CHECKPOINT_BYTES_MAX} bytes, the limit of this reader")
    if data.count(b"\n") > lines_max:
        raise CheckpointError(f"{name}: more than {lines_max} lines, the limit of this reader")
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise CheckpointError(f"{name}: {error}; expected a checkpoint's text") from error
    return text.split("\n") if text else []


def entries_of(folder: Folder, name: str, *, fields: Collection[int], entries_max: int) -> list[list[str]] | None:
    """
    Return the fields of each entry, in file order; None if there is no file.

    Args:
        fields: How many an entry may have.

    Raises:
        CheckpointError: The file does not have the format.
        OSError: It cannot be read.
    """
    lines = lines_of(folder, name, lines_max=entries_max + 2)
    if not lines:
        return None if lines is None else []
    if lines[0].strip() != "0":
        raise CheckpointError(f"{name}, line 1: version is '{shown(lines[0])}'; expected '0'")
    if len(lines) < 3 and not lines[-1]:
        return []  # as their writers read it: a file that ends before its count has no entries
    if rest := lines.pop():
        # Cut in its last number, 14 would be read as 1.
        raise CheckpointError(f"{name}: '{shown(rest)}' at its end; expected an end of the line")
    count = number_of(name, lines[1])
    entries = [line.split() for line in lines[2:]]
    for index, entry in enumerate(entries):
        if len(entry) not in fields:
            wanted = " or ".join(map(str, fields))
            raise CheckpointError(f"{name}, entry {index}: '{shown(' '.join(entry))}'; expected {wanted} fields")
    if len(entries) != count:
        raise CheckpointError(f"{name}: {len(entries)} entries; its line 2 says {count}")
    return entries


def number_of(name: str, text: str, numbers: range = LONG) -> int:
    """
    Return a number of a checkpoint; Python does not print one of any length.

    Raises:
        CheckpointError: It is none of these numbers.
    """
    if len(text) > _DIGITS_MAX or not (text.isascii() and text.removeprefix("-").isdecimal()):
        raise CheckpointError(f"{name}: '{shown(text)}'; expected a whole number")
    number = int(text)
    if number not in numbers:
        raise CheckpointError(f"{name}: '{shown(text)}'; expected a number from 0 to {numbers[-1]}")
    return number
