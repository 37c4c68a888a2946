"""What is copied to a machine is all that agent and broker need there, and nothing that they cannot import."""

from __future__ import annotations

import io
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from harness.hosts import contents
from harness.hosts.remote import parcel, prepare
from tests.needs import needs

MISSING = """
import sys
sys.path[:] = [sys.argv[1], *(each for each in sys.path if "site-packages" not in each)]
import harness.hosts.remote.agent, harness.hosts.loopfs
print(harness.hosts.remote.agent.__file__)
"""


def unpacked(packed: parcel.Parcel, tmp_path: Path) -> Path:
    archive = tmp_path / f"{packed.name}.zip"
    archive.write_bytes(packed.archive)
    prepare.unpack(str(archive), str(tmp_path / packed.name))
    assert not archive.exists()
    return tmp_path / packed.name


def test_agent_runs_from_the_copied_sources_without_any_library(tmp_path: Path) -> None:
    code = unpacked(parcel.sources(), tmp_path)
    done = subprocess.run(
        [sys.executable, "-I", "-c", MISSING, str(code)], capture_output=True, text=True, cwd="/", check=False
    )
    assert (0, f"{code}/harness/hosts/remote/agent.py") == (done.returncode, done.stdout.strip()), done.stderr
    assert (code / "targets/broker/driver.py").is_file()


def test_libraries_of_an_equal_python_are_this_ones_own(tmp_path: Path) -> None:
    packed = parcel.libraries(sys.version_info[:2], parcel.like_ours())
    lib = unpacked(packed, tmp_path)
    code = unpacked(parcel.sources(), tmp_path)
    program = "import targets.broker.driver, kazoo, kio; print(kazoo.__file__)"
    done = subprocess.run(
        [sys.executable, "-S", "-c", program],
        env={"PYTHONPATH": f"{code}{os.pathsep}{lib}"},
        capture_output=True,
        text=True,
        cwd="/",
        check=False,
    )
    assert (0, f"{lib}/kazoo/__init__.py") == (done.returncode, done.stdout.strip()), done.stderr
    assert packed.name == parcel.libraries(sys.version_info[:2], parcel.like_ours()).name


def test_library_for_disks_that_fail_is_one_file_of_python_for_every_machine(tmp_path: Path) -> None:
    lib = unpacked(parcel.fuse(), tmp_path)
    assert [lib / "mfusepy.py"] == [path for path in lib.iterdir() if not path.name.endswith(".dist-info")]
    assert [] == [path for path in lib.rglob("*") if path.suffix == ".so"]


def test_libraries_of_another_python_are_the_pinned_wheels_for_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[tuple[str, str, str]] = []

    def download(target: str, *, python: str, machine: str) -> list[Path]:
        asked.append((target, python, machine))
        wheel = tmp_path / "a.whl"
        with zipfile.ZipFile(wheel, "w") as archive:
            archive.writestr("kazoo/__init__.py", "")
        return [wheel]

    monkeypatch.setattr(contents, "download", download)
    packed = parcel.libraries((3, 99), ("cpython", "linux", "riscv64", "glibc"))
    assert [("broker", "3.99", "riscv64")] == asked
    assert ["kazoo/__init__.py"] == zipfile.ZipFile(io.BytesIO(packed.archive)).namelist()


def test_survey_says_what_is_there_and_makes_a_folder_of_ours_alone(tmp_path: Path) -> None:
    seen = prepare.survey(str(tmp_path / "a" / "b"), "json", "kazooo")
    assert (["kazooo"], [], str(tmp_path / "a" / "b")) == (seen["missing"], seen["code"], seen["folder"])
    assert (sys.version_info[:2], parcel.like_ours()) == parcel.of_survey(seen)
    assert 0o700 == (tmp_path / "a" / "b").stat().st_mode & 0o777


def test_folder_that_others_may_write_to_or_that_cannot_be_made_is_refused(tmp_path: Path) -> None:
    (tmp_path / "open").mkdir()
    (tmp_path / "open").chmod(0o777)
    (tmp_path / "file").touch()
    assert {"error": f"{tmp_path}/open: others may write to it"} == prepare.survey(str(tmp_path / "open"))
    assert {"error": f"{tmp_path}/file: File exists"} == prepare.survey(str(tmp_path / "file"))


@needs("root")
def test_folder_of_another_user_is_refused(tmp_path: Path) -> None:
    (tmp_path / "theirs").mkdir()
    os.chown(tmp_path / "theirs", 12345, 12345)
    assert {"error": f"{tmp_path}/theirs: belongs to uid 12345, we are 0"} == prepare.survey(
        str(tmp_path / "theirs")
    )


def test_parcel_that_another_harness_has_unpacked_meanwhile_stays(tmp_path: Path) -> None:
    packed = parcel.sources()
    first = unpacked(packed, tmp_path)
    (first / "mark").touch()
    assert (unpacked(packed, tmp_path) / "mark").exists()
    assert [first] == list(tmp_path.iterdir())
