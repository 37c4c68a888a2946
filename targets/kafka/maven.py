"""
Copy artifacts with Maven, which knows this machine's mirrors, proxies and credentials, and caches its downloads.

Two uses: a release with its dependencies, to make its lock, and exactly the jars of a lock.
"""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterable, Sequence
from pathlib import Path, PurePosixPath
from typing import Final
from xml.sax.saxutils import escape

from harness.model import UsageError
from targets.kafka.jars import Jar

MAVEN_S_MAX: Final = 1800.0
_SAID_CHARACTERS: Final = 600

_PROJECT: Final = """<project xmlns="http://maven.apache.org/POM/4.0.0">
<modelVersion>4.0.0</modelVersion>
<groupId>fencepost</groupId><artifactId>kafka</artifactId><version>1</version>
{body}
</project>
"""
_DEPENDENCIES: Final = "<dependencies>\n{items}\n</dependencies>"
# As a plug-in's own items, two versions of one artifact can coexist, and nothing else is downloaded.
_ITEMS: Final = """<build><plugins><plugin>
<groupId>org.apache.maven.plugins</groupId><artifactId>maven-dependency-plugin</artifactId>
<configuration><artifactItems>
{items}
</artifactItems></configuration>
</plugin></plugins></build>"""


def find_maven() -> Path | None:
    """Return Maven's executable, None if it is not installed."""
    found = shutil.which("mvn")
    return Path(found) if found else None


def resolve(maven: Path, coordinates: Iterable[str], work: Path) -> Path:
    """
    Copy artifacts and their runtime dependencies; return the folder, laid out as a repository.

    Args:
        coordinates: group:artifact:version; these versions override the versions of dependencies.

    Raises:
        UsageError: Maven failed; with Maven's message.
    """
    found = work / "found"
    body = _DEPENDENCIES.format(items="\n".join(_tags("dependency", each.split(":")) for each in coordinates))
    words = ["dependency:copy-dependencies", "-DincludeScope=runtime", "-Dmdep.useRepositoryLayout=true"]
    _run(maven, work, body, [*words, f"-DoutputDirectory={found}"])
    return found


def copy(maven: Path, jars: Iterable[Jar], work: Path) -> Path:
    """Copy exactly these jars, without dependencies; return the folder, laid out as a repository."""
    found = work / "found"
    items = [
        _tags("artifactItem", coordinates_of(jar), outputDirectory=str((found / jar.path).parent)) for jar in jars
    ]
    _run(maven, work, _ITEMS.format(items="\n".join(items)), ["dependency:copy"])
    return found


def coordinates_of(jar: Jar) -> tuple[str, ...]:
    """
    Parse a jar's Maven path: group, artifact, version, and its classifier if it has one.

    Source:  Maven's repository layout: group/as/folders/artifact/version/artifact-version[-classifier].jar
    """
    *group, artifact, version, name = PurePosixPath(jar.path).parts
    stem = name.removesuffix(".jar").removeprefix(f"{artifact}-{version}")
    return (".".join(group), artifact, version, *([stem[1:]] if stem else []))


def _tags(tag: str, coordinates: Sequence[str], **more: str) -> str:
    named = dict(zip(("groupId", "artifactId", "version", "classifier"), coordinates, strict=False)) | more
    return f"<{tag}>{''.join(f'<{name}>{escape(text)}</{name}>' for name, text in named.items())}</{tag}>"


def _run(maven: Path, work: Path, body: str, words: Sequence[str]) -> None:
    (work / "pom.xml").write_text(_PROJECT.format(body=body), encoding="utf-8")
    try:
        done = subprocess.run(
            [str(maven), "-q", "-B", *words],
            cwd=work,
            capture_output=True,
            text=True,
            errors="replace",
            stdin=subprocess.DEVNULL,
            timeout=MAVEN_S_MAX,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise UsageError(
            f"Maven ({maven}): not done within {MAVEN_S_MAX:.0f} s; it keeps what it has downloaded"
        ) from error
    if done.returncode != 0:
        lines = [line for line in (done.stdout + done.stderr).splitlines() if "ERROR" in line]
        said = " ".join(" ".join(lines[:3]).split())[:_SAID_CHARACTERS] or f"exit code {done.returncode}"
        raise UsageError(
            f"Maven ({maven}) could not download the jars: {said}; expected a way to Maven Central, or a mirror "
            "in Maven's settings.xml"
        )
