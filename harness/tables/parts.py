"""What is remembered of one partition while its rows are made: what was acknowledged, and where each log ends."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final, TypeAlias

from harness.kafka_errors import ACKS_ALL
from harness.model import OpType

# How a produce ended: type, offset and error.
End: TypeAlias = tuple[str, int | None, str]

INT32_MAX: Final = 2**31 - 1
INT64_MAX: Final = 2**63 - 1
_DIGITS: Final = "0123456789"
# Beginnings of values that are remembered; values that begin in more ways may not be unique.
_BEGINNINGS_MAX: Final = 10_000


class IrregularError(Exception):
    """An op of a client or a log that does not fit the tables."""


@dataclass(slots=True)
class Log:
    """One replica's log, as far as it was read after its snapshot."""

    log: int
    next: int
    number: int = 0
    before: int | None = None
    stretch: int = 0
    newest: int = -1
    like: tuple[int, int, str] | None = None


@dataclass(slots=True)
class PartSoFar:
    """
    A partition as far as its ops were added.

    Attributes:
        id: its place in the manifest's `parts`.
        acked: the highest offset acknowledged, to anyone; -1 for none.
        promised: likewise, with acks=all.
        logs: by replica.
    """

    id: int
    acked: int = -1
    promised: int = -1
    logs: dict[str, Log] = field(default_factory=dict)
    _by_process: dict[str, tuple[int, int]] = field(default_factory=dict)
    _numbers: dict[str, int] = field(default_factory=dict)

    def end(self, invoked: int, process: str, acks: int, end: End) -> int:
        """
        Take the end of a produce into account.

        Args:
            invoked: the index of its invoke.

        Returns:
            The highest offset that its process was told before, -1 for none.

        Raises:
            IrregularError: it does not fit its type, or comes after what its process sent later.
        """
        type_, offset, error = end
        is_ok = type_ == OpType.OK
        if bool(error) is is_ok or (not is_ok and offset is not None):
            raise IrregularError("ended with keys that do not fit its type")
        if is_ok and (offset is None or offset < 0) and acks != 0:
            raise IrregularError("was acknowledged without an offset")
        last, highest = self._by_process.get(process, (-1, -1))
        if not is_ok:
            return highest
        if invoked < last:
            raise IrregularError("was acknowledged after what its process sent later")
        told = -1 if offset is None else offset
        if told >= INT64_MAX:
            raise IrregularError("has an offset beyond 64 bits")
        self._by_process[process] = (invoked, max(highest, told))
        self.acked = max(self.acked, told)
        if acks == ACKS_ALL:
            self.promised = max(self.promised, told)
        return highest

    def rises(self, value: str) -> bool:
        """Return True if no value before can be the same: they begin otherwise, or end with a lower number."""
        beginning = value.rstrip(_DIGITS)
        digits = value[len(beginning) :]
        number = int(digits) if 0 < len(digits) < 19 else -1
        last = self._numbers.get(beginning, -1)
        if number <= last or (last < 0 and len(self._numbers) >= _BEGINNINGS_MAX):
            return False
        self._numbers[beginning] = number
        return True
