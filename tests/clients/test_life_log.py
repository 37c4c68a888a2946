"""What one life of a client says becomes ops; what is torn, missing or strange is never passed over."""

from __future__ import annotations

from dataclasses import replace

import pytest

from harness.clients.life_log import LifeLog
from harness.clients.wire import line_of
from harness.events import ClientStarted, Event, Poll, Produce
from harness.model import HistoryError, Op, OpType
from harness.workload.lives import KILLED
from harness.workload.plan import ConsumerPlan, Place, ProducerPlan
from harness.workload.script import ConsumerScript, Life, ProducerScript

LOG = Place("log", 0)
SENT = Produce(topic="log", partition=0, name="p1", acks=-1, codec="none", value="p1.1.0")
POLL = Poll(topic="log", partition=0, node="A", position=5, sought=True)
ME = "client-7"


def lines(*said: tuple[OpType, Event], process: str = ME, first: int = 0) -> bytes:
    """Return what a client writes that does these ops."""
    return b"".join(
        line_of(Op.of(event, index=index, time_ns=0, process=process, type=type_))
        for index, (type_, event) in enumerate(said, start=first)
    )


def asked(value: str) -> Produce:
    return replace(SENT, value=value, digest="00")


def acked(value: str, offset: int) -> Produce:
    return replace(SENT, value=value, offset=offset)


def test_ops_come_as_their_lines_come_whole_in_whatever_pieces() -> None:
    data = lines(
        (OpType.INVOKE, asked("p1.1.0")), (OpType.OK, acked("p1.1.0", 3)), (OpType.INVOKE, asked("p1.1.1"))
    )
    whole = list(LifeLog(ME).take(data))
    for size in (1, 7, 64, len(data)):
        log = LifeLog(ME)
        pieces = [op for at in range(0, len(data), size) for op in log.take(data[at : at + size])]
        assert whole == pieces
        assert (1, True) == (log.acknowledged, log.is_asking)
    assert [OpType.INVOKE, OpType.OK, OpType.INVOKE] == [op.type for op in whole]


def test_invoke_without_completion_is_info_once_its_process_was_killed() -> None:
    log = LifeLog(ME)
    list(log.take(lines((OpType.INVOKE, asked("a")), (OpType.INVOKE, asked("b")), (OpType.OK, acked("a", 0)))))
    assert [(OpType.INFO, replace(SENT, value="b", error=KILLED))] == list(log.end(killed=True))
    assert [] == list(log.end(killed=True))


def test_open_poll_fails_and_moves_no_position() -> None:
    log = LifeLog(ME)
    list(log.take(lines((OpType.INVOKE, POLL))))
    assert [(OpType.FAIL, replace(POLL, error=KILLED))] == list(log.end(killed=True))
    assert {LOG: 5} == log.positions


@pytest.mark.parametrize("left", range(1, 60, 7))
def test_torn_last_line_of_a_killed_process_is_dropped(left: int) -> None:
    first = lines((OpType.INVOKE, asked("a")))
    second = lines((OpType.OK, acked("a", 9)), first=1)
    log = LifeLog(ME)
    assert 1 == len(list(log.take(first + second[:left])))
    # The outcome was not said whole, so nobody knows it.
    assert [OpType.INFO] == [type_ for type_, _ in log.end(killed=True)]
    assert 0 == log.acknowledged


def test_torn_line_of_a_process_that_was_not_killed_is_an_error() -> None:
    log = LifeLog(ME)
    list(log.take(b'{"index":0'))
    with pytest.raises(HistoryError, match=r"client-7: .* 0 ops open and 10 bytes of a torn line; expected"):
        list(log.end(killed=False))


def test_open_op_of_a_process_that_was_not_killed_is_an_error() -> None:
    log = LifeLog(ME)
    list(log.take(lines((OpType.INVOKE, asked("a")))))
    with pytest.raises(HistoryError, match=r"1 ops open and 0 bytes"):
        list(log.end(killed=False))


@pytest.mark.parametrize(
    ("planted", "error"),
    [
        (lines((OpType.INVOKE, asked("a")))[:20] + b"\n", "history line .* expected one JSON object"),
        (lines((OpType.INVOKE, asked("a")), first=2), "expected op 1 of this process"),
        (lines((OpType.INVOKE, asked("a")), first=0), "expected op 1 of this process"),
        (lines((OpType.INVOKE, asked("a")), first=1, process="client-6"), "expected op 1 of this process"),
        (b"\xff\xfe\n", "expected UTF-8"),
        (b"\n", "expected one JSON object"),
    ],
    ids=["torn within", "line missing", "line again", "another process", "no text", "empty"],
)
def test_line_that_is_not_the_next_of_this_life_is_an_error(planted: bytes, error: str) -> None:
    log = LifeLog(ME)
    list(log.take(lines((OpType.INVOKE, asked("z")))))
    with pytest.raises(HistoryError, match=error):
        list(log.take(planted))


def test_positions_are_those_up_to_which_polls_were_recorded() -> None:
    side = Place("side", 1)
    other = replace(POLL, topic="side", partition=1, position=0)
    came = replace(POLL, records=((5, "a"), (8, "b")), high_watermark=9)
    log = LifeLog(ME)
    list(log.take(lines((OpType.INVOKE, POLL), (OpType.INVOKE, other), (OpType.OK, came))))
    assert ({LOG: 9, side: 0}, 1) == (log.positions, log.acknowledged)
    empty = replace(POLL, position=9, sought=False, records=(), high_watermark=9)
    back = replace(POLL, position=4)
    list(
        log.take(
            lines((OpType.INVOKE, replace(empty, records=None, high_watermark=None)), (OpType.OK, empty), first=3)
        )
    )
    assert ({LOG: 9, side: 0}, 1) == (log.positions, log.acknowledged)
    list(log.take(lines((OpType.INVOKE, back), (OpType.FAIL, replace(back, error="X")), first=5)))
    assert {LOG: 4, side: 0} == log.positions


def test_other_ops_are_no_client_s_of_this_life() -> None:
    started = ClientStarted(name="p1", pid=1)
    assert 1 == len(list(LifeLog(ME).take(lines((OpType.INFO, started)))))


# --- the next life ----------------------------------------------------------------------------------------------
def test_values_are_unique_over_all_lives_of_all_producers() -> None:
    found: list[str] = []
    for name in ("p1", "p11"):
        plan = ProducerPlan(name=name, places=(LOG,), batch=(1, 9), kill_after=(1, 2))
        for number in range(1, 13):
            script = ProducerScript(plan, 7, Life(number=number))
            found += [value for _ in range(20) for _, values in script.next().parts for value in values]
    assert len(found) == len(set(found))
    assert "p1.1.0" == found[0]


def test_a_life_draws_anew_and_one_that_is_never_killed_as_ever() -> None:
    plan = ProducerPlan(name="p1", places=(LOG,), batch=(1, 9))
    assert ProducerScript(plan, 7).next() == ProducerScript(plan, 7, Life(number=1)).next()
    drawn = {ProducerScript(plan, 7, Life(number=number)).pause_ms() for number in range(1, 9)}
    assert 8 == len(drawn)


def test_consumer_begins_its_next_life_where_it_had_read_to_and_says_that_it_was_assigned() -> None:
    side = Place("side", 1)
    plan = ConsumerPlan(name="c1", places=(LOG, side), kill_after=(1, 2))
    asks = ConsumerScript(plan, 7, Life(number=2, positions={LOG: 9})).asks()
    assert {(LOG, 9, True), (side, 0, True)} == {(ask.place, ask.position, ask.sought) for ask in asks}
