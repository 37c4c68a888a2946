"""The live check, op by op: what each rule sees, and each excuse that makes it see nothing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Self

import pytest

from checkers.live.rules import ANOTHER, BACK, GONE, HIGH_WATERMARK, RULES, TWICE
from checkers.live.watch import LiveCheck
from harness.events import ScheduleStopped
from harness.model import Op, OpType, Source
from tests.checkers.seen import Seen
from tests.checkers.story import TOPIC


class Run(Seen):
    """A run of A, B and C; time is the number of the op. Unclean election is off unless it is asked for."""

    def __init__(self, host: str = "sim", *, unclean: bool = False) -> None:
        super().__init__(host)
        setup = self.ops[0]
        self.ops[0] = replace(setup, value={**setup.value, "unclean": unclean})

    def add(self, source: Source, f: str, type_: OpType, process: str, **value: Any) -> Self:
        return self._add(len(self.ops), source, f, type_, process, **value)

    def sends(self, value: str, acks: int = -1) -> Self:
        sent = {**TOPIC, "name": value, "acks": acks, "codec": "none", "value": value}
        return self.add(Source.CLIENT, "produce", OpType.INVOKE, "client-1", **sent)

    def ok(self, value: str, offset: int, acks: int = -1) -> Self:
        sent = {**TOPIC, "name": value, "acks": acks, "codec": "none", "value": value, "offset": offset}
        return self.add(Source.CLIENT, "produce", OpType.OK, "client-1", **sent)

    def told(self, value: str, offset: int, acks: int = -1) -> Self:
        return self.sends(value, acks).ok(value, offset, acks)

    def begins(self, reader: str = "client-9") -> Self:
        return self.add(Source.CLIENT, "read", OpType.INVOKE, reader, **TOPIC)

    def shows(self, *records: tuple[int, str], high: int | None = None, reader: str = "client-9") -> Self:
        end = records[-1][0] + 1 if high is None else high
        read = {**TOPIC, "records": [list(each) for each in records], "high_watermark": end}
        return self.add(Source.CLIENT, "read", OpType.OK, reader, **read)

    def reads(self, *records: tuple[int, str], high: int | None = None) -> Self:
        return self.begins().shows(*records, high=high)

    def broker(self, node: str, f: str, **value: Any) -> Self:
        return self.add(Source.BROKER, f, OpType.INFO, node, **TOPIC, **value)

    def bites(self, effect: str, nodes: str = "A", *, name: str = "fault") -> Self:
        return self.fault(name, nodes, ms=len(self.ops), effect=effect, band="mark", probe="seen")

    def state(self, leader: str, epoch: int, isr: str = "ABC") -> Self:
        return self.leads(leader, epoch, ms=len(self.ops), isr=isr)

    def role(self, node: str, f: str, epoch: int, end: int, high: int, **more: Any) -> Self:
        return self.broker(node, f, epoch=epoch, log_end_offset=end, high_watermark=high, **more)

    def copied(self, end: int = 4) -> Self:
        """A leads epoch 0 and B follows; both have `end` records, of which A's high watermark passed all."""
        self.role("A", "leader", 0, 0, 0, isr=[1, 2, 3], resumed=False)
        for node in "BC":
            self.role(node, "follower", 0, 0, 0, leader=1, kept=False)
        self.broker("A", "append", base=0, end=end, epoch=0, role="leader")
        for node in "BC":
            self.broker(node, "append", base=0, end=end, epoch=0, role="follower")
        return self.broker("A", "high-watermark", to=end)

    def cut(self, node: str, start: int, to: int) -> Self:
        value = {"from": start, "to": to, "end": to, "reason": "high-watermark", "epoch": 0}
        return self.broker(node, "truncate", **value)


def seen_in(run: Run) -> list[ScheduleStopped]:
    watch = LiveCheck()
    return [seen for op in run.ops if (seen := watch.step(op)) is not None]


def rules_in(run: Run) -> list[str]:
    return [seen.rule for seen in seen_in(run)]


# --- acknowledged-twice ------------------------------------------------------------------------------------------
def test_two_records_acknowledged_by_all_at_one_offset_are_seen_with_both_ops() -> None:
    (seen,) = seen_in(run := Run().told("m1", 3).told("m2", 3))
    assert (TWICE, ((3, 4),), (3, len(run.ops) - 1)) == (seen.rule, seen.offsets, seen.proof)
    assert "M2 was acknowledged with acks=all at offset 3" in seen.sentence


