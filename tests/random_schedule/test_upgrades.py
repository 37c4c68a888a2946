"""A rolling downgrade and upgrade comes among the steps of a schedule, one broker after another, beside faults."""

from __future__ import annotations

from decimal import Decimal
from random import Random

import pytest

from harness.cluster.names import OWN
from harness.random_schedule.disturbances import DISTURBANCES, disturbance
from harness.random_schedule.generate import draw_schedule
from harness.random_schedule.upgrades import (
    DISTURBANCES_MAX,
    EPOCHLESS,
    OLDER,
    OLDEST,
    SHARE,
    has_upgrades,
    with_upgrades,
)
from harness.scenario.steps import Act, Cut, Heal, Inject, Install, Pass, Produce, Settle
from harness.search.random_runs import RandomRuns
from targets import VIRTUAL_HOST as SIM
from tests.faults import NEMESES
from workloads import WORKLOADS

STEPS: list[Act] = [Pass(Decimal(f"0.00{ms}")) for ms in range(1, 6)]
NODES = ["A", "B", "C"]
REPLICAS = ["A", "B"]
SEEDS = range(300)
DOWN = ("stop", "kill", "power-loss")


def drawn(seed: int) -> list[Act]:
    return with_upgrades(seed, STEPS, NODES, REPLICAS, NEMESES)


def rounds(steps: list[Act]) -> list[list[Act]]:
    """Return the steps between two settles."""
    found: list[list[Act]] = [[]]
    for act in steps:
        if act == Settle():
            found.append([])
        else:
            found[-1].append(act)
    return found


def test_other_steps_stay_in_their_order() -> None:
    for seed in SEEDS:
        found = drawn(seed)
        assert STEPS[0] == found[0]
        assert STEPS == [act for act in found if act in STEPS]


