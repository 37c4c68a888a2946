"""
The ops that no reader knows: an event, a key or a type of value that harness/events does not have.

What they say may contradict every finding, so they are never skipped in silence (checkers/rules/whole.py).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from checkers.facts.fact import fact
from harness.effect import is_known, nature_of
from harness.events import Injection, Unknown
from harness.model import HistoryError, Op


@fact
def unread(ops: Sequence[Op]) -> list[tuple[Op, str]]:
    """Return each op that cannot be read, and why: what was found, and what was expected."""
    return [(op, why) for op in ops if (why := _why(op))]


def readable(ops: Iterable[Op]) -> list[Op]:
    """Return the ops that can be read."""
    return [op for op in ops if not _why(op)]


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
