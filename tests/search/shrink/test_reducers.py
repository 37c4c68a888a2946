"""Each reducer yields smaller schedules, whose text can be read back, and changes nothing but what it is for."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal

import pytest

from harness.scenario.file import Scenario, parse
from harness.scenario.text import text_of
from harness.search.shrink.breadth import fewer_brokers, fewer_clients, fewer_partitions, simpler_clients
from harness.search.shrink.candidates import acts_of, as_written, with_acts
from harness.search.shrink.minimal import Reducer
from harness.search.shrink.names import with_plain_names
from harness.search.shrink.reducers import (
    REDUCERS,
    controller_that_replicates,
    default_settings,
    fewer_records,
    fewer_replicas,
    fewer_sufferers,
    simpler_produces,
    without_pairs,
)
from harness.search.shrink.times import awaiting_instead, rounder, shorter_times
from tests.faults import NEMESES
from tests.search.shrink.schedules import RANDOM, STEPS, WRITTEN, schedule_of, texts


def normal(steps: str = STEPS, head: str = WRITTEN) -> Scenario:
    scenario = schedule_of(steps, head)
    return with_acts(scenario, acts_of(scenario))


# Its tombstones are left out and renamed with their groups, and lose their reason with the keys.
KEYED = WRITTEN.replace("settings", "settings keys=2 tombstones=m2,m3")


@pytest.mark.parametrize("head", [WRITTEN, RANDOM, KEYED])
@pytest.mark.parametrize("reducer", REDUCERS, ids=lambda each: each.__name__)
def test_candidate_is_another_schedule_and_its_text_is_that_schedule(reducer: Reducer, head: str) -> None:
    start = normal(head=head)
    for candidate in reducer(start):
        assert candidate != start
        assert candidate == parse("T", text_of(candidate), "T", NEMESES)


WIDE = WRITTEN.replace("D controller", "D controller, E F others").replace(
    "settings",
    "partition t-0 B E\npartition t-1 A\nproducer p1 log-0 t-1 acks=1\nconsumer c1 t-0 t-1 seek=0.1\n"
    "consumer c2 log-0\nsettings",
)


def test_every_reducer_finds_something_to_reduce() -> None:
    narrow = normal("produce m2 acks=1 singly\npass 2.5ms\nkill B C\n")
    wide = normal("produce m2 acks=1\nkill F\nelect E of t-0\n", WIDE)
    starts = (narrow, wide)
    assert [] == [each.__name__ for each in REDUCERS if not any(list(each(start)) for start in starts)]


@pytest.mark.parametrize("reducer", REDUCERS, ids=lambda each: each.__name__)
def test_candidate_of_a_wide_run_is_another_one_and_its_text_is_that_run(reducer: Reducer) -> None:
    start = normal("produce m2 acks=1\nkill F\nelect E of t-0\nelect B of t-0\n", WIDE)
    for candidate in reducer(start):
        assert candidate != start
        assert candidate == parse("T", text_of(candidate), "T", NEMESES)


def test_partition_is_left_out_with_its_steps_and_clients() -> None:
    start = normal("produce m2 acks=1\nelect E of t-0\n", WIDE)
    none, last = fewer_partitions(start)
    assert ({}, ["produce m2 acks=1"]) == (none.further, texts(none))
    assert [["log-0"], ["log-0"]] == [
        [*map(str, plan.places)] for plan in (*none.clients.producers, *none.clients.consumers)
    ]
    assert ["t-0"] == [*map(str, last.further)]
    assert ["produce m2 acks=1", "elect E of t-0"] == texts(last)


def test_churner_is_left_out_or_has_fewer_nodes_and_its_brokers_stay_until_then() -> None:
    head = f"{WIDE.rstrip()}\nchurner n1 temp A E F replication=2 records=1..8\n\n"
    start = normal("produce m2 acks=1\n", head)
    assert [] == list(fewer_brokers(start))
    assert {0, 1} == {len(fewer.clients.churners) for fewer in fewer_clients(start)}
    (plan,) = start.clients.churners
    simpler = [each.clients.churners[0] for each in simpler_clients(start)]
    assert {
        replace(plan, replication=1),
        replace(plan, nodes=("A", "E")),
        replace(plan, nodes=("A", "F")),
        replace(plan, nodes=("E", "F")),
        replace(plan, records=(1, 3)),
    } == {*simpler} - {plan}
    for reducer in REDUCERS:
        for candidate in reducer(start):
            assert candidate == parse("T", text_of(candidate), "T", NEMESES)


def test_broker_without_a_replica_is_left_out_with_its_faults() -> None:
    start = normal("produce m2 acks=1\nkill F\nkill E\n", WIDE)
    (fewer,) = fewer_brokers(start)
    assert (("D", "A", "B", "C", "E"), ["produce m2 acks=1", "kill E"]) == (fewer.nodes, texts(fewer))


def test_fault_of_several_nodes_hits_fewer() -> None:
    found = [texts(each) for each in fewer_sufferers(normal("power-loss A B C\nkill B\nproduce m1 acks=1\n"))]
    assert ["power-loss B C", "power-loss A C", "power-loss A B"] == [each[0] for each in found]


def test_replica_that_no_step_names_is_left_out_and_min_isr_has_enough_replicas() -> None:
    start = normal("elect B\nproduce m1 acks=1\n")
    assert [("A", "B"), ("B", "C")] == [each.replicas for each in fewer_replicas(start)]
    assert [] == list(fewer_replicas(next(iter(fewer_replicas(start)))))
    three = replace(start, settings=replace(start.settings, min_isr=3))
    assert [] == list(fewer_replicas(three))


def test_controller_apart_is_left_out_unless_a_step_names_it() -> None:
    assert ["C", "B", "A"] == [each.nodes[0] for each in controller_that_replicates(normal("elect B\n"))]
    assert [] == list(controller_that_replicates(normal("kill D\n")))


def test_groups_have_one_record_or_half_of_them() -> None:
    start = normal("produce m1 acks=1\n", WRITTEN.replace("m1 3", "m1 9"))
    assert [1, 1, 4] == [each.records[0].high for each in fewer_records(start)]


def test_settings_get_their_defaults_but_the_time_to_heal() -> None:
    found = [each.settings for each in default_settings(normal())]
    assert [(1, 150, 10.0), (2, None, 10.0)] == [
        (each.min_isr, each.replica_lag_ms_max, each.heal_within_s) for each in found
    ]


def test_produce_loses_its_options_and_is_awaited_in_a_written_scenario_alone() -> None:
    steps = "produce m1 acks=all singly codec=gzip meanwhile\n"
    assert [
        ["produce m1 acks=all codec=gzip meanwhile"],
        ["produce m1 acks=all singly meanwhile"],
        ["produce m1 acks=all singly codec=gzip"],
    ] == [texts(each) for each in simpler_produces(normal(steps))]
    assert 2 == len(list(simpler_produces(normal(steps, RANDOM))))


def test_pairs_are_left_out_up_to_a_number_of_steps() -> None:
    assert [[], [], []] == [texts(each)[1:] for each in without_pairs(normal("elect A\nelect B\nelect C\n"))]
    many = "".join(f"elect {'AB'[at % 2]}\n" for at in range(25))
    assert [] == list(without_pairs(normal(many)))


@pytest.mark.parametrize(("ms", "expected"), [
    ("1", []),
    ("0.4", [1]),
    ("17.3", [1, 2, 5, 10, 17, 18]),
    ("20", [1, 2, 5, 10]),
    ("50.5", [1, 2, 5, 10, 20, 50, 51]),
])  # fmt: skip
def test_times_are_round_and_shorter_or_at_least_whole(ms: str, expected: list[int]) -> None:
    assert list(map(Decimal, expected)) == rounder(Decimal(ms))


def test_delay_is_shortened_in_seconds() -> None:
    found = [texts(each)[0] for each in shorter_times(normal("delay answers fetch B -> A 0.004\n"))]
    assert ["delay answers fetch B -> A 0.001", "delay answers fetch B -> A 0.002"] == found


def test_pass_becomes_a_condition_of_what_was_done_before_it_in_a_written_scenario_alone() -> None:
    start = normal("produce m1 acks=all meanwhile\nhold requests Fetch B -> A\nelect B\npass 5ms\n")
    found = [texts(each)[3] for each in awaiting_instead(start)]
    for wanted in ("leader = B", "held requests fetch B -> A", "acked m1", "log A = end(m1)", "isr = A C"):
        assert f"await {wanted}" in found
    assert found.index("await leader = B") < found.index("await acked m1")
    assert [] == list(awaiting_instead(normal("pass 5ms\n", RANDOM)))


def test_names_are_those_that_a_reader_expects_and_stay() -> None:
    head = "title T\nsource S\nnodes C B replicas, D controller\nrecords m7 1, m4 m7+1\n\n"
    (plain,) = with_plain_names(
        normal("produce m4 acks=1\nproduce m7 acks=1\nawait log B = end(m7)\nkill C D\n", head)
    )
    assert ["produce m1 acks=1", "produce m2 acks=1", "await log B = end(m2)", "kill A C"] == texts(plain)
    assert (("A", "B"), ("C", "A", "B")) == (plain.replicas, plain.nodes)
    assert [] == list(with_plain_names(plain))


def test_tombstones_are_renamed_with_their_groups() -> None:
    (plain,) = with_plain_names(normal("produce m3 acks=1\nproduce m1 acks=1\n", KEYED))
    assert ("m1",) == plain.settings.tombstones


def test_written_form_lacks_the_records_of_the_end_alone() -> None:
    start = normal(head=RANDOM)
    assert texts(start) == texts(as_written(start))
    assert ["m1", "m2", "m3"] == [count.name for count in as_written(start).records]
