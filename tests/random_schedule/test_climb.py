"""The workload `upgrade` has its own schedule: a cluster that climbs version by version, a broker at a time."""

from __future__ import annotations

from itertools import pairwise

import pytest

from harness.cluster.names import OWN
from harness.events import Installed
from harness.model import UsageError, Verdict, events_of
from harness.random_schedule.climb import CALM, NODES, REPLICAS, draw_climb
from harness.random_schedule.profile import ALL
from harness.scenario.file import Scenario, parse
from harness.scenario.steps import Inject, Install, Settle
from harness.scenario.text import text_of
from harness.search.random_runs import RandomRuns
from harness.search.simulated import play_in_memory, sim_player
from targets import VIRTUAL_HOST as SIM
from tests.faults import NEMESES
from tests.kept import exhaustive
from tests.random_schedule.test_upgrades import loses_a_session_beside_a_loss_of_power, rounds

LADDER = ["@kip101", "@kip279", "@kip320", OWN, "@kip320", OWN]
MENDING = {"stop", "restart"}


def runs(variant: str = "kip380", target: str = "broker", **more: object) -> RandomRuns:
    host = SIM if target == "broker" else "local"
    return RandomRuns(target=target, variant=variant, host=host, workload="upgrade", **more)  # type: ignore[arg-type]


def installed(scenario: Scenario) -> list[tuple[str, str]]:
    acts = (step.act for step in scenario.steps)
    return [(act.protocol, *act.nodes) for act in acts if isinstance(act, Install)]  # type: ignore[misc]


def test_every_broker_takes_every_step_of_the_ladder_before_the_next_one_begins() -> None:
    for seed in range(20):
        found = installed(runs().spec(seed).scenario)
        rolls = [found[at : at + len(NODES)] for at in range(0, len(found), len(NODES))]
        assert LADDER == [roll[0][0] for roll in rolls]
        assert all(
            {(version, name) for name in NODES} == {*roll} for version, roll in zip(LADDER, rolls, strict=True)
        )


def test_cluster_is_whole_after_each_restart_and_undisturbed_while_the_oldest_is_spoken() -> None:
    rounds: list[list[object]] = [[]]
    for step in draw_climb(1, list(NEMESES), LADDER[:3]).steps:
        if step.act == Settle():
            rounds.append([])
        rounds[-1].append(step.act)
    assert all(sum(isinstance(act, Install) for act in acts) <= 1 for acts in rounds)
    disturbed = [
        {act.fault for act in acts if isinstance(act, Inject)} > MENDING
        for acts in rounds
        if any(isinstance(act, Install) for act in acts)
    ]
    assert not any(disturbed[: 2 * len(NODES)])  # down to it, and up from it
    assert sum(disturbed[2 * len(NODES) :]) > len(NODES)


@pytest.mark.parametrize(("target", "variant", "versions"), [
    ("broker", "kip279", ["@kip101", OWN, "@kip101", OWN]),
    ("broker", "kip320", ["@kip101", "@kip279", OWN, "@kip279", OWN]),
    ("kafka", "3.9.1", ["@1.1", "@2.1", OWN, "@2.1", OWN]),
    ("kafka", "2.1.1", ["@1.1", OWN, "@1.1", OWN]),
])  # fmt: skip
def test_ladder_has_the_versions_that_the_runs_protocol_can_speak(
    target: str, variant: str, versions: list[str]
) -> None:
    scenario = runs(variant, target).spec(0).scenario
    assert versions == [version for version, _ in installed(scenario)][:: len(NODES)]
    assert {"@kip101", "@1.1"} == CALM


def test_protocol_that_speaks_no_older_version_is_refused() -> None:
    with pytest.raises(UsageError, match=r"broker:kip101 can speak none of @kip101, .*; expected a newer"):
        runs("kip101").spec(0)


def test_no_session_ends_beside_a_loss_of_power_where_fetches_have_no_epoch() -> None:
    """Source: KIP-320."""
    ways = [OWN, *LADDER]
    found = {True: 0, False: 0}
    for seed in range(60):
        acts = [step.act for step in draw_climb(seed, list(NEMESES), LADDER[:3]).steps]
        of_each = [part for part in rounds(acts) if any(isinstance(act, Install) for act in part)]
        for number, part in enumerate(of_each):
            rung = number // len(NODES)
            found["@kip279" in ways[rung : rung + 2]] += loses_a_session_beside_a_loss_of_power(part)
    assert (found[True], found[False] > 5) == (0, True)


def test_time_is_refused_as_the_schedule_is_the_workloads_own() -> None:
    with pytest.raises(UsageError, match="workload upgrade has a schedule of its own; expected no --time"):
        runs(seconds=10.0).spec(0)


def test_chosen_faults_alone_disturb_it() -> None:
    some, every = ({*runs(nemeses=nemeses).spec(3).scenario.faults} for nemeses in (("pause",), (ALL,)))
    assert {"stop", "restart", "pause", "resume", "expire"} == some
    assert some < every


def test_schedule_is_read_again_from_its_text_as_it_was() -> None:
    scenario = runs().spec(5).scenario
    again = parse(scenario.name, text_of(scenario), "again", NEMESES)
    assert [step.act for step in scenario.steps] == [step.act for step in again.steps]
    assert (scenario.clients, REPLICAS) == (again.clients, again.replicas)


@exhaustive
def test_clients_work_all_the_time_and_nothing_is_lost_but_by_a_fault() -> None:
    result, ops = play_in_memory(sim_player(runs().load_target()), runs().spec(2))
    assert result.verdict <= Verdict.PERMITTED, result.sentences
    assert 6 * len(NODES) == len([*events_of(ops, Installed)])
    acked = [op for op in ops if op.f == "produce" and op.process.startswith("client") and op.type.value == "ok"]
    at = [op.index for op, _ in events_of(ops, Installed)]
    assert all(any(first < op.index < last for op in acked) for first, last in pairwise(at))
