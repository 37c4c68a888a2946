"""Edge cases of the rules that judge final logs and leaders, beyond their golden histories."""

from __future__ import annotations

from dataclasses import replace

import pytest

from checkers.rules.caught_up import caught_up
from checkers.rules.checkpoint import checkpoint
from checkers.rules.diverged import diverged
from checkers.rules.holes import holes
from checkers.rules.leaders import leaders
from checkers.rules.order import order
from checkers.rules.unchecked import unchecked
from harness.model import HistoryError, Kind, OpType, Source
from tests.checkers.golden import M1, M2, M3, RECORDS, replicated, scenario_1, scenario_2, scenario_3, with_logs
from tests.checkers.story import TOPIC, Story


def _logs(a: list[tuple[object, ...]], b: list[tuple[object, ...]], protocol: str = "kip101") -> Story:
    return Story(RECORDS, protocol).elected("A", 0).log("A", a).log("B", b)


# --- diverged ----------------------------------------------------------------------------------------------
def test_diverged_is_silent_when_a_replica_only_ends_earlier() -> None:
    assert [] == diverged(_logs([(0, M1), (0, M2)], [(0, M1)]).ops)


def test_diverged_finds_two_histories_inside_one_epoch() -> None:
    (found,) = diverged(_logs([(0, M1), (0, M3)], [(0, M1), (0, M2)]).ops)
    assert (((3, 5),), 0) == (found.ranges, found.epoch)


def test_diverged_finds_each_range_of_each_pair() -> None:
    story = _logs([(0, ["a", "b", "c"])], [(0, ["a", "x", "c"])]).log("C", [(0, ["y", "b", "z"])])
    assert [
        (("A", "B"), ((1, 2),)),
        (("A", "C"), ((0, 1),)),
        (("A", "C"), ((2, 3),)),
        (("B", "C"), ((0, 3),)),
    ] == [(found.nodes, found.ranges) for found in diverged(story.ops)]


def test_diverged_names_both_epochs_when_the_sides_differ() -> None:
    (found,) = diverged(_logs([(0, M1), (1, M2)], [(0, M1), (2, M3)]).ops)
    assert found.epoch is None
    assert "A holds 'm2-0' in epoch 1 and B holds 'm3-0' in epoch 2" in found.sentence


@pytest.mark.parametrize("returns", [False, True])
def test_diverged_counts_no_log_of_a_broker_that_ended_itself_rather_than_follow(returns: bool) -> None:
    """Source: KAFKA-3924: a broker up to 2.0 exits where its log would have to be truncated."""
    story = _logs([(0, M1), (1, M3)], [(0, M1), (0, M2)])
    assert [("A", "B")] == [found.nodes for found in diverged(story.ops)]
    story.broker("B", "printed", **TOPIC, what="exiting", line="FATAL Exiting")
    if returns:
        story.fault("restart", "B")
    assert returns is bool(diverged(story.ops))


def test_final_log_is_the_last_snapshot_when_there_are_several() -> None:
    assert [] == diverged(_logs([(0, M1)], [(0, M2)]).log("B", [(0, M1)]).ops)


def test_final_log_refuses_a_batch_without_a_snapshot() -> None:
    story = Story(RECORDS).log("A", [(0, M1)])
    del story.ops[1]
    with pytest.raises(HistoryError, match="op 2: a batch of A before its snapshot"):
        diverged(story.ops)


# --- leaders -----------------------------------------------------------------------------------------------
def test_leaders_is_silent_when_the_same_leader_is_sent_again() -> None:
    story = Story(RECORDS).started("A").leads("A", 0, 0).leads("A", 0, 5)
    assert [] == leaders(story.elected("A", 0).elected("A", 0, isr="A", version=1).ops)


def test_leaders_is_silent_when_a_return_found_nothing_written() -> None:
    assert [] == leaders(Story(RECORDS).started("A").leads("A", 0, 0).started("A").leads("A", 0, 0).ops)


def test_leaders_finds_a_return_that_resumes_though_nothing_was_written() -> None:
    story = Story(RECORDS).started("A").leads("A", 0, 0).started("A").leads("A", 0, 0, resumed=True)
    assert [(Kind.LED_TWICE, ("A",), 0)] == [(a.kind, a.nodes, a.epoch) for a in leaders(story.ops)]


