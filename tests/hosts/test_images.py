"""An image's tag depends on the image's inputs."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.hosts import images
from harness.model import UsageError


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A minimal project folder, which replaces the real one."""
    (tmp_path / "targets" / "broker").mkdir(parents=True)
    (tmp_path / "harness").mkdir()
    for name in ("Dockerfile", *images.SOURCES["broker"][:-1], "targets/broker/main.py"):
        (tmp_path / name).write_text(f"# {name}\n")
    (tmp_path / "requirements.txt").write_text("kazoo==1\nkio==1\ncrc32c==1\ncramjam==1\ntyping-extensions==1\n")
    (tmp_path / "requirements-java.txt").write_text("# a Java\njdk4py==17\n")
    monkeypatch.setattr(images, "ROOT", tmp_path)
    monkeypatch.setattr(images, "find_jars", lambda: ())
    return tmp_path


@pytest.mark.parametrize(
    "changed", ["Dockerfile", "harness/model.py", "targets/broker/main.py", "requirements.txt"]
)
def test_broker_image_is_another_when_what_it_is_made_of_changes(project: Path, changed: str) -> None:
    before = images._tag("broker", "base")
    assert before == images._tag("broker", "base")
    path = project / changed
    path.write_text(path.read_text().replace("==1", "==2") + "# changed\n")
    assert before != images._tag("broker", "base")


def test_zookeeper_image_stays_when_only_the_broker_changes(project: Path) -> None:
    before = images._tag("zookeeper", "base")
    (project / "targets" / "broker" / "main.py").write_text("# changed\n")
    assert before == images._tag("zookeeper", "base")
    assert before != images._tag("zookeeper", "another base")


def test_wheel_without_a_pin_is_told(project: Path) -> None:
    (project / "requirements.txt").write_text("kazoo==1\n")
    with pytest.raises(UsageError, match="no pin for kio, crc32c, cramjam, typing_extensions"):
        images._tag("broker", "base")


def test_every_wheel_of_the_project_is_pinned() -> None:
    assert [line.partition("==")[0].replace("-", "_") for line in images._pins("broker")] == list(
        images.WHEELS["broker"]
    )
    assert len(images._pins("zookeeper")) == 1
