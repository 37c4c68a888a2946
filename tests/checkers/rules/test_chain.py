"""checkers/rules/chain: what a broker may find when it starts again, and what it leaves in the end."""

from __future__ import annotations

import pytest

from checkers.rules.chain.log import recovered
from checkers.rules.chain.node import Epochs, Given, Node
from checkers.rules.chain.rule import chain
from harness.events import Recovered
from tests.checkers.story import TOPIC, Batches, Story

FOLDS = Given()


def _found(epochs: Epochs, end: int, given: Given = FOLDS, had: Epochs = ((0, 0), (1, 2))) -> list[str]:
    """Return what contradicts a recovery of a log that ended at 4 and had records of epoch 1 from 2 on."""
    node = Node("A", end=4, epochs=had, wrote=True)
    about = {"log_end_offset": end, "clean": False, "cut_bytes": 0, "reason": "clean", "high_watermark": 0}
    return [*recovered(node, Recovered(topic="t", partition=0, epochs=epochs, **about), given)]


@pytest.mark.parametrize("end", [5, 6])
def test_process_that_ended_at_a_failed_write_may_leave_appends_of_a_new_epoch(end: int) -> None:
    """Of several batches of one answer the last did not fit on the disk, so that none was reported."""
    assert not _found(((0, 0), (1, 2), (3, 4)), end)


@pytest.mark.parametrize("epochs", [((0, 0), (3, 4)), ((0, 0), (1, 2), (3, 3)), ((0, 0), (1, 1))])
def test_epochs_of_what_was_reported_stay(epochs: Epochs) -> None:
    (said,) = _found(epochs, 6)
    assert said.startswith("found the epochs")


@pytest.mark.parametrize("had", [(), ((1, 2),)])
def test_recovery_may_find_the_first_epoch_again_where_the_letter_has_removed_it(had: Epochs) -> None:
    """Source: KIP-101, Maintaining the LeaderEpochSequenceFile; rule epoch_trim."""
    found = ((0, 1), *had)
    assert not _found(found, 4, Given(folds=False), had)
    (said,) = _found(found, 4, FOLDS, had)
    assert said.startswith("found the epochs 0 from 1")


@pytest.mark.parametrize("others", ["none", "before", "after", "gone"])
def test_decision_that_its_own_replica_has_obeyed_was_read_by_another_controller(others: str) -> None:
    """A deposed controller that does not know it yet reads in ZooKeeper what its successor has written."""
    story = Story({}, "kip101").started("A", "B")
    if others in ("before", "gone"):
        story.broker("A", "controller", epoch=1, active=True)
    if others == "gone":
        story.broker("A", "controller", epoch=1, active=False)
    story.broker("B", "controller", epoch=2, active=True)
    if others == "after":
        story.broker("A", "controller", epoch=3, active=True)
    story.follows("B", "A", 3, 0)
    story.broker("B", "elected", **TOPIC, leader=11, epoch=3, isr=[11, 12], unclean=False, saw=[])
    said = [found.sentence for found in chain(story.done().ops) if "elected" in found.sentence]
    assert (others in ("none", "gone")) == any("elected epoch 3 when it had obeyed" in each for each in said)


@pytest.mark.parametrize(("obeyed", "is_wrong"), [(2, False), (3, True)])
def test_batch_of_an_epoch_that_a_follower_has_not_heard_of_is_no_command(obeyed: int, is_wrong: bool) -> None:
    """
    Before KIP-320 a follower is given what its leader appends in the next epoch, which that one has read itself.

    ZooKeeper's answer to the controller that decided it may come later (kip380, workload upgrade, seed 7350130).
    """
    story = Story({"m": ["m-0"]}, "kip279").started("A", "B")
    story.broker("B", "controller", epoch=1, active=True)
    story.follows("B", "A", obeyed, 0)
    story.broker("B", "checkpoint", **TOPIC, what="epochs", content=[[3, 0]])
    story.append("B", 0, 1, 3, "follower")
    story.broker("B", "elected", **TOPIC, leader=11, epoch=3, isr=[11, 12], unclean=False, saw=[])
    said = [found.sentence for found in chain(story.done().ops) if "elected" in found.sentence]
    assert is_wrong == any("elected epoch 3 when it had obeyed" in each for each in said)


@pytest.mark.parametrize(
    ("batches", "follows", "is_wrong"), [((), False, False), ((), True, True), (((0, ["x-0"]),), False, True)]
)
def test_node_with_an_empty_log_and_no_role_leaves_no_checkpoint_of_a_high_watermark(
    batches: Batches, follows: bool, is_wrong: bool
) -> None:
    """Its disk was lost, and until the end no broker led the partition."""
    story = Story({"x": ["x-0"]}, "kip101").started("A", "B").follows("B", "A", 0, 0)
    story.append("B", 0, 1, 0, "follower").passes("B", 1).started("B")
    if follows:
        story.follows("B", "A", 1, 0)
    story.broker("B", "flush", path="replication-offset-checkpoint", length=9).log("B", batches).done()
    text = "B left no checkpoint of its high watermark, which it wrote"
    assert is_wrong == any(text in anomaly.sentence for anomaly in chain(story.ops))