def test_leaders_finds_led_twice_in_scenario_3_under_hw_alone() -> None:
    """Source: KIP-101, returning leaders."""
    assert [Kind.LED_TWICE] == [found.kind for found in leaders(scenario_3("hw").ops)]
    assert [] == leaders(scenario_3("kip101").ops)


def test_leaders_finds_two_when_broker_and_zookeeper_disagree() -> None:
    story = Story(RECORDS).elected("A", 4).leads("B", 4, 0)
    assert [(Kind.TWO_LEADERS, ("A", "B"), 4)] == [(a.kind, a.nodes, a.epoch) for a in leaders(story.ops)]


# --- order and holes ---------------------------------------------------------------------------------------
def test_order_reports_batches_that_contradict_the_same_batch_once() -> None:
    story = Story(RECORDS).log(
        "A", [(0, ["a"]), (2, ["b"]), (0, ["c"]), (0, ["d", "e"]), (1, ["f"]), (0, ["g"], 9)]
    )
    assert [((2, 5),), ((5, 6),), ((9, 10),)] == [found.ranges for found in order(story.ops)]
    assert [0, 1, 0] == [found.epoch for found in order(story.ops)]


def test_order_finds_records_that_do_not_rise_within_a_batch() -> None:
    story = _logs([(0, M1)], [])
    batch = next(op for op in story.ops if op.f == "batch")
    batch.value["records"].reverse()  # type: ignore[union-attr, index]
    assert [((0, 3),)] == [found.ranges for found in order(story.ops)]


def test_holes_finds_offsets_missing_at_the_logs_start() -> None:
    assert [((0, 2),)] == [found.ranges for found in holes(_logs([(0, M1, 2)], []).ops)]


def test_holes_is_silent_when_offsets_go_backwards() -> None:
    assert [] == holes(_logs([(0, M1), (0, M2, 1), (0, M3, 3)], []).ops)


# --- checkpoint --------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    "epochs",
    [
        [(0, 0), (2, 1), (3, 2)],  # as shipped: an entry comes with the first record of its epoch
        [(0, 0), (1, 1), (2, 1), (3, 2)],  # as the KIP says: an entry of a leader that appended nothing
        [(0, 0), (2, 1), (3, 2), (4, 3)],  # the same, and that leader still leads
    ],
)
def test_checkpoint_accepts_what_either_protocol_writes(epochs: list[tuple[int, int]]) -> None:
    assert [] == checkpoint(with_logs((0, ["x"]), (2, ["a"]), (3, ["b"]), epochs=epochs).ops)


@pytest.mark.parametrize(
    ("epochs", "says"),
    [
        (None, "the batch at 0 has epoch 0, where the checkpoint has no epoch"),
        ([(0, 0), (3, 2)], "the batch at 1 has epoch 2, where the checkpoint has epoch 0"),
        ([(0, 0), (2, 1), (3, 2), (4, 4)], "entry 4@4 lies outside the log, which spans 0 to 3"),
        ([(0, 0), (2, 1), (3, 3)], "entry 3@3, but its first batch is at 2"),
        ([(0, 0), (2, 1), (1, 1), (3, 2)], "entry 1@1 after 2@1 does not rise"),
        ([(0, 0), (2, 2), (3, 1)], "entry 3@1 after 2@2 does not rise"),
    ],
)
def test_checkpoint_tells_what_contradicts_the_log(epochs: list[tuple[int, int]] | None, says: str) -> None:
    (found,) = checkpoint(with_logs((0, ["x"]), (2, ["a"]), (3, ["b"]), epochs=epochs).ops)
    assert says in found.sentence


def test_checkpoint_asks_for_none_under_hw() -> None:
    assert [] == checkpoint(_logs([(-1, M1)], [(-1, M1)], "hw").ops)
    assert [] == checkpoint(_logs([(0, M1)], [(0, M1)], "hw").ops)


def test_checkpoint_collapses_to_the_log_start_when_older_records_are_deleted() -> None:
    story = with_logs((0, ["x"], 4), (0, ["y"]), (2, ["z"]), epochs=[(0, 5), (2, 6)], start=5)
    assert [] == checkpoint(story.ops)


