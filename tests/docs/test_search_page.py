"""The shrunk schedules that docs/search.md shows are scenarios, and show what it says with any broker ids."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from harness.docs.pages import ROOT
from harness.run.result import Status
from harness.search.random_runs import RandomRuns, is_written
from harness.search.simulated import sim_player, simulate
from harness.suite.scenario_files import read_scenario
from targets import VIRTUAL_HOST as SIM

PAGE = (ROOT / "docs/search.md").read_text(encoding="utf-8")
# Each block, and the sentence below it.
SHOWN = re.findall(r"^```text\n(title .*?)^```\n\nIts sentence: \*(.*?)\*$", PAGE, re.DOTALL | re.MULTILINE)


def test_three_are_shown_or_more() -> None:
    assert len(SHOWN) >= 3


@pytest.mark.parametrize(("text", "sentence"), SHOWN)
def test_shrunk_schedule_shows_what_the_page_says(text: str, sentence: str, tmp_path: Path) -> None:
    path = tmp_path / "shrunk.txt"
    path.write_text(text, encoding="utf-8")
    scenario = read_scenario(path)
    assert is_written(scenario)
    assert len(scenario.steps) <= 12
    first = next(iter(scenario.expectations))
    for variant in scenario.expectations:
        runs = RandomRuns(target="broker", variant=variant, host=SIM, schedule=path)
        results = [simulate(sim_player(runs.load_target()), runs.spec(seed)) for seed in range(3)]
        assert [(Status.AS_EXPECTED, "")] * 3 == [(each.status, each.reason) for each in results], variant
        assert variant != first or sentence in results[0].sentences
