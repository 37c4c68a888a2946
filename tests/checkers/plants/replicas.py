"""Final logs beside each other: a follower longer than its leader, one record in two epochs."""

from __future__ import annotations

from harness.model import Kind, Source
from tests.checkers.plants.changes import follower_of, leader_of
from tests.checkers.plants.edit import Edit
from tests.checkers.plants.plant import plant


# --- a follower longer than its leader ---------------------------------------------------------------------------
def _longer(edit: Edit) -> None:
    """The follower keeps a record that m3's last produce sent, and its leader does not have at the end."""
    leader = leader_of(edit)
    last = edit.snapshot(leader)["value"]["log_end_offset"] - 1
    edit.drop_batch(leader, last, cut=True)


@plant("longer-on-kafka-1", "kafka-kip101-1", Kind.LONGER, Kind.LOST, Kind.WRONG_HIGH_WATERMARK)
def longer_1(edit: Edit) -> None:
    _longer(edit)


@plant("longer-on-kafka-2", "kafka-kip101-2", Kind.LONGER, Kind.LOST, Kind.PERMITTED, Kind.WRONG_HIGH_WATERMARK)
def longer_2(edit: Edit) -> None:
    _longer(edit)


@plant("longer-on-ours", "sim-clean", Kind.LONGER, Kind.LOST, Kind.WRONG_HIGH_WATERMARK)
def longer_3(edit: Edit) -> None:
    _longer(edit)


@plant("shorter-not-healed-lawful", "kafka-kip101-1", Kind.STUCK)
def shorter(edit: Edit) -> None:
    """A follower that is behind, in a cluster that did not heal, is stuck and no more."""
    follower = follower_of(edit)
    last = edit.snapshot(follower)["value"]["log_end_offset"] - 1
    edit.drop_batch(follower, last, cut=True)
    healed = edit.find(Source.RUNNER, "healed")
    healed["type"] = "fail"
    healed["value"] = {"missing": "a replica is behind", "waited": True}


# --- one record, two epochs --------------------------------------------------------------------------------------
def _stamped(edit: Edit, nth: int) -> None:
    batch = edit.batches(follower_of(edit))[nth]
    edit.change(batch, epoch=batch["value"]["epoch"] + 1)


@plant("epochs-differ-1", "local-kip101-1", Kind.EPOCHS_DIFFER, Kind.CHECKPOINT, Kind.DISORDER)
def stamped_1(edit: Edit) -> None:
    batch = edit.batches(follower_of(edit))[0]
    edit.change(batch, epoch=2)


@plant("epochs-differ-2", "kafka-kip101-1", Kind.EPOCHS_DIFFER, Kind.CHECKPOINT)
def stamped_2(edit: Edit) -> None:
    _stamped(edit, -1)


@plant("epochs-differ-3", "kafka-kip101-2", Kind.EPOCHS_DIFFER, Kind.CHECKPOINT, Kind.PERMITTED)
def stamped_3(edit: Edit) -> None:
    _stamped(edit, -1)


@plant("epochs-of-another-format-lawful", "kafka-kip101-1")
def other_format(edit: Edit) -> None:
    """A follower that stores an old message format has no epochs."""
    follower = follower_of(edit)
    edit.change(edit.snapshot(follower), epochs=[])
    for batch in edit.batches(follower):
        edit.change(batch, epoch=-1, magic=1)