# --- caught up ---------------------------------------------------------------------------------------------
def test_caught_up_says_what_the_replica_said() -> None:
    story = _logs([(0, M1)], [])
    story.broker("B", "stuck", **TOPIC, reason="no answer", error="NOT_LEADER")
    (found,) = caught_up(story.ops)
    assert found.sentence.startswith("B ends at 0, below 3, where the log of its leader A ends: no answer (NOT_L")


def test_caught_up_finds_a_replica_that_said_so_though_its_log_is_as_long() -> None:
    story = replicated("kip101")
    story.broker("A", "stuck", **TOPIC, reason="out of order", error="").log("A", [(0, M1)]).log("B", [(0, M1)])
    assert [("A",)] == [found.nodes for found in caught_up(story.ops)]


def test_caught_up_says_paused_when_nobody_resumed_it() -> None:
    (found,) = caught_up(_logs([(0, M1)], []).fault("pause", "B").ops)
    assert "paused since" in found.sentence


def test_caught_up_is_silent_about_a_replica_that_is_ahead() -> None:
    assert [] == caught_up(_logs([(0, M1)], [(0, M1), (0, M2)]).ops)


def test_caught_up_finds_a_partition_without_a_leader() -> None:
    (found,) = caught_up(_logs([(0, M1)], [(0, M1)]).elected(None, 3).ops)
    assert "Epoch 3 has no leader after healing." == found.sentence


def test_caught_up_finds_what_could_not_be_healed() -> None:
    story = _logs([(0, M1)], [(0, M1)])
    story.add(Source.RUNNER, "runner", OpType.FAIL, "healed", missing="B does not start")
    assert ["The runner could not heal: B does not start."] == [a.sentence for a in caught_up(story.ops)]


def test_caught_up_names_who_has_all_and_never_returned_to_the_isr() -> None:
    story = _logs([(0, M1)], [(0, M1)])
    lacking = {"missing": "B in the ISR, which is A", "outside": ["t-0 B", "t-1 A"]}
    story.add(Source.RUNNER, "runner", OpType.FAIL, "healed", **lacking)
    (found,) = caught_up(story.ops)
    assert (Kind.STUCK, ("B",)) == (found.kind, found.nodes)
    assert "B is not in the ISR after healing: B in the ISR, which is A." == found.sentence


SAID = ["t-0 A leads, and waits for B", "t-0 B follows A, and waits for A", "t-1 C waits for votes"]


def unhealed(story: Story, missing: str = "an acknowledgement") -> Story:
    return story.add(Source.RUNNER, "runner", OpType.FAIL, "healed", missing=missing, waited=True, said=SAID)


def test_caught_up_says_whom_a_replica_waits_for_by_its_own_word() -> None:
    (found,) = caught_up(unhealed(_logs([(0, M1)], [])).ops)
    assert found.sentence.endswith("where the log of its leader A ends: it follows A, and waits for A.")


def test_caught_up_says_what_all_wait_for_where_nobody_leads_or_acknowledges() -> None:
    all_wait = "; A leads, and waits for B; B follows A, and waits for A."
    (found,) = caught_up(unhealed(_logs([(0, M1)], [(0, M1)])).ops)
    assert f"The runner could not heal: an acknowledgement{all_wait}" == found.sentence
    (found,) = caught_up(unhealed(_logs([(0, M1)], [(0, M1)]).elected(None, 3)).ops)
    assert f"Epoch 3 has no leader after healing{all_wait}" == found.sentence


@pytest.mark.parametrize(("waited", "nodes"), [(True, ("B",)), (False, ())])
def test_caught_up_takes_no_short_log_for_stuck_when_the_runner_gave_up_waiting(
    waited: bool, nodes: tuple[str, ...]
) -> None:
    story = _logs([(0, M1)], [])
    story.add(Source.RUNNER, "runner", OpType.FAIL, "healed", missing="C ended by itself", waited=waited)
    assert [nodes] == [found.nodes for found in caught_up(story.ops)]


def waiting(*after: str) -> Story:
    """Return scenario 2, at whose end B awaits an epoch newer than its own, then reports the events `after`."""
    story = scenario_2("kip101")
    for f in ("awaiting", *after):
        story.add(Source.BROKER, "B", OpType.INFO, f, **TOPIC, epoch=1)
    return story.add(Source.RUNNER, "runner", OpType.FAIL, "healed", missing="B to lead")


