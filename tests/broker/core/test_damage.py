"""Damaged batches of a replica's own log: reported once, served to nobody, copied again by a follower alone."""

from __future__ import annotations

import pytest

from targets.broker.core.events import Exit
from targets.broker.core.messages import Batch, ErrorCode, FetchRequest, FetchResponse, FetchResult
from targets.broker.core.rules import PROTOCOLS
from targets.broker.core.state import Role
from tests.broker.core.asks import ends_at, fetch, list_offsets
from tests.broker.core.bench import TP, Bench, MemoryLog, answers, batch, log_of, recovery

CORRUPT, STORAGE, OK = ErrorCode.CORRUPT_MESSAGE, ErrorCode.KAFKA_STORAGE_ERROR, ErrorCode.NONE
ROUND_MS = 5_000


def leading(log: MemoryLog, protocol: str = "kip380") -> Bench:
    """Return broker 1, which leads with this log, all of it committed."""
    bench = Bench(protocol)
    bench.start((log, recovery(log, high_watermark=log.end_offset)))
    bench.command(leader=1, epoch=6, isr=(1,))
    return bench


def following(log: MemoryLog, protocol: str = "kip380") -> Bench:
    """Return broker 1, which follows broker 2 and fetches from its log's end."""
    bench = Bench(protocol)
    bench.start((log, recovery(log, high_watermark=log.end_offset)))
    bench.command(leader=2, epoch=6)
    if not isinstance(bench.sent()[-1].request, FetchRequest):
        bench.answer(ends_at(log.end_offset, epoch=log.batches[-1].leader_epoch))
    return bench


def gives(*batches: Batch, error: ErrorCode = OK, high_watermark: int = 3) -> FetchResponse:
    result = FetchResult(tp=TP, error=error, high_watermark=high_watermark, batches=batches)
    return FetchResponse(results=(result,))


def asked_from(bench: Bench) -> int:
    """Return the offset of the fetch that was sent last."""
    request = bench.sent()[-1].request
    assert isinstance(request, FetchRequest)
    return request.partitions[0].fetch_offset


def results(bench: Bench, request: FetchRequest) -> list[tuple[ErrorCode, list[int]]]:
    found = [answer for answer in answers(bench.request(request)) if isinstance(answer, FetchResponse)]
    return [(each.error, [b.base_offset for b in each.batches]) for answer in found for each in answer.results]


# --- a leader ------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("replica", [-1, 2])
def test_leader_answers_corrupt_message_where_the_damage_begins_and_serves_the_rest(replica: int) -> None:
    log = log_of((6, 1), (6, 1), (6, 1), (6, 1))
    bench = leading(log)
    log.rotten = {2}
    assert [(OK, [0, 1])] == results(bench, fetch(0, replica=replica, epoch=6))
    assert [(CORRUPT, [])] == results(bench, fetch(2, replica=replica, epoch=6))
    assert [(OK, [3])] == results(bench, fetch(3, replica=replica, epoch=6))


def test_leader_reports_each_damaged_batch_once_and_keeps_it() -> None:
    log = log_of((6, 1), (6, 2), (6, 1))
    bench = leading(log)
    log.rotten = {1}
    for _ in range(3):
        results(bench, fetch(1))
        bench.pass_ms(ROUND_MS)
    (told,) = bench.observed("corrupt")
    assert (1, 3, f"{TP}/{0:020d}.log", "leader") == (told["base"], told["end"], told["path"], told["role"])
    assert 4 == log.end_offset
    log.rotten = {0, 1}
    bench.pass_ms(ROUND_MS)
    assert [1, 0] == [each["base"] for each in bench.observed("corrupt")]


def test_damage_that_nobody_reads_is_found_at_the_next_checkpoint_whoever_has_it() -> None:
    for bench in (leading(log_of((6, 1), (6, 1))), following(log_of((5, 1), (5, 1)))):
        log = bench.replica.log
        assert isinstance(log, MemoryLog)
        log.rotten = {1}
        assert [] == bench.observed("corrupt")
        bench.pass_ms(ROUND_MS)
        assert [1] == [each["base"] for each in bench.observed("corrupt")]


def test_logs_are_looked_through_part_by_part() -> None:
    log = log_of(*[(6, 1)] * 10)
    bench = Bench("kip380", check_bytes_max=2 * log.batches[0].size)
    bench.start((log, recovery(log)))
    log.rotten = {9}
    for rounds in range(1, 6):
        assert [] == bench.observed("corrupt"), rounds
        bench.pass_ms(ROUND_MS)
    assert [9] == [each["base"] for each in bench.observed("corrupt")]


def test_no_more_of_a_log_is_looked_through_at_once_than_a_loop_can_do_between_two_requests() -> None:
    log = log_of(*[(6, 1)] * 2_000)
    bench = leading(log)
    at_once = bench.broker.state.config.check_bytes_max // log.batches[0].size
    assert at_once < 500  # each takes some ten microseconds
    first, second = at_once - 1, 2 * at_once - 1
    log.rotten = {first, second}
    bench.pass_ms(ROUND_MS)
    assert [first] == [each["base"] for each in bench.observed("corrupt")]
    bench.pass_ms(ROUND_MS)
    assert [first, second] == [each["base"] for each in bench.observed("corrupt")]


