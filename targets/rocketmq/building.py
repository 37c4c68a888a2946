"""
`fencepost fetch rocketmq`: the jars of each release, and two classes, compiled with them.

They are kept in a folder that is named after their sources and the release, so that other sources are compiled
anew. java/Broker.java starts a broker, java/Client.java asks RocketMQ's own clients.
"""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

from harness import downloads
from harness.jars import class_path_of, missing, read_lock
from harness.java import find_java
from harness.model import UsageError
from targets.rocketmq.versions import NAME, Release, library

MAIN: Final = "Broker"
CLIENT: Final = "Client"
_JAVA: Final = Path(__file__).with_name("java")
_SOURCES: Final = tuple(_JAVA / f"{name}.java" for name in (MAIN, CLIENT))
_COMPILE_S_MAX: Final = 120.0
_SHOWN: Final = 400


def bring(releases: Sequence[Release], say: Callable[[str], None]) -> None:
    """
    Download and compile what is not there.

    Raises:
        UsageError: a jar cannot be reached or is not the pinned one, or there is no compiler of Java.
    """
    jars = {each.path: each for release in releases for each in release.files}
    downloads.bring(tuple(jars.values()), library(), say)
    for release in releases:
        if not _compiled(release).is_file():
            _compile(release)
            say(f"{release.name}: compiled {_names()}")


def why_not(release: Release) -> str:
    """Return why a release cannot be started, "" if its jars and the classes are there."""
    lacking = missing(read_lock(release.lock), library())
    if lacking:
        return f"{len(lacking)} jars are not in {library()}"
    return "" if _compiled(release).is_file() else f"{_compiled(release)} is not there"


def class_path(release: Release) -> tuple[Path, ...]:
    """
    Return a release's class path, after checking every checksum once in this process.

    Raises:
        UsageError: a part is missing, or is not the pinned one; the text has the command that brings it.
    """
    remedy = f"fencepost fetch {NAME}:{release.name}"
    jars = class_path_of(f"RocketMQ {release.name}", release.lock, library(), remedy)
    if not _compiled(release).is_file():
        raise UsageError(f"RocketMQ {release.name}: {_compiled(release)} is not there; `{remedy}` makes it")
    return (_compiled(release).parent, *jars)


def _compiled(release: Release) -> Path:
    digest = hashlib.sha256(b"".join(each.read_bytes() for each in _SOURCES)).hexdigest()[:16]
    return library() / "classes" / f"{release.name}-{digest}" / f"{MAIN}.class"


def _names() -> str:
    return ", ".join(each.name for each in _SOURCES)


def _compile(release: Release) -> None:
    place = _compiled(release).parent
    place.parent.mkdir(parents=True, exist_ok=True)
    jars = ":".join(str(library() / each.path) for each in release.files)
    with tempfile.TemporaryDirectory(dir=place.parent) as made:
        argv = [_compiler(), "--release", "17", "-proc:none", "-d", made, "-cp", jars, *map(str, _SOURCES)]
        try:
            ran = subprocess.run(
                argv, capture_output=True, text=True, errors="replace", timeout=_COMPILE_S_MAX, check=False
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            raise UsageError(f"{argv[0]}: {error}; expected a compiler of Java 17 or later") from error
        if ran.returncode:
            said = " ".join(ran.stderr.split())[-_SHOWN:]
            raise UsageError(f"{_names()} with RocketMQ {release.name}: {said}; expected them to compile")
        shutil.rmtree(place, ignore_errors=True)
        shutil.copytree(made, place)


def _compiler() -> str:
    beside = find_java().home / "bin" / "javac"
    found = str(beside) if beside.is_file() else shutil.which("javac")
    if found is None:
        raise UsageError(
            f"{beside}: not there, nor is javac on the PATH; expected a JDK 17 or later, not only its runtime"
        )
    return found
