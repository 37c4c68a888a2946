"""A broker's epoch checkpoint is the one before, cut, with at most one more epoch, for which an event follows."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

from checkers.rules.chain.node import Epochs, Given, Node
from harness.events import Append, Flush, Leader


def written(node: Node, content: Epochs, given: Given) -> Iterator[str]:
    """Yield it if a checkpoint is not the one before, cut, with at most one more epoch."""
    before, same = node.epochs, 0
    node.epochs, node.wrote, node.changed = content, True, True
    if given.flushes:
        length, node.late = node.files.pop(0) if node.files else None, False
        if length != len(_file(content)):
            yield f"wrote the epochs {text_of(content)}, and flushed {length or 0} bytes of {len(_file(content))}"
    due, node.trims = node.trims, None
    if due is not None:
        if content != due:
            yield f"wrote the epochs {text_of(content)}, where its log's start left {text_of(due)},"
        return
    if before is None:
        return
    for old, new in zip(before, content, strict=False):
        if old != new:
            break
        same += 1
    if len(content) - same > 1:
        yield f"wrote the epochs {text_of(content)} after {text_of(before)}"
    elif len(content) > same and node.end is not None and content[-1][1] < node.end and node.role == "leader":
        yield f"gave epoch {content[-1][0]} the start {content[-1][1]}, where its log ended at {node.end},"
    elif any(new[0] <= old[0] or new[1] < old[1] for old, new in pairwise(content)):
        yield f"wrote the epochs {text_of(content)}, which do not rise,"
    added = content[-1] if len(content) > same else None
    # A cut rewrites the start of the newest epoch that stays.
    node.fresh = None if added is None or (before and added[0] == before[-1][0]) else added


def moved(node: Node, start: int, given: Given) -> Iterator[str]:
    """Note that a log starts further up: the epochs before that are folded into one, of the record there."""
    yield from untrimmed(node)
    held = [entry for entry in node.epochs or () if entry[1] <= start]
    if held:
        first = ((held[-1][0], start),) if given.folds else ()
        left = (*first, *(node.epochs or ())[len(held) :])
        node.trims = left if left != node.epochs else None


def untrimmed(node: Node) -> Iterator[str]:
    """Yield it if the start of a log has moved, and its checkpoint was not trimmed."""
    if node.trims is not None:
        yield f"moved its log's start, and kept the epochs {text_of(node.epochs or ())}"
        node.trims = None


def used(node: Node, event: Leader | Append) -> Iterator[str]:
    """Yield it if an epoch was added to the checkpoint, and what follows is not what it was added for."""
    if node.fresh is None:
        return
    epoch, start = node.fresh
    node.fresh = None
    if isinstance(event, Leader):
        fits = (epoch, start) == (event.epoch, event.log_end_offset)
    else:
        fits = epoch == event.epoch and event.base <= start < event.end
    if not fits:
        yield f"added epoch {epoch} from {start} to its checkpoint, and then reported {_words(event)}"


def unused(node: Node, what: str) -> Iterator[str]:
    """Yield it if an epoch was added to the checkpoint, and nothing was led or appended in it."""
    if node.fresh is not None:
        yield f"added epoch {node.fresh[0]} to its checkpoint, and then reported that it {what}"
        node.fresh = None


def flushed(node: Node, event: Flush, given: Given) -> None:
    """Note that a file is durable: the epoch checkpoint is replaced and flushed before that is reported."""
    if event.path == given.epochs_path:
        node.files.append(event.length)
    elif event.path == given.clean_path:
        node.closed = True


def durable(node: Node) -> None:
    """Note that a flush of the log is complete: it makes the checkpoint durable too, as it is."""
    if node.epochs is not None:
        node.files = [length for length in node.files if length != len(_file(node.epochs))]


def unwritten(node: Node, given: Given) -> Iterator[str]:
    """
    Yield it if a checkpoint was flushed, and none was reported between the event before this one and this one.

    A step that begins a log anew, appends, and then moves the log's start writes two, and flushes both before it
    reports anything.
    """
    if given.flushes and node.files and node.late:
        yield f"flushed {node.files[0]} bytes of a checkpoint that it did not report"
        node.files.clear()
    node.late = bool(node.files)


def below(epochs: Epochs, end: int) -> Epochs:
    """Return the epochs that have records in a log of that end; recovery may drop the others."""
    ends = (*(start for _, start in epochs[1:]), end)
    return tuple(entry for entry, until in zip(epochs, ends, strict=False) if entry[1] < min(until, end))


def text_of(epochs: Epochs) -> str:
    """Return a checkpoint in words."""
    return ", ".join(f"{epoch} from {start}" for epoch, start in epochs) or "none"


def _file(content: Epochs) -> str:
    """Return the checkpoint as a file: a version, the number of entries, and a line for each."""
    return "".join(f"{line}\n" for line in ("0", len(content), *(f"{epoch} {start}" for epoch, start in content)))


def _words(event: Leader | Append) -> str:
    if isinstance(event, Leader):
        return f"that it leads epoch {event.epoch} from {event.log_end_offset} on"
    return f"an append of {event.base} to {event.end} in epoch {event.epoch}"