def test_disk_that_cannot_be_read_is_answered_with_a_storage_error_and_then_ends_the_broker() -> None:
    log = log_of((6, 1), (6, 1))
    bench = leading(log)
    log.broken = True
    effects = bench.request(fetch(0))
    (answer,) = answers(effects)
    assert isinstance(answer, FetchResponse)
    assert [STORAGE] == [each.error for each in answer.results]
    assert isinstance(effects[-1], Exit)
    assert "Input/output error" in effects[-1].reason


def test_offset_by_time_that_a_damaged_header_hides_is_an_error() -> None:
    log = log_of((6, 1), (6, 1))
    bench = leading(log)
    log.hidden = True
    (answer,) = answers(bench.request(list_offsets(7, current=6)))
    assert [CORRUPT] == [each.error for each in answer.results]  # type: ignore[union-attr]


# --- a follower ----------------------------------------------------------------------------------------------
@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_follower_puts_its_leaders_batch_in_the_place_of_its_own_and_cuts_nothing(protocol: str) -> None:
    log = log_of((5, 1), (5, 1), (5, 1))
    whole = list(log.batches)
    bench = following(log, protocol)
    log.rotten = {1}
    bench.pass_ms(ROUND_MS)
    bench.answer(gives())
    assert (1, 3, {1}) == (asked_from(bench), log.end_offset, log.rotten)  # nothing before the leader has answered
    bench.answer(gives(*whole[1:]))
    assert (3, 3, set()) == (asked_from(bench), log.end_offset, log.rotten)
    (told,) = bench.observed("repaired")
    assert (1, 2, 2) == (told["base"], told["end"], told["leader"])
    assert [] == [cut for cut in bench.observed("truncate") if cut["reason"] == "corrupt"]
    bench.pass_ms(ROUND_MS)
    assert 1 == len(bench.observed("corrupt"))


def test_follower_cuts_its_log_where_its_leaders_batch_is_another_and_copies_it_again() -> None:
    """So it does, too, where it cannot tell what the damaged batch was."""
    log = log_of((5, 1), (5, 1), (5, 1))
    bench = following(log)
    log.rotten = {1}
    bench.pass_ms(ROUND_MS)
    bench.answer(gives())
    bench.answer(gives(batch(base=1, epoch=5, crc=8)))
    cut = bench.observed("truncate")[-1]
    assert (3, 1, 1, "corrupt") == (cut["from"], cut["to"], cut["end"], cut["reason"])
    assert (1, 1) == (asked_from(bench), bench.replica.high_watermark)
    bench.answer(gives(batch(base=1, epoch=5, crc=8), batch(base=2, epoch=5)))
    assert (3, 3, {}) == (log.end_offset, asked_from(bench), bench.replica.damages)


@pytest.mark.parametrize("error", [CORRUPT, ErrorCode.OFFSET_OUT_OF_RANGE])
def test_follower_cuts_nothing_when_its_leader_cannot_give_the_batch_and_asks_again_later(
    error: ErrorCode,
) -> None:
    log = log_of((5, 1), (5, 1), (5, 1))
    bench = following(log)
    log.rotten = {1}
    bench.pass_ms(ROUND_MS)
    bench.answer(gives())
    bench.answer(gives(error=error))
    assert (3, 3) == (asked_from(bench), log.end_offset)
    bench.answer(gives(batch(base=3, epoch=6)))
    assert (4, 4) == (asked_from(bench), log.end_offset)
    bench.pass_ms(ROUND_MS)
    bench.answer(gives())
    assert 1 == asked_from(bench)
    assert [] == [cut for cut in bench.observed("truncate") if cut["reason"] == "corrupt"]


def test_follower_cuts_nothing_when_its_leader_has_another_batch_there() -> None:
    log = log_of((5, 1), (5, 1), (5, 1))
    bench = following(log)
    log.rotten = {1}
    bench.pass_ms(ROUND_MS)
    bench.answer(gives())
    bench.answer(gives(batch(2, base=0, epoch=5)))
    assert (3, 3) == (asked_from(bench), log.end_offset)


def test_follower_that_becomes_leader_before_the_answer_keeps_its_log_and_refuses_readers() -> None:
    log = log_of((5, 1), (5, 1), (5, 1))
    whole = list(log.batches)
    bench = following(log)
    log.rotten = {1}
    bench.pass_ms(ROUND_MS)
    bench.answer(gives())
    late = bench.sent()[-1]
    bench.command(leader=1, epoch=7, isr=(1,))
    bench.answer(gives(whole[1]), to=late)
    assert (Role.LEADER, 3) == (bench.replica.role, log.end_offset)
    assert [(CORRUPT, [])] == results(bench, fetch(1, epoch=7))


def test_leader_that_knows_of_damage_repairs_it_once_it_follows() -> None:
    log = log_of((5, 1), (5, 1), (5, 1))
    whole = list(log.batches)
    bench = leading(log)
    log.rotten = {1}
    results(bench, fetch(1))
    bench.command(leader=2, epoch=7)
    bench.answer(ends_at(3, epoch=6))
    assert 1 == asked_from(bench)
    bench.answer(gives(whole[1]))
    assert (3, set()) == (log.end_offset, log.rotten)


def test_truncation_below_the_damage_is_its_end() -> None:
    log = log_of((5, 1), (5, 1), (5, 1))
    bench = following(log)
    log.rotten = {2}
    bench.pass_ms(ROUND_MS)
    bench.command(leader=2, epoch=8)
    bench.answer(ends_at(1, epoch=5))
    assert (1, 1) == (asked_from(bench), log.end_offset)
    assert {} == bench.replica.damages
