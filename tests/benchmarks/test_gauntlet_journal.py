"""A gauntlet that is killed goes on from its journal, which belongs to one state of the sources and options."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from operator import itemgetter
from pathlib import Path
from typing import Final

import pytest

from benchmarks.mutants import MUTANTS, __main__, children
from benchmarks.mutants.found import Found, Outcome
from benchmarks.mutants.hints import in_order, read_hints, written
from benchmarks.mutants.journal import Journal, state_of_sources
from benchmarks.mutants.mutant import MutantError
from benchmarks.mutants.search import Gauntlet
from benchmarks.mutants.survey import Surveyed
from harness.cleanup.process import until
from harness.model import UsageError
from tests.kept import exhaustive, keep

ROOT: Final = Path(__file__).resolve().parents[2]
# The first two are found at seeds 0 and 1, the last one survives.
NAMES: Final = ("checkpoint-written-once", "fetching-goes-on", "admin-unwatched")
ABOUT: Final = {"sources": "abc", "seeds": [0, 3], "in order": False, "every seed": False, "scenarios": False}
FOUND: Final = Found(
    name=NAMES[0], outcome=Outcome.FOUND, seed=1, kinds=("lost",), sentence="m1 is lost", played=1, cpu_s=1.5
)
SURVEYED: Final = Surveyed(seed=1, reached=frozenset(NAMES[:2]), kinds=())
MOMENT_S_MAX: Final = 120.0


def start(folder: Path, *words: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "benchmarks.mutants", *NAMES, *words, "--seeds", "3", "--journal", str(folder)],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def done_lines(folder: Path) -> list[str]:
    """Return the whole lines of a journal after its first one."""
    path = folder / "journal.jsonl"
    return path.read_text(encoding="utf-8").split("\n")[1:-1] if path.exists() else []


def workers_of(pid: int) -> list[int]:
    """Return the children of a process, as Linux lists them."""
    lists = [path.read_text() for path in Path(f"/proc/{pid}/task").glob("*/children")]
    return [int(word) for words in lists for word in words.split()]


def has_ended(pid: int) -> bool:
    """Return whether a process is gone, or waits for nothing but its parent's notice."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except OSError:
        return True


def named(folder: Path) -> list[str]:
    """Return the mutants of a journal."""
    return [line["name"] for line in map(json.loads, done_lines(folder)) if "name" in line]


def same(found: Found) -> Found:
    """Return what must not differ from one gauntlet to the next."""
    return replace(found, cpu_s=0.0)


# --- a real one, ended and started again ---------------------------------------------------------------------
@pytest.mark.slow
@pytest.mark.parametrize("number", keep([signal.SIGKILL, signal.SIGTERM], signal.SIGKILL))
def test_ended_gauntlet_leaves_no_process_and_goes_on(tmp_path: Path, number: signal.Signals) -> None:
    folder = tmp_path / "journal"
    first = start(folder, "--every-seed", "--jobs", "1")
    assert until(lambda: bool(done_lines(folder)) and bool(workers_of(first.pid)), MOMENT_S_MAX)
    workers = workers_of(first.pid)
    first.send_signal(number)
    _, told = first.communicate(timeout=MOMENT_S_MAX)
    assert until(lambda: all(map(has_ended, workers)), MOMENT_S_MAX)
    assert (-9, "") == (first.returncode, told) if number == signal.SIGKILL else first.returncode == 130
    assert number == signal.SIGKILL or f"{folder}/journal.jsonl goes on where it is; start again" in told
    before = done_lines(folder)
    assert 1 <= len(before) < len(NAMES), "ended too late"
    with (folder / "journal.jsonl").open("a", encoding="utf-8") as file:
        file.write('{"name":"admin-unwatched","outcome":"fou')

    again = start(folder, "--every-seed", "--jobs", "2")
    out, told = again.communicate(timeout=MOMENT_S_MAX)
    assert (0, "") == (again.returncode, told)
    assert f"{len(before)} of 3 stand in" in out
    after = done_lines(folder)
    assert before == after[: len(before)]
    assert sorted(NAMES) == sorted(named(folder))
    page = (folder / "found.md").read_text(encoding="utf-8")
    assert "| `vacuous`, `oracle-rest` | 1 | checkpoint-written-once 0 |" in page
    assert "| admin-unwatched | survived | 3 | unreachable: " in page


