"""checkers/facts/copies.py: which replica had which record, and when."""

from __future__ import annotations

import pytest

from checkers.facts.copies import Copies
from checkers.facts.fates import Cause, fates_of
from checkers.facts.replica_log import UNKNOWN
from harness.model import OpType, Source
from tests.checkers.facts.test_outages import lost_disk
from tests.checkers.golden import RECORDS, replicated, scenario_2
from tests.checkers.story import IDS, TOPIC, Story

NAMES = {broker: name for name, broker in IDS.items()}


def _origins(story: Story, node: str, offset: int) -> list[int | None]:
    return [change.origin for change in Copies(story.ops, NAMES).changes(offset).get(node, ())]


def test_follower_has_the_origin_of_its_leaders_record() -> None:
    story = replicated("kip101")
    (origin,) = _origins(story, "B", 3)
    assert [origin] == _origins(story, "A", 3)
    assert [origin] != _origins(story, "B", 2)


def test_follower_has_the_same_origin_when_its_op_arrives_before_the_leaders() -> None:
    story = Story(RECORDS).follows("A", "B", 0, 0).append("A", 0, 3, 0, "follower")
    story.append("B", 0, 3, 0, "leader")
    assert _origins(story, "B", 0) == _origins(story, "A", 0)


def test_copy_of_several_appends_that_arrives_before_them_has_the_origin_of_each() -> None:
    story = Story(RECORDS).follows("A", "B", 0, 0).append("A", 0, 5, 0, "follower")
    story.append("B", 0, 3, 0, "leader").append("B", 3, 5, 0, "leader")
    assert [_origins(story, "B", offset) for offset in (2, 3)] == [
        _origins(story, "A", offset) for offset in (2, 3)
    ]
    assert _origins(story, "A", 2) != _origins(story, "A", 3)


def test_copy_that_arrives_before_its_append_is_not_of_what_its_leader_lost_in_another_epoch() -> None:
    story = Story(RECORDS, "kip101").append("B", 0, 3, 0, "leader").cut("B", 3, 0, "epoch-answer")
    story.follows("A", "B", 2, 0).append("A", 0, 3, 2, "follower").append("B", 0, 3, 2, "leader")
    assert _origins(story, "A", 0) == _origins(story, "B", 0)[-1:]


def test_copy_that_arrives_before_its_appends_is_not_of_what_its_leader_lost_before_it_led() -> None:
    """What B lost ends before the copy does, so that only B's office tells that it cannot be part of it."""
    story = Story(RECORDS, "kip101").append("B", 0, 3, 0, "leader").cut("B", 3, 0, "epoch-answer")
    story.leads("B", 2, 0).follows("A", "B", 2, 0).append("A", 0, 5, 2, "follower").append("B", 0, 5, 2, "leader")
    assert _origins(story, "A", 0) == _origins(story, "B", 0)[-1:]


def test_late_copy_is_of_what_its_leader_sent_and_not_of_what_it_has_copied_there_since() -> None:
    """B led in epoch 1 and followed C in epoch 2 before A, which was paused, appended B's answer."""
    story = Story(RECORDS, "kip101", replicas="ABC").leads("B", 1, 0).follows("A", "B", 1, 0)
    story.append("B", 0, 3, 1, "leader").follows("B", "C", 2, 3).cut("B", 3, 0, "epoch-answer")
    story.leads("C", 2, 0).append("C", 0, 1, 2, "leader").append("B", 0, 1, 2, "follower")
    story.append("A", 0, 3, 1, "follower")
    sent, gone, since = _origins(story, "B", 0)
    assert gone is None
    assert [since] == _origins(story, "C", 0)
    assert [[sent]] * 3 == [_origins(story, "A", offset) for offset in range(3)]


def test_follower_has_an_unknown_origin_when_its_leader_told_nothing() -> None:
    story = Story(RECORDS).follows("A", "B", 0, 0).append("A", 0, 3, 0, "follower")
    assert [UNKNOWN] == _origins(story, "A", 0)


def test_new_record_at_an_old_offset_has_an_origin_of_its_own() -> None:
    story = scenario_2("kip101")
    first, none, second = _origins(story, "B", 3)
    assert none is None
    assert first != second
    assert [first, None, second] == _origins(story, "A", 3)


