"""The gauntlet loads a mutant and nothing else, finds a broken core, and reports one that crashes or hangs."""

from __future__ import annotations

import json
from dataclasses import replace
from importlib.util import module_from_spec
from pathlib import Path

import pytest
from rich.console import Console

from benchmarks.mutants import MUTANTS, __main__, worker
from benchmarks.mutants.apply import ChangedFinder, install
from benchmarks.mutants.children import Answer
from benchmarks.mutants.found import Found, Outcome
from benchmarks.mutants.mutant import MutantError
from benchmarks.mutants.page import PAGE, page
from benchmarks.mutants.search import Gauntlet, found_in
from benchmarks.mutants.tables import line, print_tables, totals
from harness.model import Kind, UsageError
from targets.broker.core import fences
from targets.broker.core.epochs import EpochCache
from targets.broker.core.messages import ErrorCode
from targets.broker.core.rules import PROTOCOLS
from targets.broker.core.state import Replica
from tests.broker.core.memory import TP, log_of
from tests.kept import exhaustive

BROKEN = MUTANTS["fetching-goes-on"]
FENCE = MUTANTS["newer-epoch-passes"]


def found(name: str, outcome: Outcome, seed: int | None = None, *kinds: str) -> Found:
    return Found(name=name, outcome=outcome, seed=seed, kinds=kinds, sentence="words")


# --- loading -------------------------------------------------------------------------------------------------
def test_loader_serves_the_changed_module_and_writes_nothing() -> None:
    replica = Replica(
        tp=TP, log=log_of(), epochs=EpochCache(PROTOCOLS["kip380"]), high_watermark=0, leader_epoch=3
    )
    file = Path(str(fences.__file__))
    before = file.read_bytes()
    spec = ChangedFinder({FENCE.full_module: FENCE.applied}).find_spec(FENCE.full_module, [str(file.parent)])
    assert spec is not None and spec.loader is not None
    broken = module_from_spec(spec)
    spec.loader.exec_module(broken)
    assert ErrorCode.NONE is broken.fence(replica, 4)
    assert ErrorCode.UNKNOWN_LEADER_EPOCH is fences.fence(replica, 4)
    assert before == file.read_bytes()


@pytest.mark.parametrize("name", ["targets.broker.core.leader", "targets.broker.core", "fences", "json"])
def test_finder_leaves_every_other_module_alone(name: str) -> None:
    assert (
        ChangedFinder({FENCE.full_module: FENCE.applied}).find_spec(name, [str(Path(str(fences.__file__)).parent)])
        is None
    )


def test_mutant_of_a_module_that_is_loaded_is_refused() -> None:
    with pytest.raises(MutantError, match=r"newer-epoch-passes: targets\.broker\.core\.fences is loaded already"):
        install(FENCE)


# --- searching -----------------------------------------------------------------------------------------------
@exhaustive
@pytest.mark.slow
def test_broken_core_is_found_and_the_core_as_it_is_is_not() -> None:
    gauntlet = Gauntlet(range(8), scenarios=True)
    (broken,) = gauntlet.run([BROKEN], jobs=1)
    assert Outcome.FOUND is broken.outcome
    assert broken.seed in range(8)
    assert broken.kinds
    assert all(Kind(kind) for kind in broken.kinds)
    assert broken.sentence
    assert "kip101-1" in broken.scenarios
    sound = Gauntlet(range(8), scenarios=True).search(worker.UNCHANGED)
    assert (Outcome.SURVIVED, None, (), ()) == (sound.outcome, sound.seed, sound.kinds, sound.scenarios)


@pytest.mark.slow
def test_mutant_that_crashes_its_process_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    gauntlet = Gauntlet(range(8))
    (crashed,) = gauntlet.run([replace(BROKEN, name="no-such-mutant")], jobs=1)
    assert (Outcome.CRASHED, None) == (crashed.outcome, crashed.seed)
    assert "no-such-mutant" in crashed.sentence


@pytest.mark.slow
def test_mutant_that_is_not_done_in_time_is_ended_and_reported() -> None:
    late = Gauntlet(range(100_000), seconds_max=1).search(worker.UNCHANGED)
    assert Outcome.TOO_LONG is late.outcome
    assert "not done after 1 s of processor time" == late.sentence


