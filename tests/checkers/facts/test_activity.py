"""Activity is counted from a history: a link's rule takes effect once, and a zombie's cut counts as the zombie."""

from __future__ import annotations

from typing import Any, Final

from checkers import CHECKERS
from checkers.facts.activity import Counts, activity_of, count
from checkers.judge import check_in_process
from checkers.rules.vacuous import vacuous
from harness.model import Op, OpType, Source
from tests.events.filled import filled

RANDOM: Final = (Source.RUNNER, OpType.INFO, "setup", {"random": True})


def ops_of(*events: tuple[Source, OpType, str, dict[str, Any]]) -> list[Op]:
    return [
        Op(index=index, time_ns=index, source=source, process="p", type=type_, f=f, value=filled(source, f, value))
        for index, (source, type_, f, value) in enumerate(events)
    ]


def counts_of(*events: tuple[Source, OpType, str, dict[str, Any]]) -> Counts:
    return count(ops_of(*events))


def link(f: str, src: str, dst: str, **more: str) -> tuple[Source, OpType, str, dict[str, Any]]:
    return Source.FABRIC, OpType.INFO, f, {"link": [src, dst], **more}


def fetch(f: str, src: str, dst: str, direction: str = "request") -> tuple[Source, OpType, str, dict[str, Any]]:
    return link(f, src, dst, api="fetch", direction=direction)


def acked(name: str, acks: int = -1) -> tuple[Source, OpType, str, dict[str, Any]]:
    return Source.CLIENT, OpType.OK, "produce", {"name": name, "acks": acks}


def nemesis(type_: OpType, f: str, *nodes: str) -> tuple[Source, OpType, str, dict[str, Any]]:
    return Source.NEMESIS, type_, f, {"nodes": list(nodes)}


def kill(type_: OpType, **more: Any) -> tuple[Source, OpType, str, dict[str, Any]]:
    return Source.CLIENT, type_, "client-killed", {"name": "p1", "pid": 7, **more}


def test_kill_of_a_client_is_counted_and_is_no_fault_of_the_cluster() -> None:
    found = counts_of(kill(OpType.INVOKE), kill(OpType.OK, probe="gone"), kill(OpType.INVOKE), kill(OpType.FAIL))
    assert ({"kill-client": 2}, {"kill-client": 1}) == (found.asked, found.bit)
    assert not found.bitten


def test_hold_bites_once_however_many_frames_it_takes() -> None:
    found = counts_of(fetch("hold", "A", "*"), fetch("held", "A", "B"), fetch("held", "A", "C"))
    assert ({"hold fetch": 1}, {"hold fetch": 1}) == (found.asked, found.bit)


def test_hold_that_was_released_takes_no_frame_of_the_next() -> None:
    first = (fetch("hold", "A", "*"), fetch("release", "A", "*"))
    found = counts_of(*first, fetch("hold", "A", "B"), fetch("held", "A", "B"), fetch("held", "A", "B"))
    assert ({"hold fetch": 2}, {"hold fetch": 1}) == (found.asked, found.bit)


def test_frame_of_another_direction_or_link_belongs_to_no_rule() -> None:
    found = counts_of(fetch("hold", "A", "B"), fetch("held", "A", "B", "answer"), fetch("held", "B", "A"))
    assert {} == found.bit


def test_cut_delay_and_doubling_are_counted_by_their_kind() -> None:
    found = counts_of(
        link("cut", "A", "B"),
        link("lost", "A", "B"),
        fetch("delay", "A", "B"),
        fetch("delayed", "A", "B"),
        fetch("double", "A", "B"),
        link("heal", "A", "B"),
        link("lost", "A", "B"),
    )
    assert {"cut": 1, "delay fetch": 1} == found.bit
    assert {"cut": 1, "delay fetch": 1, "double fetch": 1} == found.asked


def test_cut_of_a_zombie_is_counted_as_the_zombie() -> None:
    cut = (link("cut", "A", "metadata"), link("lost", "A", "metadata"))
    found = counts_of(nemesis(OpType.INVOKE, "zombie", "A"), *cut, nemesis(OpType.OK, "zombie", "A"))
    assert ({"zombie": 1}, {"zombie": 1}) == (found.asked, found.bit)


def test_elections_are_epochs_after_the_first() -> None:
    states = [(Source.METADATA, OpType.INFO, "state", {"epoch": epoch}) for epoch in (0, 0, 1, 3)]
    assert (2, 0) == (counts_of(*states).elections, counts_of().elections)


