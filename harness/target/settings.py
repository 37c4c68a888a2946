"""The settings of a scenario's cluster, apart from the protocol; each target maps them to its own names."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final

from harness import limits
from harness.model import UsageError
from harness.numerals import above_zero, whole
from harness.registry import nearest

# Apache Kafka's least log.segment.bytes: the size of a message's header.
SEGMENT_BYTES_MIN: Final = 14


class MessageFormat(StrEnum):
    """Whether batches have a leader epoch; older message formats do not (KIP-101, migration)."""

    WITH_EPOCHS = "with_epochs"
    WITHOUT_EPOCHS = "without_epochs"


# A topic's setting of Kafka that says in which format it is written, and the newest release that wrote each.
FORMAT_SETTING: Final = "message.format.version"
FORMAT_VERSIONS: Final[Mapping[int, str]] = {1: "0.10.2", 2: "0.11.0"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """
    The settings; the defaults are Kafka's, except for times.

    Attributes:
        replica_lag_ms_max: how long a follower may lag and stay in the ISR, in milliseconds; None for longer than
            any run lasts.
        flush_messages: how many records a broker appends to a log before it flushes it; 0 for never.
        segment_bytes: the size at which a log begins its next file; None for larger than any run's log.
        retention_ms: the age from which on a log's files are deleted, in milliseconds; 0 for never.
        retention_bytes: the size of a log from which on its oldest files are deleted; 0 for never.
        compact: of the records of one key the newest stays.
        delete_retention_ms: how long compaction keeps a tombstone, in milliseconds; None for longer than any run.
        keys: of how many keys the records of the schedule's own groups are; 0: they have none.
        tombstones: the groups whose records have a key and no value, so that compaction deletes the key.
        controlled_shutdown_ms: how long a node that is stopped may take until others lead what it leads, in
            milliseconds; 0 for not at all.
        heal_within_s: how long the cluster has to become whole after the faults are undone, in seconds.
    """

    unclean_election: bool = False
    min_isr: int = 1
    message_format: MessageFormat = MessageFormat.WITH_EPOCHS
    replica_lag_ms_max: int | None = None
    flush_messages: int = 0
    segment_bytes: int | None = None
    retention_ms: int = 0
    retention_bytes: int = 0
    compact: bool = False
    delete_retention_ms: int | None = None
    keys: int = 0
    tombstones: tuple[str, ...] = ()
    controlled_shutdown_ms: int = 0
    heal_within_s: float = limits.CONDITION_WAIT_S_MAX


def refuse(system: str, lacking: Mapping[str, object]) -> None:
    """Raise UsageError for the first setting that is asked for; each is one for which the system has nothing."""
    for what, asked in lacking.items():
        if asked:
            raise UsageError(f"{system}: setting {what}: it has nothing for it; expected none")


def refuse_policies(system: str, settings: Settings) -> None:
    """Raise UsageError for an unclean election, retention, compaction or keys: the system has none of them."""
    refuse(
        system,
        {
            "unclean_election=yes": settings.unclean_election,
            "retention": settings.retention_ms or settings.retention_bytes,
            "compact=yes": settings.compact,
            "keys": settings.keys,
            "tombstones": settings.tombstones,
        },
    )


def read_settings(text: str, where: str) -> dict[str, Any]:
    """Parse `NAME=VALUE NAME=VALUE …`; raise UsageError with the word, the place and what was expected."""
    found: dict[str, Any] = {}
    for word in text.split():
        name, equals, value = word.partition("=")
        if not equals or name not in _READERS:
            known = ", ".join(_READERS)
            near = nearest(name, _READERS)
            raise UsageError(f"{where}: setting {word!r}; expected NAME=VALUE with a name of {known}{near}")
        if name in found:
            raise UsageError(f"{where}: setting {word!r}: {name} has a value already; expected each once")
        try:
            found[name] = _READERS[name](value)
        except (ValueError, KeyError) as error:
            raise UsageError(f"{where}: setting {word!r}; expected {name}={_FORMS[name]}") from error
    return found


_READERS: Final[Mapping[str, Callable[[str], Any]]] = {
    "unclean_election": {"yes": True, "no": False}.__getitem__,
    "min_isr": lambda text: whole(text, 1, limits.SCENARIO_NODES_MAX),
    "message_format": MessageFormat,
    "replica_lag_ms_max": lambda text: whole(text, 1, 1000 * limits.SCENARIO_TIME_S_MAX),
    "flush_messages": lambda text: whole(text, 1, limits.SCENARIO_OFFSET_MAX),
    "segment_bytes": lambda text: whole(text, SEGMENT_BYTES_MIN, 2**31 - 1),
    "retention_ms": lambda text: whole(text, 1, 1000 * limits.SCENARIO_TIME_S_MAX),
    "retention_bytes": lambda text: whole(text, 1, 2**31 - 1),
    "compact": {"yes": True, "no": False}.__getitem__,
    "delete_retention_ms": lambda text: whole(text, 0, 1000 * limits.SCENARIO_TIME_S_MAX),
    "keys": lambda text: whole(text, 1, limits.SCENARIO_RECORDS_MAX),
    "tombstones": lambda text: tuple(text.split(",")),
    "controlled_shutdown_ms": lambda text: whole(text, 1, 1000 * int(limits.PROCESS_END_S_MAX)),
    "heal_within_s": lambda text: above_zero(text, limits.SCENARIO_TIME_S_MAX),
}
_FORMS: Final[Mapping[str, str]] = {
    "unclean_election": "yes or no",
    "min_isr": f"a whole number from 1 to {limits.SCENARIO_NODES_MAX}",
    "message_format": " or ".join(MessageFormat),
    "replica_lag_ms_max": f"a whole number from 1 to {1000 * limits.SCENARIO_TIME_S_MAX}",
    "flush_messages": f"a whole number from 1 to {limits.SCENARIO_OFFSET_MAX}",
    "segment_bytes": f"a whole number from {SEGMENT_BYTES_MIN} to {2**31 - 1}",
    "retention_ms": f"a whole number from 1 to {1000 * limits.SCENARIO_TIME_S_MAX}",
    "retention_bytes": f"a whole number from 1 to {2**31 - 1}",
    "compact": "yes or no",
    "delete_retention_ms": f"a whole number from 0 to {1000 * limits.SCENARIO_TIME_S_MAX}",
    "keys": f"a whole number from 1 to {limits.SCENARIO_RECORDS_MAX}",
    "tombstones": "groups of records, with commas between them",
    "controlled_shutdown_ms": f"a whole number from 1 to {1000 * int(limits.PROCESS_END_S_MAX)}",
    "heal_within_s": f"a number above 0, up to {limits.SCENARIO_TIME_S_MAX}",
}
