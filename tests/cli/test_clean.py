"""`fencepost clean` shows images of other builds, asks, and removes those alone that nobody else has or uses."""

from __future__ import annotations

import io
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import docker
import pytest

from harness.cli.main import main
from harness.hosts import image_build
from tests.kept import exhaustive
from tests.stub_engine import StubEngine, serving

OLD = "fencepost-broker:00000000000000a1"
OLD_TOO = "fencepost-zookeeper:00000000000000a2"
USED = "fencepost-broker:00000000000000b1"
THEIRS = "fencepost-broker:00000000000000c1"
BOTH = "2 images of other builds, of older ones or of other checkouts"
# Not of our repositories, or without the label that says so, or not with a tag that is a hash.
STRANGERS = ("broker:00000000000000d1", "fencepost-broker:00000000000000d2", "fencepost-broker:mine")


def image(number: int, stage: str = "broker", owner: str = "", created: int = 0) -> dict[str, Any]:
    """Return what an engine lists of an image, which our user has built unless it says otherwise."""
    labels = {image_build.STAGE_LABEL: stage, image_build.OWNER_LABEL: owner or image_build.owner()}
    return {"Id": f"sha256:{number}", "Labels": labels, "Created": created, "Size": 177_000_000}


@pytest.fixture
def engine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[StubEngine]:
    """An engine with images of every kind; those of today's sources are there."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.delenv("FENCEPOST_BASE", raising=False)
    found = StubEngine(images={image_build.OWN_BASE: {**image(1), "Labels": None}})
    today = [image_build._tag(stage, "sha256:1") for stage in image_build.STAGES]
    for number, tag in enumerate((*today, *STRANGERS, OLD, USED), start=2):
        found.images[tag] = image(number, "zookeeper" if "zookeeper" in tag else "broker", created=number)
    found.images[STRANGERS[1]]["Labels"] = {}
    found.images[OLD_TOO] = image(20, "zookeeper", created=1)
    found.images[THEIRS] = image(21, owner="another")
    found.containers["c"] = ("fencepost-x-a", {})
    found.made_of["c"] = found.images[USED]["Id"]
    with serving(found, tmp_path / "engine.sock") as address:
        monkeypatch.setenv("DOCKER_HOST", address)
        yield found


class Terminal(io.StringIO):
    """A terminal at which somebody types."""

    def isatty(self) -> bool:
        return True


def test_without_yes_and_without_a_terminal_it_only_shows(
    engine: StubEngine, capsys: pytest.CaptureFixture[str]
) -> None:
    assert 0 == main(["clean"])
    lines = capsys.readouterr().out.splitlines()
    ages = [" ".join(line.split()[:2]) for line in lines[:4]]
    assert [f"keep {THEIRS}", f"remove {OLD_TOO}", f"remove {OLD}", f"keep {USED}"] == ages
    assert "177 MB" in lines[1]
    assert lines[1].endswith(" days old")
    assert lines[0].endswith(" old: built by another user, or under another state folder")
    assert lines[3].endswith(" old: used by fencepost-x-a")
    assert f"nothing was removed; expected --yes to remove {BOTH}" == lines[4]
    assert [] == engine.removed


def test_yes_removes_them_and_a_second_time_there_is_nothing(
    engine: StubEngine, capsys: pytest.CaptureFixture[str]
) -> None:
    before = set(engine.images)
    assert 0 == main(["clean", "--yes"])
    assert "2 images removed" == capsys.readouterr().out.splitlines()[-1]
    assert [OLD_TOO, OLD] == engine.removed
    assert before - {OLD, OLD_TOO} == set(engine.images)
    assert 0 == main(["clean", "--yes"])
    assert "no image to remove: those of today's sources stay" == capsys.readouterr().out.splitlines()[-1]


@pytest.mark.parametrize(("typed", "removed"), [("y\n", [OLD_TOO, OLD]), ("\n", []), ("", [])])
def test_at_a_terminal_it_asks(
    engine: StubEngine, monkeypatch: pytest.MonkeyPatch, typed: str, removed: list[str]
) -> None:
    shown = Terminal()
    monkeypatch.setattr(sys, "stdin", Terminal(typed))
    monkeypatch.setattr(sys, "stdout", shown)
    assert 0 == main(["clean"])
    assert f"remove {BOTH}? [y/N] " in shown.getvalue()
    assert removed == engine.removed


def test_image_that_is_used_meanwhile_is_told_and_the_others_are_removed(
    engine: StubEngine, capsys: pytest.CaptureFixture[str]
) -> None:
    """The container appears after the look: the stub lists it without its image."""
    engine.made_of["late"] = engine.images[OLD_TOO]["Id"]
    assert 3 == main(["clean", "--yes"])
    problem, last = capsys.readouterr().out.splitlines()[-2:]
    assert f"image {OLD_TOO}: the engine " in problem
    assert "is being used by a container; expected to be able to remove it" in problem
    assert ("1 image removed", [OLD]) == (last, engine.removed)


def test_without_the_base_image_nothing_is_taken_for_old(
    engine: StubEngine, capsys: pytest.CaptureFixture[str]
) -> None:
    del engine.images[image_build.OWN_BASE]
    assert 2 == main(["clean", "--yes"])
    assert "not here, and today's tags depend on it; expected it; `python -m harness" in capsys.readouterr().err
    assert [] == engine.removed


@exhaustive
@pytest.mark.docker
@pytest.mark.slow
def test_real_engine_removes_an_image_of_another_build_unless_a_container_uses_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The images of this test alone have its state folder's label; every other one is kept, whatever it is."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    client = docker.from_env()
    dockerfile = b'FROM scratch\nARG NUMBER\nLABEL number=${NUMBER}\nCMD ["/none"]\n'
    tags = [f"fencepost-broker:00000000000000f{number}" for number in (1, 2)]
    before = {tag for each in client.api.images() for tag in each["RepoTags"] or ()} - set(tags)
    labels = {image_build.STAGE_LABEL: "broker", image_build.OWNER_LABEL: image_build.owner()}
    container = None
    try:
        for tag in tags:
            client.images.build(
                fileobj=io.BytesIO(dockerfile), tag=tag, labels=labels, buildargs={"NUMBER": tag}, rm=True
            )
        container = client.containers.create(tags[1], name="fencepost-test-of-clean")
        assert 0 == main(["clean"])
        said = capsys.readouterr().out
        assert f"remove  {tags[0]}" in said
        assert f"keep    {tags[1]}" in said
        assert "used by fencepost-test-of-clean" in said
        assert 0 == main(["clean", "--yes"])
        left = {tag for each in client.api.images() for tag in each["RepoTags"] or ()}
        assert (True, False) == (before | {tags[1]} <= left, tags[0] in left), left
        container.remove()
        container = None
        assert 0 == main(["clean", "--yes"])
        left = {tag for each in client.api.images() for tag in each["RepoTags"] or ()}
        assert (True, set()) == (before <= left, left & set(tags)), left
    finally:
        if container is not None:
            container.remove()
        for each in client.api.images(filters={"label": f"{image_build.OWNER_LABEL}={image_build.owner()}"}):
            client.images.remove(each["Id"], force=True)
        client.close()
