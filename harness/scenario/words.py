"""
The words that rules of links may name: the general ones, and what each target calls its other messages.

A scenario is read for every target at once, so that it may name the messages of each that is found; `MessageWords`
says what a word means on the wire that is played.

A family of systems hands over the words that scenarios and schedules had before, `OLDER_WORDS` in the module
`older` of its package below targets/. So what was written earlier is read.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from functools import cache, cached_property
from typing import Final

from harness.effect import RENAMED_FAULTS
from harness.events.older import handed_over
from harness.model import PreconditionError, UsageError
from harness.target.found import Found, found
from harness.target.target import Target
from harness.target.wire import ANY, Stands, Word

END: Final = "end"
MESSAGE: Final = "message"
FAULT: Final = "fault"


def messages() -> tuple[str, ...]:
    """Return every word that a rule of links may name, "*" for any message included."""
    return _messages(tuple(found().values()))


@cache
def _messages(targets: tuple[Found, ...]) -> tuple[str, ...]:
    own = (name for each in targets for name in _own(each))
    return tuple(dict.fromkeys((*(word.value for word in Word), *own, ANY)))


def _own(one: Found) -> Collection[str]:
    """Return a target's own names of messages; none of one that cannot be used, as who names it is told."""
    try:
        wire = one.load().wire
    except UsageError:
        return ()
    return () if wire is None else wire.messages


@cache
def older_words(kind: str) -> Mapping[str, str]:
    """Return old word -> word now, for words of one kind: END, MESSAGE or FAULT."""
    tables = ({FAULT: RENAMED_FAULTS}, *handed_over("older", "OLDER_WORDS"))
    return {old: now for table in tables for old, now in table.get(kind, {}).items()}


def present(kind: str, word: str) -> str:
    """Return today's word for an old one; any other word as it is."""
    return older_words(kind).get(word, word)


class MessageWords:
    """The words of rules of links, on the wire of one target under these rules."""

    def __init__(self, target: Target, rules: Mapping[str, str]) -> None:
        self._target = target
        self._rules = rules

    def api_of(self, word: str) -> str:
        """
        Return the `Seen.api` of the frames that a rule with this word is about; "" and "*" mean themselves.

        Raises:
            PreconditionError: the target has no such message on its wire, or its wire does not say.
        """
        if lack := self.lack(word):
            raise PreconditionError(f"not played: {lack}")
        return self._stands[Word(word)].api if word in self._stands else word

    def lack(self, word: str) -> str:
        """Return that the target has nothing that stands for a word, and why; "" if it has."""
        wire = self._target.wire
        if word in ("", ANY) or (wire is not None and word in wire.messages):
            return ""
        stands = self._stands.get(Word(word)) if word in {*Word} else None
        if stands is not None and stands.api:
            return ""
        why = "" if stands is None else f": {stands.own}"
        return f"{self._target.name} has no {word} on its wire{why}"

    @cached_property
    def _stands(self) -> Mapping[Word, Stands]:
        wire = self._target.wire
        try:
            return {} if wire is None else dict(wire.stands(self._rules))
        except Exception as error:
            text = f"target {self._target.name}, wire: stands raised {error!r:.200}"
            raise PreconditionError(f"{text}; expected what stands for each word") from error
