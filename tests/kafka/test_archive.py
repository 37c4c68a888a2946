"""Class archives: their paths, when they are used, and a broker that leaves none."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

import pytest

from harness.java import Java
from harness.launch import Address, Launch, Place
from harness.model import PreconditionError
from targets.kafka import archive
from targets.kafka.releases import Release, release_of
from tests.kafka import cupboard
from tests.services import shared

ZOOKEEPER = Address(host="127.0.0.1", port=2181)


@pytest.fixture
def java(tmp_path: Path) -> Java:
    """A Java that is only a folder with an empty executable."""
    executable = tmp_path / "java" / "bin" / "java"
    executable.parent.mkdir(parents=True)
    executable.touch()
    return Java(home=executable.parents[1], executable=executable, version=17, source="here")


@pytest.fixture
def release(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Release:
    """A release whose jars are in the test's own cache."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    cupboard.repository(tmp_path / "fencepost" / "kafka")
    return cupboard.release(tmp_path)


class OneBroker:
    """A host whose broker writes `content` when it is stopped, or nothing when that is None."""

    def __init__(self, folder: Path, content: bytes | None, *, slow: bool = False, dies: bool = False) -> None:
        self.launched: Launch | None = None
        self._folder = folder
        self._content = content
        self._slow = slow
        self._alive = not dies

    def add_node(self, name: str, *, disk: bool) -> Place:
        """Return a place in the host's folder."""
        assert not disk
        here = Address(host="127.0.0.1", port=1)
        return Place(
            data_dir=str(self._folder / name),
            conf_dir=str(self._folder / "conf"),
            python="python",
            client=here,
            internal=here,
            client_outside=here,
            internal_outside=here,
        )

    def start(self, name: str, launch: Launch) -> None:
        """Store the launch."""
        self.launched = launch

    def alive(self, name: str) -> bool:
        """Return whether the broker has not ended yet."""
        return self._alive

    def stop(self, name: str) -> str:
        """Write the archive."""
        assert self.launched is not None
        (file,) = [arg.partition("=")[2] for arg in self.launched.argv if "ArchiveClassesAtExit" in arg]
        if self._content is not None:
            Path(file).write_bytes(self._content)
        self._alive = False
        if self._slow:
            raise PreconditionError("outlived SIGTERM")
        return "ended"

    def log_text(self, name: str) -> str:
        """Return the broker's last lines."""
        return "no port"


def make(release: Release, java: Java, host: OneBroker, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    said: list[str] = []
    monkeypatch.setattr(archive.probe, "serves", lambda _: True)
    archive.make(release, java, cast(Any, host), shared(ZOOKEEPER), said.append)
    return said


@pytest.mark.parametrize("slow", [False, True])
def test_archive_is_used_once_a_broker_has_left_one(
    tmp_path: Path, release: Release, java: Java, monkeypatch: pytest.MonkeyPatch, slow: bool
) -> None:
    assert ((), True) == (archive.flags(release, java), archive.lacks(release, java))
    said = make(release, java, OneBroker(tmp_path, b"classes", slow=slow), monkeypatch)
    file = archive.archive_of(release, java)
    assert f"-XX:SharedArchiveFile={file}" == archive.flags(release, java)[0]
    assert (b"classes", False) == (file.read_bytes(), archive.lacks(release, java))
    assert "classes archived" in said[0]
    assert [file] == list(file.parent.iterdir())


def test_java_that_archives_nothing_is_asked_once(
    tmp_path: Path, release: Release, java: Java, monkeypatch: pytest.MonkeyPatch
) -> None:
    said = make(release, java, OneBroker(tmp_path, None), monkeypatch)
    assert ((), False) == (archive.flags(release, java), archive.lacks(release, java))
    assert "archives no classes" in said[0]


def test_broker_that_dies_leaves_no_archive_and_says_why(
    tmp_path: Path, release: Release, java: Java, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(PreconditionError, match=r"does not serve at .*; it said: no port"):
        make(release, java, OneBroker(tmp_path, b"", dies=True), monkeypatch)
    assert archive.lacks(release, java)


def test_every_release_and_every_java_has_an_archive_of_its_own(tmp_path: Path, java: Java) -> None:
    other = tmp_path / "other" / "bin" / "java"
    other.parent.mkdir(parents=True)
    other.touch()
    another = Java(home=other.parents[1], executable=other, version=17, source="there")
    found = {
        archive.archive_of(release_of(name), which) for name in ("1.1.1", "3.9.1") for which in (java, another)
    }
    assert 4 == len(found)


def test_archive_goes_with_the_java_s_own_classes(java: Java) -> None:
    before = archive.archive_of(release_of("1.1.1"), java)
    (java.home / "lib").mkdir()
    (java.home / "lib" / "modules").write_bytes(b"newer")
    assert before != archive.archive_of(release_of("1.1.1"), java)
