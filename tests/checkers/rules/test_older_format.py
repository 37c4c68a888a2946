"""In a cluster of the older message format a checkpoint may begin anew; what it says must still be right."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from checkers.facts.copies import Copies
from checkers.rules.checkpoint import checkpoint
from harness.model import Op
from tests.checkers.golden import RECORDS
from tests.checkers.story import IDS, Story

RULES = {"epochs": "yes", "newest_epoch_wins": "yes"}
BATCHES = ((0, ("m1.0",)), (-1, ("m2.0",)), (3, ("m3.0",)))
NAMES = {broker: name for name, broker in IDS.items()}


def older(ops: Sequence[Op], message_format: str = "without_epochs") -> list[Op]:
    """Return the ops with this message format in their set-up."""
    setup, *rest = ops
    value = {**setup.value, "rules": RULES, "message_format": message_format}
    return [replace(setup, value=value), *rest]


@pytest.mark.parametrize(("entries", "says"), [
    (((3, 2),), ""),
    ((), ""),
    (((2, 2),), "the batch at 2 has epoch 3, where the checkpoint has epoch 2"),
])  # fmt: skip
def test_checkpoint_that_began_anew_lacks_entries_and_has_no_wrong_ones(
    entries: tuple[tuple[int, int], ...], says: str
) -> None:
    """Source: KAFKA-7897."""
    story = Story(RECORDS, "kip380").log("A", BATCHES, entries)
    found = checkpoint(older(story.ops))
    assert bool(says) == bool(found)
    assert all(says in anomaly.sentence for anomaly in found)


@pytest.mark.parametrize(("start", "message_format", "wrong"), [
    (2, "without_epochs", False),
    (1, "without_epochs", True),
    (2, "with_epochs", True),
])  # fmt: skip
def test_epoch_may_begin_anew_where_the_checkpoint_was_cleared(
    start: int, message_format: str, wrong: bool
) -> None:
    """A topic goes down to the older format and up again under one leader; source: KAFKA-7897."""
    batches = ((0, ("m1.0",)), (-1, ("m2.0",)), (0, ("m3.0",)))
    story = Story(RECORDS, "kip380").log("A", batches, ((0, start),))
    said = [each.sentence for each in checkpoint(older(story.ops, message_format))]
    assert wrong == any(f"entry 0@{start}, but its first batch is at 0" in each for each in said)


def test_with_epochs_every_batch_needs_an_entry() -> None:
    story = Story(RECORDS, "kip380").log("A", BATCHES, ((3, 2),))
    (found,) = checkpoint(older(story.ops, "with_epochs"))
    assert "the batch at 0 has epoch 0, where the checkpoint has no epoch" in found.sentence


@pytest.mark.parametrize(("message_format", "kept"), [("without_epochs", True), ("with_epochs", False)])
def test_recovery_that_tells_later_epochs_alone_says_nothing_of_earlier_records(
    message_format: str, kept: bool
) -> None:
    story = Story(RECORDS, "kip380").append("A", 0, 3, 0, "leader").append("A", 3, 5, 2, "leader")
    story.recovered("A", 5)
    *before, last = story.ops
    ops = older([*before, replace(last, value={**last.value, "epochs": [[2, 3]]})], message_format)
    assert kept == (len(Copies(ops, NAMES).changes(0)["A"]) == 1)


@pytest.mark.parametrize(
    ("trim", "start", "entries", "says"),
    [
        ("up_to_start", 1, ((3, 2),), ""),
        ("up_to_start", 1, ((0, 1), (3, 2)), ""),
        ("up_to_start", 0, ((3, 2),), "the batch at 0 has epoch 0, where the checkpoint has no epoch"),
        ("up_to_start", 1, ((2, 2),), "the batch at 2 has epoch 3, where the checkpoint has epoch 2"),
        ("folded", 1, ((3, 2),), "the batch at 1 has epoch 0, where the checkpoint has no epoch"),
    ],
)
def test_log_that_was_trimmed_by_the_letter_begins_with_records_without_an_entry(
    trim: str, start: int, entries: tuple[tuple[int, int], ...], says: str
) -> None:
    """Source: KIP-101, Maintaining the LeaderEpochSequenceFile."""
    batches = ((0, ("m1.0",)), (0, ("m2.0",)), (3, ("m3.0",)))
    story = Story(RECORDS, "kip380").log("A", batches, entries)
    setup, *rest = story.ops
    ops = [
        replace(setup, value={**setup.value, "rules": {**RULES, "epoch_trim": trim}}),
        *(replace(op, value={**op.value, "log_start_offset": start}) if op.f == "snapshot" else op for op in rest),
    ]
    found = checkpoint(ops)
    assert bool(says) == bool(found)
    assert all(says in anomaly.sentence for anomaly in found)
