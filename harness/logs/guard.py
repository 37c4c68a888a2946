"""
Call the log reader of a target, and take no more from it than a log can have.

A target is code that the harness has not seen. So what its reader returns is looked at (values.py) before it is
used, and all of it is counted: a reader that yields the same record for ever, or new ones without end, ends in a
problem of the log that names the target and the part, as everything does that cannot be read. Where no log is
read, as for where a byte is to be flipped, it ends in a ReaderError.

    batches that do not rise      LOG_FINDINGS_MAX of a log, as of any other finding
    batches of a log              one for each byte of the node's files, as each takes one there; LOG_BATCHES_MIN
                                  in any case, for a log that is not in these files
    records of a batch            LOG_BATCH_RECORDS_MAX
    text that is held at a time   LOG_TEXT_CHARACTERS_MAX
    findings, epochs, names       LOG_FINDINGS_MAX, EPOCHS_MAX, FOLDER_NAMES_MAX

These are counts and no times, so that a busy machine does not change what is read. One that neither yields nor
returns is ended by its time alone (asked.py).
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Final, TypeVar

from harness import limits
from harness.bit_rot import Flip
from harness.logs.asked import Asked, ReaderError
from harness.logs.names import shown
from harness.logs.replica import BatchSeen, ReplicaLog
from harness.logs.stream import Open, Reading
from harness.logs.values import NonsenseError, characters_of, is_number, is_path, is_place, what, wrong_log
from harness.model import FencepostError

T = TypeVar("T")

_BATCHES: Final = "the batches of a log"


class Guard(Asked):
    """
    The guard of one target's reader; each call asks the reader once.

    Raises:
        ReaderError: It raised an error that no reader may raise, or returned what none may return, or is asked no
            more.
        FencepostError: As the reader.
        OSError: As the reader.
    """

    def partitions(self, ask: Callable[[], Iterable[tuple[str, int]]]) -> list[tuple[str, int]]:
        """Return the replicas that a reader finds in a node's folder, each once."""
        expected = f"the (topic, partition) of at most {limits.FOLDER_NAMES_MAX} replicas"
        return list(dict.fromkeys(self._listed(ask, is_place, expected)))

    def paths(self, ask: Callable[[], Iterable[str]]) -> Sequence[str]:
        """Return files below a node's folder."""
        return self._listed(ask, is_path, f"at most {limits.FOLDER_NAMES_MAX} paths below the node's folder")

    def place(self, ask: Callable[[], tuple[str, int] | None]) -> tuple[str, int] | None:
        """Return the (topic, partition) of the replica whose folder this is, if it is one's."""
        return self._one(ask, is_place, "a (topic, partition), or None")

    def end(self, ask: Callable[[], int | None]) -> int | None:
        """Return where a log ends, None if the reader cannot say it at once."""
        return self._one(ask, is_number, "an offset of 64 bits, or None")

    def flip(self, ask: Callable[[], Flip | None]) -> Flip | None:
        """Return which byte is to be flipped, None if there is none."""
        expected = "a Flip of one byte in a file below the node's folder, or None"
        return self._one(ask, lambda found: isinstance(found, Flip) and is_path(found.path), expected)

    def said(self, ask: Callable[[], str]) -> str:
        """Return what a reader says of a file, safe to print."""
        return shown(self._one(ask, lambda found: isinstance(found, str), "a text") or "")

    def opening(self, opened: Open, topic: str, partition: int, files: Path) -> Open:
        """
        Return how to open a guarded reading of a log.

        Args:
            files: The node's folder, whose bytes bound the log.
        """
        return lambda: _Guarded(self, opened, topic, partition, files)

    def _one(self, ask: Callable[[], T | None], fits: Callable[[object], bool], expected: str) -> T | None:
        found = self._asked(ask, expected)
        if found is not None and not fits(found):
            raise ReaderError(self.nonsense(what(found), expected))
        return found

    def _listed(self, ask: Callable[[], Iterable[T]], fits: Callable[[object], bool], expected: str) -> list[T]:
        found = self._asked(lambda: list(islice(ask(), limits.FOLDER_NAMES_MAX + 1)), expected)
        wrong = next((each for each in found if not fits(each)), None)
        if wrong is not None or None in found:
            raise ReaderError(self.nonsense(what(wrong), expected))
        if len(found) > limits.FOLDER_NAMES_MAX:
            raise ReaderError(self.nonsense(f"more, up to {what(found[-1])}", expected))
        return found

    def _asked(self, ask: Callable[[], T], expected: str) -> T:
        if self.late:
            raise ReaderError(self.late)
        try:
            return self.call(ask, expected)
        except (FencepostError, OSError):
            raise
        except Exception as error:
            raise ReaderError(self.raised(error, expected)) from error