@pytest.mark.parametrize("acks", [(1, -1), (-1, 1), (1, 1), (0, -1)])
def test_record_without_acks_all_promises_nothing(acks: tuple[int, int]) -> None:
    assert [] == rules_in(Run().told("m1", 3, acks[0]).told("m2", 3, acks[1]))


def test_one_record_acknowledged_twice_is_one_that_a_client_sent_again() -> None:
    assert [] == rules_in(Run().told("m1", 3).told("m1", 3))


@pytest.mark.parametrize("effect", ["power-lost", "log-cut", "disk-gone"])
def test_fault_that_may_end_copies_excuses_what_was_asked_for_before_it(effect: str) -> None:
    assert [] == rules_in(Run().told("m1", 3).bites(effect).told("m2", 3))
    assert [] == rules_in(Run().sends("m1").bites(effect).ok("m1", 3).told("m2", 3)), "acknowledged late"
    assert [TWICE] == rules_in(Run().bites(effect).told("m1", 3).told("m2", 3))


@pytest.mark.parametrize("effect", ["down", "paused", "cut-off-from-metadata", "session-ended", "none"])
def test_other_faults_excuse_no_lost_record(effect: str) -> None:
    assert [TWICE] == rules_in(Run().told("m1", 3).bites(effect).told("m2", 3))


def test_unclean_election_excuses_all() -> None:
    assert [] == rules_in(Run(unclean=True).told("m1", 3).told("m2", 3).reads((3, "m9")))


def test_election_excuses_no_record_of_acks_all() -> None:
    assert [TWICE] == rules_in(Run().told("m1", 3).state("B", 1).told("m2", 3))


def test_acknowledgement_whose_invoke_is_missing_says_nothing() -> None:
    assert [] == rules_in(Run().told("m1", 3).ok("m2", 3))


def test_partitions_are_told_apart() -> None:
    run = Run().told("m1", 3).told("m2", 3)
    other = [
        replace(op, value={**op.value, "partition": 1}) if op.value.get("value") == "m2" else op for op in run.ops
    ]
    run.ops[:] = other
    assert [] == rules_in(run)


# --- read-as-another ---------------------------------------------------------------------------------------------
def test_read_of_another_record_than_was_acknowledged_is_seen() -> None:
    (seen,) = seen_in(Run().told("m1", 0).reads((0, "m9")))
    assert (ANOTHER, ((0, 1),)) == (seen.rule, seen.offsets)


def test_two_reads_that_show_different_records_are_seen() -> None:
    assert [ANOTHER] == rules_in(Run().reads((0, "m1")).reads((0, "m2")))


def test_acknowledgement_of_another_record_than_a_read_showed_is_seen() -> None:
    assert [ANOTHER] == rules_in(Run().reads((0, "m1")).told("m2", 0))


def test_read_that_began_before_a_power_loss_is_not_held_against_what_was_acknowledged_since() -> None:
    assert [] == rules_in(Run().begins().bites("power-lost").told("m1", 0).shows((0, "m9")))


def test_read_of_what_acks_1_was_told_of_may_show_another_record() -> None:
    assert [] == rules_in(Run().told("m1", 0, 1).reads((0, "m9")))


def test_read_that_failed_shows_nothing() -> None:
    run = Run().told("m1", 0).begins()
    failed = {**TOPIC, "position": 0, "high_watermark": 1, "error": "no leader"}
    assert [] == rules_in(run.add(Source.CLIENT, "read", OpType.FAIL, "client-9", **failed))


# --- high-watermark-falls ----------------------------------------------------------------------------------------
def test_high_watermark_that_falls_at_a_leader_is_seen_with_the_op_before() -> None:
    run = Run().role("A", "leader", 0, 5, 0, isr=[1, 2, 3], resumed=False)
    run.broker("A", "high-watermark", to=4).broker("A", "high-watermark", to=3)
    (seen,) = seen_in(run)
    assert (HIGH_WATERMARK, ((3, 4),), (3, 4)) == (seen.rule, seen.offsets, seen.proof)


def test_high_watermark_may_fall_at_a_follower_and_in_a_new_process() -> None:
    run = Run().role("B", "follower", 0, 5, 4, leader=1, kept=False).broker("B", "high-watermark", to=3)
    assert [] == rules_in(run)
    run = Run().role("A", "leader", 0, 5, 4, isr=[1, 2, 3], resumed=False)
    run.add(Source.BROKER, "started", OpType.INFO, "A", id=1, pid=2, protocol="hw")
    assert [] == rules_in(run.role("A", "leader", 0, 5, 2, isr=[1, 2, 3], resumed=True))


