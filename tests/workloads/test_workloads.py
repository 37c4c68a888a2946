"""The table of workloads: plans that a schedule can hold, drawn from the seed alone; checkers that there are."""

from __future__ import annotations

import pytest

from checkers import CHECKERS
from harness.workload.plan import CODEC_NAMES, Library, Place, Via
from harness.workload.text import line_of, read_churner, read_consumer, read_producer
from targets.kafka_family.clients.libraries import impossible
from workloads import WORKLOADS

PLACES = (Place("log", 0), Place("log", 1), Place("orders", 0))
NODES = ("A", "B", "C", "D")
SEEDS = range(50)


@pytest.mark.parametrize("name", WORKLOADS)
def test_workload_is_in_the_table_under_its_name_and_names_checkers_that_there_are(name: str) -> None:
    workload = WORKLOADS[name]
    assert (name, f"workloads.{name}") == (workload.name, workload.clients.__module__)  # type: ignore[attr-defined]
    assert set() < set(workload.checkers) <= set(CHECKERS)


@pytest.mark.parametrize("name", WORKLOADS)
def test_plans_read_back_as_they_are_printed_and_follow_from_the_seed(name: str) -> None:
    draw = WORKLOADS[name].clients
    for seed in SEEDS:
        plan = draw(PLACES, seed=seed)
        assert plan == draw(PLACES, seed=seed)
        for producer in plan.producers:
            assert producer == read_producer("line 1", line_of(producer), PLACES)
        for consumer in plan.consumers:
            assert consumer == read_consumer("line 1", line_of(consumer), PLACES)
        churners = WORKLOADS[name].churners(NODES, seed=seed)
        assert churners == WORKLOADS[name].churners(NODES, seed=seed)
        for churner in churners:
            assert churner == read_churner("line 1", line_of(churner), PLACES, NODES)
    assert len({repr(draw(PLACES, seed=seed)) for seed in SEEDS}) > 10


@pytest.mark.parametrize("name", WORKLOADS)
def test_every_client_works_on_every_partition_under_a_name_of_its_own(name: str) -> None:
    plan = WORKLOADS[name].clients(PLACES, seed=1)
    both = (*plan.producers, *plan.consumers)
    assert {PLACES} == {each.places for each in both}
    assert len(both) == len({each.name for each in both})
    assert {Via.LEADER, Via.EVERY} == {consumer.via for consumer in plan.consumers}


def test_append_has_every_acks_and_codec_and_sends_some_again() -> None:
    producers = WORKLOADS["append"].clients(PLACES, seed=1).producers
    assert {-1, 0, 1} == {acks for producer in producers for acks in producer.acks}
    assert set(CODEC_NAMES) == {codec for producer in producers for codec in producer.codecs}
    assert (1, 500) == (min(p.batch[0] for p in producers), max(p.batch[1] for p in producers))
    assert {True, False} == {bool(producer.retries) for producer in producers}


def test_batches_are_larger_than_what_one_consumer_asks_for() -> None:
    plan = WORKLOADS["batches"].clients(PLACES, seed=1)
    large = [producer for producer in plan.producers if producer.batch[0] > 1]
    assert "none" not in {codec for producer in large for codec in producer.codecs}
    assert min(consumer.max_bytes for consumer in plan.consumers) < large[0].batch[0] * large[0].pad


def test_crash_kills_a_producer_and_a_consumer_on_plain_sockets_and_on_a_library_and_not_one_consumer() -> None:
    plan = WORKLOADS["crash"].clients(PLACES, seed=1)
    for each in (plan.producers, plan.consumers):
        assert {Library.RAW, Library.LIBRDKAFKA} == {client.client for client in each if client.kill_after}
    assert 1 == len([client for client in (*plan.producers, *plan.consumers) if client.kill_after is None])
    assert [] == list(impossible(plan, Library.RAW))


def test_topics_come_and_go_also_where_there_are_few_nodes() -> None:
    for count in (1, 2, 4):
        churners = WORKLOADS["topics"].churners(NODES[:count], seed=1)
        assert len(churners) == len({churner.topic for churner in churners})
        assert all(1 <= churner.replication <= count for churner in churners)


def test_mixed_has_a_producer_and_a_consumer_on_every_library() -> None:
    plan = WORKLOADS["mixed"].clients(PLACES, seed=1)
    assert list(Library) == [each.client for each in plan.producers] == [each.client for each in plan.consumers]
    assert [] == list(impossible(plan, Library.RAW))


def test_library_is_refused_where_brokers_know_no_record_batches() -> None:
    plan = WORKLOADS["mixed"].clients(PLACES, seed=1)
    why = "client raw: p1 with brokers older than 0.11; expected client librdkafka, or none"
    assert why == next(impossible(plan, Library.LIBRDKAFKA))
