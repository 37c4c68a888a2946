"""What is held of a system that has no message for a drawn word: one of its own messages."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import Final

from harness.target.wire import Word

# No member of a quorum is told who leads, and none asks where an epoch ends.
_TOLD_OR_ASKED: Final = frozenset({Word.COMMAND.value, Word.EPOCH_QUESTION.value})


def word_or_own(chance: Random, own: Sequence[str], direction: str, api: str) -> tuple[str, str]:
    """
    Return a direction and a word as they were drawn, or others in their place.

    Args:
        own: names of messages of the system alone; () for a system that has a message for each word.
    """
    if not own or api not in _TOLD_OR_ASKED:
        return direction, api
    return chance.choice(("requests", "answers")), chance.choice(own)