def test_read_that_is_told_a_lower_high_watermark_than_one_before_is_seen() -> None:
    assert [HIGH_WATERMARK] == rules_in(Run().reads((0, "m1"), (1, "m2")).reads((0, "m1")))


def test_failed_read_was_told_a_high_watermark_too() -> None:
    run = Run().reads((0, "m1"), (1, "m2")).begins()
    failed = {**TOPIC, "position": 0, "high_watermark": 1, "error": "no leader"}
    assert [HIGH_WATERMARK] == rules_in(run.add(Source.CLIENT, "read", OpType.FAIL, "client-9", **failed))


def test_election_fault_or_new_leader_between_two_reads_may_lower_it() -> None:
    two = ((0, "m1"), (1, "m2"))
    assert [] == rules_in(Run().reads(*two).state("B", 1).reads(two[0]))
    assert [] == rules_in(Run().reads(*two).bites("paused").reads(two[0]))
    led = Run().reads(*two).role("B", "leader", 1, 2, 1, isr=[2], resumed=False)
    assert [] == rules_in(led.reads(two[0]))


def test_reads_under_way_together_are_in_no_order() -> None:
    run = Run().begins("client-8").begins("client-9")
    run.shows((0, "m1"), (1, "m2"), reader="client-8").shows((0, "m1"), reader="client-9")
    assert [] == rules_in(run)


# --- read-goes-back ----------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("records", "high", "text"),
    [
        (((0, "a"), (2, "c"), (1, "b")), 3, "goes back to offset 1"),
        (((0, "a"), (0, "a")), 3, "goes back to offset 0"),
        (((0, "a"), (1, "b")), 1, "shows offset 1, not below its high watermark 1"),
    ],
)
def test_read_that_goes_back_or_passes_its_high_watermark_is_seen(
    records: Sequence[tuple[int, str]], high: int, text: str
) -> None:
    (seen,) = seen_in(Run().reads(*records, high=high))
    assert BACK == seen.rule
    assert text in seen.sentence


def test_read_that_skips_what_was_acknowledged_or_read_is_seen() -> None:
    (seen,) = seen_in(Run().told("b", 1).reads((0, "a"), (2, "c")))
    assert (BACK, ((1, 2),)) == (seen.rule, seen.offsets)
    assert [BACK] == rules_in(Run().reads((0, "a"), (1, "b"), (2, "c")).reads((0, "a"), (2, "c")))
    assert [BACK] == rules_in(Run().told("b", 1, 1).told("c", 2).reads((0, "a"), high=3))


def test_log_may_begin_where_a_read_does_and_have_gaps_that_nobody_was_told_of() -> None:
    assert [] == rules_in(Run().told("a", 0).reads((1, "b"), (2, "c")))
    assert [] == rules_in(Run().told("a", 0).reads((0, "a"), (2, "c")))


def test_read_that_ends_below_what_was_acknowledged_before_it_began_is_seen() -> None:
    (seen,) = seen_in(Run().told("a", 0).told("b", 1).reads((0, "a")))
    assert (BACK, ((1, 2),)) == (seen.rule, seen.offsets)


def test_read_may_end_below_what_was_acknowledged_after_it_began_or_before_an_election() -> None:
    assert [] == rules_in(Run().told("a", 0).begins().told("b", 1).shows((0, "a")))
    assert [] == rules_in(Run().told("a", 0).told("b", 1).state("B", 1).reads((0, "a")))
    late = Run().told("a", 0).sends("b").state("B", 1).ok("b", 1).reads((0, "a"))
    assert [] == rules_in(late), "sent to the leader before"


def test_read_may_end_below_what_was_acknowledged_before_an_election_and_not_since() -> None:
    run = Run().told("a", 0).told("b", 5).state("B", 1).told("c", 2)
    assert [BACK] == rules_in(run.reads((0, "a"), high=1))


# --- committed-is-gone -------------------------------------------------------------------------------------------
def test_member_of_the_isr_that_truncates_what_was_committed_is_seen() -> None:
    (seen,) = seen_in(Run().copied(4).cut("B", 4, 2))
    assert (GONE, ((2, 4),)) == (seen.rule, seen.offsets)
    assert "B is in the ISR and truncated offsets 2-3" in seen.sentence


def test_copy_that_is_recorded_before_its_leaders_append_is_a_copy_of_it() -> None:
    run = Run("local").copied(4).broker("B", "append", base=4, end=6, epoch=0, role="follower")
    run.broker("A", "append", base=4, end=6, epoch=0, role="leader").broker("A", "high-watermark", to=6)
    (seen,) = seen_in(run.cut("B", 6, 4))
    assert (GONE, ((4, 6),)) == (seen.rule, seen.offsets)


