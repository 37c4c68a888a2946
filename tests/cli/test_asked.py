"""`fetch` and `test` ask for targets and versions; a target's own command may stand for them."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import pytest

from harness.cli.asked import asked
from harness.cli.commands import commands
from harness.cli.main import main
from harness.model import EXIT_CODES, UsageError
from harness.target.commands import spelled
from harness.target.found import also_in, entry, target
from targets.kafka_commands import suite
from tests.target.own import TARGET, make_target

COMMANDS = """
from harness.target.commands import Command
COMMANDS = {"mine-only": Command(module="harness.cli.targets", help="of mine alone")}
"""


def test_targets_are_asked_for_whole_or_by_version() -> None:
    texts = ["kafka:1.1.1", "broker:hw", "kafka:3.9.1", "broker"]
    assert {"kafka": ("1.1.1", "3.9.1"), "broker": ()} == asked(texts)
    with pytest.raises(UsageError, match=r"unknown version of kafka '1': expected one of 0.10.2.2, "):
        asked(["kafka:1"])
    with pytest.raises(
        UsageError, match=r"unknown target 'kafak': expected one of broker, .*, rocketmq. Did you mean"
    ):
        asked(["kafak"])


def test_commands_of_targets_are_there_and_stand_for_the_general_ones() -> None:
    assert {"test-kip101", "test-kafka", "kafka"} <= commands().keys()
    words = {}
    for name, versions in (("broker", ("hw",)), ("kafka", ("1.1.1", "3.9.1"))):
        own = spelled(entry(name), "TEST")
        assert own is not None
        words[name] = own.of(versions)
    assert ["test-kip101", "--protocol", "hw"] == words["broker"]
    assert ["test-kafka", "--release", "1.1.1", "--release", "3.9.1"] == words["kafka"]
    assert spelled(entry("broker"), "FETCH") is None


def test_test_of_a_release_is_the_command_of_that_system_with_the_options_given(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    seen: list[Any] = []

    def run(arguments: argparse.Namespace) -> int:
        seen.append(arguments)
        return EXIT_CODES["unknown"]

    monkeypatch.setattr(suite, "run", run)
    words = ["test", "kafka:1.1.1", "--scenario", "kip101-2", "--seed", "7", "--jobs", "2", "--results", "there"]
    assert EXIT_CODES["unknown"] == main(words)
    (given,) = seen
    assert (["1.1.1"], ["kip101-2"], 7, 2) == (given.release, given.scenario, given.seed, given.jobs)
    assert (Path("there"), "local", None) == (given.results, given.host, given.repository)


def test_own_target_registers_a_command_and_a_wrong_module_of_commands_is_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    mine, wrong = make_target(tmp_path / "mine"), make_target(tmp_path / "wrong")
    (mine / "commands.py").write_text(COMMANDS)
    (wrong / "commands.py").write_text("import nothing_such\n")
    assert EXIT_CODES["valid"] == main(["mine-only", "mine", "--targets", str(mine)])
    with also_in([str(tmp_path)]):
        assert "of mine alone" == commands()["mine-only"].help
        assert "test-kafka" in commands()
        assert "mine" == target("mine").name
        with pytest.raises(UsageError, match=r"wrong: commands.py does not import: ModuleNotFoundError"):
            target("wrong")
    assert "mine-only" not in commands()


def test_fetch_brings_what_a_target_needs(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    (tmp_path / "file").write_bytes(b"what it needs")
    text = f"""
import hashlib
from harness.downloads import Download
from targets.broker_target.target import BrokerTarget

class Mine(BrokerTarget):
    name = "mine"

    @staticmethod
    def downloads(version):
        digest = hashlib.sha256(b"what it needs").hexdigest()
        return [Download(url="file://{tmp_path}/file", sha256=digest, size=13, path=f"lib/{{version}}")]

TARGET = Mine()
"""
    make_target(tmp_path / "mine", text)
    make_target(tmp_path / "plain", TARGET)
    words = ["fetch", "mine:hw", "mine:kip380", "plain", "--targets", str(tmp_path)]
    assert EXIT_CODES["valid"] == main(words)
    assert {"hw", "kip380"} == {each.name for each in (tmp_path / "cache/fencepost/mine/lib").iterdir()}
    told = capsys.readouterr().out
    assert "mine: 2 files to download" in told
    assert "plain: needs nothing" in told
