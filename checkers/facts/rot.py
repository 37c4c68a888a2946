"""
Which bytes of which replica a fault has flipped, and which ends of copies that explains.

A flipped byte takes one batch of one replica. The replica may throw away what lies behind it too, since it copies
its log again from there; what lies before it, nothing takes.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from checkers.facts.fact import fact
from checkers.facts.view import FinalLog, final_logs, key_of
from harness.bit_rot import Flip
from harness.effect import Effect, nature_of
from harness.events import Corrupt, Injection
from harness.model import Op, OpType, events_of

# A folder that is a partition's.
_FOLDER: Final = re.compile(r".+-[0-9]+")


@dataclass(frozen=True, slots=True, kw_only=True)
class Rot:
    """
    A byte of a node's files that a fault flipped.

    Attributes:
        op: the op that tells of it.
        begun: the index of the op with which it was asked for: what it did may be seen before it is told of.
    """

    node: str
    op: Op
    begun: int
    flip: Flip

    def takes(self, offset: int) -> bool:
        """Return True if the flipped byte is of the batch that holds the offset."""
        base, last = self.flip.base, self.flip.last
        return base is not None and last is not None and base <= offset <= last


@fact
def rots(ops: Sequence[Op]) -> list[Rot]:
    """Return every flipped byte of the partition's files, or of the checkpoint that all partitions share."""
    topic, partition = key_of(ops)
    found: list[Rot] = []
    for op, fault in events_of(ops, Injection):
        flip = Flip.of(fault.probe or "") if op.type is OpType.OK else None
        if nature_of(op).effect is not Effect.BIT_ROT or flip is None:
            continue
        if _may_be_of(flip, f"{topic}-{partition}"):
            found += [Rot(node=node, op=op, begun=_begun(ops, op, node), flip=flip) for node in fault.nodes]
    return found


def _may_be_of(flip: Flip, partition: str) -> bool:
    """Return True if a flipped byte may be of a partition: it is in its folder, or no folder says whose it is."""
    folders = flip.partition.split("/") if flip.partition else []
    if partition in folders or not folders:
        return True
    # A replica's second store may have a name of its own, as a Raft group's log; its reader names it by its path.
    keeps_entries = flip.base is None and flip.state is None
    return keeps_entries and not any(_FOLDER.fullmatch(folder) for folder in folders)


def rot_at(ops: Sequence[Op], node: str, to: int, until: int) -> Rot | None:
    """
    Return the flip for which a node may have cut its log to an offset: of a batch that begins there, or before.

    Args:
        ops: the ops of one partition and the global ones.
        node: whose log was cut.
        to: where it ended afterwards.
        until: the index of the op that shows the cut.
    """
    for rot in reversed(rots(ops)):
        if rot.node == node and rot.flip.base is not None and rot.begun < until and rot.flip.base <= to:
            return rot
    return None


def rotten(ops: Sequence[Op], node: str, file: str) -> Rot | None:
    """Return the flip of a byte of a file of the node, by its name or its path, None if there is none."""
    return next((rot for rot in rots(ops) if rot.node == node and file in (rot.flip.file, rot.flip.path)), None)


def ranges_rotten(ops: Sequence[Op], node: str) -> Iterator[tuple[int, int]]:
    """Yield the [first, end) offsets of the node's batches of which a byte was flipped."""
    for rot in rots(ops):
        if rot.node == node and rot.flip.base is not None and rot.flip.last is not None:
            yield rot.flip.base, rot.flip.last + 1


def found_at(ops: Sequence[Op], node: str, offset: int, until_ns: int) -> bool:
    """Return True if the node reported a damaged batch that begins at the offset, by that time."""
    return any(
        op.process == node and told.base == offset and op.time_ns <= until_ns
        for op, told in events_of(ops, Corrupt)
    )


def is_rotten(ops: Sequence[Op], log: FinalLog, offset: int) -> bool:
    """Return True if what the log has at the offset cannot be read, since a fault flipped a byte of it."""
    unread = any(first <= offset < end for first, end in log.snapshot.unread or ())
    return unread and any(rot.node == log.node and rot.takes(offset) for rot in rots(ops))


def may_be_flipped(op: Op, offset: int) -> bool:
    """
    Return True if a byte that a fault flipped, as its op tells, may be of the record at that offset; -1: not
    known.

    A flip that tells no offsets may be of any record: not every system's files tell them. One of a file that keeps
    no record is of none, and takes none: what its node then loses, it loses by itself.
    """
    flip = Flip.of(op.event.probe or "") if isinstance(op.event, Injection) else None
    if flip is not None and flip.state is not None:
        return False
    if flip is None or flip.base is None or flip.last is None or offset < 0:
        return True
    return flip.base <= offset <= flip.last


def flipped(ops: Sequence[Op], node: str, offset: int) -> bool:
    """Return True if a fault of this run may have flipped a byte of the node's record at the offset."""
    return any(
        node in fault.nodes
        and op.type in (OpType.OK, OpType.INFO)
        and nature_of(op).effect is Effect.BIT_ROT
        and may_be_flipped(op, offset)
        for op, fault in events_of(ops, Injection)
    )


def flipped_at(ops: Sequence[Op], node: str, offset: int) -> bool:
    """Return True if a fault of this run flipped a byte of the record at exactly that offset, as it tells."""
    return any(
        node in fault.nodes
        and op.type is OpType.OK
        and nature_of(op).effect is Effect.BIT_ROT
        and (flip := Flip.of(fault.probe or "")) is not None
        and flip.base is not None
        and may_be_flipped(op, offset)
        for op, fault in events_of(ops, Injection)
    )


def damaged_alone(ops: Sequence[Op], log: FinalLog, offset: int, value: str) -> bool:
    """Return True if a fault damaged the log's copy of a record, and another replica has a whole one."""
    others = (other.records.get(offset) for node, other in final_logs(ops).items() if node != log.node)
    return is_rotten(ops, log, offset) and any(held is not None and held.value == value for held in others)


def _begun(ops: Sequence[Op], told: Op, node: str) -> int:
    asked = (
        op.index
        for op, fault in events_of(ops, Injection)
        if op.type is OpType.INVOKE and op.index < told.index and op.f == told.f and node in fault.nodes
    )
    return max(asked, default=told.index)
