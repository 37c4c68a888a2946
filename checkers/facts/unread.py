"""
The ops that no reader knows: an event, a key or a type of value that harness/events does not have.

What they say may contradict every finding, so they are never skipped in silence (checkers/rules/whole.py).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from checkers.facts.fact import fact
from harness.effect import is_known, nature_of
from harness.events import EVENTS, Injection, Unknown
from harness.history.abridged import AbridgedRun
from harness.model import HistoryError, Op, PartOps, Source


@fact
def unread(ops: Sequence[Op]) -> list[tuple[Op, str]]:
    """Return each op that cannot be read, and why: what was found, and what was expected."""
    by_key = ops.by_key if isinstance(ops, PartOps) else PartOps(ops).by_key
    strange = (op for key, group in by_key.items() if not _all_known(key, group) for op in group)
    return [(op, why) for op in sorted(strange, key=lambda op: op.index) if (why := _why(op))]


def _all_known(key: tuple[Source, str], group: Sequence[Op]) -> bool:
    """Whether nothing is strange about the ops of one source and f; most are not looked at one by one."""
    if key not in EVENTS or not {op.type for op in group} <= {*EVENTS[key].TYPES}:
        return False
    try:
        for op in group:
            _ = op.event
    except HistoryError:
        return False
    return True


def readable(ops: Iterable[Op]) -> Sequence[Op]:
    """Return the ops that can be read."""
    found = [op for op in ops if not _why(op)]
    return ops.only(found) if isinstance(ops, AbridgedRun) else found


def _why(op: Op) -> str:
    """Return why the op cannot be read, "" if it can."""
    try:
        event = op.event
        if type(event) is Unknown:
            return f"op {op.index}: {op.source} {op.f!r} is no known event; expected one of docs/history.md"
        if op.type not in event.TYPES:
            expected = ", ".join(event.TYPES)
            return f"op {op.index}: {op.source} {op.f!r} has type {op.type.value}; expected {expected}"
        if type(event) is Injection:
            nature_of(op)
            if not is_known(event):
                return (
                    f"op {op.index}: {op.source} {op.f!r} has no key 'effect'; expected one of harness/effect.py"
                )
    except HistoryError as error:
        return str(error)
    return ""
