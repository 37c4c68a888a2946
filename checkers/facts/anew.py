"""Records that a broker appended again, lawfully, for a client that sends again: it had them no more."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from operator import attrgetter

from checkers.facts.copies import copies_of
from checkers.facts.places import Place
from checkers.facts.replica_log import UNKNOWN, Change
from harness.model import Op


def appended_anew(ops: Sequence[Op], offset: int, node: str, shown_at: int, held: Iterable[Place]) -> bool:
    """
    Return True if all that final logs hold of a value was written after another copy, by leaders that lacked it.

    A broker knows the batches of an idempotent producer from its log alone. Once a fault, or a leader that lacked
    it, has taken a batch from there, what the client sends again is new to the broker, and is appended again.
    Whether the other copy may be gone, the rules of losses judge.

    Args:
        ops: the ops of one partition and the global ones.
        offset: of the other copy.
        node: who showed it to a consumer, "" if the client did not tell.
        shown_at: the index of the poll's answer.
        held: where final logs hold the value.
    """
    shown = _last(ops, offset, node, shown_at)
    if shown is None or shown.origin in (None, UNKNOWN):
        return False
    copies = [_last(ops, each.offset, each.node, ops[-1].index) for each in held]
    return bool(copies) and all(_written_without(ops, offset, shown.origin, copy) for copy in copies)


def _written_without(ops: Sequence[Op], offset: int, origin: int, copy: Change | None) -> bool:
    """Return True if a copy was written after that origin, by a leader whose log had no record of it then."""
    if copy is None or copy.origin is None or copy.origin <= origin:  # UNKNOWN is below all
        return False
    wrote = ops[bisect_left(ops, copy.origin, key=attrgetter("index"))]
    theirs = _last(ops, offset, wrote.process, wrote.index)
    return theirs is None or theirs.origin not in (origin, UNKNOWN)


def _last(ops: Sequence[Op], offset: int, node: str, before: int) -> Change | None:
    """Return the last change at an offset of a node's log before an op; None if there is none."""
    changes = copies_of(ops).changes(offset).get(node, ())
    return next((each for each in reversed(changes) if each.op.index < before), None)
