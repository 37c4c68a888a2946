"""The wheel has the product and nothing else, and says what the product needs."""

from __future__ import annotations

import zipfile
from email import message_from_bytes
from email.message import Message
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from harness.version import version
from tests.package import building, sources

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> zipfile.ZipFile:
    """The wheel of this checkout."""
    return zipfile.ZipFile(building.build_wheel(tmp_path_factory.mktemp("wheel")))


def about(wheel: zipfile.ZipFile) -> Message:
    name = next(name for name in wheel.namelist() if name.endswith(".dist-info/METADATA"))
    return message_from_bytes(wheel.read(name))


def test_wheel_has_every_file_of_the_product_and_no_other(wheel: zipfile.ZipFile) -> None:
    """Its data too: scenarios, templates, plans, locks, Java sources, the Dockerfile."""
    inside = {Path(name) for name in wheel.namelist() if ".dist-info/" not in name}
    assert {*sources.files()} == inside
    assert {*sources.PACKAGES} == {path.parts[0] for path in inside}


def test_wheel_says_what_the_product_needs(wheel: zipfile.ZipFile) -> None:
    said = [Requirement(line) for line in about(wheel).get_all("Requires-Dist", [])]
    core = {str(each) for each in said if each.marker is None}
    assert {str(Requirement(line)) for line in sources.project()["dependencies"]} == core
    assert {*sources.project()["optional-dependencies"]} == {*about(wheel).get_all("Provides-Extra", [])}


def test_wheel_has_the_version_that_reports_have_and_the_command(wheel: zipfile.ZipFile) -> None:
    assert version() == about(wheel)["Version"]
    entries = next(name for name in wheel.namelist() if name.endswith("entry_points.txt"))
    assert "fencepost = harness.cli.main:main" in wheel.read(entries).decode()