def test_cut_is_undone_when_recovery_finds_the_old_tail() -> None:
    story = replicated("kip101").cut("A", 5, 3, "epoch-answer").recovered("A", 5)
    first, none, again = _origins(story, "A", 4)
    assert none is None
    assert first == again


def test_full_truncation_removes_every_offset() -> None:
    story = replicated("kip101")
    story.broker("A", "truncate", **TOPIC, **{"from": 5}, to=9, end=9, reason="full", epoch=0)
    assert None is _origins(story, "A", 0)[-1]


def test_cut_inside_a_batch_removes_it_to_its_physical_end() -> None:
    story = replicated("kip101")
    story.broker("A", "truncate", **TOPIC, **{"from": 5}, to=4, end=3, reason="epoch-answer", epoch=0)
    assert None is _origins(story, "A", 3)[-1]


def test_written_takes_the_append_of_this_record_when_the_offset_was_used_before() -> None:
    story = scenario_2("kip101")
    copies = Copies(story.ops, NAMES)
    sent = [op.index for op in story.ops if op.f == "produce" and op.value["value"] == "m3-0"]
    (append,), _ = copies.written(3, *sent)
    assert 1 == append.value["epoch"]


def test_copy_of_several_appends_that_its_leader_has_lost_since_has_the_origin_of_each() -> None:
    """A leader's recovery may reach the collector before its follower's copy of what it lost with its power."""
    story = Story(RECORDS, "kip101").follows("A", "B", 0, 0).append("A", 0, 1, 0, "follower")
    story.append("B", 0, 3, 0, "leader").append("B", 3, 5, 0, "leader").started("B").recovered("B", 1)
    story.append("A", 1, 5, 0, "follower")
    assert _origins(story, "B", 2)[:1] == _origins(story, "A", 2)
    assert _origins(story, "B", 4)[:1] == _origins(story, "A", 4)
    assert _origins(story, "A", 2) != _origins(story, "A", 4)


def test_copy_that_was_written_and_not_reported_before_the_process_ended_is_of_its_leader() -> None:
    """A write of the same step failed: the process ended before it reported what it had written until then."""
    story = Story(RECORDS).append("B", 0, 5, 0, "leader").follows("A", "B", 0, 0)
    story.append("A", 0, 3, 0, "follower").started("A").recovered("A", 4)
    assert _origins(story, "B", 3) == _origins(story, "A", 3)
    assert _origins(story, "B", 2) == _origins(story, "A", 2)
    assert not _origins(story, "A", 4)


def test_copy_that_was_not_reported_is_of_unknown_origin_if_its_leader_wrote_anew_there() -> None:
    story = Story(RECORDS).append("B", 0, 5, 0, "leader").follows("A", "B", 0, 0)
    story.append("A", 0, 3, 0, "follower").started("B").recovered("B", 3).append("B", 3, 5, 0, "leader")
    story.started("A").recovered("A", 5)
    assert [UNKNOWN] == _origins(story, "A", 4)


def test_what_a_leader_wrote_and_did_not_report_before_it_ended_is_its_own_by_the_epoch_of_the_batch() -> None:
    rules = {"epochs": "yes", "newest_epoch_wins": "yes"}
    story = Story(RECORDS, "kip101", rules=rules).leads("B", 1, 0).append("B", 0, 3, 1, "leader")
    story.started("B").recovered("B", 5, [(1, 0)])
    recovery = story.ops[-1].index
    story.leads("B", 2, 5).follows("A", "B", 2, 0).append("A", 0, 5, 1, "follower")
    assert [[recovery]] * 2 == [_origins(story, node, 4) for node in "AB"]
    other = Story(RECORDS, "kip101", rules=rules).leads("B", 1, 0).append("B", 0, 3, 1, "leader")
    assert [UNKNOWN] == _origins(other.started("B").recovered("B", 5, [(1, 0), (2, 3)]), "B", 4)


@pytest.mark.parametrize("deleted", [True, False])
def test_record_is_the_same_after_a_recovery_whose_epochs_begin_where_a_deletion_may_have_moved_the_start(
    *, deleted: bool
) -> None:
    """A disk error may end the process after its log's start has moved, and before it says so."""
    rules = {"epochs": "yes", "newest_epoch_wins": "yes"}
    story = Story(RECORDS, "kip101", rules=rules).leads("B", 1, 0).append("B", 0, 5, 1, "leader")
    written = story.ops[-1].index
    if deleted:
        story.add(Source.CLIENT, "client-8", OpType.INVOKE, "delete-records", **TOPIC, before=3)
    story.started("B").recovered("B", 5, [(1, 3)])
    assert [written, *([] if deleted else [None, UNKNOWN])] == _origins(story, "B", 4)


