"""
Whether this machine can have Apache Kafka's Java clients, and the command line of one.

They need a Java, its compiler, and their jars in the cache, which java/kafka-clients.lock pins: they are those of
one release, as other libraries are of one version, and its `fencepost kafka fetch` brings them. java/Client.java
is compiled once for each of its texts; its classes are kept beside the jars.

    $XDG_CACHE_HOME/fencepost/java, else ~/.cache/fencepost/java
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final

from harness.jars import cache_dir, class_path_of
from harness.java import VERSION_MIN, Java, find_java
from harness.model import UsageError

SOURCES: Final = Path(__file__).parent / "java"
PROGRAM: Final = "Client"
LOCK: Final = SOURCES / "kafka-clients.lock"
RELEASE: Final = "3.9.1"
COMPILER_S_MAX: Final = 120.0
# A client has little to keep, and ends before it would pay to compile much of it.
OPTIONS: Final = (
    "-Xmx64m",
    "-XX:+UseSerialGC",
    "-XX:TieredStopAtLevel=1",
    "-XX:-UsePerfData",
    "-XX:+ExitOnOutOfMemoryError",
    "-Djava.awt.headless=true",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class JavaHome:
    """All that a Java client needs: the program `java`, and its class path."""

    java: Path
    class_path: tuple[Path, ...]

    def argv(self, *handles: int) -> tuple[str, ...]:
        """Return the command line of a client with these pipes."""
        path = os.pathsep.join(map(str, self.class_path))
        return (str(self.java), *OPTIONS, "-cp", path, PROGRAM, *map(str, handles))


def java_home() -> JavaHome:
    """
    Return what a Java client needs; compile it if that was not done yet.

    Raises:
        UsageError: it needs what is not here; says what, and what to do.
    """
    found = _found()
    if isinstance(found, str):
        raise UsageError(found)
    return found


def lacks() -> str:
    """Return why this machine cannot have a Java client, and what to do; "" if it can."""
    found = _found()
    return found if isinstance(found, str) else ""


@cache
def _found() -> JavaHome | str:
    """Look once: a run must not change its mind, and each look starts a Java."""
    try:
        jars = class_path_of("Apache Kafka's Java clients", LOCK, cache_dir(), f"fencepost kafka fetch {RELEASE}")
        java = find_java()
        classes = _classes(java, jars)
    except UsageError as error:
        return str(error)
    return JavaHome(java=java.executable, class_path=(classes, *jars))


def _classes(java: Java, jars: tuple[Path, ...]) -> Path:
    """Return the folder of the program's classes, which is there whole or not at all."""
    source = SOURCES / f"{PROGRAM}.java"
    text = hashlib.sha256(source.read_bytes() + LOCK.read_bytes()).hexdigest()
    folder = cache_dir().parent / "java" / text[:16]
    if (folder / f"{PROGRAM}.class").exists():
        return folder
    compiler = _compiler(java)
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix="compiling-", dir=folder.parent) as made:
            new = Path(made) / "classes"
            new.mkdir()
            _compile(compiler, source, jars, new)
            try:
                new.rename(folder)
            except OSError:
                if not (folder / f"{PROGRAM}.class").exists():  # nobody else was faster
                    raise
    except OSError as error:
        raise UsageError(
            f"{folder}: {error.strerror}; expected a folder that keeps the classes of {source.name}; set "
            "XDG_CACHE_HOME to a folder that can be written"
        ) from error
    return folder


def _compiler(java: Java) -> str:
    """Return the path of a compiler: that of this Java, else the one on PATH."""
    own = java.home / "bin" / "javac"
    found = str(own) if own.exists() else shutil.which("javac")
    if found is None:
        raise UsageError(
            f"javac: not in {own.parent}, and not on PATH; expected a Java compiler; install a JDK, "
            f"{VERSION_MIN} or later"
        )
    return found


def _compile(compiler: str, source: Path, jars: tuple[Path, ...], folder: Path) -> None:
    """Compile a source file into a folder; raise UsageError with what the compiler says."""
    options = ["-J-Xmx256m", "-J-XX:+UseSerialGC", "-J-XX:TieredStopAtLevel=1", "--release", str(VERSION_MIN)]
    path = os.pathsep.join(map(str, jars))
    try:
        done = subprocess.run(
            [compiler, *options, "-cp", path, "-d", str(folder), str(source)],
            capture_output=True,
            text=True,
            errors="replace",
            timeout=COMPILER_S_MAX,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise UsageError(
            f"{compiler}: no end within {COMPILER_S_MAX:.0f} s; expected the classes of {source.name}; try again"
        ) from error
    except OSError as error:
        raise UsageError(
            f"{compiler}: {error.strerror}; expected a Java compiler that runs; install a JDK {VERSION_MIN}"
        ) from error
    if done.returncode:
        said = (done.stderr + done.stdout).strip()[:400]
        raise UsageError(
            f"{compiler}: exit code {done.returncode}, it said {said!r}; expected one of Java {VERSION_MIN} "
            f"or later, which takes {source.name}; install a JDK"
        )