@exhaustive
@pytest.mark.slow
def test_one_job_and_two_find_the_same_and_print_the_same_page(tmp_path: Path) -> None:
    found = []
    for jobs in ("1", "2"):
        folder = tmp_path / jobs
        process = start(folder, "--jobs", jobs)
        process.communicate(timeout=MOMENT_S_MAX)
        lines = [json.loads(line) for line in done_lines(folder)]
        mutants = {line["name"]: same(Found.from_dict(line)) for line in lines if "name" in line}
        seeds = sorted((line for line in lines if "surveyed" in line), key=itemgetter("surveyed"))
        found.append((process.returncode, (folder / "found.md").read_bytes(), mutants, seeds))
    assert found[0] == found[1]
    assert set(NAMES) == found[0][2].keys()
    assert [0, 1, 2] == [seed["surveyed"] for seed in found[0][3]]


def test_worker_that_is_ended_from_outside_says_nothing_of_its_mutant(monkeypatch: pytest.MonkeyPatch) -> None:
    begin = children._start

    def start_and_kill(seconds_max: float) -> tuple[subprocess.Popen[str], int]:
        child, lifeline = begin(seconds_max)
        child.kill()
        return child, lifeline

    monkeypatch.setattr(children, "_start", start_and_kill)
    with pytest.raises(
        children.WorkerLostError, match=r"fetching-goes-on: its process was ended by signal 9; .*--jobs"
    ):
        list(Gauntlet(range(3)).run([MUTANTS["fetching-goes-on"]], jobs=1))


# --- the journal ---------------------------------------------------------------------------------------------
def test_what_is_done_is_known_after_a_new_start(tmp_path: Path) -> None:
    journal = Journal(tmp_path, ABOUT)
    journal.add(FOUND)
    journal.add_surveyed(SURVEYED)
    again = Journal(tmp_path, ABOUT)
    assert {FOUND.name: FOUND} == again.done
    assert {SURVEYED.seed: SURVEYED} == again.survey.done


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"sources": "abd"}, "is of other sources; expected those of now; name another folder"),
        ({"seeds": [0, 4]}, r"is of other seeds \(\[0, 3\], not \[0, 4\]\)"),
        ({"sources": "abd", "in order": True}, r"is of other sources, in order \(False, not True\)"),
    ],
)
def test_journal_of_something_else_is_refused_and_left_as_it_is(
    tmp_path: Path, change: dict[str, object], told: str
) -> None:
    Journal(tmp_path, ABOUT).add(FOUND)
    before = (tmp_path / "journal.jsonl").read_bytes()
    with pytest.raises(UsageError, match=told):
        Journal(tmp_path, {**ABOUT, **change})
    assert before == (tmp_path / "journal.jsonl").read_bytes()


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("[]\n", "is of other content"),
        ("no\n", "expected lines of JSON"),
        (f'{json.dumps(ABOUT)}\n{{"name": "a"}}\n', ":2: KeyError.*expected a mutant or a seed"),
        (f'{json.dumps(ABOUT)}\n"a"\n', ":2: TypeError.*expected a mutant or a seed"),
    ],
)
def test_file_that_is_no_journal_is_refused(tmp_path: Path, text: str, told: str) -> None:
    (tmp_path / "journal.jsonl").write_text(text, encoding="utf-8")
    with pytest.raises(UsageError, match=told):
        Journal(tmp_path, ABOUT)


def test_state_is_that_of_sources_and_edits(tmp_path: Path) -> None:
    mutant = MUTANTS[NAMES[0]]
    file = tmp_path / "targets" / "a.py"
    cached = file.parent / "__pycache__" / "a.pyc"
    cached.parent.mkdir(parents=True)
    file.write_text("A = 1\n")
    before = state_of_sources([mutant], tmp_path)
    cached.write_text("compiled")
    assert before == state_of_sources([replace(mutant, sentence="In other words.")], tmp_path)
    assert before != state_of_sources([replace(mutant, edits=(("a", "b"),))], tmp_path)
    file.write_text("A = 2\n")
    changed = state_of_sources([mutant], tmp_path)
    file.rename(file.with_name("b.py"))
    assert 3 == len({before, changed, state_of_sources([mutant], tmp_path)})


