"""Grown schedules can be read and played, and are the same each time; pairs come from the cores."""

from __future__ import annotations

from pathlib import Path
from random import Random

from benchmarks.guidance.grow import grown
from benchmarks.guidance.pairs import PairsEnvironment
from harness.run.player import Player
from harness.scenario.text import text_of
from harness.search.random_runs import RandomRuns
from harness.search.shrink.candidates import acts_of
from harness.search.simulated import simulate
from harness.suite.scenario_files import read_scenario
from targets import VIRTUAL_HOST as SIM
from tests.faults import NEMESES

RUNS = RandomRuns(target="broker", variant="kip380", host=SIM)


def test_children_are_schedules_of_their_own(tmp_path: Path) -> None:
    parent, other = (RUNS.spec(seed).scenario for seed in (3, 4))
    children = [grown(parent, other, Random(seed)) for seed in range(30)]
    texts = {text_of(child) for child in children}
    assert len(texts) > 20
    assert texts == {text_of(grown(parent, other, Random(seed))) for seed in range(30)}
    for number, text in enumerate(sorted(texts)):
        file = tmp_path / f"child-{number}.txt"
        file.write_text(text, encoding="utf-8")
        assert acts_of(read_scenario(file))


def test_pairs_of_a_run_are_the_same_each_time_and_others_of_another_seed() -> None:
    def pairs(seed: int) -> set[object]:
        environment = PairsEnvironment(RUNS.load_target())
        simulate(Player(environment=environment, faults=NEMESES), RUNS.spec(seed))
        assert environment.pairs is not None
        return set(environment.pairs.found)

    assert pairs(3) == pairs(3)
    assert len(pairs(3) ^ pairs(4)) > 10
