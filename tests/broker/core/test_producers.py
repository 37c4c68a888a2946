"""Idempotent producers: what is sent again is not appended again, on whichever replica leads."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from targets.broker.core import sequences
from targets.broker.core.log_port import LeoAfterCut
from targets.broker.core.messages import (
    Batch,
    ErrorCode,
    ListOffsetsResponse,
    ListOffsetsResult,
    OffsetForLeaderEpochRequest,
)
from targets.broker.core.rules import PROTOCOLS
from targets.broker.limits import Limits
from tests.broker.core.asks import (
    ends_at,
    fetch,
    fetch_answer,
    lead,
    leading,
    occupied,
    produce,
    produced,
    registered,
)
from tests.broker.core.bench import TP, Bench, batch, log_of, recovery
from tests.broker.log.batches import all_of, new_log, raw_batch
from tests.broker.log.batches import batch as raw

OK = ErrorCode.NONE
OUT_OF_ORDER = (ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, -1)
INVALID_EPOCH = (ErrorCode.INVALID_PRODUCER_EPOCH, -1)
INVALID = (ErrorCode.INVALID_RECORD, -1)
LAST_SEQUENCE = 2**31 - 1
WITH = tuple(name for name, rules in PROTOCOLS.items() if rules.idempotence)


def sent(sequence: int, count: int = 1, *, producer: int = 7, epoch: int = 0, base: int = 0) -> Batch:
    """Return a batch of an idempotent producer; with a base, as a leader of epoch 0 stored it."""
    leader_epoch = 0 if base else -1
    plain = batch(count, base=base, epoch=leader_epoch)
    return replace(plain, producer_id=producer, producer_epoch=epoch, base_sequence=sequence)


def give(bench: Bench, *batches: Batch, acks: int = 1) -> list[tuple[ErrorCode, int]]:
    """Produce, and return the answer."""
    return produced(bench.request(produce(*batches, acks=acks)))


@pytest.mark.parametrize("protocol", WITH)
def test_batch_that_is_sent_again_is_acknowledged_with_its_first_offset_and_not_appended(protocol: str) -> None:
    """Source: KIP-98, Idempotent Producer Guarantees."""
    bench = leading(protocol)
    assert [give(bench, sent(0, 3)), give(bench, sent(3, 2))] == [[(OK, 0)], [(OK, 3)]]
    assert [give(bench, sent(0, 3)), give(bench, sent(3, 2))] == [[(OK, 0)], [(OK, 3)]]
    assert bench.replica.log.end_offset == 5


def test_without_the_rule_it_is_appended_again() -> None:
    bench = leading(replace(PROTOCOLS["kip380"], idempotence=False))
    assert [give(bench, sent(0, 3)), give(bench, sent(0, 3))] == [[(OK, 0)], [(OK, 3)]]


def test_acks_all_waits_for_the_high_watermark_over_what_is_sent_again() -> None:
    bench = leading("kip101")
    assert not give(bench, sent(0, 2), acks=-1)
    assert not give(bench, sent(0, 2), acks=-1)
    assert produced(bench.request(fetch(2, replica=2))) == [(OK, 0), (OK, 0)]
    assert bench.replica.log.end_offset == 2


def test_producers_do_not_disturb_each_other_nor_those_without_an_id() -> None:
    bench = leading("kip101")
    for given in (sent(0), sent(0, producer=8), batch(), batch()):
        give(bench, given)
    assert [give(bench, sent(0)), give(bench, sent(0, producer=8))] == [[(OK, 0)], [(OK, 1)]]
    assert bench.replica.log.end_offset == 4


@pytest.mark.parametrize("sequence", [0, 2, 4])
def test_batch_that_does_not_follow_the_last_one_is_refused(sequence: int) -> None:
    """Source: KIP-98: OutOfOrderSequence. The sequences 0 and 2 are known in a batch of another length."""
    bench = leading("kip101")
    give(bench, sent(0, 3))
    assert give(bench, sent(sequence, 1)) == [OUT_OF_ORDER]
    assert bench.replica.log.end_offset == 3


def test_five_batches_are_known_and_the_sixth_last_is_out_of_order() -> None:
    """Source: KAFKA-5494: five requests in flight."""
    bench = leading("kip101")
    for at in range(6):
        give(bench, sent(at))
    assert [give(bench, sent(at)) for at in range(6)] == [[OUT_OF_ORDER], *([(OK, at)] for at in range(1, 6))]


def test_sequence_after_the_last_one_is_0() -> None:
    """Source: Kafka, DefaultRecordBatch.incrementSequence."""
    bench = leading("kip101")
    assert give(bench, sent(LAST_SEQUENCE - 1, 4)) == [(OK, 0)]
    assert [give(bench, sent(1)), give(bench, sent(2))] == [[OUT_OF_ORDER], [(OK, 4)]]


def test_unknown_producer_may_begin_anywhere() -> None:
    """Source: KIP-360."""
    assert give(leading("kip101"), sent(17)) == [(OK, 0)]


def test_new_epoch_begins_at_0_and_ends_the_one_before() -> None:
    """Source: Kafka, ProducerAppendInfo.checkSequence and checkProducerEpoch."""
    bench = leading("kip101")
    give(bench, sent(0))
    assert give(bench, sent(1, epoch=1)) == [OUT_OF_ORDER]
    assert give(bench, sent(0, epoch=1)) == [(OK, 1)]
    assert give(bench, sent(1)) == [INVALID_EPOCH]


@pytest.mark.parametrize("given", [(sent(0), sent(1)), (batch(), sent(0)), (sent(-1),)])
def test_several_batches_or_no_sequence_are_refused(given: tuple[Batch, ...]) -> None:
    """Source: Kafka, ProduceRequest.validateRecords and LogValidator."""
    bench = leading("kip101")
    assert give(bench, *given) == [INVALID]
    assert bench.replica.log.end_offset == 0


def test_who_was_silent_for_longest_is_forgotten_beyond_the_limit() -> None:
    bench = leading("kip101", limits=Limits(producers_max=2))
    for producer in (1, 2, 1, 3):
        give(bench, sent(5 if producer != 1 or bench.replica.log.end_offset == 0 else 6, producer=producer))
    assert list(bench.replica.sequences.known) == [1, 3]


def test_what_recovery_found_in_the_log_is_known_after_a_start() -> None:
    log = log_of((0, 1))
    log.append_as_leader([sent(0, 3)], 0)
    bench = Bench("kip101", zk=occupied())
    bench.start((log, recovery(log)), session=11)
    lead(bench)
    assert [give(bench, sent(0, 3)), give(bench, sent(3))] == [[(OK, 1)], [(OK, 4)]]


@pytest.mark.parametrize("protocol", WITH)
def test_follower_that_becomes_leader_knows_what_it_copied(protocol: str) -> None:
    """Source: KIP-98: the state is in the log, so that a new leader has it."""
    bench = registered(protocol, high_watermark=0)
    bench.command(leader=2, epoch=1, isr=(1, 2), replicas=(1, 2))
    if isinstance(bench.sent()[-1].request, OffsetForLeaderEpochRequest):
        bench.answer(ends_at(0, epoch=0))
    bench.answer(fetch_answer(sent(0, 2), high_watermark=0))
    assert 2 == bench.replica.log.end_offset
    lead(bench, epoch=2)
    assert [give(bench, sent(0, 2)), give(bench, sent(2))] == [[(OK, 0)], [(OK, 2)]]
    assert 3 == bench.replica.log.end_offset


def test_what_a_truncation_removed_may_be_sent_again() -> None:
    bench = leading("kip101")
    give(bench, sent(0, 2))
    give(bench, sent(2, 2))
    bench.command(leader=2, epoch=1, isr=(1, 2), replicas=(1, 2))
    bench.answer(ends_at(2, epoch=0))
    assert bench.replica.log.end_offset == 2
    lead(bench, epoch=2)
    assert [give(bench, sent(0, 2)), give(bench, sent(2, 2))] == [[(OK, 0)], [(OK, 2)]]
    assert bench.replica.log.end_offset == 4


def test_log_on_files_gives_back_what_a_producer_wrote(tmp_path: Path) -> None:
    log = new_log(tmp_path / "data")
    given = raw(producer_id=7, producer_epoch=2, base_sequence=9)
    log.append_as_leader([given, raw()], 0)
    log.truncate_to(2, LeoAfterCut.TARGET)
    found = [(each.producer_id, each.producer_epoch, each.base_sequence) for each in all_of(log)]
    assert found == [(7, 2, 9), (-1, -1, -1)]
    assert raw_batch() != raw_batch(producer_id=7)


def test_log_that_begins_anew_where_its_leaders_does_knows_no_producer(monkeypatch: pytest.MonkeyPatch) -> None:
    """Source: Kafka, ProducerStateManager.truncateFullyAndStartAt."""
    monkeypatch.setattr(sequences, "STATE_BATCHES", 1)
    bench = leading("kip101")
    give(bench, sent(0), acks=1)
    give(bench, sent(1), acks=1)
    bench.command(leader=2, epoch=1, isr=(1, 2), replicas=(1, 2))
    bench.answer(ends_at(2, epoch=0))
    bench.answer(fetch_answer(error=ErrorCode.OFFSET_OUT_OF_RANGE))
    for offset in (50, 40):
        bench.answer(ListOffsetsResponse(results=(ListOffsetsResult(tp=TP, error=OK, offset=offset),)))
    assert (40, {}) == (bench.replica.log.end_offset, bench.replica.sequences.known)
    lead(bench, epoch=2)
    assert [(OK, 40)] == give(bench, sent(9))