def test_what_a_leader_wrote_and_did_not_report_before_it_ended_is_of_unknown_origin_without_epochs() -> None:
    """So is what a process wrote that reported nothing of a leader."""
    story = Story(RECORDS).leads("B", 0, 0).append("B", 0, 3, 0, "leader").started("B").recovered("B", 5)
    assert [UNKNOWN] == _origins(story, "B", 4)
    story.follows("A", "B", 0, 0).started("A").started("A").recovered("A", 5)
    assert [UNKNOWN] == _origins(story, "A", 4)


def test_copy_of_an_append_that_is_reported_later_is_not_of_one_that_its_leader_had_cut_and_written_over() -> None:
    """A lost offsets 0 to 4 as it followed B, leads again, and B's copy of 0 to 6 comes before A's own append."""
    story = Story({}, "kip101").leads("A", 0, 0).append("A", 0, 4, 0, "leader")
    story.follows("A", "B", 1, 4).cut("A", 4, 0, "epoch-answer", 1).leads("A", 2, 0)
    story.append("A", 0, 2, 2, "leader").follows("B", "A", 2, 0).append("B", 0, 6, 2, "follower")
    story.append("A", 2, 6, 2, "leader")
    written = [op.index for op in story.ops if op.f == "append" and op.process == "A"]
    assert written[1:] == [_origins(story, "B", offset)[-1] for offset in (1, 3)]


def test_record_went_with_the_disk_though_the_next_start_tells_of_no_log() -> None:
    """B starts on a new disk, hears of no partition until it is flushed, and loses its power again."""
    story = lost_disk(replicated("kip101").fault("kill", "B"), "B").started("B").fault("restart", "B")
    story.fault("flush", "B").fault("power-loss", "B").started("B").recovered("B", 0)
    (origin, _) = _origins(story, "B", 4)
    assert origin is not None
    (fate,) = fates_of(story.ops, 4, origin)["B"]
    assert fate.end is not None
    assert Cause.POWER is fate.end.cause, fate.end.text


@pytest.mark.parametrize(("epochs", "own", "back"), [
    ([], "yes", True),
    ([(2, 2)], "yes", False),  # the last batch has the epoch of what was written since
    ([], "no", False),  # a broker that keeps no epochs tells nothing by it
])  # fmt: skip
def test_old_tail_without_epochs_is_back_in_place_of_what_was_written_since(
    epochs: list[tuple[int, int]], own: str, *, back: bool
) -> None:
    """A led without epochs within an upgrade, cut what B lacks, and loses its power (seed 941)."""
    rules = {"epochs": "yes", "newest_epoch_wins": "yes"}
    story = installed(Story(RECORDS, "kip101", rules=rules), rules | {"epochs": "no"})
    story.leads("A", 1, 0).append("A", 0, 1, -1, "leader").append("A", 1, 3, -1, "leader")
    installed(story, rules | {"epochs": own}).follows("A", "B", 2, 3).cut("A", 3, 1, "high-watermark")
    story.leads("B", 2, 1).append("B", 1, 2, 2, "leader").append("B", 2, 3, 2, "leader")
    story.append("A", 1, 2, 2, "follower").append("A", 2, 3, 2, "follower").started("A").recovered("A", 3, epochs)
    for offset in (1, 2):
        old, none, new, *since = _origins(story, "A", offset)
        assert (none, [new]) == (None, _origins(story, "B", offset))
        assert ([None, old] if back else []) == since
    assert 1 == len(_origins(story, "A", 0))


def installed(story: Story, rules: dict[str, str]) -> Story:
    return story.add(
        Source.RUNNER, "runner", OpType.INFO, "installed", node="A", protocol="kip101@hw", rules=rules
    )


