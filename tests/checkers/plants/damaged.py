"""Damaged batches of final logs: copied or written so, or left where a fault flipped a byte."""

from __future__ import annotations

from typing import Any

from harness.model import Kind, Source
from tests.checkers.plants.changes import replicas_of
from tests.checkers.plants.edit import Edit, Line
from tests.checkers.plants.plant import plant


def damage(edit: Edit, node: str, offset: int) -> Line:
    """Make the batch of a node's final log that holds the offset one whose checksum differs; return the batch."""
    batch = edit.batch_at(node, offset)
    snapshot, value = edit.snapshot(node), batch["value"]
    end = snapshot["value"]["log_end_offset"]
    edit.drop_batch(node, value["base"])
    text = f"{value['segment']}, position {value['position']}: batch's CRC-32C is 0x00000001, its bytes have 0x2"
    edit.change(snapshot, log_end_offset=end, problems=[text], unread=[[value["base"], value["last"] + 1]])
    return batch


def flipped(edit: Edit, node: str, batch: dict[str, Any]) -> None:
    """Have a fault flip a byte of that batch on the node, as the last thing before the end."""
    setup, value = edit.lines[0]["value"], batch["value"]
    path = f"{setup['topic']}-{setup['partition']}/{value['segment']}"
    where = f"batch of offsets {value['base']} to {value['last']}"
    ended = edit.all(Source.RUNNER, "step", type="ok")[-1]
    bit = edit.fault(ended, "bit-rot-active", node, effect="bit-rot")
    edit.change(bit, probe=f"{path} at byte {value['position'] + 70}: 0x41 -> 0x40, {where}; seen")


def follower_of(edit: Edit) -> str:
    """Return a replica that does not lead at the end."""
    leader = edit.all(Source.METADATA, "state")[-1]["value"]["leader"]
    return next(node for node in replicas_of(edit) if node != leader)


@plant("damaged-batch-of-a-follower", "local-kip101-1", Kind.CORRUPT)
def of_follower(edit: Edit) -> None:
    damage(edit, follower_of(edit), 0)


@plant("damaged-batch-of-a-follower-lawful", "local-kip101-1", Kind.BIT_ROT)
def of_follower_lawful(edit: Edit) -> None:
    node = follower_of(edit)
    flipped(edit, node, damage(edit, node, 0))


@plant("damaged-batch-of-a-follower-sim", "sim-clean", Kind.CORRUPT)
def of_follower_sim(edit: Edit) -> None:
    damage(edit, follower_of(edit), 3)


@plant("damaged-batch-of-a-follower-sim-lawful", "sim-clean", Kind.BIT_ROT)
def of_follower_sim_lawful(edit: Edit) -> None:
    node = follower_of(edit)
    flipped(edit, node, damage(edit, node, 3))


@plant("damaged-batch-of-a-follower-8", "sim-clean-8", Kind.CORRUPT)
def of_follower_8(edit: Edit) -> None:
    damage(edit, follower_of(edit), 0)


@plant("damaged-batch-of-a-follower-8-lawful", "sim-clean-8", Kind.BIT_ROT)
def of_follower_8_lawful(edit: Edit) -> None:
    node = follower_of(edit)
    flipped(edit, node, damage(edit, node, 0))


@plant("damaged-batch-copied-by-the-other", "sim-clean", Kind.CORRUPT, Kind.BIT_ROT, Kind.LOST)
def copied(edit: Edit) -> None:
    """A fault flips a byte on one, and both have it at the end: whoever copied it looked at no checksum."""
    leader = edit.all(Source.METADATA, "state")[-1]["value"]["leader"]
    batch = damage(edit, leader, 0)
    flipped(edit, leader, batch)
    for node in replicas_of(edit):
        if node != leader:
            damage(edit, node, 0)


@plant("damaged-batch-copied-by-the-other-lawful", "sim-clean", Kind.BIT_ROT)
def copied_lawful(edit: Edit) -> None:
    """The other has a whole copy: nothing is lost."""
    leader = edit.all(Source.METADATA, "state")[-1]["value"]["leader"]
    flipped(edit, leader, damage(edit, leader, 0))
