"""The block of producers' ids that a broker has reserved; `producer_ids` gives them."""

from __future__ import annotations

from dataclasses import dataclass, field

from targets.broker.core.events import Caller


@dataclass(slots=True, kw_only=True)
class ProducerBlock:
    """
    Ids that were reserved and not given, and who waits for more.

    Attributes:
        next, end: the id that is given next, and the one after the last; alike if there is none.
        asked: whether another block is asked for.
    """

    next: int = 0
    end: int = 0
    waiting: list[Caller] = field(default_factory=list)
    asked: bool = False
