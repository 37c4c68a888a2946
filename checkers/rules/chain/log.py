"""A broker's log ends where its last append, truncation or recovery left it."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Final

from checkers.rules.chain.checkpoints import below, text_of
from checkers.rules.chain.node import Epochs, Given, Node
from harness.events import WITH_EPOCHS, Append, Recovered, Truncate

_FULL: Final = "full"
# Why a follower truncates once more after one command: its leader's log begins later, or ends earlier; or a batch
# is damaged; or it asks for an older epoch (KIP-279), and falls back to its high watermark when it has none left.
_AGAIN: Final = frozenset({"out-of-range", "corrupt", _FULL})
_WALK: Final = frozenset({"epoch-answer", "no-epoch-information", "high-watermark"})


def follows(node: Node, start: int, words: str) -> Iterator[str]:
    """Yield it if a log does not end where an event says."""
    if node.silent:
        yield "did not say what it found of its log when it was restarted, before it went on"
        node.silent = False
    elif node.end is not None and not node.low <= start <= node.end:
        yield f"{words} {start}, where its log ended at {node.end},"


def recovered(node: Node, log: Recovered, given: Given) -> Iterator[str]:
    """Yield what recovery cannot have found, and go on with what it found."""
    found = log.log_end_offset
    if node.begun:
        yield "said what it found of its log, and not as the first thing that its process did,"
    if not node.unsure and node.end is not None and found < node.low:
        yield f"found {found} as its log's end, where it had {node.end}, and no power was lost,"
    # A process that ends in the middle of its work, as at a disk error, tells of none of its last appends; what it
    # has beyond its last report is theirs, with their epochs.
    upto = found if node.end is None else min(found, node.end)
    if (
        not node.unsure
        and node.wrote
        and node.epochs is not None
        and not (given.mixed and not node.epochs)  # an empty file, and the log was read anew
        and below(_trimmed(log.epochs, node.epochs, given), upto) != below(node.epochs, upto)
    ):
        had = text_of(node.epochs)
        yield f"found the epochs {text_of(log.epochs)}, where it had {had}, and no power was lost,"
    if log.cut_bytes and log.reason.startswith("clean"):
        yield f"cut {log.cut_bytes} bytes of its log at its start, and calls it {log.reason}"
    if any(new <= old for (old, _), (new, _) in pairwise(log.epochs)):
        yield f"found the epochs {text_of(log.epochs)}, which do not rise,"
    if log.clean and not node.closed:
        yield "found the mark of a clean shutdown, and it had left none"
    if node.unsure or node.end is None or found != node.end:
        node.kept = None
    node.end, node.low, node.epochs = found, found, log.epochs
    node.unsure = node.silent = node.closed = False


def _trimmed(found: Epochs, had: Epochs, given: Given) -> Epochs:
    """Return the epochs found, without those that recovery took from records at the log's start."""
    if given.folds:
        return found
    return tuple(entry for entry in found if had and entry[1] >= had[0][1])


def appended(node: Node, added: Append, given: Given) -> Iterator[str]:
    """Yield what an append contradicts, and go on with the longer log."""
    if node.end is None or node.end >= added.base or not given.skips(node.end, added.base):
        yield from follows(node, added.base, "appended from")
    if added.end <= added.base:
        yield f"appended from {added.base} to {added.end}"
    if added.role != node.role and "leader" not in (added.role, node.role):  # `leaders` judges who leads
        yield f"appended as {added.role or 'nobody'} when it was {node.role or 'neither leader nor follower'}"
    if added.role == node.role == "follower" and node.owes:
        yield "appended before it had reported whether it cut its log"
    if added.role == node.role and node.writes_epochs(given):
        yield from _stamped(node, added, given)
    elif added.role == node.role == "leader" and 0 < node.format < WITH_EPOCHS and added.epoch >= 0:
        yield f"appended in epoch {added.epoch}, in message format {node.format}, which has none,"
    node.end, node.low = added.end, added.end
    if node.kept is not None:
        node.kept.append((added.base, added.end))


def _stamped(node: Node, added: Append, given: Given) -> Iterator[str]:
    """Yield it if an append has another epoch than the checkpoint; `leaders` judges who leads which epoch."""
    if added.epoch < 0:
        if added.role == "leader" or not given.mixed:  # its leader may not have taken up the format yet
            yield "appended without an epoch"
    elif not given.newest:
        return  # an older epoch may have won against the one of this append
    elif node.epochs == ():
        yield f"appended in epoch {added.epoch}, and wrote no epoch"
    elif (
        node.epochs
        and node.epochs[-1][0] != added.epoch
        and (added.role, node.epoch) != ("leader", node.epochs[-1][0])
    ):
        yield f"appended in epoch {added.epoch} when its newest epoch was {node.epochs[-1][0]}"


def cut(node: Node, made: Truncate, given: Given) -> Iterator[str]:
    """Yield what a truncation contradicts, and go on with the shorter log."""
    yield from follows(node, made.start, "cut its log from")
    if node.role != "follower":
        yield f"cut its log when it was {node.role or 'neither leader nor follower'}"
    elif made.epoch != node.epoch:
        yield f"cut its log in epoch {made.epoch} when it followed epoch {node.epoch}"
    elif not (node.owes or made.reason in _AGAIN or (made.reason in _WALK and node.walks)):
        yield f"cut its log ({made.reason}), and had nothing to cut for since its last cut"
    if made.reason != _FULL and not (
        made.end <= made.to <= made.start and (made.to < made.start or made.end == made.to)
    ):
        yield f"cut its log from {made.start} to {made.to}, and it ends at {made.end},"
    certain = given.cut_at and node.writes_epochs(given)
    if certain and made.reason != _FULL and node.epochs and node.epochs[-1][1] >= made.to == made.start:
        yield f"kept epoch {node.epochs[-1][0]} from {node.epochs[-1][1]} when it cut its log to {made.to}"
    # A step of KIP-279's walk that changed nothing ends it.
    node.walks = node.changed or made.to < made.start
    node.owes = node.changed = False
    left = 0 if made.reason == _FULL else min(made.to, made.end)
    if made.to < made.start:
        inside = None if node.kept is None else [base for base, end in node.kept if base < left < end]
        node.low = min(0 if inside is None else left, *(inside or (left,)))
    node.end = made.to
    if node.kept is not None:
        node.kept = [(base, min(end, left)) for base, end in node.kept if base < left]
