"""What a stranger, an operator or a damaged disk may put in the place of a broker's file, and who watches that."""

from __future__ import annotations

import os
import socket
import stat
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

Place = Callable[[Path, Path], None]
OUTSIDE: Final = b"what an operator keeps\n"


def _link_to_a_file(path: Path, outside: Path) -> None:
    path.symlink_to(outside / "kept")


def _link_inside(path: Path, _outside: Path) -> None:
    inside = path.with_name("kept-inside")
    inside.write_bytes(OUTSIDE)
    path.symlink_to(inside.name)


def _link_to_a_folder(path: Path, outside: Path) -> None:
    path.symlink_to(outside)


def _dangling(path: Path, outside: Path) -> None:
    path.symlink_to(outside / "not-there")


def _loop(path: Path, _outside: Path) -> None:
    path.symlink_to(path.name)


def _fifo(path: Path, _outside: Path) -> None:
    os.mkfifo(path)


def _socket(path: Path, _outside: Path) -> None:
    # By a short way: a socket's path has at most 107 bytes.
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        with socket.socket(socket.AF_UNIX) as made:
            made.bind(f"/proc/self/fd/{folder}/{path.name}")
    finally:
        os.close(folder)


def _folder(path: Path, _outside: Path) -> None:
    path.mkdir()
    (path / "kept").write_bytes(OUTSIDE)


def _file(path: Path, _outside: Path) -> None:
    path.write_bytes(OUTSIDE)


NO_FILE: Final[dict[str, Place]] = {
    "link to a file": _link_to_a_file,
    "link to a file inside": _link_inside,
    "link to a folder": _link_to_a_folder,
    "dangling link": _dangling,
    "link to itself": _loop,
    "FIFO": _fifo,
    "socket": _socket,
    "folder": _folder,
}
NO_FOLDER: Final[dict[str, Place]] = {
    **{name: place for name, place in NO_FILE.items() if name != "folder"},
    "file": _file,
}


def tree(folder: Path) -> dict[str, tuple[int, bytes]]:
    """Return what is below a folder: of each name its kind, and its bytes or where it leads to."""
    found: dict[str, tuple[int, bytes]] = {}
    for path in sorted(folder.rglob("*")):
        mode = path.lstat().st_mode
        content = b""
        if stat.S_ISREG(mode):
            content = path.read_bytes()
        elif stat.S_ISLNK(mode):
            content = os.fsencode(path.readlink())
        found[str(path.relative_to(folder))] = (stat.S_IFMT(mode), content)
    return found


_watched: list[tuple[Path, list[str]]] = []
_hooked: list[bool] = []


def _look(event: str, values: tuple[Any, ...]) -> None:
    if event != "open" or not _watched or not isinstance(values[0], str | Path):
        return
    folder, careless = _watched[-1]
    path, _mode, flags = values
    mine = not os.path.isabs(path) or Path(path).is_relative_to(folder)
    waits = not flags & (os.O_NONBLOCK | os.O_DIRECTORY)
    if mine and Path(path) != folder and (not flags & os.O_NOFOLLOW or waits):
        careless.append(f"{path}")
        raise AssertionError(f"{path}: opened so that a link is followed, or a FIFO waited for")


@contextmanager
def watched(folder: Path) -> Iterator[list[str]]:
    """
    Refuse every opening below a folder that would follow a link or wait for a FIFO, before it is done.

    So what would hang does not; no clock is needed. Yields the paths that were refused.
    """
    if not _hooked:
        sys.addaudithook(_look)  # it stays for the life of the process, and looks only while something is watched
        _hooked.append(True)
    careless: list[str] = []
    _watched.append((folder, careless))
    try:
        yield careless
    finally:
        _watched.pop()
