"""A suite and its results survive writing and reading; files of an older version can be read."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

from harness.model import Anomaly, Kind, Verdict
from harness.run.result import Activity, RunResult, Status
from harness.run.suite import Suite

RESULT = RunResult(
    scenario="s",
    title="t",
    source="KIP-101",
    protocol="hw",
    seed=7,
    expected="none",
    found="lost 3",
    status=Status.MISMATCH,
    reason="unexpected: lost 3",
    verdict=Verdict.INVALID,
    anomalies=(Anomaly(kind=Kind.LOST, topic="t", partition=0, ranges=((3, 4),)),),
    run="s-hw",
    rerun="make",
    seconds=1.5,
    activity=Activity(asked={"kill": 2}, bit={"kill": 1}, elections=1, acked=3, steps=9, virtual_s=0.5),
)
SUITE = Suite(
    name="n",
    started="now",
    commit="c",
    host="local",
    target="broker",
    power_tier="loop",
    seed=7,
    rules={"a": "b"},
    results=(RESULT,),
    seconds=2.0,
)
# A file of version 0.1, with every key that it had.
OLD = """
{"name": "n", "started": "now", "commit": "c", "host": "local", "target": "broker", "power_tier": "loop",
 "seed": 7, "rules": {"a": "b"}, "seconds": 2.0,
 "cells": [{"scenario": "s", "title": "t", "source": "KIP-101", "protocol": "hw", "expected": "none",
  "found": "lost 3", "status": "mismatch", "reason": "unexpected: lost 3", "verdict": 4, "run": "s-hw",
  "rerun": "make", "seconds": 1.5,
  "anomalies": [{"kind": "lost", "topic": "t", "partition": 0, "ranges": [[3, 4]], "nodes": [], "epoch": null,
   "sentence": "", "proof": [], "checker": ""}]}]}
"""


def test_suite_survives_its_file(tmp_path: Path) -> None:
    SUITE.write(tmp_path / "suite.json")
    assert SUITE == Suite.read(tmp_path / "suite.json")


def test_what_was_not_played_survives_too_and_is_absent_where_all_was(tmp_path: Path) -> None:
    path = tmp_path / "suite.json"
    left = replace(SUITE, unplayed={"t": {"hw": "toy has no move"}})
    left.write(path)
    read = Suite.read(path)
    assert (left, ("s", "t"), "toy has no move") == (read, read.scenarios, read.why_not("t", "hw"))
    SUITE.write(path)
    assert "unplayed" not in json.loads(path.read_text(encoding="utf-8"))


def test_suite_of_an_older_version_is_read_without_seeds_and_activity(tmp_path: Path) -> None:
    path = tmp_path / "suite.json"
    path.write_text(OLD, encoding="utf-8")
    read = Suite.read(path)
    (result,) = read.results
    assert (0, Activity()) == (result.seed, result.activity)
    now = json.loads(json.dumps(RESULT.to_dict()))
    assert now == {**result.to_dict(), "seed": now["seed"], "activity": now["activity"]}


def test_suite_names_its_scenarios_and_protocols_and_finds_a_result() -> None:
    assert (("s",), ("hw",)) == (SUITE.scenarios, SUITE.protocols)
    assert RESULT is SUITE.result("s", "hw")
    assert SUITE.result("s", "kip101") is None
