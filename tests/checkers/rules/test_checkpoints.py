"""checkers/rules/chain/checkpoints.py: which flushes need a report, and what is left where a log's start moves."""

from __future__ import annotations

import pytest

from checkers.rules.chain.checkpoints import durable, moved, unwritten, written
from checkers.rules.chain.node import Epochs, Given, Node

GIVEN = Given(flushes=True)
EPOCHS = ((0, 0), (1, 4))
LENGTH = len("0\n2\n0 0\n1 4\n")


@pytest.mark.parametrize(("length", "said"), [(LENGTH, 0), (LENGTH + 6, 1)])
def test_flush_of_the_log_makes_the_checkpoint_durable_as_it_is(length: int, said: int) -> None:
    """A nemesis or a new segment flushes the log; a checkpoint of another length needs a report."""
    node = Node("A", epochs=EPOCHS, files=[length], late=True)
    durable(node)
    assert said == len(list(unwritten(node, GIVEN)))


@pytest.mark.parametrize(
    ("folds", "content", "said"),
    [
        (True, ((1, 5),), ""),
        (True, (), "wrote the epochs none, where its log's start left 1 from 5,"),
        (False, (), ""),
        (False, ((1, 5),), "wrote the epochs 1 from 5, where its log's start left none,"),
    ],
)
def test_start_that_moves_leaves_the_last_epoch_up_to_it_but_by_the_letter(
    folds: bool, content: Epochs, said: str
) -> None:
    """Source: KIP-101, Maintaining the LeaderEpochSequenceFile; rule epoch_trim."""
    node, given = Node("A", end=8, epochs=EPOCHS), Given(folds=folds)
    assert not list(moved(node, 5, given))
    assert said == "".join(written(node, content, given))


@pytest.mark.parametrize("reported", [True, False])
def test_checkpoint_of_a_moved_start_is_reported_after_the_append_of_its_step(reported: bool) -> None:
    """A follower's answer brings records of a new epoch, and the start of its leader's log."""
    node = Node("A", end=4, epochs=((0, 0),), files=[LENGTH, len("0\n1\n1 5\n")])
    said = [*written(node, EPOCHS, GIVEN), *unwritten(node, GIVEN), *moved(node, 5, GIVEN)]
    if reported:
        said += written(node, ((1, 5),), GIVEN)
    assert not said
    assert reported != bool(list(unwritten(node, GIVEN)))


@pytest.mark.parametrize("reported", [True, False])
def test_step_that_begins_a_log_anew_reports_two_checkpoints_that_were_flushed_before(reported: bool) -> None:
    """A follower cuts its whole log, and is sent a batch in the middle of which its leader's log starts."""
    node = Node("A", end=2, epochs=(), files=[len("0\n1\n0 0\n"), len("0\n1\n0 2\n")])
    said = [*unwritten(node, GIVEN), *written(node, ((0, 0),), GIVEN), *unwritten(node, GIVEN)]
    said += moved(node, 2, GIVEN)
    if reported:
        said += written(node, ((0, 2),), GIVEN)
    assert not said
    assert reported != bool(list(unwritten(node, GIVEN)))
