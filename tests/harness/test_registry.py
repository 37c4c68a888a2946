"""One look-up for all tables: the name that was meant is named."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from harness.model import Anomaly, Kind, UsageError, Verdict
from harness.registry import load, pick
from harness.run.result import Status
from harness.run.suite import Suite


def test_unknown_name_is_told_what_there_is_and_what_was_probably_meant() -> None:
    with pytest.raises(
        UsageError, match=r"unknown host 'locl': expected one of docker, local. Did you mean 'local'\?"
    ):
        pick("host", {"local": 1, "docker": 2}, "locl")


def test_load_gives_an_attribute_of_the_module_that_the_table_names() -> None:
    assert pick is load("thing", {"registry": "harness.registry"}, "registry", "pick")


def test_suite_survives_its_file(tmp_path: Path) -> None:
    cell = Cell(
        scenario="s",
        title="t",
        source="KIP-101",
        protocol="hw",
        expected="none",
        found="lost 3",
        status=Status.MISMATCH,
        reason="unexpected: lost 3",
        verdict=Verdict.INVALID,
        anomalies=(Anomaly(kind=Kind.LOST, topic="t", partition=0, ranges=((3, 4),)),),
        run="s-hw",
        rerun="make",
        seconds=1.5,
    )
    suite = Suite(
        name="n",
        started="now",
        commit="c",
        host="local",
        target="broker",
        power_tier="loop",
        seed=1,
        rules={"a": "b"},
        cells=(cell,),
        seconds=2.0,
    )
    suite.write(tmp_path / "suite.json")
    assert suite == Suite.read(tmp_path / "suite.json")
    assert (("s",), ("hw",)) == (suite.scenarios, suite.protocols)
    assert cell is suite.cell("s", "hw")
    older = replace(
        suite, rules={"bounce_seen": "no"}, cells=(replace(cell, protocol="kip380+bounce_seen=no+a=no"),)
    )
    older.write(tmp_path / "suite.json")
    read = Suite.read(tmp_path / "suite.json")
    assert {"fence_broker_epoch": "no"} == read.rules
    assert ("kip380+a=no+fence_broker_epoch=no",) == read.protocols
    assert suite.cell("s", "kip101") is None
