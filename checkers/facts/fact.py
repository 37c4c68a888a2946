"""`fact` makes a function of a partition's ops be derived once, however many rules ask for it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import wraps
from typing import TypeVar

from harness.model import Op, PartOps, Source

_T = TypeVar("_T")


def fact(derive: Callable[[Sequence[Op]], _T]) -> Callable[[Sequence[Op]], _T]:
    """
    Return the function with a cache on the ops, if they are PartOps; a plain list of ops is not cached.

    Every caller gets the same object, and must not change it.
    """

    @wraps(derive)
    def cached(ops: Sequence[Op]) -> _T:
        if not isinstance(ops, PartOps):
            return derive(ops)
        if derive not in ops.facts:
            ops.facts[derive] = derive(ops)
        found: _T = ops.facts[derive]
        return found

    return cached


def give(ops: PartOps, derived: Callable[[Sequence[Op]], _T], value: _T) -> None:
    """Set a fact of ops of which most are left out, so that it is not derived from the others alone."""
    ops.facts[derived.__wrapped__] = value  # type: ignore[attr-defined]  # as `wraps` leaves it


def select(ops: Sequence[Op], source: Source, *fs: str) -> Sequence[Op]:
    """Return the ops of a source in index order; of these f alone, if any is given."""
    if isinstance(ops, PartOps):
        return ops.select(source, *fs)
    return [op for op in ops if op.source is source and (not fs or op.f in fs)]