@pytest.mark.parametrize(
    ("then", "cleaned", "end", "epochs", "kept"),
    [
        (2, 2, 4, [(1, 0), (2, 2)], True),
        (3, 2, 4, [(1, 0), (3, 2)], True),  # no batch of epoch 2 is left, and the log goes on in a newer one
        (2, 2, 4, [(1, 0)], False),  # it goes on in the old epoch: all that is newer is lost
        (2, 2, 1, [(1, 0)], False),  # it is shorter, whatever was compacted
        (2, 2, 4, [(1, 0), (4, 1)], False),  # something newer is at 1
        (2, 1, 4, [(1, 0), (2, 2)], False),  # nobody has compacted as far
        (2, 0, 4, [(1, 0), (2, 2)], False),
    ],
)
def test_record_is_still_there_after_a_recovery_whose_epoch_starts_above_what_compaction_has_removed(
    then: int, cleaned: int, end: int, epochs: list[tuple[int, int]], *, kept: bool
) -> None:
    """The batch at 1, the first of epoch 2, is gone by compaction; another of that epoch follows (seed 877)."""
    rules = {"epochs": "yes", "newest_epoch_wins": "yes"}
    story = Story(RECORDS, "kip380", rules=rules).leads("A", 1, 0).append("A", 0, 1, 1, "leader")
    story.leads("A", 2, 1).append("A", 1, 2, 2, "leader").leads("A", then, 2).append("A", 2, 4, then, "leader")
    if cleaned:
        story.broker("A", "cleaned", **TOPIC, upto=cleaned, size=100)
    story.fault("power-loss", "A").fault("restart", "A").started("A").recovered("A", end, epochs)
    written, *since = _origins(story, "A", 3)
    assert (written is not None, not since) == (True, kept)


@pytest.mark.parametrize(
    ("cleaned", "again", "epochs", "back"),
    [
        (2, False, [(1, 0), (2, 2)], True),
        (2, True, [(1, 0), (2, 2)], True),
        (2, False, [(1, 0), (2, 1)], True),  # the batch at 1 is there after all
        (2, False, [(1, 0)], False),  # something older is there
        (2, False, [(1, 0), (4, 1)], False),  # something newer
        (1, False, [(1, 0), (2, 2)], False),  # nobody has compacted as far
        (0, False, [(1, 0), (2, 2)], False),
    ],
)
def test_tail_is_back_though_compaction_has_removed_its_first_batch(
    cleaned: int, epochs: list[tuple[int, int]], *, again: bool, back: bool
) -> None:
    """
    A cuts to 1, as its leader's compaction left no batch of epoch 2, and a power loss undoes that.

    A's own checkpoint still said that epoch 2 began at 1; what it finds at its start begins at its next batch.
    """
    rules = {"epochs": "yes", "newest_epoch_wins": "yes"}
    story = Story(RECORDS, "kip380", rules=rules).leads("A", 1, 0).append("A", 0, 1, 1, "leader")
    if again:  # what was at 1 in the epoch before, and was cut
        story.append("A", 1, 2, 1, "leader").cut("A", 2, 1, "epoch-answer", 1)
    story.leads("A", 2, 1).append("A", 1, 2, 2, "leader").append("A", 2, 4, 2, "leader")
    if cleaned:
        story.broker("A", "cleaned", **TOPIC, upto=cleaned, size=100)
    story.follows("A", "B", 3, 4).cut("A", 4, 1, "epoch-answer", 3)
    story.fault("power-loss", "A").fault("restart", "A").started("A").recovered("A", 4, epochs)
    for offset in (1, 2, 3):
        *_, written, none, since = _origins(story, "A", offset)
        assert none is None and written is not None
        assert since == (written if back else UNKNOWN)


@pytest.mark.parametrize(("cleaned", "known"), [(2, True), (1, False)])
def test_copy_that_was_not_reported_is_its_leaders_though_compaction_had_removed_its_first_batch(
    cleaned: int, *, known: bool
) -> None:
    """B ends after the append of what A had left of epoch 2, and before it tells."""
    rules = {"epochs": "yes", "newest_epoch_wins": "yes"}
    story = Story(RECORDS, "kip380", rules=rules).leads("A", 1, 0).append("A", 0, 1, 1, "leader")
    story.follows("B", "A", 1, 0).append("B", 0, 1, 1, "follower")
    story.leads("A", 2, 1).append("A", 1, 2, 2, "leader").append("A", 2, 4, 2, "leader")
    story.broker("A", "cleaned", **TOPIC, upto=cleaned, size=100)
    story.follows("B", "A", 2, 1).started("B").recovered("B", 4, [(1, 0), (2, 2)])
    for offset in (1, 2, 3):
        assert [_origins(story, "A", offset), [UNKNOWN]][not known] == _origins(story, "B", offset)
