"""Cross tables of kinds, shares of faults that took effect, and the summary that is kept."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from rich.console import Console

from harness.model import ORACLES, VERDICT_OF, Kind, Verdict
from harness.run.result import Activity
from harness.search.crosstab import KINDS, Comparison, Pair, kind_of, print_comparison
from tests.search.results import result_of


def pair(seed: int, ours: Verdict, our_kinds: tuple[Kind, ...], theirs: Verdict, kinds: tuple[Kind, ...]) -> Pair:
    return Pair(ours=result_of(ours, *our_kinds, seed=seed), theirs=result_of(theirs, *kinds, seed=seed))


SAME = pair(0, Verdict.INVALID, (Kind.LOST,), Verdict.INVALID, (Kind.EXITED, Kind.LOST, Kind.STUCK))
OTHER = pair(1, Verdict.VALID, (), Verdict.INVALID, (Kind.EXITED,))
UNKNOWN = pair(2, Verdict.UNKNOWN, (), Verdict.VALID, ())
FOUND = Comparison(ours="broker:hw", theirs="kafka:1", pairs=[SAME, OTHER, UNKNOWN])


@pytest.mark.parametrize(("verdict", "kinds", "kind"), [
    (Verdict.VALID, (), "valid"),
    (Verdict.VALID, (Kind.UNPROMISED,), "valid"),
    (Verdict.PERMITTED, (Kind.LAST_STANDING,), "permitted"),
    (Verdict.UNKNOWN, (), "unknown"),
    (Verdict.HANG, (Kind.STUCK,), "hang"),
    (Verdict.INVALID, (Kind.EXITED, Kind.STUCK), "exited"),
    (Verdict.INVALID, (Kind.EXITED, Kind.DIVERGED), "diverged"),
    (Verdict.INVALID, (Kind.DIVERGED, Kind.LOST), "lost"),
])  # fmt: skip
def test_kind_is_the_worst_that_was_proven(verdict: Verdict, kinds: tuple[Kind, ...], kind: str) -> None:
    assert kind == kind_of(result_of(verdict, *kinds))


def test_every_invalid_kind_has_a_name_in_the_table() -> None:
    """The oracles' kinds are exempt: only the simulator has oracles, and only real processes are compared."""
    invalid = {kind.value for kind in Kind if VERDICT_OF[kind] is Verdict.INVALID and kind not in ORACLES}
    assert invalid <= set(KINDS)
    assert len(KINDS) == len(set(KINDS))


def test_seeds_are_crossed_by_kind_and_those_that_differ_are_named() -> None:
    assert {("lost", "lost"): 1, ("valid", "exited"): 1, ("unknown", "valid"): 1} == FOUND.crossed
    assert [1, 2] == [one.seed for one in FOUND.differing]
    assert [0, 1] == [one.seed for one in FOUND.judged]
    assert (1, 2) == (FOUND.invalid("ours"), FOUND.invalid("theirs"))


def test_faults_are_summed_over_all_seeds_of_a_side() -> None:
    ours = replace(result_of(Verdict.VALID), activity=Activity(asked={"cut": 1}))
    more = Pair(ours=ours, theirs=result_of(Verdict.VALID))
    found = Comparison(ours="o", theirs="t", pairs=[SAME, more])
    assert ({"cut": (1, 0), "kill": (2, 1)}, {"kill": (4, 2)}) == (found.faults("ours"), found.faults("theirs"))


def test_summary_is_json_with_all_that_is_printed_and_the_commands() -> None:
    commands = {seed: {"ours": f"o{seed}", "theirs": f"t{seed}"} for seed in (1, 2)}
    found = json.loads(json.dumps(FOUND.summary(commands)))
    assert (3, 1) == (found["seeds"], found["same"])
    assert {"ours": 1, "theirs": 2} == found["invalid"]
    assert {"tried": 6, "bit": 3} == found["faults"]["theirs"]["kill"]
    assert [(1, "t1"), (2, "t2")] == [(one["seed"], one["again"]["theirs"]) for one in found["differing"]]
    assert ["exited: S."] == found["differing"][0]["theirs"]["sentences"]


def test_table_has_kinds_that_were_seen_with_sums_and_shares_that_bit() -> None:
    console = Console(record=True, width=120)
    print_comparison(FOUND, console)
    lines = [line.replace("│", " ").split() for line in console.export_text().splitlines()]
    assert ["valid", "–", "1", "–", "1"] in lines
    assert ["all", "1", "1", "1", "3"] in lines
    assert ["kill", "3", "of", "6", "(50", "%)", "3", "of", "6", "(50", "%)"] in lines


def test_nothing_played_is_a_table_of_nothing() -> None:
    console = Console(record=True, width=120)
    print_comparison(Comparison(ours="o", theirs="t", pairs=[]), console)
    assert "–" in console.export_text()


def test_what_came_about_is_counted_on_each_side() -> None:
    moved = replace(result_of(Verdict.VALID), activity=Activity(replicas_moved=2, recreated=3))
    found = Comparison(ours="o", theirs="t", pairs=[Pair(ours=moved, theirs=result_of(Verdict.VALID))] * 2)
    assert {"replicas moved": (4, 0), "topics created again": (6, 0), "elections": (0, 6)}.items() <= (
        found.done.items()
    )
    assert {"ours": 4, "theirs": 0} == found.summary({})["replicas moved"]
