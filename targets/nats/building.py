"""
`fencepost fetch nats`: each release is built by Go from its module, whose checksum is pinned here.

Go's module cache keeps what has arrived, so that a fetch that was killed goes on; go.sum in the module pins all
that it is built with. The program's own hash is kept beside it, since another Go builds another program, and is
compared before each start.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, Final

from harness.model import UsageError
from targets.nats.versions import HASH, NAME, PROGRAM, Release, library, program_of

_DOWNLOAD_S_MAX: Final = 600.0
_BUILD_S_MAX: Final = 1200.0
_SHOWN: Final = 400
_LOCK: Final = "fetch.lock"
_FLAGS: Final = ("-trimpath", "-buildvcs=false")


def bring(releases: Sequence[Release], say: Callable[[str], None]) -> None:
    """
    Build what is not there; return once every program is there, as it was built.

    Raises:
        UsageError: there is no Go, a module cannot be reached or is not the pinned one, or it does not build.
    """
    folder = library()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with (folder / _LOCK).open("a") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)  # another fetch that fills it ends first
            for release in releases:
                if not why_not(release, folder):
                    say(f"{release.name}: {program_of(release, folder)} is there, as it was built")
                    continue
                say(f"{release.name}: builds {release.module}; a minute or two")
                _build(release, folder)
    except OSError as error:
        raise UsageError(
            f"{error.filename or folder}: {error.strerror}; expected a cache that can be written"
        ) from error


def why_not(release: Release, folder: Path) -> str:
    """Return why a release cannot be started, "" if its program is there as it was built."""
    program = program_of(release, folder)
    brings = f"`fencepost fetch {NAME}:{release.name}` builds it"
    if not program.is_file():
        return f"{program} is not there; {brings}"
    file = program.with_name(HASH)
    expected = file.read_text(encoding="ascii", errors="replace").strip() if file.is_file() else ""
    found = _digest(program, program.stat().st_mtime_ns, program.stat().st_size)
    return (
        "" if found == expected else f"{program} has sha256 {found}, not {expected or 'one of a build'}; {brings}"
    )


@cache
def _digest(program: Path, changed_ns: int, size: int) -> str:
    """Return a program's hash, which is computed again once the file is another."""
    del changed_ns, size
    return hashlib.sha256(program.read_bytes()).hexdigest()


def _build(release: Release, folder: Path) -> None:
    source = _module(release)
    with tempfile.TemporaryDirectory(dir=folder) as made:
        program = Path(made) / PROGRAM
        argv = [_go(), "build", *_FLAGS, "-mod=readonly", "-o", str(program), "."]
        ran = _run(argv, _BUILD_S_MAX, Path(source), {"CGO_ENABLED": "0", "GOFLAGS": ""})
        if ran.returncode or not program.is_file():
            raise UsageError(f"{' '.join(argv[:2])} of {release.module}: {_end(ran.stderr)}; expected a program")
        program.with_name(HASH).write_text(
            f"{hashlib.sha256(program.read_bytes()).hexdigest()}\n", encoding="ascii"
        )
        place = program_of(release, folder).parent
        shutil.rmtree(place, ignore_errors=True)
        Path(made).chmod(0o755)
        shutil.copytree(made, place)


def _module(release: Release) -> str:
    """Return the folder of a release's module, after comparing its checksum."""
    with tempfile.TemporaryDirectory() as empty:  # no module of the user's is in the way
        ran = _run([_go(), "mod", "download", "-json", release.module], _DOWNLOAD_S_MAX, Path(empty), {})
    found = _object(ran.stdout)
    if "Dir" not in found:
        why = " ".join(str(found.get("Error") or _end(ran.stderr)).split())
        raise UsageError(f"{release.module}: {why[:_SHOWN]}; expected the module: try again with a network")
    if found.get("Sum") != release.checksum:
        raise UsageError(
            f"{release.module}: checksum {str(found.get('Sum'))[:100]}; expected {release.checksum}; not built"
        )
    return str(found["Dir"])


def _object(text: str) -> Mapping[str, Any]:
    """Return what `go` printed; {} if it is no object: what it said on the other stream says why."""
    try:
        found = json.loads(text)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def _run(
    argv: Sequence[str], within_s: float, folder: Path, variables: Mapping[str, str]
) -> subprocess.CompletedProcess[str]:
    try:
        return subprocess.run(
            argv,
            cwd=folder,
            env={**os.environ, **variables},
            capture_output=True,
            text=True,
            errors="replace",
            timeout=within_s,
            check=False,
        )
    except OSError as error:
        raise UsageError(f"{error.filename or argv[0]}: {error.strerror}; expected Go 1.26 or later") from error
    except subprocess.TimeoutExpired as error:
        raise UsageError(
            f"{' '.join(argv[:3])}: not done within {within_s:.0f} s; try again, it goes on"
        ) from error


def _go() -> str:
    found = shutil.which("go")
    if found is None:
        raise UsageError(
            "go: not on the PATH; expected Go 1.26 or later, from https://go.dev/dl or a package `golang`"
        )
    return found


def _end(text: str) -> str:
    """Return the last lines of what a command said."""
    return " ".join(text.split())[-_SHOWN:] or "it said nothing"
