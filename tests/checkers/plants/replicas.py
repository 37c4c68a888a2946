"""Final logs beside each other: a follower longer than its leader, one record in two epochs."""

from __future__ import annotations

from harness.model import Kind, Source
from tests.checkers.plants.changes import Change, follower_of, last_read, leader_of, replicas_of
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


@plant("outside-the-isr-lawful", "kafka-kip101-1", Kind.STUCK)
def outside(edit: Edit) -> None:
    """A follower that has all, and never returned to the ISR, is stuck and no more."""
    healed = edit.find(Source.RUNNER, "healed")
    healed["type"] = "fail"
    outside = [f"log-0 {follower_of(edit)}"]
    healed["value"] = {"missing": "a replica in the ISR", "waited": True, "outside": outside}


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


# --- all replicas alike, in another epoch than their leader appended them ----------------------------------------
def _restamped(offset: int, epoch: int, *epochs: tuple[int, int]) -> Change:
    """Return a change in which every replica has the batch in another epoch, and a checkpoint that agrees."""

    def change(edit: Edit) -> None:
        for node in replicas_of(edit):
            edit.change(edit.batch_at(node, offset), epoch=epoch)
            edit.change(edit.snapshot(node), epochs=[list(entry) for entry in epochs])

    return change


def _without_epoch(offset: int) -> Change:
    """Return a change in which every replica has the batch in a message format that has no epochs."""

    def change(edit: Edit) -> None:
        for node in replicas_of(edit):
            edit.change(edit.batch_at(node, offset), epoch=-1, magic=1)

    return change


ALIKE = [
    plant("epochs-changed-alike", "local-kip101-1", Kind.EPOCHS_DIFFER)(_restamped(3, 1, (0, 0), (1, 3))),
    plant("epochs-changed-alike-lawful", "local-kip101-1")(_without_epoch(3)),
    plant("epochs-changed-alike-2", "local-kip101-2", Kind.EPOCHS_DIFFER, Kind.PERMITTED)(
        _restamped(1, 2, (0, 0), (2, 1), (3, 2))
    ),
    plant("epochs-changed-alike-2-lawful", "local-kip101-2", Kind.PERMITTED)(_without_epoch(2)),
    plant("epochs-changed-alike-sim", "sim-clean", Kind.EPOCHS_DIFFER)(_restamped(3, 3, (0, 0), (1, 2), (3, 3))),
    plant("epochs-changed-alike-sim-lawful", "sim-clean")(_without_epoch(3)),
    plant("epochs-changed-alike-unpromised", "sim-unpromised", Kind.EPOCHS_DIFFER, Kind.UNPROMISED)(
        _restamped(3, 4, (0, 0), (2, 2), (4, 3), (8, 4), (9, 5), (10, 9), (13, 10))
    ),
    plant("epochs-changed-alike-kafka", "kafka-kip101-1", Kind.EPOCHS_DIFFER)(_restamped(5, 9, (0, 0), (9, 5))),
    plant("epochs-changed-alike-kafka-lawful", "kafka-kip101-1")(_without_epoch(5)),
    plant("epochs-changed-alike-kafka-2", "kafka-kip101-2", Kind.EPOCHS_DIFFER, Kind.PERMITTED)(
        _restamped(4, 7, (0, 0), (3, 1), (7, 4))
    ),
    plant("epochs-changed-alike-kafka-2-lawful", "kafka-kip101-2", Kind.PERMITTED)(_without_epoch(4)),
    plant("epochs-changed-alike-unpromised-lawful", "sim-unpromised", Kind.UNPROMISED)(_without_epoch(3)),
]


# --- lawful twins ------------------------------------------------------------------------------------------------
def _follower_without_epochs(edit: Edit) -> None:
    """Let the follower store a message format that has no epochs."""
    follower = follower_of(edit)
    for batch in edit.batches(follower):
        edit.change(batch, epoch=-1, magic=1)


def _read_while_it_came(edit: Edit) -> None:
    """Let the leader's log be read before the last record comes, which gets no answer; its follower's later."""
    leader, last = leader_of(edit), edit.find(Source.CLIENT, "produce", type="ok", nth=-1)
    end = last["value"].pop("offset") + 1
    last["type"], last["value"]["error"] = "info", "no answer in time"
    asked = edit.find(Source.CLIENT, "produce", type="invoke", value=last["value"]["value"])
    later = [
        line
        for line in edit.lines[edit.at(asked) :]
        if line in (asked, last)
        or line["f"] == "checkpoint"
        or (line["f"] in ("append", "high-watermark", "fetch", "fetched") and end in line["value"].values())
    ]
    edit.drop_batch(leader, end - 1)
    mark = edit.snapshot(leader)["value"]
    mark["high_watermark"] = min(mark["high_watermark"], end - 1)
    read = last_read(edit)
    edit.change(read, records=read["value"]["records"][:-1], high_watermark=end - 1)
    place_of = read
    for line in (edit.snapshot(leader), *edit.batches(leader), *later):
        edit.move(line, after=place_of)
        place_of = line


TWINS = [
    plant("longer-on-kafka-1-lawful", "kafka-kip101-1")(_read_while_it_came),
    plant("longer-on-kafka-2-lawful", "kafka-kip101-2", Kind.PERMITTED)(_read_while_it_came),
    plant("longer-on-ours-lawful", "sim-clean")(_read_while_it_came),
    plant("epochs-differ-1-lawful", "local-kip101-1")(_follower_without_epochs),
    plant("epochs-differ-2-lawful", "kafka-kip101-1")(_follower_without_epochs),
    plant("epochs-differ-3-lawful", "kafka-kip101-2", Kind.PERMITTED)(_follower_without_epochs),
]