def test_run_proves_nothing_without_an_acknowledged_record_or_a_fault_that_bit() -> None:
    kill = (nemesis(OpType.INVOKE, "kill", "A"), nemesis(OpType.OK, "kill", "A"))
    restart = (nemesis(OpType.INVOKE, "restart", "A"), nemesis(OpType.OK, "restart", "A"))
    (unacked,) = vacuous(ops_of(RANDOM, *kill, acked("last1"), acked("m1", 1)))
    assert "No record of the schedule" in unacked.sentence
    (unhurt,) = vacuous(ops_of(RANDOM, acked("m1"), *restart))
    assert "No fault of the schedule bit." == unhurt.sentence
    assert [] == vacuous(ops_of(RANDOM, acked("m1"), *kill))


def test_record_at_another_partition_that_lasts_can_be_lost_and_one_of_a_topic_that_goes_cannot() -> None:
    head = {"random": True, "topic": "log", "further": {"orders-0": ["A"]}, "churned": ["temp"]}
    kill = (nemesis(OpType.INVOKE, "kill", "A"), nemesis(OpType.OK, "kill", "A"))

    def sentences(topic: str) -> list[str]:
        mine, (source, type_, f, value) = (Source.CLIENT, OpType.OK, "read", {"topic": "log"}), acked("p1")
        sent = source, type_, f, {**value, "topic": topic, "partition": 0}
        ops = ops_of((Source.RUNNER, OpType.INFO, "setup", head), *kill, mine, sent)
        return [found.sentence for found in check_in_process(ops, {"vacuous": CHECKERS["vacuous"]})]

    assert [] == sentences("orders")
    (gone,) = sentences("temp")
    assert "No record of the schedule" in gone


def test_polls_that_were_answered_are_counted_with_their_records() -> None:
    records = [[0, "m1.0"], [1, "m1.1"]]
    polls = [
        (Source.CLIENT, type_, "poll", {"records": shown} if type_ is OpType.OK else {})
        for type_, shown in (
            (OpType.INVOKE, None),
            (OpType.OK, records),
            (OpType.OK, records[1:]),
            (OpType.FAIL, None),
        )
    ]
    found = activity_of(ops_of(*polls))
    assert (2, 3) == (found.polls, found.records_read)


def assigned(topic: str, *nodes: str) -> tuple[Source, OpType, str, dict[str, Any]]:
    return Source.METADATA, OpType.INFO, "assigned", {"topic": topic, "partition": 0, "replicas": list(nodes)}


def topic_op(f: str, type_: OpType, topic: str) -> tuple[Source, OpType, str, dict[str, Any]]:
    return Source.CLIENT, type_, f, {"topic": topic}


def test_replica_is_moved_once_its_partition_is_without_it() -> None:
    """On its way a partition is on both; an order of the same nodes is an election on Apache Kafka."""
    head = {"topic": "log", "replicas": ["A", "B"], "further": {"orders-0": ["B", "C"]}, "churned": ["temp"]}
    found = activity_of(
        ops_of(
            (Source.RUNNER, OpType.INFO, "setup", head),
            assigned("log", "B", "A"),
            assigned("log", "B", "C", "A"),
            assigned("log", "B", "C"),
            assigned("orders", "A"),
            assigned("temp", "A"),
            assigned("temp", "B"),
        )
    )
    assert 3 == found.replicas_moved


def test_topic_is_created_again_when_a_client_is_told_so_once_more() -> None:
    found = activity_of(
        ops_of(
            topic_op("create-topic", OpType.OK, "temp"),
            topic_op("create-topic", OpType.FAIL, "temp"),
            topic_op("delete-topic", OpType.OK, "temp"),
            topic_op("create-topic", OpType.INFO, "temp"),
            topic_op("create-topic", OpType.OK, "temp"),
            topic_op("create-topic", OpType.OK, "spare"),
            topic_op("create-topic", OpType.OK, "temp"),
        )
    )
    assert 2 == found.recreated


def test_topic_that_came_again_unknown_to_its_client_is_counted_by_its_first_state() -> None:
    def state(topic: str, partition: int, zk_version: int) -> tuple[Source, OpType, str, dict[str, Any]]:
        value = {"topic": topic, "partition": partition, "version": zk_version}
        return Source.METADATA, OpType.INFO, "state", value

    told = topic_op("create-topic", OpType.OK, "temp")
    shown = [("log", 0, 0), ("temp", 0, 0), ("temp", 1, 0), ("temp", 0, 3), ("temp", 0, 0), ("temp", 0, 0)]
    assert 2 == activity_of(ops_of(told, *(state(*each) for each in shown))).recreated
    assert 3 == activity_of(ops_of(*[told] * 4, *(state(*each) for each in shown))).recreated
