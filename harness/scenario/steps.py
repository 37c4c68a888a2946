"""
The steps of a scenario, as values; harness/scenario/runner.py takes them.

`API` may be `question`: what a restarted follower asks first under the protocol played. A link is (from, to) in
the direction of its requests; `*` is any node, and "zookeeper" the other end of a node's own way there.
A cut, a delay or a doubling must have taken a frame before it is healed, and at the end.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from typing import ClassVar, Final, TypeAlias

from harness.scenario.condition_types import CONDITIONS, Condition
from harness.scenario.forms import ARROW, Choice, Options, Perhaps, Rest, Setting, Several, Then
from harness.scenario.grammar import Form, Slot, Statement, Word
from harness.scenario.kinds import (
    ACKS,
    API,
    CODEC,
    DIRECTION,
    EITHER_DIRECTION,
    FAULT,
    GROUP,
    LINK_END,
    MILLISECONDS,
    NODE,
    OFFSET,
    OTHER_END,
    SECONDS,
)
from harness.scenario.offsets import Offset

_API: Final = Slot("api", API)
_LINK: Final = (Slot("src", LINK_END), ARROW, Slot("dst", OTHER_END))
REFUSED: Final = "refused"
MEANWHILE: Final = "meanwhile"


# --- clients and time ------------------------------------------------------------------------------------------
@dataclass(frozen=True, slots=True)
class Produce(Statement):
    """
    Send a group of records: to the leader, or `via A`, whoever leads.

    `refused`: none may be acknowledged within the time of `for`.
    `meanwhile` does not wait: `await acked NAME` does, and the end
    of the run waits for every outcome.
    """

    group: str
    acks: int
    singly: bool = False
    codec: str | None = None
    via: str | None = None
    outcome: str = ""
    within_ms: Decimal | None = None
    FORM: ClassVar[Form] = (
        Word("produce"),
        Slot("group", GROUP),
        Options(
            (
                Setting("acks", Slot("acks", ACKS), needed=True),
                Perhaps(Choice("singly", {"singly": True})),
                Setting("codec", Slot("codec", CODEC)),
                Then("via", Slot("via", NODE)),
                Perhaps(Choice("outcome", {REFUSED: REFUSED, MEANWHILE: MEANWHILE})),
                Setting("for", Slot("within_ms", MILLISECONDS)),
            )
        ),
    )

    def complaint(self) -> str:
        """A refusal is seen by the answer to one batch."""
        if self.outcome == REFUSED and (self.singly or self.acks == 0):
            return "refused, singly or without acks; expected one batch that waits for its answer"
        return ""


@dataclass(frozen=True, slots=True)
class Read(Statement):
    """A client reads all that it may see."""

    via: str | None = None
    FORM: ClassVar[Form] = (Word("read"), Options((Then("via", Slot("via", NODE)),)))


@dataclass(frozen=True, slots=True)
class Pass(Statement):
    """Let so much time pass, of the run's own kind."""

    ms: Decimal
    FORM: ClassVar[Form] = (Word("pass"), Slot("ms", MILLISECONDS))


# --- faults ----------------------------------------------------------------------------------------------------
@dataclass(frozen=True, slots=True)
class Inject(Statement):
    """A fault of docs/nemeses.md, on all these nodes at once."""

    fault: str
    nodes: tuple[str, ...]
    FORM: ClassVar[Form] = (Slot("fault", FAULT), Several(Slot("nodes", NODE)))


# --- links -----------------------------------------------------------------------------------------------------
@dataclass(frozen=True, slots=True)
class Hold(Statement):
    """Stop such frames, and all behind them; with `from` only a Fetch from that offset on."""

    direction: str
    api: str
    src: str
    dst: str
    offset: Offset | None = None
    FORM: ClassVar[Form] = (Word("hold"), DIRECTION, _API, *_LINK, Then("from", Slot("offset", OFFSET)))


@dataclass(frozen=True, slots=True)
class Release(Statement):
    """Let go what such holds have stopped; in either direction where none is named."""

    api: str
    src: str
    dst: str
    direction: str = ""
    FORM: ClassVar[Form] = (Word("release"), EITHER_DIRECTION, _API, *_LINK)


@dataclass(frozen=True, slots=True)
class ReleaseAll(Statement):
    """Let go what every hold has stopped."""

    FORM: ClassVar[Form] = (Word("release"), Word("all"))


@dataclass(frozen=True, slots=True)
class Drop(Statement):
    """Throw away what is held there, and reset its connections."""

    api: str
    src: str
    dst: str
    FORM: ClassVar[Form] = (Word("drop"), _API, *_LINK)


@dataclass(frozen=True, slots=True)
class Cut(Statement):
    """Lose all that is sent there, silently, or with a reset where it says `close`."""

    src: str
    both_ways: bool
    dst: str
    close: bool = False
    FORM: ClassVar[Form] = (
        Word("cut"),
        Slot("src", LINK_END),
        Choice("both_ways", {"->": False, "<->": True}),
        Slot("dst", OTHER_END),
        Perhaps(Choice("close", {"close": True})),
    )


@dataclass(frozen=True, slots=True)
class Delay(Statement):
    """Hand such frames on that much later."""

    direction: str
    api: str
    src: str
    dst: str
    seconds: Decimal
    FORM: ClassVar[Form] = (Word("delay"), DIRECTION, _API, *_LINK, Slot("seconds", SECONDS))


@dataclass(frozen=True, slots=True)
class Double(Statement):
    """Deliver such requests twice; the sender sees one answer."""

    api: str
    src: str
    dst: str
    FORM: ClassVar[Form] = (Word("double"), _API, *_LINK)


@dataclass(frozen=True, slots=True)
class Heal(Statement):
    """Undo the cuts, delays and doublings of a link."""

    src: str
    dst: str
    FORM: ClassVar[Form] = (Word("heal"), *_LINK)


@dataclass(frozen=True, slots=True)
class HealAll(Statement):
    """Undo all rules of links, holds too."""

    FORM: ClassVar[Form] = (Word("heal"), Word("all"))


# --- conditions ------------------------------------------------------------------------------------------------
@dataclass(frozen=True, slots=True)
class Await(Statement):
    """Wait until it holds."""

    condition: Condition
    FORM: ClassVar[Form] = (Word("await"), Rest("condition", CONDITIONS))


@dataclass(frozen=True, slots=True)
class Require(Statement):
    """It holds now, or the cell is unknown."""

    condition: Condition
    FORM: ClassVar[Form] = (Word("require"), Rest("condition", CONDITIONS))


LinkAct: TypeAlias = Hold | Release | ReleaseAll | Drop | Cut | Delay | Double | Heal | HealAll
Act: TypeAlias = Produce | Read | Pass | Inject | LinkAct | Await | Require

LINK_STEPS: Final[tuple[type[Statement], ...]] = (
    Hold,
    ReleaseAll,
    Release,
    Drop,
    Cut,
    Delay,
    Double,
    HealAll,
    Heal,
)
STEPS: Final[tuple[type[Statement], ...]] = (Produce, Read, Pass, Inject, Await, Require, *LINK_STEPS)