# --- the command, with a search that is not played -----------------------------------------------------------
def play(monkeypatch: pytest.MonkeyPatch, folder: Path, names: tuple[str, ...]) -> tuple[int, list[str]]:
    """Run the command with a search that finds all at once, in this order; return its code and what it played."""
    played: list[str] = []

    def run(self: Gauntlet, mutants: list[object], *, jobs: int) -> Iterator[Found]:
        waiting = {getattr(mutant, "name") for mutant in mutants}  # noqa: B009
        for name in names:
            if name in waiting:
                played.append(name)
                yield replace(FOUND, name=name)

    def look(self: Gauntlet, *, jobs: int) -> Iterator[list[Surveyed]]:
        assert self.survey is not None
        yield [replace(SURVEYED, seed=seed) for seed in self.seeds if seed not in self.survey.done]

    monkeypatch.setattr(Gauntlet, "run", run)
    monkeypatch.setattr(Gauntlet, "look", look)
    return __main__.main([*names, "--seeds", "3", "--journal", str(folder)]), played


def test_page_follows_from_the_journal_in_the_order_of_the_tables(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pages = []
    for folder, names in ((tmp_path / "a", NAMES), (tmp_path / "b", NAMES[::-1])):
        assert (0, list(names)) == play(monkeypatch, folder, names)
        pages.append((folder / "found.md").read_text(encoding="utf-8"))
        assert (0, []) == play(monkeypatch, folder, names)
        pages.append((folder / "found.md").read_text(encoding="utf-8"))
        assert {**read_hints(), **dict.fromkeys(NAMES, 1)} == read_hints(folder / "shown.txt")
    assert 1 == len(set(pages))
    order = [name for name in MUTANTS if name in NAMES]
    assert f"| `lost` | 3 | {', '.join(f'{name} 1' for name in order)} |" in pages[0]


def test_foreign_journal_ends_the_command_with_a_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert 0 == play(monkeypatch, tmp_path, NAMES[:1])[0]
    monkeypatch.setattr(__main__, "state_of_sources", lambda mutants: "another")
    assert (2, []) == play(monkeypatch, tmp_path, NAMES)
    assert "is of other sources; expected those of now; name another folder (--journal)" in capsys.readouterr().err


def test_sources_that_change_end_the_gauntlet_and_are_not_noted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    states = iter(["before", "before", "before", "after"])
    monkeypatch.setattr(__main__, "state_of_sources", lambda mutants: next(states))
    assert (2, list(NAMES[:2])) == play(monkeypatch, tmp_path, NAMES)
    assert "sources: changed while the gauntlet ran" in capsys.readouterr().err
    assert [NAMES[0]] == named(tmp_path)


# --- hints ---------------------------------------------------------------------------------------------------
def test_every_hint_is_of_a_mutant_and_in_the_order_of_the_tables() -> None:
    hints = read_hints()
    assert hints.keys() <= MUTANTS.keys()
    assert list(hints) == [name for name in MUTANTS if name in hints]
    assert (ROOT / "benchmarks/mutants/shown.txt").read_text(encoding="utf-8") == written(hints, MUTANTS)


def test_hint_comes_first_and_no_seed_is_lost_or_added() -> None:
    assert [5, 3, 4, 6] == in_order(range(3, 7), 5)
    assert [3, 4, 5, 6] == in_order(range(3, 7), None) == in_order(range(3, 7), 7)


@pytest.mark.parametrize("text", ["a\n", "a x\n", "a -1\n", "a 1\na 2\n"])
def test_line_that_is_no_hint_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "shown.txt").write_text(text, encoding="utf-8")
    with pytest.raises(MutantError, match="expected the name of another mutant and a seed"):
        read_hints(tmp_path / "shown.txt")
