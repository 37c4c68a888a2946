"""What is played on which release, and beside it on our broker; nothing is played here."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from harness.cli import kafka_suite
from harness.cli.kafka_suite import Crossing, archive_classes, crossings_of
from harness.cli.main import main
from harness.cli.suites import scenario_files
from harness.hosts.base import Address
from harness.model import PreconditionError
from harness.registry import load
from harness.schedule import parse
from harness.target import Target
from targets import TARGETS
from targets.kafka import archive
from targets.kafka.releases import entries

BOTH: Mapping[str, Target] = {name: load("target", TARGETS, name, "TARGET") for name in ("kafka", "broker")}
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


def crossing(name: str, text: str = TEXT) -> Crossing:
    (found,) = crossings_of([parse("s", text, "s.txt")], [entries()[name]], BOTH, seed=1)
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
def test_release_is_held_to_what_it_models_or_to_its_own_line(name: str, theirs: str, ours: str | None) -> None:
    found = crossing(name)
    assert found.theirs is not None and not found.why
    assert (theirs, ours) == (found.theirs.expectation, found.ours.expectation if found.ours else None)


def test_both_draw_alike() -> None:
    found = crossing("1.1.1")
    assert found.theirs is not None and found.ours is not None
    assert found.theirs.draw == found.ours.draw
    assert ("s-1.1.1", "s-kip101") == (found.theirs.name, found.ours.name)


def test_release_of_which_nothing_is_expected_is_not_played() -> None:
    found = crossing("3.9.1")
    assert (None, None, "nothing is expected of kip380") == (found.theirs, found.ours, found.why)


def test_release_that_cannot_be_set_so_is_not_played_and_says_why() -> None:
    text = TEXT.replace("# story", "settings message_format=without_epochs\n# story") + "expect kip380: none\n"
    assert "no message format without epochs" in crossing("3.9.1", text).why
    assert "" == crossing("1.1.1", text).why


def test_every_scenario_that_is_named_is_there_and_says_something_of_every_release() -> None:
    files = scenario_files(kafka_suite.PATTERNS)
    assert len(kafka_suite.PATTERNS) <= len(files)
    arguments = SimpleNamespace(scenario=None)
    scenarios = kafka_suite._scenarios(cast(Any, arguments))
    found = crossings_of(scenarios, list(entries().values()), BOTH, seed=1)
    assert [] == [(one.scenario.name, one.entry.name) for one in found if one.theirs is None or one.ours is None]


def test_unknown_release_is_told_with_those_there_are(capsys: pytest.CaptureFixture[str]) -> None:
    assert 2 == main(["test-kafka", "--release", "1.1.0"])
    assert "unknown release of Apache Kafka '1.1.0': expected one of" in capsys.readouterr().err


@pytest.mark.parametrize(("inside", "expected"), [
    ("", (["2.1.1", "3.9.1"], ["class archive: it died; played without it"], [True])),
    ("/opt/java", ([], [], [])),
])  # fmt: skip
def test_class_archives_are_made_once_a_release_for_this_machines_java_and_a_failure_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, inside: str, expected: tuple[list[object], ...]
) -> None:
    made: list[str] = []
    said: list[str] = []

    def make(release: Any, *_: object) -> None:
        made.append(release.name)
        if release.name == "2.1.1":
            raise PreconditionError("it died")

    monkeypatch.setattr(archive, "lacks", lambda release, _java: release.name != "1.1.1")
    monkeypatch.setattr(archive, "make", make)
    closed: list[bool] = []
    host = SimpleNamespace(java=inside, open=lambda: None, close=lambda: closed.append(True))
    course = SimpleNamespace(
        folder=SimpleNamespace(path=tmp_path),
        java=None,
        say=said.append,
        console=kafka_suite.Console(quiet=True),
    )
    text = TEXT + "expect kip320, kip380: none\n"
    specs = [crossing(name, text).theirs for name in ("1.1.1", "2.1.1", "2.1.1@1.1", "3.9.1")]
    zookeeper = Address(host="127.0.0.1", port=1)
    archive_classes(cast(Any, course), lambda *_a, **_k: cast(Any, host), zookeeper, cast(Any, specs))
    assert expected == (made, said, closed)
