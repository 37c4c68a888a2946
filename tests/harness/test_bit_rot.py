"""What the history says of a flipped byte can be read again."""

from __future__ import annotations

import pytest

from harness.bit_rot import Flip

BATCH = Flip(path="log-0/00000000000000000005.log", position=97, before=0x41, after=0x40, base=5, last=7)
CHECKPOINT = Flip(path="replication-offset-checkpoint", position=2, before=0x31, after=0x71)


@pytest.mark.parametrize(
    ("flip", "text", "file", "partition"),
    [
        (
            BATCH,
            "log-0/00000000000000000005.log at byte 97: 0x41 -> 0x40, batch of offsets 5 to 7",
            "00000000000000000005.log",
            "log-0",
        ),
        (
            CHECKPOINT,
            "replication-offset-checkpoint at byte 2: 0x31 -> 0x71, a checkpoint",
            "replication-offset-checkpoint",
            "",
        ),
    ],
)
def test_flip_is_read_from_the_beginning_of_a_text(flip: Flip, text: str, file: str, partition: str) -> None:
    assert text == str(flip)
    assert flip == Flip.of(f"{flip}; and what a reader saw")
    assert (file, partition) == (flip.file, flip.partition)


@pytest.mark.parametrize("text", ["", "killed", f"seen: {BATCH}", "log-0/a at byte x: 0x41 -> 0x40, a checkpoint"])
def test_text_that_begins_with_no_flip_has_none(text: str) -> None:
    assert Flip.of(text) is None
