"""A schedule is read with its run: from the folder, from the history, or beside it; options come first."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from harness.model import UsageError
from harness.run.store import Run, SuiteDir
from harness.scenario.text import text_of
from harness.search.random_runs import RandomRuns
from harness.search.shrink.source import Source, read_source
from harness.search.simulated import sim_player
from targets import VIRTUAL_HOST as SIM

VARIANT, CHANGE, SEED = "kip320", "fence_fetch=no", 3


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory) -> Run:
    runs = RandomRuns(target="broker", variant=VARIANT, host=SIM, changes=(CHANGE,))
    spec = runs.spec(SEED)
    return sim_player(runs.load_target()).play(
        spec, SuiteDir(path=tmp_path_factory.mktemp("suite")).create_run("run")
    )


def read(path: Path, protocol: str | None = None, *rules: str, seed: int | None = None) -> Source:
    return read_source(path, protocol=protocol, rules=rules, seed=seed)


def test_folder_history_and_schedule_of_a_run_say_the_same(played: Run) -> None:
    spec = RandomRuns(target="broker", variant=VARIANT, host=SIM, changes=(CHANGE,)).spec(SEED)
    for path in (played.path, played.history, played.schedule):
        source = read(path)
        assert text_of(spec.scenario) == text_of(source.scenario)
        assert (VARIANT, spec.rules, SEED, played.path) == (
            source.protocol,
            source.rules,
            source.seed,
            source.folder,
        )


def test_options_come_before_the_history(played: Run) -> None:
    source = read(played.path, "hw+fence_fetch=yes", "fence_isr_join=yes", seed=9)
    assert ("hw", "yes", "yes", 9) == (
        source.protocol,
        source.rules["fence_fetch"],
        source.rules["fence_isr_join"],
        source.seed,
    )
    assert "yes" == read(played.path, None, "fence_fetch=yes").rules["fence_fetch"]


def test_schedule_alone_needs_a_seed_and_is_played_under_the_newest_protocol(played: Run, tmp_path: Path) -> None:
    path = tmp_path / "schedule.txt"
    path.write_bytes(played.schedule.read_bytes())
    with pytest.raises(UsageError, match="no history beside it says its seed; expected the option --seed"):
        read(path)
    source = read(path, seed=4)
    assert ("kip380", 4, tmp_path) == (source.protocol, source.seed, source.folder)


@pytest.mark.parametrize(("line", "says"), [
    ("", "history line "),
    ("[" * 10_000, "history line "),
    ("\udcff", "can't decode byte 0xff"),
    ('{"index":0,"time_ns":0,"source":"runner","process":"runner","type":"info","f":"done","value":{}}',
     "a line about something else; expected the setup of a run"),
])  # fmt: skip
def test_history_that_does_not_begin_with_a_setup_is_refused(line: str, says: str, tmp_path: Path) -> None:
    path = tmp_path / "history.jsonl"
    path.write_bytes(os.fsencode(f"{line}\n"))
    for named in (path, tmp_path):
        with pytest.raises(UsageError, match=r"history\.jsonl:1: ") as raised:
            read(named)
        assert says in str(raised.value)


def test_run_of_another_system_needs_a_protocol_of_ours(played: Run, tmp_path: Path) -> None:
    first = played.history.read_text(encoding="utf-8").splitlines()[0]
    path = tmp_path / "history.jsonl"
    path.write_text(first.replace('"target":"broker"', '"target":"kafka"') + "\n", encoding="utf-8")
    with pytest.raises(UsageError, match="a run of kafka; expected one of broker"):
        read(tmp_path)
    assert ("kip279", SEED) == (read(tmp_path, "kip279").protocol, read(tmp_path, "kip279").seed)


def test_history_without_a_schedule_is_refused(played: Run, tmp_path: Path) -> None:
    first = played.history.read_text(encoding="utf-8").splitlines()[0]
    line = json.loads(first)
    del line["value"]["schedule"]
    (tmp_path / "history.jsonl").write_text(json.dumps(line) + "\n", encoding="utf-8")
    with pytest.raises(UsageError, match="no schedule in its first line"):
        read(tmp_path)
