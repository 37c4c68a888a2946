"""What a release is started from: jars as they are pinned, and a class that is named after its source."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from pathlib import Path

import pytest

from harness import downloads
from harness.downloads import Download
from harness.model import UsageError
from targets.rocketmq import building, needs, versions
from targets.rocketmq.building import bring, class_path, why_not
from targets.rocketmq.needs import ROWS
from targets.rocketmq.target import TARGET
from targets.rocketmq.versions import RELEASES, Release, library

JAR = b"a broker"
PATH = "org/example/broker/0.0.1/broker-0.0.1.jar"
RELEASE = Release(name="0.0.1")


@pytest.fixture(autouse=True)
def _cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Have an empty cache, and what the machine lacks asked anew, here and afterwards."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    needs._lacks.cache_clear()
    yield
    needs._lacks.cache_clear()


@pytest.fixture
def source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the source of the class, which may be changed."""
    file = tmp_path / "Broker.java"
    file.write_text("class Broker {}")
    monkeypatch.setattr(building, "_SOURCES", (file,))
    return file


@pytest.fixture
def whole(source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the library of a release of one jar, which is there with its class."""
    locks = tmp_path / "locks"
    locks.mkdir()
    (locks / "0.0.1.lock").write_text(f"{hashlib.sha256(JAR).hexdigest()}  {len(JAR)}  {PATH}\n")
    monkeypatch.setattr(versions, "_LOCKS", locks)
    jar = library() / PATH
    jar.parent.mkdir(parents=True)
    jar.write_bytes(JAR)
    compiled().parent.mkdir(parents=True)
    compiled().write_bytes(b"a class")
    return library()


def compiled(release: Release = RELEASE) -> Path:
    """Return where the class of a release is kept."""
    return building._compiled(release)


# --- what lacks ------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("name", RELEASES)
def test_empty_cache_lacks_every_jar(name: str, tmp_path: Path) -> None:
    release = RELEASES[name]
    assert f"{len(release.files)} jars are not in {tmp_path / 'cache' / 'fencepost' / 'rocketmq'}" == why_not(
        release
    )
    row = ROWS[f"rocketmq-{name}"]
    assert why_not(release) == row.why_not()
    assert f"fencepost fetch rocketmq:{name}" in row.install


def test_every_release_has_a_row() -> None:
    assert {f"rocketmq-{name}" for name in RELEASES} == {*ROWS}


@pytest.mark.parametrize("version", ["5.3.3", "5.5.0-async"])
def test_target_that_lacks_its_jars_says_the_command_that_brings_them(version: str) -> None:
    name = version.partition("-")[0]
    says = f"RocketMQ {name}: .* jars are not in .*; `fencepost fetch rocketmq:{name}` brings them"
    with pytest.raises(UsageError, match=says):
        TARGET.require(TARGET.rules(version, ()))


@pytest.mark.usefixtures("whole")
def test_release_with_its_jars_and_its_class_lacks_nothing() -> None:
    assert "" == why_not(RELEASE)
    compiled().unlink()
    assert f"{compiled()} is not there" == why_not(RELEASE)


@pytest.mark.parametrize("as_", ["gone", "longer", "a folder"])
def test_jar_that_is_not_there_or_has_another_size_lacks(whole: Path, as_: str) -> None:
    jar = whole / PATH
    jar.unlink()
    if as_ == "a folder":
        jar.mkdir()
    elif as_ == "longer":
        jar.write_bytes(JAR + b"!")
    assert f"1 jars are not in {whole}" == why_not(RELEASE)


# --- the class path --------------------------------------------------------------------------------------------
def test_class_path_is_the_class_and_then_the_jars(whole: Path) -> None:
    assert (compiled().parent, whole / PATH) == class_path(RELEASE)


def test_jar_that_is_another_is_not_started(whole: Path) -> None:
    (whole / PATH).write_bytes(JAR.upper())
    with pytest.raises(UsageError, match=r"not what 0\.0\.1\.lock pins; .* `fencepost fetch rocketmq:0\.0\.1`"):
        class_path(RELEASE)


@pytest.mark.usefixtures("whole")
def test_release_without_its_class_is_not_started() -> None:
    compiled().unlink()
    with pytest.raises(UsageError) as raised:
        class_path(RELEASE)
    said = f"RocketMQ 0.0.1: {compiled()} is not there; `fencepost fetch rocketmq:0.0.1` makes it"
    assert said == str(raised.value)


# --- the class -------------------------------------------------------------------------------------------------
def test_class_of_another_source_or_release_is_in_another_folder(source: Path) -> None:
    first = compiled()
    assert ("Broker.class", library() / "classes") == (first.name, first.parent.parent)
    assert first == compiled()
    assert first.parent != compiled(Release(name="0.0.2")).parent
    source.write_text("class Broker { }")
    assert first.parent != compiled().parent
    source.write_text("class Broker {}")
    assert first == compiled()


def test_changed_source_makes_its_class_lack(whole: Path, source: Path) -> None:
    assert "" == why_not(RELEASE)
    source.write_text("class Broker { }")
    assert f"{compiled()} is not there" == why_not(RELEASE)
    assert whole in compiled().parents


def test_sources_are_there_and_name_what_the_launches_set() -> None:
    broker, client = (each.read_text() for each in building._SOURCES)
    assert "class Broker" in broker and "fencepost.ha.address" in broker
    assert "class Client" in client


@pytest.mark.usefixtures("whole")
def test_only_what_is_not_there_is_brought_and_compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    said: list[str] = []
    asked: list[Download] = []
    made: list[str] = []
    monkeypatch.setattr(downloads, "bring", lambda files, _folder, _say: asked.extend(files))
    monkeypatch.setattr(building, "_compile", lambda release: made.append(release.name))
    bring([RELEASE, RELEASE], said.append)
    assert ([PATH], [], []) == ([each.path for each in asked], made, said)
    compiled().unlink()
    bring([RELEASE], said.append)
    assert (["0.0.1"], ["0.0.1: compiled Broker.java"]) == (made, said)
