"""An image's tag depends on the image's inputs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from docker.errors import APIError

from harness.cleanup.engine import connect
from harness.hosts import contents, image_build
from harness.model import UsageError
from targets.broker import bundle
from tests.kept import exhaustive

PINS = bundle.PINS


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A minimal project folder, which replaces the real one."""
    (tmp_path / "targets" / "broker").mkdir(parents=True)
    (tmp_path / "harness" / "hosts").mkdir(parents=True)
    for name in (image_build.DOCKERFILE, *contents.source_names("broker")[:-1], "targets/broker/main.py"):
        (tmp_path / name).write_text(f"# {name}\n")
    (tmp_path / PINS).write_text("kazoo==1\nkio==1\n# more\ncrc32c==1\ncramjam==1\ntyping-extensions==1\n")
    (tmp_path / contents.JAVA_PINS).write_text("# a Java\njdk4py==17\n")
    monkeypatch.setattr(contents, "ROOT", tmp_path)
    return tmp_path


@pytest.mark.parametrize("changed", [image_build.DOCKERFILE, "harness/model.py", "targets/broker/main.py", PINS])
def test_broker_image_is_another_when_what_it_is_made_of_changes(project: Path, changed: str) -> None:
    before = image_build._tag("broker", "base")
    assert before == image_build._tag("broker", "base")
    path = project / changed
    path.write_text(path.read_text().replace("==1", "==2") + "# changed\n")
    assert before != image_build._tag("broker", "base")


def test_java_image_stays_when_only_the_broker_changes(project: Path) -> None:
    before = image_build._tag("java", "base")
    (project / "targets" / "broker" / "main.py").write_text("# changed\n")
    assert before == image_build._tag("java", "base")
    assert before != image_build._tag("java", "another base")


def test_wheel_without_a_pin_is_told(project: Path) -> None:
    (project / PINS).write_text("kazoo==1\n")
    with pytest.raises(UsageError, match="no pin for kio, crc32c, cramjam, typing_extensions"):
        image_build._tag("broker", "base")


def test_every_stage_has_the_label_by_which_its_images_are_found() -> None:
    stages = (contents.ROOT / image_build.DOCKERFILE).read_text(encoding="utf-8").split("\nFROM ")[1:]
    assert ["broker-parts", "broker", "java-parts", "java"] == [
        stage.splitlines()[0].rpartition(" AS ")[2] for stage in stages
    ]
    for stage in stages:
        assert ["ARG OWNER", f"LABEL {image_build.OWNER_LABEL}=${{OWNER}}"] == stage.splitlines()[1:3]


def test_unnamed_images_are_removed_by_label_alone_also_after_a_build_that_failed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    engine = FakeEngine()

    def fail(*_: Any) -> None:
        raise UsageError("image x: expected it to build")

    monkeypatch.setattr(image_build, "_build", fail)
    with pytest.raises(UsageError, match="expected it to build"):
        image_build._build_all(engine, {"broker": "x"}, "base")
    assert [{"dangling": True, "label": f"fencepost.built-by={image_build.owner()}"}] == engine.asked
    assert ["in-use", "left"] == engine.removals


def test_builds_under_another_state_folder_have_another_label(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its lock is another one too: its builds may be in progress."""
    owners = set()
    for name in ("one", "two"):
        monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / name))
        owners.add(image_build.owner())
    assert 2 == len(owners)


class FakeEngine:
    """An engine with two images without a name; one is in use."""

    def __init__(self) -> None:
        self.api = self
        self.asked: list[dict[str, Any]] = []
        self.removals: list[str] = []

    def images(self, *, filters: dict[str, Any]) -> list[dict[str, str]]:
        self.asked.append(filters)
        return [{"Id": "in-use"}, {"Id": "left"}]

    def remove_image(self, id_: str) -> None:
        self.removals.append(id_)
        if id_ == "in-use":
            raise APIError("409 Conflict", explanation="image is being used by a container")


@exhaustive
@pytest.mark.slow
@pytest.mark.docker
def test_build_leaves_no_image_without_a_name() -> None:
    """The state folder is this test's own, and so is the label: no stage is in the engine's cache."""
    client = connect()
    tag = "fencepost-broker:test-of-unnamed-images"
    base = image_build._base(client, image_build.DEFAULT_BASE)
    try:
        image_build._build_all(client, {"broker": tag}, base.id)
        ours = {"dangling": True, "label": f"{image_build.OWNER_LABEL}={image_build.owner()}"}
        assert [] == client.api.images(filters=ours)
    finally:
        client.images.remove(tag)
        client.close()


@pytest.mark.parametrize("target", image_build.STAGES)
def test_wheels_of_images_are_those_that_the_project_pins(target: str) -> None:
    """An installed package has no requirements.txt, so the images' own list stands beside it."""
    pinned = {
        line.strip()
        for name in ("requirements.txt", "requirements-java.txt")
        for line in (contents.ROOT / name).read_text(encoding="utf-8").splitlines()
    }
    found = contents.pins(target)
    assert [line.partition("==")[0].replace("-", "_") for line in found] == list(contents.wheels(target))
    assert [] == [line for line in found if line not in pinned]
