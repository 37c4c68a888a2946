"""
What is copied to a machine, as zip archives named by their content: sources, and the libraries of a broker.

The sources are those of the agent and of our broker. The libraries are this Python's own, if the machine's Python
is of the same version and kind; else the pinned wheels for the machine's Python, from PyPI. That for FUSE, which
disks that fail need, is this Python's own. What runs on Java is given the jars that its command line names.
"""

from __future__ import annotations

import hashlib
import importlib.metadata
import io
import os
import platform
import sys
import zipfile
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from itertools import chain
from pathlib import Path
from typing import Any, Final

from harness.hosts import contents, faulty
from harness.launch import Launch

# The agent is the host `local`, with a driver; harness/hosts/remote/agent.py.
AGENT: Final = (
    "harness/__init__.py",
    "harness/ability.py",
    "harness/anomaly.py",
    "harness/beneath.py",
    "harness/cleanup/__init__.py",
    "harness/cleanup/chains.py",
    "harness/cleanup/ledger.py",
    "harness/cleanup/mounts.py",
    "harness/cleanup/process.py",
    "harness/cleanup/state.py",
    "harness/cleanup/undo.py",
    "harness/clocks.py",
    "harness/cluster/__init__.py",
    "harness/cluster/disk_error.py",
    "harness/cluster/last_words.py",
    "harness/ending.py",
    "harness/events",
    "harness/extras.py",
    "harness/hosts/__init__.py",
    "harness/hosts/base.py",
    "harness/hosts/disks.py",
    "harness/hosts/faketime.py",
    "harness/hosts/fault_rules.py",
    "harness/hosts/faultfs.py",
    "harness/hosts/faulty.py",
    "harness/hosts/local.py",
    "harness/hosts/loop_faults.py",
    "harness/hosts/loopfs.py",
    "harness/hosts/lost_pages.py",
    "harness/hosts/moments.py",
    "harness/hosts/node.py",
    "harness/hosts/nodes.py",
    "harness/hosts/packets.py",
    "harness/hosts/ports.py",
    "harness/hosts/remote/__init__.py",
    "harness/hosts/remote/agent.py",
    "harness/hosts/remote/changes.py",
    "harness/hosts/remote/guard.py",
    "harness/hosts/remote/wire.py",
    "harness/hosts/shaping.py",
    "harness/hosts/shutdown.py",
    "harness/hosts/site.py",
    "harness/hosts/trees.py",
    "harness/hosts/unwritten.py",
    "harness/java.py",
    "harness/launch.py",
    "harness/limits.py",
    "harness/model.py",
    "harness/packets.py",
    "harness/numerals.py",
    "harness/registry.py",
)
# The modules by which a machine's Python shows that it has a broker's libraries.
LIBRARIES: Final = contents.wheels(contents.BROKER)
# One file of Python alone, so that this Python's own serves every other.
FUSE: Final = faulty.LIBRARY
# Where a node finds the library of its launch: a link in the folder in which its process starts.
LIBRARY: Final = "library"


@dataclass(frozen=True, kw_only=True)
class Parcel:
    """Files by their path, and the name of the folder that they are unpacked to: a hash of what they are."""

    name: str
    files: Mapping[str, bytes]

    @cached_property
    def archive(self) -> bytes:
        """All files in one archive."""
        packed = io.BytesIO()
        with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
            for name, data in sorted(self.files.items()):
                archive.writestr(zipfile.ZipInfo(name), data, zipfile.ZIP_DEFLATED)
        return packed.getvalue()


@cache
def sources() -> Parcel:
    """Return the sources of agent and broker."""
    names = sorted(
        {
            path
            for top in (*AGENT, *contents.source_names(contents.BROKER))
            for path in _python_files(contents.ROOT / top)
        }
    )
    return _packed({str(path.relative_to(contents.ROOT)): path.read_bytes() for path in names})


@cache
def libraries(python: tuple[int, int], like: tuple[str, ...]) -> Parcel:
    """
    Return a broker's libraries for a machine's Python.

    Args:
        python: its version.
        like: its implementation, system, processor and C library, as of `like_ours`.

    Raises:
        UsageError: They are not this Python's, and no wheels of them can be downloaded.
    """
    if python == sys.version_info[:2] and like == like_ours():
        return _packed(dict(_installed(LIBRARIES)))
    wheels: dict[str, bytes] = {}
    for wheel in contents.download("broker", python=".".join(map(str, python)), machine=like[2]):
        with zipfile.ZipFile(wheel) as archive:
            wheels |= {name: archive.read(name) for name in archive.namelist() if not name.endswith("/")}
    return _packed(wheels)


@cache
def fuse() -> Parcel:
    """Return the library by which disks are made to fail."""
    return _packed(dict(_installed((FUSE,))))


def library(launch: Launch) -> Parcel:
    """Return what a launch's command line names of its library: the jars of its class path."""
    assert launch.library is not None, "asked for a launch that has one"
    words = chain.from_iterable(word.split(os.pathsep) for word in launch.argv)
    paths = {word.removeprefix(f"{LIBRARY}/") for word in words if word.startswith(f"{LIBRARY}/")}
    return _packed({path: (launch.library / path).read_bytes() for path in paths})


def like_ours() -> tuple[str, ...]:
    """Return this Python's implementation, system, processor and C library."""
    return (sys.implementation.name, sys.platform, platform.machine(), platform.libc_ver()[0])


def _installed(names: Iterable[str]) -> Iterator[tuple[str, bytes]]:
    """Yield the files of libraries as they are installed here, without what is compiled from them."""
    for name in names:
        for file in importlib.metadata.distribution(name).files or ():
            path = Path(str(file.locate()))
            if ".." not in file.parts and file.suffix != ".pyc" and path.is_file():
                yield str(file), path.read_bytes()


def _python_files(path: Path) -> list[Path]:
    return sorted(path.rglob("*.py")) if path.is_dir() else [path]


def _packed(files: Mapping[str, bytes]) -> Parcel:
    digest = hashlib.sha256()
    for name, data in sorted(files.items()):
        digest.update(f"{name}\0{len(data)}\0".encode() + data)
    return Parcel(name=digest.hexdigest()[:16], files=files)


def of_survey(seen: Mapping[str, Any]) -> tuple[tuple[int, int], tuple[str, ...]]:
    """Return a machine's Python as `libraries` takes it, from what harness/hosts/remote/prepare.py saw."""
    major, minor = seen["python"]
    return (int(major), int(minor)), (str(seen["implementation"]), *map(str, seen["platform"]))
