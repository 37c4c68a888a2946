"""What a night ends with: a page with findings first, Markdown, JSON and JUnit's XML, all of one outcome."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from harness.model import Kind, Verdict
from harness.night.count import Count, Finding
from harness.night.opening import units_of
from harness.night.outcome import BAD, GOOD, UNKNOWN, Outcome, outcome_of
from harness.night.output import HTML, JUNIT, MARKDOWN, write_night
from harness.night.schedule import Unit
from harness.night.state import Progress, State
from harness.night.tables import JSON, NIGHTS_MAX, earlier_nights, tables_of
from harness.night.view import headline
from tests.night.nights import BOTH
from tests.report.pages import Page, problems_of
from tests.search.results import result_of

HOSTILE = "</title></svg><script>alert('x')</script>\"'&|\x00 http://evil.example"
NIGHT = "20261125T220000-7"


def night(name: str = NIGHT, *, violations: int = 2, tame: bool = False, problem: str = "") -> Outcome:
    """Return the outcome of a night with findings in the simulator, canaries, and a real host."""
    about = {
        "version": 1,
        "night": name,
        "seed": 7,
        "started": "2026-11-25T22:00:00+00:00",
        "commit": "c0ffee",
        "known": [],
        "known_left_out": 3,
        "plan": BOTH,
        "seconds": 60.0,
        "hosts": [],
        "targets": [],
        "power_tier": "",
    }
    units = units_of(about, Path())
    state = State(about=about, sessions=[{"commit": "c0ffee"}, {"commit": "c0ffee"}], spent_s=61.0)
    for unit in units:
        progress = state.units.setdefault(unit.number, Progress())
        progress.ended, progress.used_s = True, 10.0
        progress.count = _count(unit, violations, tame)
        if unit.host == "local" and problem:
            progress.count, progress.problem = Count(), problem
    return outcome_of(state, units, finished=True)


def _count(unit: Unit, violations: int, tame: bool) -> Count:
    count = Count()
    canary = unit.role == "canary"
    bad = (0 if tame else 1) if canary else violations if unit.simulated else 0
    for seed in range(4):
        found = (Verdict.INVALID, Kind.LOST) if seed < bad else (Verdict.VALID,)
        result = result_of(*found, seed=seed, rerun=f"fencepost run --seed {seed}")
        count.add(result)
        if seed < bad:
            kept = "" if seed == 0 else "3 of its cause are"
            count.findings.append(Finding.of(result, folder="findings/u/r" if seed == 0 else "", kept=kept))
    if not unit.simulated:
        count.windows, count.available, count.gap_s = 20, 19, 1.0
    return count


def write(nights: Path, outcome: Outcome) -> Path:
    folder = nights / outcome.name
    folder.mkdir(parents=True)
    write_night(outcome, nights, folder)
    return folder


def test_page_stands_alone_and_says_first_what_was_found_and_how_to_play_it_again(tmp_path: Path) -> None:
    page = Page((write(tmp_path, night()) / HTML).read_text("utf-8"))
    assert [] == problems_of(page)
    assert "2 runs of 8 show a violation, of 1 cause." in page.text
    order = [
        page.text.index(text)
        for text in ("2 runs of 8", "fencepost run --seed 0", "Canaries", "What ran", "What bit")
    ]
    assert sorted(order) == order
    for text in (
        "findings/u/r",
        "95.0 %",
        "sessions 2, 1 of them killed",
        "0, 3 left out",
        "fencepost run --seed 1",
    ):
        assert text in page.text, text


def test_plots_of_the_page_have_their_numbers_in_words(tmp_path: Path) -> None:
    write(tmp_path, night("20261124T220000-6", violations=1))
    page = Page((write(tmp_path, night()) / HTML).read_text("utf-8"))
    labels = [drawing.get("aria-label") or "" for drawing in page.drawings() if drawing.get("role") == "img"]
    assert [
        "Runs with a finding of each night, by verdict. 11-24 22:00: 1 invalid; 11-25 22:00: 2 invalid.",
        "Availability of each night, by host. 11-24 22:00: local 95.0 %; 11-25 22:00: local 95.0 %.",
        "Faults that took effect in each night, by host. "
        "11-24 22:00: 4 sim, 4 local; 11-25 22:00: 4 sim, 4 local.",
    ] == labels


def test_cause_is_new_if_no_night_before_had_it_and_one_that_is_gone_is_named(tmp_path: Path) -> None:
    write(tmp_path, night("20261123T220000-5", violations=0))
    assert "not seen in the last 1 night" in (write(tmp_path, night()) / MARKDOWN).read_text("utf-8")
    later = (write(tmp_path, night("20261126T220000-8")) / MARKDOWN).read_text("utf-8")
    assert "seen in 1 of the last 2 nights, first 11-25 22:00" in later
    assert "(new)" not in later
    gone = (write(tmp_path, night("20261127T220000-9", violations=0)) / MARKDOWN).read_text("utf-8")
    assert "Seen in the night before, and not in this one:\n\n- lost: a node" in gone


def test_what_could_not_be_run_has_its_reason_in_every_file(tmp_path: Path) -> None:
    outcome = night(violations=0, problem="no engine answers")
    folder = write(tmp_path, outcome)
    assert (UNKNOWN, 3) == (outcome.status, outcome.code)
    page = Page((folder / HTML).read_text("utf-8"))
    assert "local broker:kip380 1 no engine answers" in page.text
    assert "| local broker:kip380 | 1 | no engine answers |" in (folder / MARKDOWN).read_text("utf-8")
    assert [] == problems_of(page)


def test_junit_fails_what_is_not_as_expected_and_has_an_error_for_what_is_unknown(tmp_path: Path) -> None:
    root = ET.parse(write(tmp_path, night(problem="gone")) / JUNIT).getroot()
    assert ("4", "1", "2") == (root.get("tests"), root.get("failures"), root.get("errors"))
    assert ["sim", "local"] == [suite.get("name") for suite in root]
    (failure,) = root.iter("failure")
    assert failure.text is not None
    assert "again: fencepost run --seed 0" in failure.text
    assert {"gone"} == {error.get("message") for error in root.iter("error")}


def test_json_has_what_the_page_has(tmp_path: Path) -> None:
    raw = json.loads((write(tmp_path, night()) / JSON).read_text("utf-8"))
    assert (BAD, 4, NIGHT, 1) == (raw["status"], raw["exit_code"], raw["night"], raw["killed"])
    (cause,) = raw["causes"]
    assert ({"sim broker:kip380": 2}, 2) == (cause["where"], len(cause["findings"]))


def test_hostile_text_stays_text(tmp_path: Path) -> None:
    outcome = night(violations=0, problem=HOSTILE)
    outcome.notes.append(HOSTILE)
    folder = write(tmp_path, outcome)
    page = Page((folder / HTML).read_text("utf-8"))
    assert [] == problems_of(page)
    assert "script" not in page.tags
    assert "<script>" not in (folder / MARKDOWN).read_text("utf-8")
    ET.parse(folder / JUNIT)


@pytest.mark.parametrize(
    ("outcome", "status", "said"),
    [
        (night(violations=0), GOOD, "All as expected: 8 runs without a violation, and every canary failed."),
        (night(violations=0, tame=True), BAD, "2 canaries did not fail."),
        (night(violations=0, problem="x"), UNKNOWN, "2 of 4 lines unknown or not run."),
        (
            replace(night(violations=0), finished=False),
            GOOD,
            "every canary failed – so far; the night is not over.",
        ),
    ],
)
def test_headline_says_how_the_night_came_out(outcome: Outcome, status: str, said: str) -> None:
    assert status == outcome.status
    assert headline(outcome).endswith(said)


def test_finding_that_was_deleted_for_want_of_space_says_so() -> None:
    about = night().about
    state = State(about=about, removed={f"{NIGHT}/findings/u/r": 5, "other/findings/u/r": 5})
    units = units_of(about, Path())
    for unit in units:
        state.units[unit.number] = state.progress(unit.number)
        state.units[unit.number].count = _count(unit, 1, tame=False)
    (group,) = outcome_of(state, units, finished=True).groups
    ((_, finding),) = group.findings
    assert ("", "deleted for want of space") == (finding.folder, finding.kept)


def test_tables_count_findings_availability_and_faults_by_night_without_canaries() -> None:
    tables = tables_of([night("1", violations=1).to_dict(), night("2").to_dict()])
    assert [("1", 8, 1, 0.95), ("2", 8, 2, 0.95)] == list(
        tables.nights[["night", "runs", "invalid", "share"]].itertuples(index=False, name=None)
    )
    kills = tables.faults[tables.faults["kind"] == "kill"]
    assert {("1", "sim", 8, 4), ("1", "local", 8, 4), ("2", "sim", 8, 4), ("2", "local", 8, 4)} == set(
        kills[["night", "host", "asked", "bit"]].itertuples(index=False, name=None)
    )


def test_nights_before_are_read_up_to_a_number_and_what_cannot_be_read_is_named(tmp_path: Path) -> None:
    whole = json.dumps(night("x").to_dict())
    for number in range(NIGHTS_MAX + 3):
        (tmp_path / f"2026-{number:02d}").mkdir()
        (tmp_path / f"2026-{number:02d}" / JSON).write_text("{" if number == 10 else whole, encoding="utf-8")
    (tmp_path / "latest").symlink_to("2026-00")
    found, unread = earlier_nights(tmp_path, "2026-15")
    assert NIGHTS_MAX - 1 == len(found)
    assert [str(tmp_path / "2026-10" / JSON)] == [text.partition(": ")[0] for text in unread]
