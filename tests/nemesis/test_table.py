"""The table of faults is complete and documented, and every lasting fault can be healed."""

from __future__ import annotations

import keyword
from pathlib import Path

import pytest

import nemesis
from harness.cluster.fault import Fault
from harness.effect import Band
from harness.suite.scenario_files import known_faults
from targets.kafka_family import nemeses as of_kafka
from targets.zookeeper import nemeses as of_zookeeper
from tests.faults import NEMESES

ROOT = Path(__file__).parents[2]


def module_of(fault: str) -> str:
    """Return the name of the module that defines a fault."""
    plain = fault.replace("-", "_")
    return f"{plain}_" if keyword.iskeyword(plain) else plain


def test_every_module_is_a_line_of_the_table_under_its_own_name() -> None:
    folders = [Path(package.__file__ or "").parent for package in (nemesis, of_kafka, of_zookeeper)]
    modules = {path.stem for folder in folders for path in folder.glob("*.py")} - {"__init__"}
    assert modules == {module_of(name) for name in NEMESES}
    assert list(NEMESES) == [fault.name for fault in NEMESES.values()]


@pytest.mark.parametrize("fault", NEMESES.values(), ids=NEMESES)
def test_fault_says_what_it_does_how_it_is_probed_and_how_it_is_shaded(fault: Fault) -> None:
    assert fault.doc
    assert "probe" in (fault.inject.__doc__ or "") or "held is seen" in (fault.inject.__doc__ or "")
    assert fault.band in Band


@pytest.mark.parametrize(
    ("name", "undone_by"),
    [("kill", "restart"), ("power-loss", "restart"), ("pause", "resume"), ("zombie", "return")],
)
def test_fault_that_lasts_is_undone_by_another_of_the_table(name: str, undone_by: str) -> None:
    assert NEMESES[undone_by].inject is NEMESES[name].heal
    assert Band.MARK is not NEMESES[name].band


def test_only_faults_that_last_are_undone_and_shaded() -> None:
    lasting = {name for name, fault in NEMESES.items() if fault.heal is not None}
    assert lasting == {name for name, fault in NEMESES.items() if fault.band is not Band.MARK}


def test_every_fault_stands_in_the_page_of_faults() -> None:
    page = (ROOT / "docs" / "nemeses.md").read_text(encoding="utf-8").partition("## What each host can do")[0]
    rows = [line for line in page.splitlines() if line.startswith("| `")]
    faults = known_faults()
    assert [f"`{name}`" for name in faults] == [row.split("|")[1].strip() for row in rows]
    assert [fault.doc for fault in faults.values()] == [row.split("|")[2].strip() for row in rows]


def test_faults_whose_effect_lasts_are_those_that_are_healed() -> None:
    assert {name for name, fault in NEMESES.items() if fault.effect.lasts} == {
        name for name, fault in NEMESES.items() if fault.heal is not None
    }


@pytest.mark.parametrize(
    "fault", [fault for fault in NEMESES.values() if fault.heal], ids=lambda fault: fault.name
)
def test_healing_of_a_fault_ends_its_effect(fault: Fault) -> None:
    by = next(each for each in NEMESES.values() if each.inject == fault.heal)
    assert fault.effect in by.heals
