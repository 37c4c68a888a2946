"""Locks and the cache: the lines that a lock may have, and that only jars that match their lock are used."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.model import UsageError
from targets.kafka.jars import cache_dir, class_path, jars_of, missing, read_lock
from targets.kafka.releases import releases
from tests.kafka.cupboard import CONTENTS, jars, release, repository

DIGEST = "0" * 64


@pytest.mark.parametrize("name", releases())
def test_lock_pins_the_broker_and_its_log_binding_for_every_release(name: str) -> None:
    found = jars_of(releases()[name])
    names = {jar.name for jar in found}
    assert f"{releases()[name].coordinates[0].split(':')[1]}-{name}.jar" in names
    assert "slf4j-log4j12-1.7.25.jar" in names
    assert sorted(jar.path for jar in found) == [jar.path for jar in found]


@pytest.mark.parametrize("name", ["2.0.0", "2.0.1", "2.1.1"])
def test_lock_has_the_zookeeper_that_java_17_takes_when_the_release_has_another(name: str) -> None:
    names = [jar.name for jar in jars_of(releases()[name]) if jar.name.startswith("zookeeper")]
    assert ["zookeeper-3.4.10.jar"] == names


def test_lock_reads_as_it_was_written(tmp_path: Path) -> None:
    assert jars() == read_lock(release(tmp_path).lock)


@pytest.mark.parametrize(
    "line",
    [
        "",
        f"{DIGEST}  7",
        f"{DIGEST[1:]}  7  g/a/1/a-1.jar",
        f"{DIGEST}  -7  g/a/1/a-1.jar",
        f"{DIGEST}  7  /g/a/1/a-1.jar",
        f"{DIGEST}  7  g/../../1/a-1.jar",
        f"{DIGEST}  7  a-1.jar",
    ],
)
def test_lock_is_refused_when_a_line_is_none(tmp_path: Path, line: str) -> None:
    (tmp_path / "x.lock").write_text(f"{DIGEST}  7  g/a/1/a-1.jar\n{line}\n")
    with pytest.raises(UsageError, match=r"x\.lock:2: .*expected 'SHA256  BYTES"):
        read_lock(tmp_path / "x.lock")


def test_lock_that_is_not_there_says_how_it_is_made(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"no such lock; `python -m targets\.kafka\.lock RELEASE`"):
        read_lock(tmp_path / "9.9.lock")


def test_jar_is_missing_when_it_is_absent_or_shorter(tmp_path: Path) -> None:
    found = repository(tmp_path)
    (tmp_path / found[0].path).unlink()
    (tmp_path / found[1].path).write_bytes(b"a")
    assert found[:2] == missing(found, tmp_path)


def test_class_path_has_every_jar_in_the_order_of_the_lock(tmp_path: Path) -> None:
    found = repository(tmp_path / "cache")
    assert tuple(tmp_path / "cache" / jar.path for jar in found) == class_path(
        release(tmp_path), tmp_path / "cache"
    )


def test_class_path_is_refused_with_the_command_that_helps_when_a_jar_is_missing(tmp_path: Path) -> None:
    with pytest.raises(
        UsageError, match=r"Apache Kafka 9\.9: 3 of 3 jars are not in .*`fencepost kafka fetch 9\.9`"
    ):
        class_path(release(tmp_path), tmp_path / "cache")


def test_class_path_is_refused_when_a_jar_of_the_same_size_is_another(tmp_path: Path) -> None:
    path, content = next(iter(CONTENTS.items()))
    repository(tmp_path / "cache")
    (tmp_path / "cache" / path).write_bytes(content[::-1])
    with pytest.raises(UsageError, match=r"kafka_2\.11-9\.9\.jar: not what 9\.9\.lock pins"):
        class_path(release(tmp_path), tmp_path / "cache")


@pytest.mark.parametrize(
    ("base", "expected"), [("/caches", "/caches/fencepost/kafka"), ("", "/me/.cache/fencepost/kafka")]
)
def test_cache_lies_where_the_environment_says(monkeypatch: pytest.MonkeyPatch, base: str, expected: str) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", base)
    monkeypatch.setenv("HOME", "/me")
    assert Path(expected) == cache_dir()
