"""The settings of a scenario's cluster, apart from the protocol; each target maps them to its own names."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final

from harness import limits
from harness.model import UsageError
from harness.registry import nearest


class MessageFormat(StrEnum):
    """Whether batches have a leader epoch; older message formats do not (KIP-101, migration)."""

    WITH_EPOCHS = "with_epochs"
    WITHOUT_EPOCHS = "without_epochs"


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """
    The settings; the defaults are Kafka's, except for times.

    Attributes:
        replica_lag_ms_max: how long a follower may lag and stay in the ISR, in milliseconds; None for longer than
            any run lasts.
        heal_within_s: how long the cluster has to become whole after the faults are undone, in seconds.
    """

    unclean_election: bool = False
    min_isr: int = 1
    message_format: MessageFormat = MessageFormat.WITH_EPOCHS
    replica_lag_ms_max: int | None = None
    heal_within_s: float = limits.CONDITION_WAIT_S_MAX


def read_settings(text: str, where: str) -> dict[str, Any]:
    """Parse `NAME=VALUE NAME=VALUE …`; raise UsageError with the word, the place and what was expected."""
    found: dict[str, Any] = {}
    for word in text.split():
        name, equals, value = word.partition("=")
        if not equals or name not in _READERS:
            known = ", ".join(_READERS)
            near = nearest(name, _READERS)
            raise UsageError(f"{where}: setting {word!r}; expected NAME=VALUE with a name of {known}{near}")
        try:
            found[name] = _READERS[name](value)
        except (ValueError, KeyError) as error:
            raise UsageError(f"{where}: setting {word!r}; expected {name}={_FORMS[name]}") from error
    return found


def _positive(kind: Callable[[str], float]) -> Callable[[str], float]:
    def read(text: str) -> float:
        value = kind(text)
        if not value > 0:
            raise ValueError(text)
        return value

    return read


_READERS: Final[Mapping[str, Callable[[str], Any]]] = {
    "unclean_election": {"yes": True, "no": False}.__getitem__,
    "min_isr": _positive(int),
    "message_format": MessageFormat,
    "replica_lag_ms_max": _positive(int),
    "heal_within_s": _positive(float),
}
_FORMS: Final[Mapping[str, str]] = {
    "unclean_election": "yes or no",
    "min_isr": "a whole number from 1",
    "message_format": " or ".join(MessageFormat),
    "replica_lag_ms_max": "a whole number from 1",
    "heal_within_s": "a number above 0",
}
