"""One thing that a rule found, as data."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final

from checkers.jepsen.history import Key, Op, Value

SKIPPED_MAX: Final = 32


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Finding:
    """
    One thing that a rule found.

    Attributes:
        kind: its name in Jepsen.
        key: of which key; None if it is about none.
        values: the values that it is about, in the order of the rule.
        offsets: their offsets, where the rule has them.
        ops: the operations that prove it, in the order of the rule.
        delta: how many indices lie between the two values.
        skipped: the values between them, the first SKIPPED_MAX.
        count: for how many it counts.
        more: what else Jepsen says of it, as JSON.
    """

    kind: str
    key: Key | None = None
    values: tuple[Value, ...] = ()
    offsets: tuple[int, ...] = ()
    ops: tuple[Op, ...] = ()
    delta: int = 0
    skipped: tuple[Value, ...] = ()
    count: int = 1
    more: dict[str, Any] = field(default_factory=dict)
