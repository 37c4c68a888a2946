"""A release is the files that are pinned, and no others."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from harness.downloads import Download
from harness.model import UsageError
from targets.fluss import versions
from targets.fluss.target import TARGET
from targets.fluss.versions import RELEASES, Release, class_path, library

JAR, LOGGER = b"a server", b"a logger"


def pinned(path: str, data: bytes) -> Download:
    return Download(
        url=f"https://example.org/{path}", sha256=hashlib.sha256(data).hexdigest(), size=len(data), path=path
    )


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a library that has a release of two files, with their names."""
    release = Release(name="0.0.1", server=pinned("server/server.jar", JAR))
    monkeypatch.setattr(versions, "RELEASES", {"0.0.1": release})
    monkeypatch.setattr(versions, "_LOGGING", (pinned("logger.jar", LOGGER),))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    found = library()
    (found / "server").mkdir(parents=True)
    (found / "server" / "server.jar").write_bytes(JAR)
    (found / "logger.jar").write_bytes(LOGGER)
    return found


def test_class_path_is_the_server_and_then_the_logger(folder: Path) -> None:
    assert (folder / "server" / "server.jar", folder / "logger.jar") == class_path("0.0.1", folder)


@pytest.mark.parametrize(("file", "data"), [("server/server.jar", JAR), ("logger.jar", LOGGER)])
@pytest.mark.parametrize("as_", ["other bytes", "longer", "gone", "a folder"])
def test_file_that_is_not_the_pinned_one_is_named_with_the_command_that_brings_it(
    folder: Path, file: str, data: bytes, as_: str
) -> None:
    path = folder / file
    path.unlink()
    if as_ == "a folder":
        path.mkdir()
    elif as_ != "gone":
        path.write_bytes(data + b"!" if as_ == "longer" else data.upper())
    with pytest.raises(UsageError) as raised:
        class_path("0.0.1", folder)
    assert (
        f"Apache Fluss 0.0.1: {path} is not there, or not the pinned file "
        f"(sha256 {hashlib.sha256(data).hexdigest()}); `fencepost fetch fluss:0.0.1` brings it"
    ) == str(raised.value)
    # Once it is there, the same process takes it.
    path.rmdir() if as_ == "a folder" else path.unlink(missing_ok=True)
    path.write_bytes(data)
    assert path in class_path("0.0.1", folder)


def test_other_release_is_refused_with_those_that_there_are() -> None:
    for ask in (TARGET.downloads, lambda name: TARGET.rules(name, ()), lambda name: class_path(name, library())):
        with pytest.raises(UsageError, match=r"release of Apache Fluss '0\.9\.9': expected one of 0\.9\.1"):
            ask("0.9.9")


def test_downloads_are_the_files_of_the_class_path_each_once() -> None:
    of_release = [each.path for each in RELEASES["0.9.1"].files]
    assert of_release == [each.path for each in TARGET.downloads("0.9.1")]
    every = [each.path for each in TARGET.downloads("")]
    assert (sorted(set(every)), {*of_release} <= {*every}) == (sorted(every), True)
