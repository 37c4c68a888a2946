"""The runs selected for each release of Apache Kafka and for our broker beside it; these tests play none."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from rich.console import Console

from harness.cli.suites import scenario_files
from harness.launch import Address
from harness.model import PreconditionError
from harness.run.spec import RunSpec
from harness.scenario.file import parse
from harness.suite.options import Options
from harness.suite.scenario_files import read_scenario
from harness.target.found import target as target_of
from harness.target.target import Target
from targets.kafka import archive
from targets.kafka.releases import entries
from targets.kafka_commands.pairs import (
    PATTERNS,
    ReleasePair,
    archive_classes,
    compared,
    once,
    pairs_of,
    releases_of,
)
from tests.faults import NEMESES
from tests.report.samples import sample_result
from tests.services import shared

UPGRADE = "upgrade-releases"
BOTH: Mapping[str, Target] = {name: target_of(name) for name in ("kafka", "broker")}
OPTIONS = Options(host="local", seed=1, results=Path("results"))
TEXT = """
title T
source S
nodes A B replicas, C controller
records m1 1..4
# story
produce m1 acks=all
expect hw: lost m1
expect kip101: diverged m1 A B
expect kafka:2.1.1@1.1: none
expect kafka:2.0.1: stuck A
"""


def pair(name: str, text: str = TEXT, scenario: str = "s") -> ReleasePair:
    (found,) = pairs_of([parse(scenario, text, "s.txt", NEMESES)], [entries()[name]], BOTH, OPTIONS)
    return found


@pytest.mark.parametrize(
    ("name", "theirs", "ours"),
    [
        ("0.10.2.2", "lost m1", "lost m1"),
        ("1.1.1", "diverged m1 A B", "diverged m1 A B"),
        ("2.1.1@1.1", "none", "diverged m1 A B"),
        ("2.0.1", "stuck A", None),
    ],
)
def test_release_is_expected_to_show_what_it_models_shows_or_its_own_line(
    name: str, theirs: str, ours: str | None
) -> None:
    found = pair(name)
    assert found.theirs is not None and not found.why
    assert (theirs, ours) == (found.theirs.expectation, found.ours.expectation if found.ours else None)


def test_both_draw_alike_and_are_played_again_by_commands_of_their_own() -> None:
    found = pair("1.1.1")
    assert found.theirs is not None and found.ours is not None
    assert found.theirs.draw == found.ours.draw
    assert ("s-1.1.1", "s-kip101") == (found.theirs.name, found.ours.name)
    assert "make test-kafka SCENARIO=s RELEASE=1.1.1 SEED=1 HOST=local" == found.theirs.command
    assert "make scenarios SCENARIO=s PROTOCOL=kip101 SEED=1 HOST=local" == found.ours.command


def test_release_without_an_expectation_is_not_played() -> None:
    found = pair("3.9.1")
    assert (None, None, "nothing is expected of kip380") == (found.theirs, found.ours, found.why)


def test_release_that_lacks_a_setting_is_not_played_and_says_why() -> None:
    text = TEXT.replace("# story", "settings message_format=without_epochs\n# story") + "expect kip380: none\n"
    assert "no message format without epochs" in pair("3.9.1", text).why
    assert "" == pair("1.1.1", text).why


def test_release_that_has_no_such_request_is_not_played_and_says_so() -> None:
    text = TEXT.replace("produce m1 acks=all", "partition log-1 B A\nproduce m1 acks=all\nremove log-1")
    assert "kafka has no remove" == pair("1.1.1", text).why
    under = text.replace("remove log-1", "under broker: remove log-1")
    assert "kafka has no remove" != pair("1.1.1", under.replace("under broker", "under hw")).why


def test_every_scenario_that_is_named_is_there_and_expects_something_of_every_release() -> None:
    files = scenario_files(PATTERNS)
    assert len(PATTERNS) <= len(files)
    scenarios = [read_scenario(path) for path in files.values()]
    found = pairs_of(scenarios, list(entries().values()), BOTH, OPTIONS)
    lacking = [one for one in found if one.theirs is None or one.ours is None]
    assert {UPGRADE} == {one.scenario.name for one in lacking}
    # Jars are installed there: three releases begin it, and none of our protocols.
    upgraded = {one.entry.name for one in found if one.scenario.name == UPGRADE and one.theirs is not None}
    assert {"0.10.2.2", "1.1.1", "2.1.1"} == upgraded
    assert not any(one.ours for one in lacking)


def test_release_that_an_upgrade_installs_is_needed_too() -> None:
    read, chosen = read_scenario(scenario_files((UPGRADE,))[UPGRADE]), [entries()["1.1.1"]]
    needed = releases_of(chosen, pairs_of([read], chosen, BOTH, OPTIONS), BOTH["kafka"])
    assert ["1.1.1", "2.1.1"] == [release.name for release in needed]
    assert ["1.1.1"] == [release.name for release in releases_of(chosen, [pair("1.1.1")], BOTH["kafka"])]


def test_protocol_that_two_releases_model_is_played_once() -> None:
    pairs = [pair("1.1.1"), pair("0.11.0.3"), pair("3.9.1")]
    assert ["s-1.1.1", "s-0.11.0.3"] == [spec.name for spec in once(one.theirs for one in pairs)]
    assert ["s-kip101"] == [spec.name for spec in once(one.ours for one in pairs)]


def test_pairs_have_the_results_of_their_runs_and_why_there_are_none() -> None:
    pairs = [pair(name, scenario="kip101-1") for name in ("1.1.1", "2.0.1", "3.9.1")]
    results = [sample_result("kip101-1", name) for name in ("1.1.1", "2.0.1", "kip101")]
    found = compared(pairs, results)
    assert [(results[0], results[2]), (results[1], None), (None, None)] == [
        (one.theirs, one.ours) for one in found
    ]
    assert ["", "", "nothing is expected of kip380"] == [one.why for one in found]


@pytest.mark.parametrize(("inside", "expected"), [
    ("", (["2.1.1", "3.9.1"], ["class archive: it died; played without it"], [True])),
    ("/opt/java", ([], [], [])),
])  # fmt: skip
def test_class_archives_are_made_once_a_release_for_this_machines_java_and_a_failure_is_printed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, inside: str, expected: tuple[list[object], ...]
) -> None:
    made: list[str] = []
    printed: list[str] = []

    def make(release: Any, *_: object) -> None:
        made.append(release.name)
        if release.name == "2.1.1":
            raise PreconditionError("it died")

    monkeypatch.setattr(archive, "lacks", lambda release, _java: release.name != "1.1.1")
    monkeypatch.setattr(archive, "make", make)
    closed: list[bool] = []
    host = SimpleNamespace(java=inside, open=lambda: None, close=lambda: closed.append(True))
    folder = SimpleNamespace(path=tmp_path)
    say = printed.append
    runner = SimpleNamespace(folder=folder, java=None, say=say, note=say, console=Console(quiet=True))
    text = TEXT + "expect kip320, kip380: none\n"
    specs = [pair(name, text).theirs for name in ("1.1.1", "2.1.1", "2.1.1@1.1", "3.9.1")]
    zookeeper = Address(host="127.0.0.1", port=1)
    archive_classes(
        cast(Any, runner),
        lambda *_a, **_k: cast(Any, host),
        shared(zookeeper),
        cast(list[RunSpec], specs),
    )
    assert expected == (made, printed, closed)
