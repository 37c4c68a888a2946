"""
What of such groups is not about losses: replicas that differ, polled metadata, offsets with gaps, second stores.

The runs are those of tests/checkers/plants/quorum.py.
"""

from __future__ import annotations

from typing import Any, Final

from harness.logs.record import sent_digest
from harness.model import Kind
from tests.checkers.plants.changes import Change, delete_before, each_of, last_read, nothing
from tests.checkers.plants.edit import Edit
from tests.checkers.plants.quorum import (
    GROUP,
    LAST,
    LAWFUL,
    LOST,
    also_sent,
    answer,
    failed,
    gone,
    hit,
    look,
    power,
    replicas,
    twin,
)

# --- divergence ----------------------------------------------------------------------------------------------
FLIP: Final = "t-0/1 at byte 9: 0x00 -> 0x01, batch of offsets 4 to 4"


def _other(node: str, offset: int) -> Change:
    """Return a change in which a node holds a record without an answer in place of another."""

    def change(edit: Edit) -> None:
        also_sent(edit, "m3.0", None, answer(edit, LAST))
        edit.rewrite(node, offset, "m3.0")

    return change


DIVERGED = [
    *twin(
        "quorum-diverged-by-power",
        GROUP,
        each_of(_other("C", 4), power("ABC", "m2.0")),
        power("ABC", "m2.0"),
        Kind.DIVERGED,
    ),
    *twin("quorum-diverged-by-no-fault", GROUP, _other("A", 4), nothing, Kind.DIVERGED),
    *twin(
        "quorum-diverged-beside-a-flip",
        GROUP,
        each_of(_other("C", 5), hit("bit-rot", "C", "bit-rot", probe=FLIP)),
        each_of(_other("C", 4), hit("bit-rot", "C", "bit-rot", probe=FLIP)),
        Kind.DIVERGED,
    ),
]


# --- files that keep no record --------------------------------------------------------------------------------
def _flipped(node: str, file: str, of: str) -> Change:
    """Return a change in which a fault flips a byte of a file of a node."""
    return hit("bit-rot", node, "bit-rot", probe=f"t-0/{file} at byte 9: 0x05 -> 0x04, {of}; seen")


def _beside(name: str, taken: Change, node: str, state: str, offset: int, *kinds: Kind) -> list[Any]:
    """Return a plant in which a file that keeps no record was flipped, and its twin: the block with the record."""
    return twin(
        name,
        GROUP,
        each_of(taken, _flipped(node, f"{state}.idx", f"no record but {state}")),
        each_of(taken, _flipped(node, "1.blk", f"batch of offsets {offset} to {offset}")),
        *kinds,
        lawful=LAWFUL if LOST in kinds else (),
    )


OF_STATES: Final = [
    *_beside("quorum-gone-beside-a-flipped-term", gone(5), "A", "term", 5, LOST),
    *_beside("quorum-diverged-beside-a-flipped-snapshot", _other("C", 4), "C", "snapshot", 4, Kind.DIVERGED),
    *_beside("gap-beside-a-flipped-index", gone(3, "C"), "C", "index", 3, Kind.HOLE),
]


# --- polled metadata -----------------------------------------------------------------------------------------
TWO: Final = Kind.TWO_LEADERS
POLLED = [
    *twin("polled-two-leaders-of-a-term", GROUP, look(LAST, "C", 3), look(LAST, "C", 9), TWO),
    *twin("polled-two-leaders-of-the-first-term", GROUP, look("m1.0", "B", 1), look("m1.0", None, 1), TWO),
    *twin(
        "polled-two-leaders-with-none-between",
        GROUP,
        each_of(look(LAST, "A", 3), look("m2.0", None, 3)),
        each_of(look(LAST, "B", 3), look("m2.0", None, 3)),
        TWO,
    ),
    *twin(
        "polled-term-that-falls",
        GROUP,
        look(LAST, "B", 2),
        each_of(look(LAST, "C", 7, "ABD"), look("m1.2", "D", 2, "ABCD")),
        Kind.WRONG_LEADER,
    ),
]


