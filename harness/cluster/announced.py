"""
Nodes that the metadata name anew and that have not said yet that they registered: their reports are on their way.

A run that is read without such a report contradicts itself (checkers/rules/registrations.py).
"""

from __future__ import annotations

from typing import Final

from harness.events import Member, Members
from harness.events.codec import key_of_kind
from harness.model import Op

_HEARD: Final = frozenset(map(key_of_kind, (Member, Members)))


class Announced:
    """A listener of a history that compares the members with what nodes say of theirs."""

    def __init__(self) -> None:
        self._named: frozenset[str | None] = frozenset()
        self._said: frozenset[str | None] = frozenset()
        self._says = False

    def listen(self, op: Op) -> None:
        """Note who is named, and who says that it registered; called in the thread that records it."""
        if (op.source, op.f) not in _HEARD:
            return
        match op.event:
            case Members(nodes=nodes):
                self._said -= self._named - {*nodes}
                self._named = frozenset(nodes)
            case Member():
                self._said |= {op.process}
                self._says = True

    def awaited(self) -> tuple[str, ...]:
        """Return who is named and has not said so since it was named last; () where nodes do not say it at all."""
        return tuple(sorted(map(str, self._named - self._said - {None}))) if self._says else ()
