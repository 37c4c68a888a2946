"""Calls of Maven: the jars that it is asked for, and the error when it cannot deliver them."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.model import UsageError
from targets.kafka.fetch import MavenSource, PlainSource, default_source, fetch
from targets.kafka.jars import Jar
from targets.kafka.maven import coordinates_of, copy, resolve
from tests.kafka.cupboard import CONTENTS, jars, release, repository

# Records its arguments and its POM, and copies the repository `shelf` beside it to `found`.
COPIES = """#!/bin/sh
echo "$@" > "{folder}/words"
cp pom.xml "{folder}/pom.xml"
mkdir -p found && cp -r "{folder}/shelf/." found/
"""
FAILS = """#!/bin/sh
echo "[INFO] scanning"
echo "[ERROR] Could not transfer artifact: Unknown host repo.maven.apache.org"
exit 1
"""


def executable(folder: Path, text: str) -> Path:
    file = folder / "mvn"
    file.write_text(text.format(folder=folder))
    file.chmod(0o755)
    return file


@pytest.mark.parametrize(
    ("path", "coordinates"),
    [
        ("org/slf4j/slf4j-api/1.7.25/slf4j-api-1.7.25.jar", ("org.slf4j", "slf4j-api", "1.7.25")),
        ("log4j/log4j/1.2.17/log4j-1.2.17.jar", ("log4j", "log4j", "1.2.17")),
        ("io/netty/epoll/4.1/epoll-4.1-linux-x86_64.jar", ("io.netty", "epoll", "4.1", "linux-x86_64")),
    ],
)
def test_coordinates_follow_from_a_path(path: str, coordinates: tuple[str, ...]) -> None:
    assert coordinates == coordinates_of(Jar(sha256="", size=0, path=path))


def test_copy_asks_for_each_jar_alone_and_where_it_belongs(tmp_path: Path) -> None:
    repository(tmp_path / "shelf")
    work = tmp_path / "work"
    work.mkdir()
    found = copy(executable(tmp_path, COPIES), jars(), work)
    pom = (tmp_path / "pom.xml").read_text()
    assert "-q -B dependency:copy" == (tmp_path / "words").read_text().strip()
    assert len(CONTENTS) == pom.count("<artifactItem>")
    assert "<artifactId>epoll</artifactId><version>4.1</version><classifier>linux-x86_64</classifier>" in pom
    assert f"<outputDirectory>{found / 'io/netty/epoll/4.1'}</outputDirectory>" in pom


def test_resolve_asks_for_what_coordinates_need_at_run_time(tmp_path: Path) -> None:
    repository(tmp_path / "shelf")
    work = tmp_path / "work"
    work.mkdir()
    resolve(executable(tmp_path, COPIES), ["g:a:1", "g:b:2"], work)
    assert "dependency:copy-dependencies -DincludeScope=runtime" in (tmp_path / "words").read_text()
    assert 2 == (tmp_path / "pom.xml").read_text().count("<dependency>")


def test_fetch_takes_what_maven_copied(tmp_path: Path) -> None:
    repository(tmp_path / "shelf")
    done = fetch([release(tmp_path)], tmp_path / "cache", MavenSource(executable(tmp_path, COPIES)), print)
    assert jars() == done.wanted
    assert all((tmp_path / "cache" / path).read_bytes() == content for path, content in CONTENTS.items())


def test_fetch_refuses_when_maven_leaves_a_jar_out(tmp_path: Path) -> None:
    (tmp_path / "shelf").mkdir()
    with pytest.raises(UsageError, match=r"epoll-4\.1-linux-x86_64\.jar: Maven Central, with Maven .* lacks it"):
        fetch([release(tmp_path)], tmp_path / "cache", MavenSource(executable(tmp_path, COPIES)), print)


def test_fetch_says_what_maven_said_when_it_cannot(tmp_path: Path) -> None:
    with pytest.raises(
        UsageError, match=r"could not download the jars: .*Unknown host repo\.maven\.apache\.org; expected"
    ):
        fetch([release(tmp_path)], tmp_path / "cache", MavenSource(executable(tmp_path, FAILS)), print)


def test_source_is_maven_where_it_is_installed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    executable(tmp_path, FAILS)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert isinstance(default_source(), MavenSource)
    monkeypatch.setenv("PATH", str(tmp_path / "empty"))
    assert isinstance(default_source(), PlainSource)
