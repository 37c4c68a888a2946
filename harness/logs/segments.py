"""
Read the segments of one log into findings: batches, unreadable ranges, and remarks; whichever format they have.

A damaged segment does not stop the reading: the batches before its damage and the other segments are read. Batches
are yielded one by one, so that a log that is larger than memory can be read. A format brings two functions: the
walk over the bytes of a segment (walking.py), and what is seen of a batch of it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import zip_longest
from typing import Generic, TypeAlias, TypeVar

from harness import limits
from harness.beneath import Folder
from harness.logs.checkpoint import CheckpointError
from harness.logs.files import Seen, is_disturbed
from harness.logs.names import shown
from harness.logs.replica import BatchSeen
from harness.logs.source import FileSource, Source, opened
from harness.logs.stream import SETTLE_S_MAX
from harness.logs.walking import Placed, Stop

T = TypeVar("T")
B = TypeVar("B", bound=Placed)
# (source, least base offset of the first batch) -> its batches.
Walk: TypeAlias = Callable[[Source, int], Iterator[B | Stop]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Pieces(Generic[B]):
    """
    The segments of a log, and how their bytes are read.

    Attributes:
        name: The log's path below the node's folder.
        folder: The log's, open.
        segments: Their names by first offset, rising.
    """

    name: str
    folder: Folder
    segments: Mapping[int, str]
    walk: Walk[B]


@dataclass(slots=True, kw_only=True)
class Findings:
    """
    What a scan has found so far.

    Attributes:
        locked: A running broker holds the data directory.
        start: The first segment's first offset.
        end: The end of the furthest sound batch so far, or the last segment's first offset if that is later.
        gone: A file vanished before it was read.
        torn: The last segment ends inside a batch.
    """

    locked: bool = False
    start: int = 0
    end: int = 0
    problems: list[str] = field(default_factory=list)
    unread: list[tuple[int, int | None]] = field(default_factory=list)
    remarks: list[str] = field(default_factory=list)
    cleaned_to: int = 0
    gone: bool = False
    torn: bool = False

    def attempt(self, name: str, read: Callable[[], T]) -> T | None:
        """Return the reader's result; add a problem and return None if the file cannot be read."""
        try:
            return read()
        except CheckpointError as error:
            self.problems.append(str(error))
        except OSError as error:
            self.problems.append(f"{shown(name)}: {error.strerror}")
        return None

    @property
    def full(self) -> bool:
        """Whether so much is wrong that the rest of the log is not read."""
        return len(self.unread) >= limits.LOG_FINDINGS_MAX

    def unsettled(self, before: Seen, after: Seen, *, moved: bool = False) -> str:
        """
        Return why what was read may mix two states of the log, "" if it does not.

        Args:
            before: The log's files before they were read.
            after: And after.
            moved: What is kept beside the log changed meanwhile.
        """
        if self.gone or moved or is_disturbed(before, after):
            return f"its files kept changing for {SETTLE_S_MAX:g} s while they were read"
        if self.torn and (self.locked or before != after):
            return f"a broker is writing to it, and did not finish its last write within {SETTLE_S_MAX:g} s"
        return ""


def read_in_order(found: Findings, log: Pieces[B], seen: Callable[[B, str], BatchSeen]) -> Iterator[BatchSeen]:
    """
    Yield the batches of a log's segments, and move the log's end.

    Args:
        seen: (batch, name of its segment) -> what is seen of it.
    """
    label = shown(log.name)
    if not log.segments:
        found.problems.append(f"{label}: no segment; expected at least one .log file")
    bases = sorted(log.segments)
    found.start = found.end = bases[0] if bases else 0
    for base, following in zip_longest(bases, bases[1:]):
        if found.full:
            found.problems.append(
                f"{label}: more than {limits.LOG_FINDINGS_MAX} unreadable ranges; the rest is not read"
            )
            found.unread.append((found.end, None))
            break
        found.end = max(found.end, base)
        yield from _read_segment(found, log, base, following, seen)


def end_of_newest(log: Pieces[B]) -> int | None:
    """
    Return the log end offset that the newest segment shows; None if there is none, or only a whole scan can say.

    A batch that is being written does not count yet; damage is for a whole scan.

    Raises:
        OSError: The segment cannot be read.
    """
    if not log.segments:
        return None
    end, name = max(log.segments.items())
    with opened(log.folder, name) as source:
        for found in log.walk(source, end):
            if not isinstance(found, Stop):
                end = max(end, found.last_offset + 1)
            elif not found.short:
                return None
    return end


def _read_segment(
    found: Findings, log: Pieces[B], base: int, following: int | None, seen: Callable[[B, str], BatchSeen]
) -> Iterator[BatchSeen]:
    """Yield one segment's batches, and move the end to that of the furthest sound batch so far."""
    name = log.segments[base]
    try:
        with opened(log.folder, name) as source:
            for each in log.walk(source, found.end):
                if isinstance(each, Stop):
                    _note_stop(found, name, each, source, following)
                    if found.full:
                        found.unread.append((found.end, following))
                        return
                    continue
                batch = seen(each, name)
                if batch.unopened:
                    found.problems.append(f"{name}, position {batch.position}: {batch.unopened}")
                    # Of records that are kept one by one, compressed ones have the last offset alone outside: the
                    # first is unknown if they cannot be read, so take the end before them.
                    first = min(batch.base, found.end) if batch.single else batch.base
                    found.unread.append((first, batch.end))
                found.end = max(found.end, batch.end)
                yield batch
                if found.full:
                    found.unread.append((found.end, following))
                    return
    except OSError as error:
        found.problems.append(f"{name}: {error.strerror}")
        found.gone = found.gone or isinstance(error, FileNotFoundError)
        found.unread.append((found.end, following))


def _note_stop(found: Findings, name: str, stop: Stop, source: FileSource, following: int | None) -> None:
    """Report a damaged batch, or the bytes after the last sound one; a running broker's zeros are no damage."""
    if stop.goes_on and stop.damaged is not None:
        base, end, _ = stop.damaged
        found.problems.append(f"{name}, {stop.text}")
        found.unread.append((base, end))
        found.end = max(found.end, end)
        return
    last, zeros = following is None, source.zeros_from(stop.position)
    if last and zeros and found.locked:
        text = "zero bytes behind the log's end, which its broker preallocated"
        found.remarks.append(f"{name}: {source.size - stop.position} {text}")
        return
    found.torn = found.torn or (last and stop.short and not zeros)
    found.problems.append(f"{name}, {stop.text}")
    found.unread.append((found.end, following))
