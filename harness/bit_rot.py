"""
A byte of a node's disk that a fault has flipped: where it is, and what the history says of it.

The byte is changed through the filesystem, so that the page cache has it too: as after a disk or its cable gave
back other bytes than it was given. In a log it is a byte of a batch's records, which the batch's checksum covers.
In a checkpoint, which has none, it is a digit that becomes a letter, so that whoever reads the file can see it.
Other files of a replica keep no record, but a part of its state, such as its term and vote: a byte of theirs takes
nothing from its log.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum
from typing import Final, Self

# The flipped bit of a record's byte, and that which makes a letter of a digit.
RECORD_BIT: Final = 0x01
DIGIT_BIT: Final = 0x40


class Where(StrEnum):
    """
    Which file: a segment that is written no more, the one that is written, or a checkpoint; or one of a state.

    TERM: a replica's term and vote. MEMBERS: who votes with it. SNAPSHOT: what stands for the entries that were
    compacted. INDEX: what follows from the log, so that a start need not read it. META: how the log is configured.
    """

    CLOSED = "closed"
    ACTIVE = "active"
    CHECKPOINT = "checkpoint"
    TERM = "term"
    MEMBERS = "members"
    SNAPSHOT = "snapshot"
    INDEX = "index"
    META = "meta"

    @property
    def is_state(self) -> bool:
        """Whether it is a file that keeps a part of a replica's state, and no record."""
        return self not in (Where.CLOSED, Where.ACTIVE, Where.CHECKPOINT)


_STATES: Final = "|".join(where.value for where in Where if where.is_state)
_TEXT: Final = re.compile(
    r"(?P<path>\S+) at byte (?P<position>\d+): 0x(?P<before>[0-9a-f]{2}) -> 0x(?P<after>[0-9a-f]{2}), "
    rf"(?:batch of offsets (?P<base>\d+) to (?P<last>\d+)|a checkpoint|no record but (?P<state>{_STATES}))"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Flip:
    """
    One flipped byte.

    Attributes:
        path: the file, relative to the node's data directory.
        position: the byte's, in the file.
        base: the first offset of the batch; None in a checkpoint, and in a file of a state.
        last: the last offset of the batch; None where base is.
        state: which state the file keeps; None for one that keeps records, and for a checkpoint.
    """

    path: str
    position: int
    before: int
    after: int
    base: int | None = None
    last: int | None = None
    state: Where | None = None

    def __str__(self) -> str:
        where = "a checkpoint" if self.base is None else f"batch of offsets {self.base} to {self.last}"
        where = where if self.state is None else f"no record but {self.state}"
        return f"{self.path} at byte {self.position}: 0x{self.before:02x} -> 0x{self.after:02x}, {where}"

    @classmethod
    def of(cls, text: str) -> Self | None:
        """Return the flip that a text begins with, None if it begins with none."""
        match = _TEXT.match(text)
        if match is None:
            return None
        return cls(
            path=match["path"],
            position=int(match["position"]),
            before=int(match["before"], 16),
            after=int(match["after"], 16),
            base=None if match["base"] is None else int(match["base"]),
            last=None if match["last"] is None else int(match["last"]),
            state=None if match["state"] is None else Where(match["state"]),
        )

    @property
    def file(self) -> str:
        """The file's name."""
        return self.path.rpartition("/")[2]

    @property
    def partition(self) -> str:
        """The directory of the partition, "" for a file of the whole data directory."""
        return self.path.rpartition("/")[0]


def nothing_to_flip(topic: str, partition: int, where: Where) -> str:
    """Return why no byte was flipped, for an error."""
    what = "checkpoint with entries" if where is Where.CHECKPOINT else f"{where.value} segment with a batch"
    what = f"sound file that keeps the {where.value}" if where.is_state else what
    return f"no {what} of {topic}-{partition} to flip a byte of; expected one"
