"""A real finding is shrunk to a few steps that show the same kind, in a file that shows it again."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from harness.model import Kind, Verdict
from harness.scenario.file import Scenario, parse
from harness.scenario.text import text_of
from harness.scenario.variant import Variant
from harness.search.random_runs import RandomRuns, is_written
from harness.search.shrink.minimal import Ended
from harness.search.shrink.shrink import Bounds, NotShownError, Shrunk, shrink
from harness.search.shrink.subject import Subject
from harness.search.simulated import sim_player, simulate
from harness.suite.scenario_files import read_scenario
from targets import VIRTUAL_HOST as SIM
from tests.faults import NEMESES
from tests.kept import exhaustive, keep

OUTPUT = Path("shrunk.txt")
# Schedules of findings, named after their seeds, as they were drawn when they were found.
FINDINGS = Path(__file__).parent / "findings"


def found(variant: str, seed: int) -> tuple[Scenario, Subject]:
    path = FINDINGS / f"{Variant.parse(variant, 'T').protocol}-{seed}.txt"
    rules = RandomRuns(target="broker", variant=variant, host=SIM).rules
    subject = Subject.of(Variant.parse(variant, "T").protocol, rules, seed=seed, name=OUTPUT.stem)
    return read_scenario(path), subject


def shrunk_of(variant: str, seed: int, *, jobs: int = 1, tries: int = 2_000) -> Shrunk:
    return shrink(*found(variant, seed), Bounds(jobs=jobs, tries=tries), OUTPUT)


def check_file(shrunk: Shrunk, folder: Path, variant: str, seed: int) -> None:
    """Check that the file is read as the scenario, and that the run of `again` shows the violation as told."""
    path = folder / OUTPUT
    path.write_text(shrunk.text, encoding="utf-8")
    read = read_scenario(path)
    assert text_of(shrunk.scenario) == text_of(read)
    runs = RandomRuns(target="broker", variant=variant, host=SIM, schedule=path)
    result = simulate(sim_player(runs.load_target()), runs.spec(seed))
    assert shrunk.signature.shown_by(result.anomalies, written=is_written(read))
    assert shrunk.again.replace(str(OUTPUT), str(path)) == runs.spec(seed).command
    for name in read.expectations if is_written(read) else ():
        again = simulate(sim_player(runs.load_target()), replace(runs, variant=name).spec(seed))
        assert ("as expected", "") == (again.status.value, again.reason), name


@pytest.mark.parametrize(
    ("variant", "seed", "kind"),
    keep(
        [
            pytest.param("hw", 2, Kind.LED_TWICE),
            pytest.param("hw", 7, Kind.NOT_REPLICATED),
            pytest.param("kip279", 66, Kind.LOST),
        ],
        Kind.LED_TWICE,
    ),
)
def test_finding_is_shrunk_to_a_written_scenario_that_expects_nothing_of_kip380(
    variant: str, seed: int, kind: Kind, tmp_path: Path
) -> None:
    shrunk = shrunk_of(variant, seed)
    assert (Ended.MINIMAL, {kind}) == (shrunk.ended, shrunk.signature.kinds)
    assert len(shrunk.scenario.steps) <= 4
    assert shrunk.steps_before >= 17
    assert is_written(shrunk.scenario)
    check_file(shrunk, tmp_path, variant, seed)
    expectations = read_scenario(tmp_path / OUTPUT).expectations
    assert kind.value in expectations[variant]
    assert expectations["kip380"] in ("none", "permitted m1")
    assert shrunk.result.sentences


@pytest.mark.slow
@pytest.mark.parametrize(
    ("variant", "seed"),
    keep(
        [
            pytest.param("hw", 6),
            pytest.param("kip101", 46),
            pytest.param("kip101", 19),
            pytest.param("kip279", 57),
            pytest.param("kip320+fence_fetch=no", 220),
        ],
        ("hw", 6),
    ),
)
def test_findings_of_each_kind_are_shrunk_to_twelve_steps_or_fewer(
    variant: str, seed: int, tmp_path: Path
) -> None:
    shrunk = shrunk_of(variant, seed)
    assert len(shrunk.scenario.steps) <= 12
    check_file(shrunk, tmp_path, variant, seed)


@pytest.mark.slow
@exhaustive
def test_finding_that_needs_its_seed_stays_a_random_schedule_and_its_command_has_the_seed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("harness.search.shrink.minimal.as_written", lambda scenario: scenario)
    shrunk = shrunk_of("hw", 6)
    assert not is_written(shrunk.scenario)
    assert "in the random world of seed 6" in shrunk.text
    assert len(shrunk.scenario.steps) <= 12
    check_file(shrunk, tmp_path, "hw", 6)


def test_smaller_schedule_holds_under_the_protocol_without_the_change_or_else_under_the_newest() -> None:
    for variant, seed, reference in (("kip320+fence_fetch=no", 167, "kip320"), ("hw", 2, "kip380")):
        scenario, subject = found(variant, seed)
        assert Variant(protocol=reference) == subject.referring(scenario).reference
    scenario, subject = found("kip380", 5)
    assert None is subject.referring(scenario).reference


def test_schedule_that_is_unknown_under_the_reference_must_at_least_show_nothing_there() -> None:
    scenario, subject = found("hw", 2)
    steps = "produce m1 acks=all\nawait leader = B\n"
    text = f"title T\nsource S\nnodes A B replicas, C controller\nrecords m1 1\n{steps}"
    waiting = parse("T", text, "T", NEMESES)
    assert (Verdict.PERMITTED, Verdict.UNKNOWN) == (
        subject.referring(scenario).accepted,
        subject.referring(waiting).accepted,
    )


@exhaustive
def test_random_schedule_that_holds_under_no_reference_stays_a_random_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Subject, "referring", lambda subject, _: subject)
    shrunk = shrunk_of("hw", 2)
    assert not is_written(shrunk.scenario)
    assert len(shrunk.scenario.steps) <= 12


@exhaustive
@pytest.mark.slow
def test_two_processes_find_what_one_finds_after_as_many_tries(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("harness.search.shrink.trials.ALONE_TRIES", 5)
    one, two = (shrunk_of("hw", 6, jobs=jobs) for jobs in (1, 2))
    assert replace(one, seconds=0.0) == replace(two, seconds=0.0)


@exhaustive
def test_tries_end_it_early_and_the_file_has_the_best_so_far(tmp_path: Path) -> None:
    shrunk = shrunk_of("hw", 6, tries=12)
    assert (Ended.SPENT, 12) == (shrunk.ended, shrunk.tries)
    assert 3 < len(shrunk.scenario.steps) < shrunk.steps_before
    check_file(shrunk, tmp_path, "hw", 6)


def test_schedule_that_shows_nothing_is_not_shrunk() -> None:
    with pytest.raises(
        NotShownError, match="seed 5 of kip380 shows no violation in the simulator: valid, found none"
    ):
        shrunk_of("kip380", 5)


def test_change_that_changes_nothing_is_no_change() -> None:
    rules = RandomRuns(target="broker", variant="kip380", host=SIM).rules
    assert "kip380" == str(Subject.of("kip380", rules, seed=1, name="x").variant)
    changed = Subject.of("kip380", {**rules, "fence_fetch": "no"}, seed=1, name="x")
    assert "kip380+fence_fetch=no" == str(changed.variant)
