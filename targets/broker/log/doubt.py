"""
A log in doubt: a change of its files ended half way, so that its memory and its disk may disagree.

Whoever handles a request may drop it and its connection after any error but this one and a disk's: then a log may
hold bytes that its index does not know, and only recovery, at the next start, can tell. That is why the error is
an OSError: the rule for disk errors, which end the broker, covers it without a word more.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from targets.broker.core.messages import TopicPartition


class LogInDoubtError(OSError):
    """A change of a log's files ended half way, through a bug and not through the disk; the broker must end."""


@contextmanager
def noted(what: str) -> Iterator[None]:
    """Note on a disk's error what it interrupted, for those who read why the broker ended."""
    try:
        yield
    except OSError as error:
        error.add_note(f"in {what}")
        raise


def reason_of(error: BaseException) -> str:
    """Return why the broker cannot go on: the error, with what it interrupted."""
    return " ".join([f"{error!r}", *getattr(error, "__notes__", ())])


@contextmanager
def whole(tp: TopicPartition, what: str) -> Iterator[None]:
    """
    Run a change of a log's files; whatever could be refused was refused before.

    Raises:
        LogInDoubtError: the change raised anything but a disk's error, which comes out as it is, with a note.
    """
    try:
        with noted(f"{what} of {tp}"):
            yield
    except OSError:
        raise
    except Exception as error:
        raise LogInDoubtError(f"{tp}: {what} ended half way: {error!r}; expected it to end whole") from error
