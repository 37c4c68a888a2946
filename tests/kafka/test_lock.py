"""A newly made lock pins the jars that Maven resolves."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.model import UsageError
from targets.kafka import lock
from targets.kafka.jars import read_lock
from tests.kafka.cupboard import jars, release, repository
from tests.kafka.test_maven import COPIES, executable


def test_lock_pins_what_maven_resolved(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    repository(tmp_path / "shelf")
    made = release(tmp_path, contents={"g/a/1/a-1.jar": b"old"})
    maven = executable(tmp_path, COPIES)
    monkeypatch.setattr(lock, "find_maven", lambda: maven)
    assert jars() == lock.make_lock(made)
    assert jars() == read_lock(made.lock)


def test_lock_is_not_made_without_maven(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    made = release(tmp_path)
    monkeypatch.setattr(lock, "find_maven", lambda: None)
    with pytest.raises(UsageError, match=r"Maven \(mvn\) is not on the PATH; only it resolves"):
        lock.make_lock(made)


def test_releases_that_are_named_are_locked_and_counted(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(lock, "release_of", {"9.9": release(tmp_path)}.__getitem__)
    monkeypatch.setattr(lock, "make_lock", lambda which: jars())
    assert 0 == lock.main(["9.9"])
    assert f"9.9.lock: 3 jars, {sum(jar.size for jar in jars())} bytes\n" == capsys.readouterr().out