def test_caught_up_finds_a_leader_that_waits_for_an_epoch_that_never_comes() -> None:
    """Source: KAFKA-1120; KIP-101, returning leaders."""
    (found,) = caught_up(waiting().ops)
    assert (Kind.STUCK, ()) == (found.kind, found.nodes)
    assert "B waits for an epoch newer than 1, and none comes." == found.sentence


def test_caught_up_believes_a_leader_that_leads_after_it_waited() -> None:
    (found,) = caught_up(waiting("leader").ops)
    assert "The runner could not heal: B to lead." == found.sentence


@pytest.mark.parametrize(
    ("epoch", "error", "stuck"), [(1, 0, True), (2, 11, True), (2, 0, False)], ids=["same", "refused", "newer"]
)
def test_silent_replica_is_stuck_from_what_it_printed_until_it_obeys_a_newer_epoch(
    epoch: int, error: int, stuck: bool
) -> None:
    line = "Error processing data for partition t-0 offset 5"
    story = Story(RECORDS).elected("A", 1).sends("m1").acked("m1", 0)
    commanded = {**TOPIC, "link": ["C", "B"], "leader": "A", "isr": ["A", "B"]}
    story.add(Source.FABRIC, "fabric", OpType.INFO, "learned", **commanded, epoch=1, error=0)
    story.broker("B", "printed", **TOPIC, what="stuck", line=line)
    story.add(Source.FABRIC, "fabric", OpType.INFO, "learned", **commanded, epoch=epoch, error=error)
    story.healed().log("A", [(0, M1)]).log("B", [(0, M1)])
    found = caught_up(story.ops)
    assert ([("B",)] if stuck else []) == [each.nodes for each in found]
    assert all(line in each.sentence for each in found)


def test_unchecked_wants_no_final_read_of_a_partition_that_hangs() -> None:
    ops = [op for op in waiting().ops if op.f != "read"]
    assert [] == unchecked(ops)
    assert ["No final read through the client succeeded."] == [
        found.sentence for found in unchecked([op for op in ops if (op.f, op.type) != ("healed", OpType.FAIL)])
    ]


@pytest.mark.parametrize(
    ("position", "high_watermark", "excused"),
    [(3, 4, True), (3, 5, False), (3, 3, False), (4, 5, False), (0, 2, True), (5, 6, False)],
)
def test_read_is_excused_when_the_high_watermark_stands_inside_the_batch_that_it_came_to(
    position: int, high_watermark: int, excused: bool
) -> None:
    """The leader's log has m1 at 0-2 and m2 at 3-4, one batch each."""
    ops = [
        replace(op, type=OpType.FAIL, value={**op.value, "position": position, "high_watermark": high_watermark})
        if (op.f, op.type) == ("read", OpType.OK)
        else op
        for op in scenario_1("kip101").ops
    ]
    assert ([] if excused else ["No final read through the client succeeded."]) == [
        found.sentence for found in unchecked(ops)
    ]


# --- unchecked ---------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("dropped", "says"),
    [
        ("setup", "The history has no set-up."),
        ("healed", "The faults were not healed before the end."),
        ("done", "The history has no end: the run was cut short."),
        ("produce", "No produce was acknowledged, so nothing could be lost."),
        ("read", "No final read through the client succeeded."),
        ("state leader", "The history does not say which node leads at the end."),
        ("snapshot batch", "A's log was not read at the end.,B's log was not read at the end."),
    ],
)
def test_unchecked_names_what_is_missing(dropped: str, says: str) -> None:
    ops = [op for op in scenario_2("kip101").ops if op.f not in dropped.split()]
    assert says == ",".join(found.sentence for found in unchecked(ops))


def test_unchecked_finds_a_log_whose_batches_are_not_all_there() -> None:
    ops = scenario_2("kip101").ops
    last = next(op for op in reversed(ops) if op.f == "batch")
    (found,) = unchecked([op for op in ops if op is not last])
    assert (Kind.UNREADABLE, ("B",)) == (found.kind, found.nodes)
    assert "B's log has 2 batches; the history has 1 of them" in found.sentence


def test_unchecked_finds_a_log_with_problems() -> None:
    ops = scenario_2("kip101").ops
    next(op for op in ops if op.f == "snapshot").value["problems"].append("CRC at 0")  # type: ignore[attr-defined]
    assert [(Kind.UNREADABLE, ("A",))] == [(found.kind, found.nodes) for found in unchecked(ops)]
