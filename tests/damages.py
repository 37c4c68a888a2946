"""Ways in which files of a stored suite are damaged, each by its name: what is read must say so, and end."""

from __future__ import annotations

import os
import shutil
import socket
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

Damage = Callable[[Path], None]


def _write(content: bytes) -> Damage:
    return lambda path: path.write_bytes(content) and None


def _changed(change: Callable[[bytes], bytes]) -> Damage:
    return lambda path: path.write_bytes(change(path.read_bytes())) and None


def _in_its_place(make: Callable[[Path], object]) -> Damage:
    """Remove the file, and make something else of its name."""

    def damage(path: Path) -> None:
        path.unlink()
        make(path)

    return damage


def _socket(path: Path) -> None:
    # The name of a socket is short, wherever it is.
    here = os.getcwd()
    os.chdir(path.parent)
    try:
        with socket.socket(socket.AF_UNIX) as made:
            made.bind(path.name)
    finally:
        os.chdir(here)


def _without_line(lines: bytes) -> bytes:
    kept = lines.splitlines(keepends=True)
    return b"".join([*kept[: len(kept) // 2], *kept[len(kept) // 2 + 1 :]])


# What is done to one file.
OF_FILES: Final[Mapping[str, Damage]] = {
    "missing": Path.unlink,
    "empty": _write(b""),
    "zeros": _changed(lambda content: bytes(len(content))),
    "binary": _write(b"\x80\x04\x95\n\xff\xfe\n"),
    "cut": _changed(lambda content: content[: len(content) // 2]),
    "wrong json": _write(b"[1, 2]\n"),
    "deep json": _write(b"[" * 100_000 + b"\n"),
    "null": _write(b"null\n"),
    "folder": _in_its_place(Path.mkdir),
    "fifo": _in_its_place(os.mkfifo),
    "socket": _in_its_place(_socket),
    "device": _in_its_place(lambda path: path.symlink_to("/dev/zero")),
    "link to nothing": _in_its_place(lambda path: path.symlink_to("nothing")),
    "link to itself": _in_its_place(lambda path: path.symlink_to(path.name)),
}
# As before, of a history's lines alone.
OF_HISTORIES: Final[Mapping[str, Damage]] = {
    **OF_FILES,
    "cut at a line": _changed(lambda lines: lines[: lines.rindex(b"\n", 0, len(lines) // 2) + 1]),
    "without a line": _changed(_without_line),
    "line of another type": _changed(lambda lines: lines.replace(b'"index":3,', b'"index":"3",', 1)),
    "line that is no utf-8": _changed(lambda lines: lines.replace(b"setup", b"set\xffup", 1)),
}


def of_folder(path: Path) -> None:
    """Put a file in a folder's place."""
    shutil.rmtree(path)
    path.write_bytes(b"x")


def unreadable(path: Path) -> None:
    """Take all permissions; root reads it all the same."""
    path.chmod(0)