def test_each_broker_that_goes_down_comes_up_again_and_the_cluster_is_whole_in_between() -> None:
    parts = set()
    for seed in SEEDS:
        found = rounds(drawn(seed))
        at = [number for number, acts in enumerate(found) for act in acts if isinstance(act, Install)]
        installed = [act for acts in found for act in acts if isinstance(act, Install)]
        assert len(at) == len({*at})  # the cluster is whole before the next one
        down, up = installed[: len(installed) // 2], installed[len(installed) // 2 :]
        older = {act.protocol for act in down}
        assert (older <= {*OLDER, EPOCHLESS}, {act.protocol for act in up}) == (True, {OWN})
        assert {act.nodes for act in down} == {act.nodes for act in up}
        parts.add(len(down))
    assert {1, 2, 3} == parts


def test_who_is_installed_is_down_and_nothing_else_happens_to_it() -> None:
    """Else its turn would be left out, and it would follow the older protocol to the end of the run."""
    went: set[str] = set()
    for seed in SEEDS:
        for acts in rounds(drawn(seed)):
            for install in (act for act in acts if isinstance(act, Install)):
                theirs = [act for act in acts if isinstance(act, Inject) and act.nodes == install.nodes]
                how, *ended, restart = [act.fault for act in theirs if act.fault != "elect"]
                at = acts.index(install)
                assert (how in DOWN, ended, restart) == (True, [] if how == "stop" else ["expire"], "restart")
                assert acts.index(Inject(how, install.nodes)) < at < acts.index(Inject("restart", install.nodes))
                went.add(how)
    assert {*DOWN} == went


def test_faults_come_before_among_and_after_the_steps_of_an_installation() -> None:
    before, after, between = 0, 0, 0
    for seed in SEEDS:
        for acts in rounds(drawn(seed)):
            for install in (act for act in acts if isinstance(act, Install)):
                others = [
                    at
                    for at, act in enumerate(acts)
                    if (isinstance(act, Inject) and act.nodes != install.nodes) or isinstance(act, Cut)
                ]
                stop = next(at for at, act in enumerate(acts) if isinstance(act, Inject) and act.fault in DOWN
                            and act.nodes == install.nodes)  # fmt: skip
                restart = acts.index(Inject("restart", install.nodes))
                before += any(at < stop for at in others)
                between += any(stop < at < restart for at in others)
                after += any(at > restart for at in others)
    assert min(before, between, after) > 50


def test_who_goes_down_to_the_oldest_versions_is_left_alone() -> None:
    calm = dict.fromkeys((OLDEST, EPOCHLESS), 0)
    for seed in SEEDS:
        older = next(act.protocol for act in drawn(seed) if isinstance(act, Install))
        if older in calm:
            faults = {act.fault for act in drawn(seed) if isinstance(act, Inject)} - {"flush"}
            assert {"stop", "restart"} == faults
            calm[older] += 1
        louder = with_upgrades(seed, STEPS, NODES, REPLICAS, NEMESES, quiet=False)
        assert not any(isinstance(act, Install) and act.protocol in calm for act in louder)
    assert min(calm.values()) > 25


def test_logs_without_epochs_are_flushed_before_any_power_is_lost_under_the_next_protocol() -> None:
    """
    A loss of power brought back what a follower had cut, in place of other records without epochs (seed 939).

    Source:  KIP-101, Scenario 2, as Compatibility says of messages without epochs.
    """
    older: set[str] = set()
    for seed in SEEDS:
        steps = drawn(seed)
        last = max(place for place, act in enumerate(steps) if isinstance(act, Install))
        after = [act for act in steps[last + 2 :] if isinstance(act, Inject)]
        installed = {act.protocol for act in steps if isinstance(act, Install)} - {OWN}
        if installed == {EPOCHLESS}:
            assert [Inject("flush", (name,)) for name in NODES] == after
            without = with_upgrades(seed, STEPS, NODES, REPLICAS, {*NEMESES} - {"power-loss"})
            assert not any(isinstance(act, Inject) and act.fault == "flush" for act in without)
        else:
            assert Inject("flush", ("A",)) not in after
        older |= installed
    assert {*OLDER, EPOCHLESS} == older


def loses_a_session_beside_a_loss_of_power(acts: list[Act]) -> bool:
    faults = [act for act in acts if isinstance(act, Inject)]
    went = {act.nodes for act in faults if act.fault in ("kill", "power-loss")}
    ended = {act.nodes for act in faults if act.fault == "expire"}
    return bool(ended - went) and "power-loss" in {act.fault for act in faults}


def test_no_session_ends_beside_a_loss_of_power_where_fetches_have_no_epoch() -> None:
    """
    Who does not hear of an election fetches on behind what its leader has lost, and joins the ISR (seed 1118).

    Source:  KIP-320.
    """
    found = dict.fromkeys(OLDER, 0)
    for seed in SEEDS:
        steps = drawn(seed)
        older = next(act.protocol for act in steps if isinstance(act, Install))
        found[older] = found.get(older, 0) + sum(map(loses_a_session_beside_a_loss_of_power, rounds(steps)))
    assert found.pop("@kip320") > 5
    assert not any(found.values())


def test_no_broker_is_back_before_its_session_has_ended() -> None:
    """Up to 2.1 a controller does not see that it was away (KAFKA-1120)."""
    for seed in SEEDS:
        for acts in rounds(drawn(seed)):
            gone: dict[tuple[str, ...], bool] = {}
            for act in acts:
                if isinstance(act, Inject) and act.fault in ("kill", "power-loss"):
                    gone[act.nodes] = False
                elif isinstance(act, Inject) and act.fault == "expire":
                    gone[act.nodes] = True
                elif isinstance(act, Inject) and act.fault == "restart":
                    assert gone.get(act.nodes, True)


@pytest.mark.parametrize("name", DISTURBANCES)
def test_disturbance_is_made_of_its_faults_and_undoes_itself(name: str) -> None:
    make, made_of, _ = DISTURBANCES[name]
    for seed in range(20):
        acts = make(Random(seed), NODES)
        assert made_of == {act.fault for act in acts if isinstance(act, Inject)}
        cuts = [(act.src, act.dst) for act in acts if isinstance(act, Cut)]
        assert cuts == [(act.src, act.dst) for act in acts if isinstance(act, Heal)]


def test_disturbance_needs_its_faults() -> None:
    found = [act for seed in range(50) for act in disturbance(Random(seed), NODES, REPLICAS, {"pause", "resume"})]
    assert {"pause", "resume"} == {act.fault for act in found if isinstance(act, Inject)}


def test_one_restart_has_so_many_disturbances_at_most() -> None:
    most = max(
        len([act for act in acts if isinstance(act, Cut)]) for seed in SEEDS for acts in rounds(drawn(seed))
    )
    assert 1 < most <= DISTURBANCES_MAX


def test_a_share_of_the_wide_runs_has_one_also_beside_keys_and_what_comes_and_goes() -> None:
    schedules = [draw_schedule(seed, NEMESES) for seed in range(1000)]
    upgraded = [each for each in schedules if each.upgrades]
    assert 0 < len(upgraded) < SHARE * len(schedules)
    assert all(each.further and has_upgrades(int(each.name.removeprefix("seed-"))) for each in upgraded)
    assert any(each.settings.keys for each in upgraded)
    assert any(each.clients.churners for each in upgraded)
    assert any(each.removed for each in upgraded)
    for each in upgraded:
        if EPOCHLESS in each.installed:
            assert not each.clients.idempotent
            assert {(1, 1)} >= {producer.batch for producer in each.clients.producers}
            assert all(step.act.singly for step in each.steps if isinstance(step.act, Produce))
    assert any(EPOCHLESS in each.installed for each in upgraded)


@pytest.mark.parametrize(
    "name", [name for name, each in WORKLOADS.items() if not each.climbs and not each.of_libraries]
)
def test_clients_of_a_workload_fit_brokers_without_epochs_too(name: str) -> None:
    """Seed 700115 under `idempotent` had records twice, and a replica that was stuck inside a batch."""
    runs = RandomRuns(target="broker", variant="kip380", host=SIM, workload=name)
    beside, elsewhere = runs.spec(700115).scenario, runs.spec(1).scenario
    assert (EPOCHLESS in beside.installed, EPOCHLESS in elsewhere.installed) == (True, False)
    assert not beside.clients.idempotent
    assert {(1, 1)} == {producer.batch for producer in beside.clients.producers}
    drawn = WORKLOADS[name].clients(tuple(elsewhere.places), seed=1).without(runs.left_out(1))
    assert drawn.producers == elsewhere.clients.producers
