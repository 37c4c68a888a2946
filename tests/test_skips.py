"""A test is skipped only for what the machine lacks, in the table's words; one that skips itself fails."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

from harness.ability import OF_TARGETS, Ability
from harness.machine.table import MACHINE, ROW_OF
from tests import conftest, needs, skips
from tests.faults import NEMESES
from tests.skips import Lane
from tests.tidy import ROOT

# A run with the plug-in and a table of three rows, of which two are lacking.
CONFTEST: Final = """
import sys
sys.path.insert(0, {root!r})
from harness.target.needs import Row
from tests import conftest, needs, skips
needs.ROWS = {{
    "tool": Row(why_not=lambda: "no tool on PATH", install="the package tool"),
    "root": Row(why_not=lambda: "not root", install="run it as root"),
    "here": Row(why_not=lambda: "", install=""),
}}
skips.KEPT = __import__("pathlib").Path(__file__).parent / "lanes"
def pytest_addoption(parser):
    parser.addoption("--lane", default="")
def pytest_configure(config):
    config.pluginmanager.register(skips.Skips(needs.ROWS))
"""
TESTS: Final = """
import pytest
@pytest.mark.needs("tool")
def test_tool(): raise AssertionError
@pytest.mark.needs("tool", "root")
def test_both(): raise AssertionError
@pytest.mark.root
def test_lane(): raise AssertionError
@pytest.mark.needs("here")
def test_here(): pass
def test_none(): pass
@pytest.mark.parametrize("kind", ["plain", pytest.param("rich", marks=pytest.mark.needs("tool"))])
def test_param(kind): assert kind == "plain"
"""
SKIPPING: Final = """
import pytest
@pytest.fixture
def skipping(): pytest.skip("no luck")
def test_itself(): pytest.skip("no luck")
def test_by_its_fixture(skipping): pass
@pytest.mark.skipif(True, reason="no luck")
def test_by_a_condition(): pass
"""


def run(folder: Path, *words: str, **files: str) -> subprocess.CompletedProcess[str]:
    """Run pytest on these files with the plug-in."""
    (folder / "conftest.py").write_text(CONFTEST.format(root=str(ROOT)), encoding="utf-8")
    for name, text in files.items():
        (folder / f"{name}.py").write_text(text, encoding="utf-8")
    return subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:randomly", *words, str(folder)],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )


def test_exactly_those_are_skipped_that_name_what_is_lacking_and_the_table_says_why(tmp_path: Path) -> None:
    done = run(tmp_path, "--lane", "mine", test_a=TESTS)
    assert 0 == done.returncode, done.stdout
    rows = dict(re.findall(r"^(tool|root) +(\d .*\S)$", done.stdout, re.M))
    assert {
        "tool": "3  no tool on PATH  the package tool",
        "root": "1  not root         run it as root",
    } == {name: re.sub(r"^(\d) +", r"\1  ", text) for name, text in rows.items()}
    lane = Lane(**json.loads((tmp_path / "lanes" / "mine.json").read_text()))
    assert {"passed": 3, "skipped": 4} == lane.outcomes
    assert re.search(r"^mine: 3 passed, 4 skipped in \d+ s$", done.stdout, re.M)


def test_lane_that_cannot_be_kept_is_printed_all_the_same(tmp_path: Path) -> None:
    (tmp_path / "lanes").write_text("a file", encoding="utf-8")
    done = run(tmp_path, "--lane", "mine", test_a="def test_none(): pass\n")
    assert 0 == done.returncode, done.stdout
    assert f"{tmp_path / 'lanes'}: File exists; `make test` does not count this lane" in done.stdout
    assert re.search(r"^mine: 1 passed in \d+ s$", done.stdout, re.M)


def test_test_that_skips_itself_fails_whatever_it_says(tmp_path: Path) -> None:
    module = "import pytest\npytest.importorskip('no_such_library')\n"
    done = run(tmp_path, "--continue-on-collection-errors", test_a=SKIPPING, test_b=module)
    assert 0 != done.returncode
    said = r"^test_a\.py::\w+: skipped itself \(.*no luck\); expected a test that names"
    found = re.findall(said, done.stdout, re.M)
    assert 3 == len(found), done.stdout
    assert re.search(r"test_b.py: skipped itself \(.*no_such_library", done.stdout)


def test_table_of_several_lanes_adds_up(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(skips, "KEPT", tmp_path)
    for name, count in (("one", 2), ("two", 3)):
        Lane(name=name, outcomes={"passed": 1}, lacked={"iptables": count}, whys={"iptables": "none"}).keep()
    made = skips.table([Lane.kept("one"), Lane.kept("two")])
    assert re.match(r"iptables +5  none +root, iptables", made[-1])
    assert [] == skips.table([Lane(name="all", outcomes={"passed": 9})])


def test_names_without_a_row_are_refused() -> None:
    with pytest.raises(KeyError):
        needs.needs("iptable")


def test_every_ability_of_a_fault_that_a_tool_gives_has_a_row() -> None:
    assert set(ROW_OF.values()) <= MACHINE.keys()
    packets_disks_clocks = {need for fault in NEMESES.values() for need in fault.needs} - OF_TARGETS
    everywhere = {Ability.LOST_DISKS, Ability.TORN_POWER_LOSS, Ability.BIT_ROT, Ability.SEGMENTS}
    of_services = {Ability.OWN_SERVICES, Ability.SERVICE_ENSEMBLE}
    by_links = {Ability.CLIENT_PROCESSES, Ability.CLIENT_LINKS, Ability.METADATA_LINKS}
    assert packets_disks_clocks <= ROW_OF.keys() | everywhere | of_services | by_links


def test_a_row_that_the_machine_has_is_a_wrong_use_of_the_list() -> None:
    with pytest.raises(pytest.UsageError, match=r"--one-for-each: here all the same: \['(root|plain-user)'\]"):
        conftest.one_for_each(["root", "plain-user"], [])
