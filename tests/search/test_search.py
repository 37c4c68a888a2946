"""A search tells the same whatever number of processes it has, and stops when it shall."""

from __future__ import annotations

import pytest
from harness.cli.searching import Order, Tally, search
from harness.cli.trials import Trial

from harness.model import Anomaly, Kind, UsageError, Verdict

ORDER = Order(target="broker", variant="hw")


def never(_: Trial) -> bool:
    return False


def plain(trial: Trial) -> tuple[int, Verdict, tuple[str, ...], int]:
    return trial.seed, trial.verdict, tuple(trial.sentences), trial.steps


def trial_of(verdict: Verdict, *kinds: Kind, seed: int = 1) -> Trial:
    return Trial(
        seed=seed,
        verdict=verdict,
        violations=(),
        anomalies=tuple(Anomaly(kind=kind, topic="log", partition=0, sentence="S.") for kind in kinds),
        asked={"kill": 2},
        bit={"kill": 1},
        elections=3,
        acked=4,
        steps=5,
        virtual_s=0.5,
        seconds=0.25,
    )


@pytest.mark.slow
def test_search_in_two_processes_gives_what_one_gives_in_the_same_order() -> None:
    seeds = range(3, 28)
    alone = [plain(trial) for trial in search(ORDER, seeds, jobs=1, stop=never)]
    assert list(seeds) == [seed for seed, *_ in alone]
    assert alone == [plain(trial) for trial in search(ORDER, seeds, jobs=2, stop=never)]


def test_search_ends_with_the_first_trial_that_is_enough() -> None:
    found = list(search(ORDER, range(40), jobs=1, stop=lambda trial: trial.found))
    assert [False] * (len(found) - 1) + [True] == [trial.found for trial in found]


@pytest.mark.parametrize(
    ("variant", "changes"), [("kip999", ()), ("hw+no=no", ()), ("hw", ("fence_fetch=maybe",))]
)
def test_order_for_what_is_not_there_is_refused(variant: str, changes: tuple[str, ...]) -> None:
    with pytest.raises(UsageError):
        Order(target="broker", variant=variant, changes=changes).spec()


def test_order_changes_rules_in_either_way() -> None:
    one = Order(target="broker", variant="kip380+fence_fetch=no").spec()
    two = Order(target="broker", variant="kip380", changes=("fence_fetch=no",)).spec()
    assert one.rules == two.rules
    assert "no" == one.rules["fence_fetch"]


# --- the tally -----------------------------------------------------------------------------------------------
def test_tally_counts_seeds_faults_and_kinds() -> None:
    tally = Tally()
    tally.take(trial_of(Verdict.VALID))
    tally.take(trial_of(Verdict.PERMITTED, Kind.PERMITTED, Kind.PERMITTED))
    assert (2, 6, 8, 10) == (tally.seeds, tally.elections, tally.acked, tally.steps)
    assert ({"kill": 4}, {"kill": 2}) == (dict(tally.asked), dict(tally.bit))
    assert {Kind.PERMITTED: 1} == dict(tally.kinds)
    assert 4.0 == tally.seeds_per_second
    assert [] == tally.found
    assert Verdict.VALID is tally.verdict


@pytest.mark.parametrize(("verdict", "kind"), [
    (Verdict.INVALID, Kind.LOST), (Verdict.HANG, Kind.STUCK), (Verdict.UNKNOWN, Kind.UNREADABLE)
])  # fmt: skip
def test_tally_keeps_what_shows_something_and_is_as_severe_as_that(verdict: Verdict, kind: Kind) -> None:
    tally = Tally()
    for seed in range(9):
        tally.take(trial_of(Verdict.VALID, seed=seed))
    tally.take(trial_of(verdict, kind, seed=9))
    assert [9] == [trial.seed for trial in tally.found]
    assert verdict is tally.verdict


def test_tally_is_unknown_when_half_of_the_seeds_prove_nothing() -> None:
    tally = Tally()
    for verdict in (Verdict.VALID, Verdict.UNKNOWN):
        tally.take(trial_of(verdict))
    assert Verdict.UNKNOWN is tally.verdict
    tally.take(trial_of(Verdict.VALID))
    assert Verdict.VALID is tally.verdict
