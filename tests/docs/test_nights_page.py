"""What docs/nights.md tells people to install works: systemd accepts its units, and the steps of its job run."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import pytest

from harness.model import EXIT_CODES
from harness.night import plan
from harness.night.output import HTML, JUNIT, MARKDOWN
from harness.night.tables import JSON
from targets import PLAN_KEYS
from tests.endings.command import ROOT
from tests.kept import exhaustive
from tests.needs import needs

PAGE: Final = (ROOT / "docs" / "nights.md").read_text(encoding="utf-8")
# Where the page has Fencepost installed.
INSTALLED: Final = "/srv/fencepost"


def blocks(language: str) -> list[str]:
    """Return the code blocks of the page in a language."""
    return re.findall(rf"^```{language}\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)


def install(folder: Path) -> str:
    """Make a command in the folder, as the page has it installed; return the folder's path."""
    command = folder / ".venv" / "bin" / "fencepost"
    command.parent.mkdir(parents=True)
    command.write_text(f'#!/bin/sh\nexec {sys.executable} -m harness.cli.main "$@"\n', encoding="utf-8")
    command.chmod(0o755)
    return str(folder)


def test_page_has_every_key_of_a_plan_every_file_of_a_night_and_its_codes() -> None:
    source = Path(plan.__file__).read_text(encoding="utf-8")
    keys = set(re.findall(r'(?:whole|names|texts|share|truth)\("(\w+)"', source)) | {*PLAN_KEYS, plan.TARGETS}
    assert {"disk_mb", "workloads", "scenarios", "releases"} <= keys
    missing = [name for name in (*keys, HTML, MARKDOWN, JSON, JUNIT) if f"`{name}`" not in PAGE]
    assert [] == missing
    assert {str(EXIT_CODES[word]) for word in ("valid", "unknown", "invalid")} == set(
        re.findall(r"^\| (\d) \|", PAGE, re.M)
    )


@pytest.mark.slow
@pytest.mark.slow
@exhaustive
def test_cron_line_has_five_fields_and_a_command_that_is_there(tmp_path: Path) -> None:
    (text,) = blocks("cron")
    *when, command = text.strip().split(maxsplit=5)
    assert ["0", "22", "*", "*", "*"] == when
    command = command.replace(INSTALLED, install(tmp_path)).replace("--hours 8", "--print-plan")
    (tmp_path / "results").mkdir()
    assert 0 == subprocess.run(["bash", "-c", command], env=_environment(tmp_path), check=False).returncode
    assert plan.default_text() == (tmp_path / "results" / "nightly.log").read_text("utf-8")


@needs("systemd")
def test_systemd_accepts_the_service_and_the_timer(tmp_path: Path) -> None:
    service, timer = blocks("ini")
    for name, text in (("fencepost-nightly.service", service), ("fencepost-nightly.timer", timer)):
        (tmp_path / name).write_text(text.replace(INSTALLED, str(tmp_path / "there")), encoding="utf-8")
    (tmp_path / "there").mkdir()
    install(tmp_path / "there")
    units = [str(tmp_path / name) for name in ("fencepost-nightly.service", "fencepost-nightly.timer")]
    ended = subprocess.run(["systemd-analyze", "verify", *units], capture_output=True, text=True, check=False)
    # It also looks at units of the machine, of which it may complain.
    ours = [line for line in ended.stderr.splitlines() if "fencepost" in line]
    assert [] == ours


@pytest.mark.slow
@pytest.mark.slow
@exhaustive
def test_steps_of_the_job_run_as_a_script_and_show_the_page(tmp_path: Path) -> None:
    (text,) = blocks("yaml")
    steps = re.findall(r"- name: (\w+)\n(?:\s+if: always\(\)\n)?\s+run: (.+)", text)
    assert ["install", "play", "show"] == [name for name, _ in steps]
    assert all(re.search(rf"^{target}:", (ROOT / "Makefile").read_text("utf-8"), re.M) for target in ("java",))
    install(tmp_path)
    (tmp_path / "Makefile").write_text("java:\n", encoding="utf-8")
    environment = {**_environment(tmp_path), "GITHUB_STEP_SUMMARY": str(tmp_path / "summary.md")}
    codes = {}
    for name, script in steps:
        shorter = script.replace("--hours 5 --host sim,local", "--minutes 0.01 --host sim --jobs 1 --seed 7")
        codes[name] = subprocess.run(
            ["bash", "-e", "-c", shorter], cwd=tmp_path, env=environment, check=False, stdout=subprocess.DEVNULL
        ).returncode
    assert {"install": 0, "play": 0, "show": 0} == codes
    assert (tmp_path / "summary.md").read_text("utf-8").startswith("# Night of ")
    assert {HTML, MARKDOWN, JSON, JUNIT} <= {path.name for path in (tmp_path / "night").iterdir()}


def _environment(folder: Path) -> Mapping[str, str]:
    # A make that runs beside others, and this test in it, holds a lock that a make of the steps would wait for.
    ours = {name: value for name, value in os.environ.items() if "MAKE" not in name and name != "MFLAGS"}
    return {**ours, "PYTHONPATH": str(ROOT), "XDG_STATE_HOME": str(folder / "state")}