def test_tail_that_came_back_with_a_restart_is_no_copy_of_what_its_leader_appends_later() -> None:
    run = Run("local").copied(4).broker("B", "recovered", log_end_offset=6, clean=False, cut_bytes=0,
                                        reason="clean", epochs=[], high_watermark=4)  # fmt: skip
    run.broker("A", "append", base=4, end=6, epoch=0, role="leader").broker("A", "high-watermark", to=6)
    assert [] == rules_in(run.cut("B", 6, 4))


def test_member_may_truncate_what_was_not_committed_or_after_it_left_the_isr() -> None:
    run = Run().copied(4).broker("A", "append", base=4, end=6, epoch=0, role="leader")
    run.broker("B", "append", base=4, end=6, epoch=0, role="follower")
    assert [] == rules_in(run.cut("B", 6, 4))
    assert [] == rules_in(Run().copied(4).state("A", 0, "AC").cut("B", 4, 2))


def test_member_that_follows_a_leader_without_the_records_is_not_who_lost_them() -> None:
    run = Run().copied(4).state("C", 1).broker("C", "recovered", log_end_offset=2, clean=False, cut_bytes=0,
                                               reason="torn", epochs=[], high_watermark=2)  # fmt: skip
    run.role("C", "leader", 1, 2, 2, isr=[1, 2, 3], resumed=False)
    run.role("B", "follower", 1, 4, 4, leader=3, kept=False)
    assert [] == rules_in(run.cut("B", 4, 2))


def test_another_record_at_a_committed_offset_is_not_the_committed_one() -> None:
    """B wrote its own records as a leader that was deposed, and truncates them."""
    run = Run().copied(2).state("B", 1).role("B", "leader", 1, 2, 2, isr=[1, 2, 3], resumed=False)
    run.broker("B", "append", base=2, end=4, epoch=1, role="leader")
    run.state("A", 2).role("A", "leader", 2, 2, 2, isr=[1, 2, 3], resumed=False)
    run.broker("A", "append", base=2, end=4, epoch=2, role="leader").broker("A", "high-watermark", to=4)
    run.role("B", "follower", 2, 4, 2, leader=1, kept=False)
    assert [] == rules_in(run.cut("B", 4, 2))


def test_records_of_before_a_power_loss_do_not_count_and_those_since_do() -> None:
    run = Run().copied(4).bites("power-lost", "C")
    assert [] == rules_in(run.cut("B", 4, 2))
    run = Run().copied(4).bites("power-lost", "C").broker("A", "append", base=4, end=6, epoch=0, role="leader")
    run.broker("B", "append", base=4, end=6, epoch=0, role="follower").broker("A", "high-watermark", to=6)
    (seen,) = seen_in(run.cut("B", 6, 2))
    assert ((4, 6),) == seen.offsets


@pytest.mark.parametrize(("host", "rules"), [("sim", [GONE]), ("local", [])])
def test_member_that_joins_without_what_was_committed_is_seen_where_ops_are_in_their_true_order(
    host: str, rules: list[str]
) -> None:
    run = Run(host).state("A", 0, "AB").copied(4).broker("A", "append", base=4, end=5, epoch=0, role="leader")
    run.broker("B", "append", base=4, end=5, epoch=0, role="follower").broker("A", "high-watermark", to=5)
    assert rules == rules_in(run.state("A", 0, "ABC"))


# --- what is no op of a rule -------------------------------------------------------------------------------------
def test_op_that_cannot_be_read_shows_nothing_and_ends_nothing() -> None:
    run = Run().told("m1", 3)
    for op in run.ops[2:4]:
        run.ops.append(replace(op, value={"nonsense": 1}))
    run.ops.append(Op(index=9, time_ns=0, source=Source.NEMESIS, process="nemesis", type=OpType.OK, f="x",
                      value={"nodes": ["A"], "effect": "unheard-of"}))  # fmt: skip
    assert [TWICE] == rules_in(run.told("m2", 3))


def test_run_without_a_set_up_promises_nothing() -> None:
    run = Run().told("m1", 3).told("m2", 3)
    del run.ops[0]
    assert [] == rules_in(run)


def test_every_rule_has_words_a_formula_what_is_found_and_what_is_not_seen() -> None:
    assert {TWICE, ANOTHER, HIGH_WATERMARK, BACK, GONE} == RULES.keys()
    for rule in RULES.values():
        assert all((rule.words, rule.formula, rule.found, rule.unseen, rule.source))
