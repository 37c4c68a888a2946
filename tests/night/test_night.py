"""A night that is killed at any moment ends as one that is not; what goes wrong is told, and it goes on."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from harness.model import EXIT_CODES, UsageError
from harness.night import play
from harness.night.journal import LINES, Journal
from harness.night.known import KnownSeeds
from harness.night.lock import alone
from harness.night.night import play_night
from harness.night.opening import Options
from harness.night.outcome import BAD, GOOD, UNKNOWN, Outcome
from harness.night.schedule import Role
from harness.run.spec import RunSpec
from tests.night.nights import BOTH, SIMULATED, Fakes, options, told


class Killed(BaseException):
    """The end of a process that nothing in it can prevent."""


def play_it(asked: Options, fakes: Fakes, text: StringIO | None = None) -> Outcome:
    console = Console(file=text or StringIO(), width=300)
    return play_night(asked, console, clock=lambda: fakes.now)


def journal_of(results: Path) -> list[dict[str, Any]]:
    (path,) = (path for path in (results / "nights").glob(f"2*/{LINES}"))
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


def _killing(monkeypatch: pytest.MonkeyPatch, at: int, how: str) -> None:
    """Kill the night at this line of its journal: in the middle of it, or after it."""
    write = Journal.write
    written = iter(range(1_000_000))

    def killed(self: Journal, what: str, **values: Any) -> dict[str, Any]:
        if next(written) != at:
            return write(self, what, **values)
        if how == "after":
            write(self, what, **values)
        if how == "within":
            with self.path.open("ab") as file:
                file.write(b'{"what": "ran", "spe')
        raise Killed

    monkeypatch.setattr(Journal, "write", killed)


@pytest.mark.parametrize("how", ["within", "after"])
def test_night_that_is_killed_at_any_line_of_its_journal_ends_as_one_that_is_not(
    tmp_path: Path, fakes: Fakes, how: str
) -> None:
    asked = partial(options, plan=BOTH, seconds=6.0)
    whole = play_it(asked(tmp_path / "whole"), fakes)
    lines = len(journal_of(tmp_path / "whole"))
    assert 16 < lines
    # After its last line a night is over, and the next one is another.
    for at in range(lines - (how == "after")):
        results = tmp_path / str(at)
        with pytest.MonkeyPatch.context() as patch:
            _killing(patch, at, how)
            with pytest.raises(Killed):
                play_it(asked(results), fakes)
        again = play_it(asked(results), fakes)
        assert told(whole, "sim") == told(again, "sim"), at
        assert whole.status == again.status
        # One page: the night went on, and no other was begun. A folder without a line is no night.
        (page,) = (results / "nights").glob("2*/night.json")
        assert page.parent.name == again.name
        # On real processes nothing that was judged is lost, and no place is played twice.
        places = [(line["unit"], line["place"]) for line in journal_of(results) if line["what"] == "ran"]
        assert len(places) == len(set(places))
        kept = {each.folder for line in again.lines for each in line.count.findings if each.folder}
        assert all((page.parent / folder).is_dir() for folder in kept), (at, kept)
        assert not (page.parent / "playing").exists() or not any((page.parent / "playing").iterdir())


def test_run_that_was_judged_and_not_written_down_before_a_kill_is_not_lost(tmp_path: Path, fakes: Fakes) -> None:
    receive = play._RealUnit._receive

    def killed(self: Any, ended: Any) -> None:
        if ended.result.seed % 5 == 0 and self.unit.role is Role.PLAY:
            raise Killed
        receive(self, ended)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(play._RealUnit, "_receive", killed)
        with pytest.raises(Killed):
            play_it(options(tmp_path, BOTH), fakes)
    before = [seed for host, seed in fakes.played if host == "local"]
    fakes.played.clear()
    found = told(play_it(options(tmp_path, BOTH), fakes), "local")
    assert before[-1] in [seed for _, seed, *_ in found]
    assert before[-1] not in [seed for _, seed in fakes.played]


def test_interrupted_night_says_where_has_a_page_and_goes_on(tmp_path: Path, fakes: Fakes) -> None:
    def interrupt(spec: RunSpec) -> None:
        if (spec.host, len(fakes.played)) == ("local", 9):
            raise KeyboardInterrupt

    fakes.begin = interrupt
    with pytest.raises(KeyboardInterrupt):
        play_it(options(tmp_path, BOTH), fakes)
    last = journal_of(tmp_path)[-1]
    assert ("interrupted", "unit 4, play local broker:kip380") == (last["what"], last["at"])
    told_so_far = json.loads((tmp_path / "nights" / "latest" / "night.json").read_text("utf-8"))
    assert (False, 9) == (told_so_far["finished"], len(fakes.played))
    fakes.begin = lambda _: None
    text = StringIO()
    outcome = play_it(options(tmp_path, BOTH, seed=None), fakes, text)
    assert "goes on: 3 of 4 units are done" in text.getvalue()
    assert (2, 0, True) == (outcome.sessions, outcome.killed, outcome.finished)


def test_canary_that_does_not_fail_makes_the_night_red(tmp_path: Path, fakes: Fakes) -> None:
    fine = options(tmp_path / "fine", seconds=1.0, seed=102)
    assert (GOOD, EXIT_CODES["valid"]) == ((outcome := play_it(fine, fakes)).status, outcome.code)
    fakes.tame = {"hw", "kip380"}
    outcome = play_it(options(tmp_path / "tame", seconds=1.0, seed=102), fakes)
    assert (BAD, EXIT_CODES["invalid"]) == (outcome.status, outcome.code)
    (canary,) = outcome.of(Role.CANARY)
    assert "a violation was expected, and none was found in 9 runs" == canary.why


def test_each_scenario_of_a_canary_must_show_a_violation(tmp_path: Path, fakes: Fakes) -> None:
    plan = BOTH.replace('["kip101-1"]', '["kip101-1", "kip101-2"]')
    fakes.begin = lambda spec: fakes.tame.update({"hw"} if spec.scenario.name == "kip101-2" else ())
    outcome = play_it(options(tmp_path, plan, seconds=1.0, seed=102), fakes)
    assert [BAD, BAD] == [line.status for line in outcome.of(Role.CANARY)]


def test_host_that_is_gone_makes_its_units_unknown_and_the_others_are_played(tmp_path: Path, fakes: Fakes) -> None:
    fakes.gone = {"local": "Docker: no engine answers"}
    outcome = play_it(options(tmp_path, BOTH, seconds=4.0, seed=101), fakes)
    assert (UNKNOWN, EXIT_CODES["unknown"]) == (outcome.status, outcome.code)
    assert [
        ("local broker:hw kip101-1", "could not be played: Docker: no engine answers", 1),
        ("local broker:kip380", "could not be played: Docker: no engine answers", 1),
    ] == outcome.not_run
    assert {"sim"} == {host for host, _ in fakes.played}


def test_range_of_ports_is_for_the_hosts_whose_nodes_take_some(tmp_path: Path, fakes: Fakes) -> None:
    plan = BOTH.replace('"local"', '"local", "docker"')
    asked = replace(options(tmp_path, plan, seconds=4.0, seed=101), ports=range(26000, 27000))
    play_it(asked, fakes)
    assert {"local": range(26000, 27000), "docker": None} == fakes.ports


def test_bug_in_a_unit_is_told_with_its_traceback_and_the_night_goes_on(tmp_path: Path, fakes: Fakes) -> None:
    def stumble(spec: RunSpec) -> None:
        if spec.host == "sim" and str(spec.variant) == "kip380":
            raise ZeroDivisionError("by nothing")

    fakes.begin = stumble
    outcome = play_it(options(tmp_path, BOTH, seconds=4.0, seed=101), fakes)
    ((line, why, _),) = outcome.not_run
    assert ("sim broker:kip380", True) == (
        line,
        "ZeroDivisionError: by nothing (traceback in traceback-3.txt)" in why,
    )
    assert "stumble" in (tmp_path / "nights" / "latest" / "traceback-3.txt").read_text("utf-8")
    assert "local" in {host for host, _ in fakes.played}


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (lambda asked: replace(asked, seconds=99.0), "it was begun with another seconds"),
        (lambda asked: replace(asked, seed=3), "it was begun with another seed"),
        (lambda asked: replace(asked, fresh=True), "a fresh one is asked for"),
    ],
)
def test_night_that_is_not_the_one_asked_for_is_closed_and_a_new_one_begins(
    tmp_path: Path, fakes: Fakes, change: Callable[[Options], Options], why: str
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        _killing(patch, 5, "after")
        with pytest.raises(Killed):
            play_it(options(tmp_path), fakes)
    text = StringIO()
    outcome = play_it(change(options(tmp_path)), fakes, text)
    assert f"was not ended and is closed: {why}" in text.getvalue()
    assert 1 == outcome.sessions
    nights = sorted(path.parent for path in (tmp_path / "nights").glob("2*/night.json"))
    assert 2 == len(nights)
    closed = next(
        json.loads((night / "night.json").read_text("utf-8")) for night in nights if night.name != outcome.name
    )
    assert [f"closed before its end: {why}"] == closed["notes"]
    # Nothing is left to go on with.
    assert play_it(options(tmp_path), fakes).name not in {night.name for night in nights}


def test_night_that_cannot_be_read_any_more_says_so_and_a_fresh_one_begins(tmp_path: Path, fakes: Fakes) -> None:
    with pytest.MonkeyPatch.context() as patch:
        _killing(patch, 5, "after")
        with pytest.raises(Killed):
            play_it(options(tmp_path), fakes)
    (path,) = (tmp_path / "nights").glob(f"2*/{LINES}")
    path.write_text(path.read_text("utf-8").replace("kip380", "kip999"), encoding="utf-8")
    with pytest.raises(UsageError, match=r"not ended, and cannot go on: .*unknown protocol 'kip999'.*--fresh"):
        play_it(options(tmp_path), fakes)
    assert play_it(replace(options(tmp_path), fresh=True), fakes).finished
    assert "finished" == json.loads(path.read_text("utf-8").splitlines()[-1])["what"]


def test_second_night_on_the_same_results_is_refused_in_one_line(tmp_path: Path, fakes: Fakes) -> None:
    with (
        alone(tmp_path / "nights"),
        pytest.raises(UsageError, match="another night is at work there, process") as error,
    ):
        play_it(options(tmp_path), fakes)
    assert "\n" not in str(error.value)
    assert [] == fakes.played
    assert play_it(options(tmp_path), fakes).finished


def test_seeds_that_failed_are_played_first_in_every_later_night(tmp_path: Path, fakes: Fakes) -> None:
    first = play_it(options(tmp_path, BOTH), fakes)
    failed = {
        (seed, name.split()[0])
        for name, seed, verdict, _ in told(first)
        if verdict == "invalid" and "kip380" in name
    }
    known = KnownSeeds(tmp_path / "nights" / "known").read()
    assert failed == {(each.seed, each.host) for each in known}
    second = play_it(options(tmp_path, BOTH, seed=1_000), fakes)
    again = second.of(Role.KNOWN)
    assert {"sim broker:kip380 known", "local broker:kip380 known"} == {line.name for line in again}
    assert len(failed) == sum(line.count.runs for line in again)
    assert all("--schedule" in each.again for line in again for each in line.count.findings)
    # They are told once more, and kept once.
    assert len(known) < len(KnownSeeds(tmp_path / "nights" / "known").read())


def test_night_shares_what_is_left_of_its_time_among_what_is_timed(tmp_path: Path, fakes: Fakes) -> None:
    play_it(options(tmp_path, BOTH, seconds=20.0), fakes)
    # The fakes' simulator takes no time: what is timed has all of it, the second of the canary included.
    assert (11, 20) == tuple(sum(host == each for host, _ in fakes.played) for each in ("sim", "local"))


def test_night_tells_of_each_unit_and_of_the_first_finding_of_each_cause(tmp_path: Path, fakes: Fakes) -> None:
    text = StringIO()
    play_it(options(tmp_path, SIMULATED), fakes, text)
    printed = text.getvalue()
    assert "[  2/2] play sim broker:kip380: 12 runs (3 invalid, 2 unknown, 7 valid)" in printed
    assert 1 == printed.count("  finding: lost: a node")
    assert "again: fencepost run --host sim --protocol kip380 --seed 110" in printed