def test_last_line_of_a_worker_is_what_it_found() -> None:
    end = {"seed": 3, "kinds": ["lost"], "sentence": "m1 is lost", "scenarios": [], "cpu_s": 0.5}
    lines = ({"begins": 2}, {"begins": 3}, end)
    one = replace(found("a", Outcome.FOUND, 3, "lost"), sentence="m1 is lost", played=2, cpu_s=0.5)
    assert one == found_in("a", Answer(lines=lines))
    assert Outcome.SURVIVED is found_in("a", Answer(lines=({**end, "seed": None},))).outcome


# --- what is printed -----------------------------------------------------------------------------------------
@pytest.mark.parametrize("reason", ["equivalent", "unreachable"])
def test_tables_count_each_class_and_name_survivors(reason: str) -> None:
    names = ("newer-epoch-passes", "older-epoch-passes", "first-question-alone", "timers-unsorted")
    mutants = [MUTANTS[name] for name in names]
    mutants[1] = replace(mutants[1], **{reason: "nobody asks"})
    results = [
        found(names[0], Outcome.FOUND, 7, "lost", "stuck"),
        found(names[1], Outcome.SURVIVED),
        found(names[2], Outcome.CRASHED, 4),
        found(names[3], Outcome.TOO_LONG, 5),
    ]
    by_name = {each.name: each for each in results}
    rows = {name: tuple(counts) for name, *counts in totals(mutants, by_name)}
    assert {
        "visible": (0, 0, 0, 0),
        "command": (0, 0, 0, 0),
        "many": (0, 2, 0, 2),
        "protocol": (1, 2, 1, 0),
        "all": (1, 4, 1, 2),
    } == rows
    console = Console(record=True, width=200)
    print_tables(mutants, by_name, console)
    text = console.export_text()
    assert "lost stuck" in text
    survivors = [each for each in text.splitlines() if each.startswith("survived: ")]
    assert [f"survived: {names[1]}: {mutants[1].sentence} ({reason}: nobody asks)"] == survivors


def test_line_of_a_mutant_says_what_became_of_it() -> None:
    red = replace(found("a", Outcome.FOUND, 7, "lost"), scenarios=("kip101-1",))
    assert "a found at 7: lost; red: kip101-1" == line(red)
    assert "a survived" == line(found("a", Outcome.SURVIVED))
    assert "a crashed at 4: words" == line(found("a", Outcome.CRASHED, 4))


def test_mutants_are_chosen_by_name_class_and_module() -> None:
    chosen = __main__.chosen_mutants
    assert list(MUTANTS.values()) == chosen((), (), ())
    assert ["newer-epoch-passes"] == [each.name for each in chosen(["newer-epoch-passes"], (), ())]
    few = chosen((), ["many"], ["leader"])
    assert few
    assert {("many", "leader")} == {(each.category.value, each.module) for each in few}
    with pytest.raises(UsageError, match="Did you mean 'newer-epoch-passes'"):
        chosen(["newer-epoch-pases"], (), ())
    with pytest.raises(UsageError, match="no mutant is of these"):
        chosen(["newer-epoch-passes"], ["many"], ())


def test_results_go_to_a_file_and_one_that_cannot_be_written_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def run(self: Gauntlet, mutants: list[object], *, jobs: int) -> list[Found]:
        assert (range(5, 8), 2) == (self.seeds, jobs)
        return [found(BROKEN.name, Outcome.FOUND, 6, "lost")]

    monkeypatch.setattr(Gauntlet, "run", run)
    folder = str(tmp_path / "journal")
    words = [BROKEN.name, "--first-seed", "5", "--seeds", "3", "--jobs", "2", "--journal", folder]
    words += ["--every-seed", "--json"]
    assert 0 == __main__.main([*words, str(tmp_path / "found.json")])
    (row,) = json.loads((tmp_path / "found.json").read_text(encoding="utf-8"))
    assert (BROKEN.name, "found", 6, ["lost"], "phases") == tuple(
        row[key] for key in ("name", "outcome", "seed", "kinds", "module")
    )
    capsys.readouterr()
    assert 2 == __main__.main([*words, str(tmp_path / "none" / "found.json")])
    assert "expected a file that can be written" in capsys.readouterr().err


def test_page_is_as_the_mutants_have_it() -> None:
    assert page() == PAGE.read_text(encoding="utf-8")