# --- offsets that need not follow each other -----------------------------------------------------------------
HOLE: Final = Kind.HOLE
HOLES = [
    *twin("gap-of-one-replica", GROUP, gone(2, "C"), each_of(gone(2), failed("m1.1")), HOLE),
    *twin("gap-of-the-leader", GROUP, gone(2, "B"), each_of(gone(4), failed("m2.0")), HOLE, LOST),
    *twin(
        "gap-of-an-acknowledged-record",
        GROUP,
        gone(2),
        each_of(gone(2), gone(3), failed("m1.1"), failed("m1.2")),
        LOST,
    ),
    *twin(
        "gap-beside-a-flip",
        GROUP,
        each_of(gone(3, "C"), hit("bit-rot", "C", "bit-rot", probe=FLIP)),
        each_of(gone(4, "C"), hit("bit-rot", "C", "bit-rot", probe=FLIP)),
        HOLE,
    ),
]


# --- logs that begin with 1 ----------------------------------------------------------------------------------
def _starts(nodes: str, read: int) -> Change:
    """Return a change in which the logs of nodes and the last read begin later."""

    def change(edit: Edit) -> None:
        for node in nodes:
            for offset in range(1, 3):
                edit.drop_batch(node, offset)
            edit.change(edit.snapshot(node), log_start_offset=3)
        shown = last_read(edit)["value"]
        shown["start"] = read
        shown["records"] = [each for each in shown["records"] if each[0] >= read]

    return change


def _without_the_first(edit: Edit) -> None:
    """The last read does not show the first record."""
    del last_read(edit)["value"]["records"][0]


EARLY: Final = Kind.DELETED_EARLY
BEGINS = [
    *twin("first-log-that-starts-later", GROUP, _starts("C", 1), nothing, EARLY),
    *twin("first-logs-that-all-start-later", GROUP, _starts("ABC", 3), nothing, EARLY, LOST),
    *twin("first-record-that-a-read-skips", GROUP, _without_the_first, nothing, Kind.WRONG_READ, LOST),
]


# --- two stores of a replica ---------------------------------------------------------------------------------
def _stored(**other: str) -> Change:
    """Return a change in which each node has a Raft log of its records, of these nodes with another value at 4."""

    def change(edit: Edit) -> None:
        also_sent(edit, "m3.0", None, answer(edit, LAST))
        for node in replicas(edit):
            values = [other[node]] if node in other else ["m2.0"]
            for batch in edit.batches(node):
                for value in values if batch["value"]["base"] == 4 else ("",):
                    copy = edit.put_batch(node, batch, store="raft")
                    if value:
                        copy["value"]["records"] = [[4, sent_digest(value), value]]

    return change


def _raft_of_others(node: str) -> Change:
    """Return a change in which one node alone has a Raft log, with another record of offset 4."""

    def change(edit: Edit) -> None:
        also_sent(edit, "m3.0", None, answer(edit, LAST))
        copy = edit.put_batch(node, edit.batch_at(node, 4), store="raft")
        copy["value"]["records"] = [[4, sent_digest("m3.0"), "m3.0"]]

    return change


def _twice_stored(node: str) -> Change:
    """Return a change in which a node's Raft log also has an older record of offset 4."""

    def change(edit: Edit) -> None:
        _stored()(edit)
        copy = edit.put_batch(node, edit.batch_at(node, 4), store="raft")
        copy["value"]["records"] = [[4, sent_digest("m3.0"), "m3.0"]]

    return change


def _without_served(offset: int) -> Change:
    """Return a change in which the served logs and the read begin after an offset that was deleted on purpose."""

    def change(edit: Edit) -> None:
        delete_before(edit, offset + 1)
        for node in replicas(edit):
            edit.change(edit.snapshot(node), log_start_offset=offset + 1)
        shown = last_read(edit)["value"]
        shown["start"] = offset + 1
        shown["records"] = [each for each in shown["records"] if each[0] > offset]

    return change


STORES: Final = Kind.STORES_DIFFER
TWO_STORES = [
    *twin("stores-of-one-replica-differ", GROUP, _stored(A="m3.0"), _stored(), STORES),
    *twin(
        "stores-of-two-replicas-differ",
        GROUP,
        each_of(_stored(C="m3.0"), _without_served(4)),
        each_of(_stored(), _without_served(4)),
        STORES,
    ),
    *twin("stores-of-one-replica-differ-in-its-log-alone", GROUP, _raft_of_others("C"), _stored(), STORES),
    *twin("stores-of-the-leader-differ", GROUP, _stored(B="m3.0"), _twice_stored("B"), STORES),
    *twin(
        "stores-differ-beside-a-flip",
        GROUP,
        each_of(_stored(C="m3.0"), hit("bit-rot", "B", "bit-rot", probe=FLIP)),
        each_of(_stored(C="m3.0"), hit("bit-rot", "C", "bit-rot", probe=FLIP)),
        STORES,
    ),
]
