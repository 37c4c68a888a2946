"""`fencepost kafka`: its output and its exit codes."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.cli.main import main
from harness.model import EXIT_CODES
from targets.kafka.jars import jars_of
from targets.kafka.releases import entries, release_of


@pytest.fixture(autouse=True)
def cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return tmp_path / "fencepost" / "kafka"


def test_list_has_every_entry_with_what_it_models(capsys: pytest.CaptureFixture[str]) -> None:
    assert EXIT_CODES["valid"] == main(["kafka", "list"])
    lines = capsys.readouterr().out.splitlines()[1:]
    assert [[f"kafka:{entry.name}", entry.models] for entry in entries().values()] == [
        line.split()[:2] for line in lines
    ]


def test_list_of_one_release_has_its_variants_and_counts_what_is_to_fetch(
    capsys: pytest.CaptureFixture[str], cache: Path
) -> None:
    assert EXIT_CODES["valid"] == main(["kafka", "list", "1.1.1"])
    _, release, variant = capsys.readouterr().out.splitlines()
    assert f"{len(jars_of(release_of('1.1.1')))} to fetch" in release
    assert "kafka:1.1.1@0.10.2" in variant
    assert "inter.broker.protocol.version=0.10.2" in variant


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["fetch"], "no release named; expected some of 0.10.2.2"),
        (["fetch", "1.1"], "unknown release of Apache Kafka '1.1'"),
        (["list", "1.1"], "unknown release of Apache Kafka '1.1'"),
    ],
)
def test_usage_is_wrong_without_a_release_of_the_table(
    capsys: pytest.CaptureFixture[str], words: list[str], said: str
) -> None:
    assert EXIT_CODES["usage"] == main(["kafka", *words])
    assert said in capsys.readouterr().err


def test_fetch_ends_with_usage_when_the_repository_cannot_be_reached(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    nowhere = (tmp_path / "nowhere").as_uri()
    assert EXIT_CODES["usage"] == main(["kafka", "fetch", "1.1.1", "--repository", nowhere])
    shown = capsys.readouterr()
    assert f"17 jars to download, 26.3 MB, from {nowhere}" in shown.out
    assert f"{nowhere} cannot be reached" in shown.err
