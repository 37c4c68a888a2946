"""The whole page is self-contained and complete, escapes everything, and stays small."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from harness.model import Anomaly, Kind, Op, OpType, Source, Verdict
from harness.report import build_report
from harness.report.page import headline
from harness.run.result import RunResult, Status
from harness.run.suite import Suite
from tests.events.filled import filled
from tests.report.pages import Page, problems_of
from tests.report.recorder import PLACE, TOPIC
from tests.report.samples import sample, scenario1, suite_of

HOSTILE = "</title></svg><script>alert('x')</script>\"'&\x00\x1b\ud800\u202e http://evil.example"


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Page:
    suite, runs = sample()
    out = tmp_path_factory.mktemp("report") / "report.html"
    return Page(build_report(suite, runs, out).read_text(encoding="utf-8"))


def _built(suite: Suite, runs: dict[str, Sequence[Op]], folder: Path) -> Page:
    return Page(build_report(suite, runs, folder / "r.html").read_text(encoding="utf-8"))


def test_page_stands_alone(page: Page) -> None:
    assert problems_of(page) == []


@pytest.mark.parametrize(
    ("broken", "problem"),
    [
        ('<a href="#gone">x</a>', "link to nowhere: #gone"),
        ('<img src="http://x/y.png">', "img src leads outside: http://x/y.png"),
        ("<style>p { background: url(https://x) }</style>", "style wants https://x"),
        ('<p id="a"></p><p id="a"></p>', "id a twice"),
        ("<p><b></p>", "unbalanced p"),
        ("<script></script>", "script in the page"),
        ('<p onclick="x()"></p>', "p onclick leads outside: x()"),
        ("<svg><g></svg>", "drawing: mismatched tag: line 1, column 10"),
    ],
)
def test_check_of_pages_finds_what_is_planted(broken: str, problem: str) -> None:
    assert problem in problems_of(Page(broken))


def test_mutants_have_a_table_of_their_own_with_a_link_to_each(tmp_path: Path) -> None:
    cell = sample()[0].results[0]
    mutant = replace(cell, protocol="kip320+fence_fetch=no", expected="diverged 4-7 A B")
    built = _built(suite_of([cell, mutant]), {}, tmp_path)
    assert problems_of(built) == []
    heads = [line for line in built.html.splitlines() if '<th scope="col">' in line]
    assert ["kip320+fence_fetch=no" in head for head in heads] == [False, False]
    assert "diverged 4-7 A B" in built.html.split('id="mutants"')[1].split("</table>")[0]


def test_page_of_very_many_cells_draws_only_those_that_are_not_as_expected(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("harness.report.page.DRAWN_RUNS_MAX", 2)
    suite, runs = sample()
    fine = next(c for c in suite.results if c.status is Status.AS_EXPECTED)
    odd = replace(fine, protocol="odd", status=Status.MISMATCH, reason="unexpected: hang")
    few, many = [replace(fine, protocol=f"p{n}") for n in range(2)], [replace(fine, protocol="p2"), odd]
    sections = [f"cell-{fine.scenario}-{protocol}" for protocol in ("p0", "p1", "p2", "odd")]
    drawn = _built(suite_of(few), runs, tmp_path)
    assert sections[:2] == [name for name in sections if name in drawn.ids]
    built = _built(suite_of([*few, *many]), runs, tmp_path)
    assert problems_of(built) == []
    assert sections[3:] == [name for name in sections if name in built.ids]


def test_page_without_mutants_has_no_table_of_them(page: Page) -> None:
    assert 'id="mutants"' not in page.html


def test_page_says_every_anomaly_in_its_own_section(page: Page) -> None:
    suite, _ = sample()
    sections = {c.run: page.section(f"cell-{c.scenario}-{c.protocol}").text for c in suite.results}
    told = [(c.run, a.kind) for c in suite.results for a in c.anomalies if a.sentence in sections[c.run]]
    assert [(c.run, a.kind) for c in suite.results for a in c.anomalies] == told
    assert len(told) == 5


def test_page_shows_every_proof_line_and_links_it_to_the_history(page: Page) -> None:
    suite, runs = sample()
    for cell in suite.results:
        key = f"cell-{cell.scenario}-{cell.protocol}"
        section = page.section(key)
        linked = {value for _, name, value in section.targets if name == "href"}
        for index in (i for a in cell.anomalies for i in a.proof):
            assert f"#{key}-op{index}" in linked
            assert f"{key}-op{index}" in section.ids
            assert runs[cell.run][index].f in section.text


def test_page_shows_expected_found_and_status_in_words_for_every_cell(page: Page) -> None:
    suite, _ = sample()
    table = page.html[page.html.index('<table class="verdicts">') : page.html.index("</table>")]
    text = Page(table).text
    for cell in suite.results:
        assert f'href="#cell-{cell.scenario}-{cell.protocol}"' in table
        assert (
            f"{cell.status.value} expected {cell.expected} found {cell.found} {cell.verdict.name.lower()}" in text
        )
    assert "not played" in text


def test_page_tells_suite_and_machine(page: Page) -> None:
    for words in ("kip101", "broker", "local", "loop", "42", "6377c4d", "2024-05-14 09:31:07 UTC", "71.3 s"):
        assert words in page.text


def test_page_shows_reason_failed_step_and_command_when_unknown(page: Page) -> None:
    suite, _ = sample()
    cell = next(c for c in suite.results if c.status is Status.UNKNOWN)
    section = page.section(f"cell-{cell.scenario}-{cell.protocol}").text
    assert f"Why it is unknown: {cell.reason}" in section
    assert "✗ failed" in section
    assert cell.rerun in section
    assert "none could be ruled out" in section


def test_page_shows_question_answer_and_cut_that_the_fabric_saw(page: Page) -> None:
    kept = page.section("cell-kip101-1-kip101").text
    assert (
        "A asks B: where does epoch 0 end? (v0) at 3 A keeps all 3 records: nothing beyond the leader's answer"
        in kept
    )
    cut = page.section("cell-kip101-1-hw").text
    assert "no question was asked – A cuts 3 → 1, to its own high watermark" in cut


def test_page_escapes_whatever_a_history_holds(tmp_path: Path) -> None:
    cell, ops = scenario1("hw")
    hostile_ops = [_hostile(op) for op in ops]
    anomaly = replace(cell.anomalies[0], sentence=HOSTILE, topic=HOSTILE, checker=HOSTILE, nodes=(HOSTILE,))
    hostile = replace(
        cell,
        scenario=HOSTILE,
        title=HOSTILE,
        source=HOSTILE,
        protocol=HOSTILE,
        expected=HOSTILE,
        found=HOSTILE,
        reason=HOSTILE,
        rerun=HOSTILE,
        status=Status.MISMATCH,
        anomalies=(anomaly,),
    )
    suite = suite_of([hostile], name=HOSTILE, commit=HOSTILE, host=HOSTILE, rules={HOSTILE: HOSTILE})
    page = _built(suite, {cell.run: hostile_ops}, tmp_path)
    assert problems_of(page) == []
    assert "<script>alert('x')</script>" in page.text
    assert "\x00" not in page.html and "\u202e" not in page.html


def _hostile(op: Op) -> Op:
    keys = {"name", "value", "probe", "reason", "text", "narrative", "api", "error"}
    return replace(op, value={k: HOSTILE if k in keys else v for k, v in op.value.items()})


def test_page_says_so_when_a_run_left_no_history(tmp_path: Path) -> None:
    cell, _ = scenario1("hw")
    page = _built(suite_of([cell]), {}, tmp_path)
    assert problems_of(page) == []
    assert "This run left no history." in page.text
    assert "does not have: " + ", ".join(map(str, cell.anomalies[0].proof)) in page.text


def test_page_says_so_when_proof_is_not_in_the_history(tmp_path: Path) -> None:
    cell, ops = scenario1("hw")
    bad = replace(cell.anomalies[0], proof=(50, 99_999))
    page = _built(suite_of([replace(cell, anomalies=(bad,))]), {cell.run: ops}, tmp_path)
    assert "history lines that this history does not have: 99999" in page.text


def test_page_stays_small_and_says_what_it_left_out_when_history_is_huge(tmp_path: Path) -> None:
    cell, ops = _huge()
    page = _built(suite_of([cell]), {cell.run: ops}, tmp_path)
    assert len(page.html) < 3_000_000
    assert problems_of(page) == []
    text = page.text
    assert "Left out, the least telling first:" in text
    assert "events are drawn; left out" in text
    assert [index for index in cell.anomalies[0].proof if str(index) not in text] == []


def _huge() -> tuple[RunResult, list[Op]]:
    """Return scenario 1 with 20,000 more lines, of 5,000 records, and one loss with 3,000 lines of proof."""
    cell, first = scenario1("hw")
    ops = list(first)
    for n in range(5_000):
        base = 1 + n
        value = {**PLACE, "name": f"m{n}", "value": f"v{n}", "acks": -1, "codec": "none"}
        for source, process, f, kind, more in (
            (Source.CLIENT, f"client-{n % 40}", "produce", OpType.INVOKE, value),
            (
                Source.BROKER,
                "A",
                "append",
                OpType.INFO,
                {**PLACE, "base": base, "end": base + 1, "epoch": 0, "role": "leader"},
            ),
            (
                Source.BROKER,
                "B",
                "append",
                OpType.INFO,
                {**PLACE, "base": base, "end": base + 1, "epoch": 0, "role": "follower"},
            ),
            (Source.CLIENT, f"client-{n % 40}", "produce", OpType.OK, {**value, "offset": base}),
        ):
            ops.append(
                Op(
                    index=len(ops),
                    time_ns=ops[-1].time_ns + 1000,
                    source=source,
                    process=process,
                    type=kind,
                    f=f,
                    value=filled(source, f, more),
                )
            )
    lost = Anomaly(
        kind=Kind.LOST,
        topic=TOPIC,
        partition=0,
        ranges=((1, 5_001),),
        sentence="All are lost.",
        proof=tuple(range(len(first) + 3, len(ops), 4))[:3000],
    )
    return replace(cell, anomalies=(lost,), verdict=Verdict.INVALID), ops


def test_headline_counts_what_is_not_as_expected() -> None:
    suite, _ = sample()
    fine = [c for c in suite.results if c.status is Status.AS_EXPECTED]
    odd = replace(fine[0], status=Status.MISMATCH)
    assert headline(suite_of(fine)) == "All 4 runs came out exactly as expected."
    assert headline(suite_of([*fine, odd])) == "1 of 5 runs is not as expected: 1 mismatch."
    assert headline(suite_of([])) == "No run was played."


def test_cells_of_one_name_get_sections_of_their_own(tmp_path: Path) -> None:
    cell, ops = scenario1("kip101")
    page = _built(suite_of([cell, cell]), {cell.run: ops}, tmp_path)
    assert problems_of(page) == []
    assert page.tags.count("article") == 2
