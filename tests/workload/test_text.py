"""A client's line is read as it is printed, and a wrong one names the word and what was expected."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.model import UsageError
from harness.workload.plan import CODEC_NAMES, Clients, ConsumerPlan, Library, Place, ProducerPlan, Via
from harness.workload.text import line_of, read_consumer, read_partition, read_producer

LOG = Place("log", 0)
SIDE = Place("side", 12)
PLACES = (LOG, SIDE)

spans = st.tuples(st.integers(1, 400), st.integers(0, 400)).map(lambda pair: (pair[0], sum(pair)))
shares = st.integers(0, 1000).map(lambda thousandths: thousandths / 1000)
some_places = st.lists(st.sampled_from(PLACES), min_size=1, max_size=2, unique=True).map(tuple)
producers = st.builds(
    ProducerPlan,
    name=st.from_regex(r"[a-z][a-z0-9]{0,5}", fullmatch=True),
    places=some_places,
    acks=st.lists(st.sampled_from((-1, 0, 1)), min_size=1, max_size=4).map(tuple),
    batch=spans,
    codecs=st.lists(st.sampled_from(CODEC_NAMES), min_size=1, max_size=3).map(tuple),
    every_ms=spans,
    within_ms=st.integers(1, 1000),
    pad=st.integers(0, 1000),
    together=shares,
    retries=st.integers(0, 9),
    client=st.none() | st.sampled_from(Library),
)
consumers = st.builds(
    ConsumerPlan,
    name=st.from_regex(r"[a-z][a-z0-9]{0,5}", fullmatch=True),
    places=some_places,
    via=st.sampled_from(Via),
    every_ms=spans,
    wait_ms=st.integers(0, 1000),
    max_bytes=st.integers(1, 2**31 - 1),
    seek=shares,
    client=st.none() | st.sampled_from(Library),
)


@given(producers)
def test_a_producer_is_read_as_it_is_printed(plan: ProducerPlan) -> None:
    assert read_producer("here", line_of(plan), PLACES) == plan


def test_an_idempotent_producer_is_read_as_it_is_printed() -> None:
    plan = read_producer("here", "p1 log-0 retries=2 idempotent=yes", PLACES)
    assert (True, plan) == (plan.idempotent, read_producer("here", line_of(plan), PLACES))
    assert (("p1",), ()) == ((both := Clients(producers=(plan,))).idempotent, both.unnumbered().idempotent)


@given(consumers)
def test_a_consumer_is_read_as_it_is_printed(plan: ConsumerPlan) -> None:
    assert read_consumer("here", line_of(plan), PLACES) == plan


def test_a_partition_names_its_replicas_in_order() -> None:
    assert read_partition("here", "side-12 B A", "ABC") == (SIDE, ("B", "A"))


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("", "producer ''; expected a name"),
        ("P1 log-0", "producer 'P1'; expected a name of small letters"),
        ("p1", "producer 'p1'; expected its partitions, each once"),
        ("p1 log-0 log-0", "expected its partitions, each once"),
        ("p1 log-1", "'log-1'; expected a partition of log-0, side-12. Did you mean 'log-0'?"),
        ("p1 log-0 ack=all", "option 'ack=all'; expected NAME=VALUE with a name of acks, batch"),
        ("p1 log-0 acks=2", "option 'acks=2'; expected acks=0, 1 or all"),
        ("p1 log-0 batch=5..1", "option 'batch=5..1'; expected batch=N..M"),
        ("p1 log-0 batch=0", "option 'batch=0'; expected batch=N..M"),
        ("p1 log-0 codecs=zip", "option 'codecs=zip'; expected codecs=none"),
        ("p1 log-0 together=2", "option 'together=2'; expected together=a share from 0 to 1"),
        ("p1 log-0 client=kafka", "option 'client=kafka'; expected client=raw or librdkafka or kafka-python"),
        ("p1 log-0 pad=1 pad=1", "option 'pad=1' twice; expected each once"),
        ("p1 log-0 idempotent=maybe", "option 'idempotent=maybe'; expected idempotent=yes or no"),
        ("p1 log-0 idempotent=yes", "producer p1: idempotent=yes; expected acks=all and retries with it"),
        ("p1 log-0 acks=all,1 retries=2 idempotent=yes", "expected acks=all and retries with it"),
        ("p1 log-0 via=leader", "option 'via=leader'; expected NAME=VALUE"),
    ],
)
def test_a_wrong_producer_says_what_was_expected(line: str, expected: str) -> None:
    with pytest.raises(UsageError) as raised:
        read_producer("file:7", line, PLACES)
    assert str(raised.value).startswith("file:7: ")
    assert expected in str(raised.value)


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("", "partition ''; expected a topic and a number"),
        ("side-01 A", "partition 'side-01'; expected a topic and a number"),
        ("side-1", "expected replicas, each once"),
        ("side-1 A A", "expected replicas, each once"),
        ("side-1 D", "'D'; expected nodes of A, B, C"),
    ],
)
def test_a_wrong_partition_says_what_was_expected(line: str, expected: str) -> None:
    with pytest.raises(UsageError, match=expected):
        read_partition("file:7", line, "ABC")


def test_clients_on_libraries_are_not_simulated_and_send_once_unless_theirs_does_not() -> None:
    once = Clients(producers=(ProducerPlan(name="p1", places=PLACES, client=Library.AIOKAFKA),))
    twice = Clients(producers=(ProducerPlan(name="p1", places=PLACES, client=Library.LIBRDKAFKA),))
    assert (True, False) == (once.sends_once, twice.sends_once)
    with pytest.raises(UsageError, match=r"host sim: clients p1 stand on libraries .*; expected .* --host local"):
        once.require_simulable()
    for client in (None, Library.RAW):
        Clients(producers=(ProducerPlan(name="p1", places=PLACES, client=client),)).killable().require_simulable()
