"""The state folder in TMP is used only if it is a folder of ours alone: anybody can make one there before us."""

from __future__ import annotations

import stat
import tempfile
from pathlib import Path

import pytest

from harness.cleanup import state
from harness.cleanup.state import state_dir
from harness.cli.main import main
from harness.model import UsageError
from tests.needs import UID


@pytest.fixture
def shared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the folder that a user without a home has in TMP; it does not exist yet."""
    monkeypatch.delenv("XDG_STATE_HOME", raising=False)
    monkeypatch.setenv("HOME", "/proc/none")
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path / f"fencepost-{UID}"


def mode_of(path: Path) -> int:
    return stat.S_IMODE(path.lstat().st_mode)


def test_folder_in_tmp_is_made_for_us_alone(shared: Path) -> None:
    assert shared / "runs" == state_dir("runs") == state_dir("runs")
    assert (0o700, 0o700) == (mode_of(shared), mode_of(shared / "runs"))


def test_folder_of_an_earlier_version_is_closed_to_others(shared: Path) -> None:
    (shared / "runs").mkdir(parents=True)
    shared.chmod(0o755)
    assert shared / "runs" == state_dir("runs")
    assert 0o700 == mode_of(shared)


@pytest.mark.parametrize("mode", [0o777, 0o770, 0o707])
def test_folder_to_which_others_may_write_is_refused(shared: Path, mode: int) -> None:
    shared.mkdir()
    shared.chmod(mode)
    with pytest.raises(UsageError, match=rf"{shared}: others may write to it \(mode 0{mode:o}\)"):
        state_dir("runs")
    assert mode == mode_of(shared)


def test_link_is_refused_and_nothing_is_made_where_it_points(shared: Path, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    shared.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(UsageError, match=f"{shared}: no folder, but a link"):
        state_dir("runs")
    assert [] == list((tmp_path / "elsewhere").iterdir())


def test_link_inside_is_refused(shared: Path, tmp_path: Path) -> None:
    shared.mkdir(mode=0o700)
    (tmp_path / "elsewhere").mkdir()
    (shared / "runs").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(UsageError, match="runs: no folder, but a link"):
        state_dir("runs")


@pytest.mark.usefixtures("java_found")
def test_folder_of_another_user_ends_a_command_with_one_line_and_wrong_usage(
    shared: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    ours = UID
    shared.with_name(f"fencepost-{ours + 1}").mkdir(mode=0o700)
    monkeypatch.setattr(state.os, "geteuid", lambda: ours + 1)
    words = ["--scenario", "kip101-1", "--protocol", "hw", "--power-tier", "watermark"]
    assert 2 == main(["test-kip101", *words, "--results", str(tmp_path / "results")])
    error = capsys.readouterr().err
    assert 1 == error.count("\n")
    assert f"{shared.with_name(f'fencepost-{ours + 1}')}: belongs to uid {ours}, we are {ours + 1}" in error