class _Guarded:
    """A reading of which no more is taken than a log can have; see harness/logs/stream.py for every call."""

    def __init__(self, guard: Guard, opened: Open, topic: str, partition: int, files: Path) -> None:
        self._guard = guard
        self._place = topic, partition
        self._files = files
        # Why the rest of the log was not taken, "" while all was.
        self._broken = guard.late
        self._end: int | None = None
        self._batches_max = limits.LOG_BATCHES_MIN
        self._count = self._backwards = self._characters = 0
        self._reading: Reading | None = None
        if self._broken:
            return
        expected = "a reading of the log"
        try:
            self._reading = guard.call(opened, expected)
        except Exception as error:
            self._broken = guard.raised(error, expected)

    def batches(self, value_characters_max: int | None) -> Iterator[BatchSeen]:
        """
        Yield the batches up to the first that no reader may yield.

        Those that only repeat offsets wait until one follows that does not: a log may be so, and then its reader
        comes to its end. One that does not is at fault itself, and its repetitions are not held against the log.
        """
        if self._reading is None:
            return
        waiting: list[BatchSeen] = []
        steps = self._guard.steps
        steps.what = _BATCHES
        try:
            steps.began += 1
            for found in self._reading.batches(value_characters_max):
                steps.ended = steps.began
                self._broken = self._broken or self._refusal(found, whole=value_characters_max is None)
                if self._broken:
                    return
                end = self._end
                batch = self._mended(found, value_characters_max)
                waiting.append(batch)
                if end is None or batch.end > end or found.problem:
                    yield from waiting
                    waiting.clear()
                steps.what = _BATCHES
                steps.began += 1
            steps.ended = steps.began
            yield from waiting
        except Exception as error:
            self._broken = self._guard.raised(error, _BATCHES)
        finally:
            steps.ended = steps.began

    def log(self) -> ReplicaLog:
        """Return what is known so far; if that is nonsense, that it is, and that nothing is known."""
        topic, partition = self._place
        found = self._known()
        known = found is not None
        if found is None:
            found = ReplicaLog(
                topic=topic,
                partition=partition,
                log_start_offset=0,
                log_end_offset=0,
                batches=(),
                epochs=None,
                high_watermark=None,
            )
        if (found.topic, found.partition, found.batches) != (topic, partition, ()):
            found = replace(found, topic=topic, partition=partition, batches=())
        if not self._broken:
            return found
        # What its reader knows of the rest does not count: the log is as long as what was taken of it.
        start = found.log_start_offset
        end = start if self._end is None else max(start, self._end)
        unread = (*found.unread, (end if known else 0, None))
        return replace(found, log_end_offset=end, problems=(*found.problems, self._broken), unread=unread)

    def unsettled(self) -> str:
        """Return why what was read may mix two states of the log; one that is broken is not read again."""
        if self._reading is None or self._broken:
            return ""
        expected = "why the log may mix two states"
        try:
            return shown(str(self._guard.call(self._reading.unsettled, expected)))
        except Exception as error:
            return self._guard.raised(error, expected)

    def close(self) -> None:
        """Close the reading."""
        if self._reading is not None:
            with suppress(Exception):
                self._guard.call(self._reading.close, "the end of a reading")

    def _known(self) -> ReplicaLog | None:
        """Return what the reader knows of the log; None if that is nonsense."""
        expected = "a log's start, end, epochs and findings"
        if self._reading is None:
            return None
        try:
            found = self._guard.call(self._reading.log, expected)
            why = wrong_log(found, self._end)
        except Exception as error:
            self._broken = self._broken or self._guard.raised(error, expected)
            return None
        if not why:
            return found
        self._broken = self._broken or self._guard.nonsense(why, expected)
        return None

    def _refusal(self, batch: BatchSeen, *, whole: bool) -> str:
        """Return why no reader may yield this batch here, "" if it may."""
        try:
            characters = characters_of(batch)
        except NonsenseError as error:
            expected = "a BatchSeen, with whole numbers, and records with digest and text"
            return self._guard.nonsense(str(error), expected)
        self._count += 1
        if self._count > self._batches_max:
            self._batches_max = max(self._batches_max, _bytes_of(self._files))
        if self._count > self._batches_max:
            expected = f"at most {self._batches_max}, as the node's files have that many bytes or fewer"
            return self._guard.nonsense(f"a batch at offset {batch.base}, number {self._count}", expected)
        if self._end is not None and batch.base < self._end:
            self._backwards += 1
            # One more than the comparison of logs takes, which says so itself.
            if self._backwards > limits.LOG_FINDINGS_MAX + 1:
                found = f"a batch at offset {batch.base} after one that ends at {self._end}, and so for the"
                # The files of a log may go back as often; but they have a byte for each batch at least.
                at_fault = self._count > _bytes_of(self._files)
                says = self._guard.nonsense if at_fault else self._guard.text
                return says(f"{found} {self._backwards}th time", "offsets that rise")
        self._characters = characters + (self._characters if whole else 0)
        if self._characters > limits.LOG_TEXT_CHARACTERS_MAX:
            found = f"values of {self._characters} characters, up to offset {batch.base}"
            return self._guard.text(found, f"at most {limits.LOG_TEXT_CHARACTERS_MAX} at a time")
        return ""

    def _mended(self, batch: BatchSeen, value_characters_max: int | None) -> BatchSeen:
        """Return the batch with what its reader may have left to do: to cut values, to say that it goes back."""
        if value_characters_max is not None and any(
            # A value that was cut has one character more, which says so.
            text is not None and len(text) > value_characters_max + 1
            for _, _, text in batch.records
        ):
            cut = tuple((at, digest, _cut(text, value_characters_max)) for at, digest, text in batch.records)
            batch = replace(batch, records=cut)
        if self._end is not None and batch.base < self._end and not batch.problem:
            expected = f"expected {self._end} or later, the end of the batch before it"
            batch = replace(batch, problem=f"base offset is {batch.base}; {expected}")
        self._end = batch.end if self._end is None else max(self._end, batch.end)
        return batch


def _cut(text: str | None, characters_max: int) -> str | None:
    return text if text is None or len(text) <= characters_max else f"{text[:characters_max]}…"


def _bytes_of(files: Path) -> int:
    """Return the bytes of the files below a folder, of at most FOLDER_NAMES_MAX; no link is followed."""
    found = looked = 0
    for above, _, names in os.walk(files):
        for name in names[: limits.FOLDER_NAMES_MAX - looked]:
            looked += 1
            with suppress(OSError):
                found += os.lstat(os.path.join(above, name)).st_size
    return found
