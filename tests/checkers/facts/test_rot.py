"""Which flipped bytes are of a partition's files, by where these are, and which take nothing."""

from __future__ import annotations

import pytest

from checkers.facts.rot import may_be_flipped, rots, rotten
from harness.model import Op, OpType, Source
from tests.checkers.group import Group

BATCH = "batch of offsets 4 to 5"
STORE = "jetstream/$G/streams/t-0/msgs/1.blk"


def flipped(path: str, of: str = BATCH) -> list[Op]:
    """Return a group of which a fault flips a byte of B's file."""
    story = Group("ABC").leads("A", 1, ms=10).acked("m1", "m1.0", 1, ms=1_000)
    probe = f"{path} at byte 9: 0x05 -> 0x04, {of}; seen"
    value = {"nodes": ["B"], "effect": "bit-rot", "band": "mark", "probe": probe}
    story._add(2_000, Source.NEMESIS, "bit-rot", OpType.OK, "nemesis", **value)
    return story.ops


@pytest.mark.parametrize(
    ("path", "found"),
    [
        ("checkpoint", True),
        ("t-0/1.log", True),
        (STORE, True),
        ("t-1/1.log", False),
        ("jetstream/$G/streams/t-1/msgs/1.blk", False),
        ("jetstream/$G/streams/t-01/msgs/1.blk", False),
        ("other/t-0", False),
    ],
)
def test_flipped_byte_is_of_the_partition_that_a_folder_above_it_names(path: str, found: bool) -> None:
    assert ["B"] * found == [rot.node for rot in rots(flipped(path))]


@pytest.mark.parametrize(
    ("path", "of", "found"),
    [
        ("jetstream/$SYS/_js_/S-R3F-FWw0ysSs/msgs/1.blk", "a checkpoint", True),
        ("jetstream/$SYS/_js_/S-R3F-FWw0ysSs/msgs/1.blk", BATCH, False),
        ("jetstream/$SYS/_js_/S-R3F-FWw0ysSs/tav.idx", "no record but term", False),
        ("t-1/leader-epoch-checkpoint", "a checkpoint", False),
        ("t-0/leader-epoch-checkpoint", "a checkpoint", True),
    ],
)
def test_byte_of_a_second_store_may_be_of_any_partition_unless_a_folder_names_one(
    path: str, of: str, found: bool
) -> None:
    assert ["B"] * found == [rot.node for rot in rots(flipped(path, of))]


def test_damaged_file_is_known_by_its_name_and_by_its_path() -> None:
    ops = flipped(STORE)
    for file, node, found in (("1.blk", "B", True), (STORE, "B", True), (STORE, "C", False), ("msgs", "B", False)):
        assert found is (rotten(ops, node, file) is not None), file


@pytest.mark.parametrize(
    ("of", "taken"),
    [(BATCH, [4, 5]), ("a checkpoint", [3, 4, 5, 6])]
    + [(f"no record but {state}", []) for state in ("term", "members", "snapshot", "index", "meta")],
)
def test_flipped_byte_of_a_file_that_keeps_no_record_takes_none(of: str, taken: list[int]) -> None:
    op = flipped(STORE, of)[-1]
    assert taken == [offset for offset in (3, 4, 5, 6) if may_be_flipped(op, offset)]
    assert bool(taken) is may_be_flipped(op, -1)
