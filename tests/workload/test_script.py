"""What a client does next follows from its plan, the seed and the answers, and from nothing else."""

from __future__ import annotations

from harness.workload.plan import ConsumerPlan, Place, ProducerPlan
from harness.workload.script import Ask, ConsumerScript, ProducerScript

LOG = Place("log", 0)
SIDE = Place("side", 0)


def test_a_producer_sends_the_same_for_the_same_seed() -> None:
    plan = ProducerPlan(name="p1", places=(LOG, SIDE), acks=(-1, 1), batch=(1, 5), together=0.5)
    one, other = ProducerScript(plan, 7), ProducerScript(plan, 7)
    sent = [(one.next(), one.pause_ms()) for _ in range(50)]
    assert sent == [(other.next(), other.pause_ms()) for _ in range(50)]
    assert {send.acks for send, _ in sent} == {-1, 1}
    assert {len(send.parts) for send, _ in sent} == {1, 2}
    assert all(1 <= len(values) <= 5 for send, _ in sent for _, values in send.parts)


def test_a_producer_s_values_are_unique_and_padded() -> None:
    script = ProducerScript(ProducerPlan(name="p1", places=(LOG, SIDE), batch=(1, 9), pad=20), 1)
    values = [value for _ in range(40) for _, part in script.next().parts for value in part]
    assert len(values) == len(set(values))
    assert {len(value) for value in values} == {20}


def test_a_request_never_has_a_partition_twice() -> None:
    script = ProducerScript(ProducerPlan(name="p1", places=(LOG, SIDE), together=1.0), 3)
    for _ in range(20):
        assert {place for place, _ in script.next().parts} == {LOG, SIDE}


def test_a_consumer_reads_on_after_what_came() -> None:
    script = ConsumerScript(ConsumerPlan(name="c1", places=(LOG, SIDE)), 1)
    first, side = script.asks()
    assert (first, side) == (
        Ask(place=LOG, position=0, sought=True),
        Ask(place=SIDE, position=0, sought=True),
    )
    script.took(first, [(0, "a"), (1, "b")], 2)
    assert script.asks() == [Ask(place=LOG, position=2, sought=False), side]


def test_an_empty_poll_moves_nothing_and_a_failed_one_is_asked_again() -> None:
    script = ConsumerScript(ConsumerPlan(name="c1", places=(LOG,)), 1)
    script.took(script.asks()[0], [(0, "a")], 1)
    (ask,) = script.asks()
    script.took(ask, [], 1)
    assert script.asks() == [ask]


def test_out_of_range_goes_back_to_the_beginning_and_says_so() -> None:
    script = ConsumerScript(ConsumerPlan(name="c1", places=(LOG,)), 1)
    script.took(script.asks()[0], [(0, "a")], 9)
    script.out_of_range(script.asks()[0])
    assert script.asks() == [Ask(place=LOG, position=0, sought=True)]


def test_a_consumer_that_seeks_goes_back_and_says_so() -> None:
    script = ConsumerScript(ConsumerPlan(name="c1", places=(LOG,), seek=1.0), 5)
    script.took(script.asks()[0], [], 30)
    (ask,) = script.asks()
    assert ask.sought
    assert 0 <= ask.position <= 30
