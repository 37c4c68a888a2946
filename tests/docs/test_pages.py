"""Generated pages match the code and are complete; a stale page is reported."""

from __future__ import annotations

import re
import signal
from collections.abc import Iterator
from dataclasses import fields, replace
from functools import cache
from pathlib import Path
from typing import get_type_hints

import pytest

from checkers import CHECKERS
from harness.cli.main import main
from harness.cluster.fault import Band
from harness.docs import markdown, nemesis_page, pages
from harness.docs.checker_page import definitions
from harness.model import EXIT_CODES, Kind
from harness.run.result import Status
from harness.run.suite import Suite
from targets.broker.core.rules import Rules, values_of
from tests.faults import NEMESES
from tests.report.samples import sample
from workloads import SCENARIOS

# What the tests of many names read, printed once.
printed = cache(lambda name: pages.PAGES[f"docs/{name}.md"]())


def lines_with(page: str, begin: str) -> list[str]:
    return [line for line in page.splitlines() if line.startswith(begin)]


def test_every_printed_page_is_as_the_code_has_it() -> None:
    assert [] == pages.stale(pages.ROOT)


def test_stale_page_and_missing_page_are_named(tmp_path: Path) -> None:
    (tmp_path / "old.md").write_text("as it was\n", encoding="utf-8")
    (tmp_path / "same.md").write_text("as it is\n", encoding="utf-8")
    printed = dict.fromkeys(("old.md", "same.md", "none.md"), lambda: "as it is\n")
    assert ["old.md", "none.md"] == pages.stale(tmp_path, printed)


def test_check_exits_1_and_writes_nothing_when_a_page_is_stale(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    page = tmp_path / "docs" / "rules.md"
    page.parent.mkdir()
    page.write_text("# Rules\n", encoding="utf-8")
    monkeypatch.setattr(pages, "ROOT", tmp_path)
    monkeypatch.setattr(pages, "stale", lambda root: ["docs/rules.md"])
    assert 1 == pages.main(["--check"])
    assert "docs/rules.md: not as the code has it" in capsys.readouterr().err
    assert "# Rules\n" == page.read_text(encoding="utf-8")
    assert 0 == pages.main([])
    assert pages.rules() == page.read_text(encoding="utf-8")


def test_check_exits_0_when_every_page_is_as_printed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pages, "stale", lambda root: [])
    assert 0 == pages.main(["--check"])


def test_every_exit_code_has_a_meaning() -> None:
    assert EXIT_CODES.keys() == pages.EXIT_MEANINGS.keys()
    for word, code in EXIT_CODES.items():
        assert 1 == len(lines_with(pages.exit_codes(), f"| {code} | {word} |"))


def test_every_kind_of_anomaly_and_every_band_has_a_meaning() -> None:
    assert [] == [kind for kind in Kind if not definitions(kind)]
    assert set(Band) == nemesis_page.BAND_MEANINGS.keys()


@pytest.mark.parametrize("name", [field.name for field in fields(Rules)])
def test_every_rule_says_what_it_decides_and_what_each_value_means(name: str) -> None:
    about = next(field.metadata for field in fields(Rules) if field.name == name)
    assert about["doc"].endswith(".")
    assert about["source"]
    assert set(values_of(get_type_hints(Rules)[name])) == about["values"].keys()
    assert f"## {name}" in printed("rules")


@pytest.mark.parametrize("name", CHECKERS)
def test_every_checker_has_its_line(name: str) -> None:
    assert CHECKERS[name].doc in lines_with(printed("checkers"), f"| `{name}` |")[0]


@pytest.mark.parametrize("name", NEMESES)
def test_every_fault_has_its_line(name: str) -> None:
    assert NEMESES[name].doc in lines_with(printed("nemeses"), f"| `{name}` |")[0]


@pytest.mark.parametrize("path", sorted(SCENARIOS.glob("*.txt")), ids=lambda path: path.stem)
def test_every_step_and_expectation_of_a_scenario_is_on_its_page(path: Path) -> None:
    page = printed("scenarios").split(f"## {path.stem}\n")[1].split("\n## ")[0]
    for line in path.read_text(encoding="utf-8").splitlines():
        if line.startswith("expect "):
            variants, _, outcome = line.removeprefix("expect ").partition(": ")
            row = next(row for row in page.splitlines() if row.startswith(f"| `{outcome}` |"))
            assert all(f"`{variant.strip()}`" in row for variant in variants.split(","))
        elif line and not line.startswith(("#", "title", "source", "nodes", "records", "settings")):
            assert line in page.splitlines()


def test_every_option_and_target_is_on_the_page_of_commands() -> None:
    page = pages.command_line()
    for word in (
        "--rule RULE=VALUE",
        "--json",
        "make test-kip101",
        "make docs",
        "make scenarios",
        "`local`, `docker`, `ssh`, `sim`",
    ):
        assert word in page


@pytest.fixture
def own_signals() -> Iterator[None]:
    """Restore the signal handlers after the test: a command replaces them."""
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.mark.usefixtures("own_signals")
def test_every_command_that_the_help_lists_is_on_the_page(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["--help"])
    listed = re.findall(r"^    ([a-z][a-z0-9-]*)(?: |$)", capsys.readouterr().out, re.MULTILINE)
    assert listed == re.findall(r"^## fencepost (.*)$", pages.command_line(), re.MULTILINE)


def test_table_keeps_a_bar_within_its_cell() -> None:
    assert "| a\\|b |" in markdown.table(("x",), [("a|b",)])


def test_picture_shows_every_result_and_fetches_nothing() -> None:
    suite = sample()[0]
    drawn = pages.picture(suite)
    text = drawn.replace("&#160;", " ")
    for result in suite.results:
        assert result.scenario in text
        assert result.status.value in text
    assert "@font-face" not in drawn
    assert 'url("http' not in drawn


def test_picture_of_another_outcome_is_another_picture() -> None:
    suite = sample()[0]
    first = replace(suite.results[0], status=Status.UNKNOWN, found="unchecked")
    assert pages.picture(suite) != pages.picture(replace(suite, results=(first, *suite.results[1:])))


def test_picture_is_drawn_from_a_suite_on_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pages, "ROOT", tmp_path)
    stored = tmp_path / "suite.json"
    sample()[0].write(stored)
    assert 0 == pages.main(["--picture", str(stored)])
    assert pages.picture(Suite.read(stored)) + "\n" == (tmp_path / pages.PICTURE).read_text(encoding="utf-8")
