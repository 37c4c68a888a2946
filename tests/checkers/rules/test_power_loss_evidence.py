"""A log that lost records later does not prove what its leader had; a log that lost nothing does."""

from __future__ import annotations

from typing import Any

from checkers.rules.power_loss_evidence import with_power_loss_evidence
from harness.model import Anomaly, Kind, Op, OpType, Source
from tests.events.filled import filled

LOST = Anomaly(kind=Kind.LOST, topic="log", partition=0, nodes=("B",), epoch=2, sentence="m1 is gone.", proof=(1,))


def op(index: int, source: Source, f: str, type_: OpType = OpType.INFO, process: str = "p", **value: Any) -> Op:
    return Op(
        index=index, time_ns=index, source=source, process=process, type=type_, f=f, value=filled(source, f, value)
    )


def elected(index: int, leader: str = "B", epoch: int = 2) -> Op:
    return op(index, Source.ZOOKEEPER, "leaderAndISR", leader=leader, epoch=epoch, isr=["A", "B"])


def power_loss(index: int, *nodes: str) -> Op:
    return op(index, Source.NEMESIS, "power-loss", OpType.OK, nodes=list(nodes))


def test_loss_of_a_leader_that_lost_its_power_since_is_unchecked_and_says_why() -> None:
    for ops in ([elected(4), power_loss(7, "B")], [power_loss(3, "A", "B"), elected(4)]):
        (found,) = with_power_loss_evidence(ops, [LOST])
        assert Kind.UNCHECKED is found.kind
        assert {1, next(op.index for op in ops if op.f == "power-loss")} == set(found.proof)
        assert "B lost its power since" in found.sentence


def test_loss_is_unchecked_where_another_leads_that_lost_its_power_first() -> None:
    """Followers truncate to that leader's log: their logs do not prove what they led with either."""
    ops = [elected(4), power_loss(7, "A"), elected(9, "A", epoch=3)]
    assert [Kind.UNCHECKED] == [found.kind for found in with_power_loss_evidence(ops, [LOST])]


def test_loss_stays_one_where_the_power_was_lost_before_or_by_a_node_that_never_led_again() -> None:
    before = [power_loss(0, "B"), elected(4)]
    elsewhere = [elected(2, "A", epoch=1), elected(4), power_loss(7, "A")]
    for ops in (before, elsewhere, [elected(4)]):
        assert [LOST] == with_power_loss_evidence(ops, [LOST])


def test_loss_stays_one_where_a_leader_that_kept_its_power_lacks_the_record() -> None:
    """B truncated the record and led, A copied B and led, and only then B lost power: nothing excuses the loss."""
    proven = [elected(4), elected(5, "A", epoch=3), power_loss(7, "B")]
    assert [LOST] == with_power_loss_evidence(proven, [LOST])
    for doubtful in (
        # B lost power before A led: A may have copied what B had left.
        [elected(4), power_loss(5, "B"), elected(7, "A", epoch=3)],
        [*proven, elected(9, "B", epoch=4)],  # A truncated its log to B's
        [elected(3, "A", epoch=1), elected(4), power_loss(7, "B")],  # A led with the record
    ):
        assert [Kind.UNCHECKED] == [found.kind for found in with_power_loss_evidence(doubtful, [LOST])]


def test_loss_stays_one_where_brokers_emit_what_they_append() -> None:
    append = op(1, Source.BROKER, "append", process="B", base=0, end=1)
    assert [LOST] == with_power_loss_evidence([append, elected(4), power_loss(7, "B")], [LOST])


def test_nothing_but_losses_is_doubted() -> None:
    diverged = Anomaly(kind=Kind.DIVERGED, topic="log", partition=0, nodes=("B",), epoch=2)
    assert [diverged] == with_power_loss_evidence([elected(4), power_loss(7, "B")], [diverged])


def final_log(index: int, node: str, *values: str) -> list[Op]:
    place = {"topic": "log", "partition": 0}
    log = {**place, "log_start_offset": 0, "log_end_offset": len(values), "batches": len(values)}
    snapshot = op(index, Source.LOG, "snapshot", OpType.OK, node, **log)
    batches = [
        op(
            index + 1 + offset,
            Source.LOG,
            "batch",
            OpType.OK,
            node,
            **{**place, "base": offset, "last": offset, "epoch": -1, "records": [[offset, "0" * 16, value]]},
        )
        for offset, value in enumerate(values)
    ]
    return [snapshot, *batches]


def acked(index: int, value: str, offset: int) -> Op:
    about = {"topic": "log", "partition": 0, "name": "m1", "value": value, "acks": -1, "offset": offset}
    return op(index, Source.CLIENT, "produce", OpType.OK, "client-1", **about)


def test_loss_stays_one_where_an_in_sync_member_lacks_the_record_that_never_lost_its_power() -> None:
    """
    A had acknowledged m1, truncated it and leads after B's power loss.

    Source:  KIP-101, Scenario 1.
    """
    led = [elected(0, "B", epoch=1), acked(1, "m1.0", 0), elected(4)]
    begin = [*led, power_loss(7, "B"), elected(9, "A", epoch=3)]
    lacks = final_log(20, "A", "m2.0")
    (found,) = with_power_loss_evidence([*begin, *lacks], [LOST])
    # B lost its power after it led, so its final log does not show that it led without m1; A's does.
    assert (Kind.LOST, ("A",), 3, (1, 9)) == (found.kind, found.nodes, found.epoch, found.proof)
    assert "A was in the ISR that acknowledged, never lost its power, and led from epoch 3" in found.sentence
    deleted = op(11, Source.NEMESIS, "delete-active-segment", OpType.OK, nodes=["A"])
    for doubtful in (
        [*begin, *final_log(20, "A", "m1.0")],  # A has the record
        # A followed a leader that had lost its power, and may have truncated to its log.
        [*begin[:-1], elected(8, "B", epoch=3), elected(9, "A", epoch=4), *lacks],
        [*led, power_loss(7, "A", "B"), begin[-1], *lacks],  # A lost its power too
        [*begin, deleted, *lacks],
    ):
        assert [Kind.UNCHECKED] == [found.kind for found in with_power_loss_evidence(doubtful, [LOST])]
