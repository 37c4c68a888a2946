"""
The conditions that a scenario awaits or requires, as values; harness/scenario/conditions.py says when each holds.

`asked`, `answered` (where an epoch ends), `truncated`, `fenced` and `epoch rises` are about what came since the
scenario last did something: all steps but `await` and `require` do.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Final, TypeAlias

from harness.scenario.forms import ARROW, Choice, Several
from harness.scenario.grammar import Form, Slot, Statement, Word
from harness.scenario.kinds import API, EITHER_DIRECTION, GROUP, LINK_END, NODE, NODE_OR_NONE, OFFSET, OTHER_END
from harness.scenario.offsets import Offset

_NODE: Final = Slot("node", NODE)
_LINK: Final = (Slot("src", LINK_END), ARROW, Slot("dst", OTHER_END))


@dataclass(frozen=True, slots=True)
class Elected(Statement):
    """ZooKeeper says so."""

    node: str | None
    FORM: ClassVar[Form] = (Word("elected"), Word("="), Slot("node", NODE_OR_NONE))


@dataclass(frozen=True, slots=True)
class Leads(Statement):
    """ZooKeeper says so, and so does the node."""

    node: str
    FORM: ClassVar[Form] = (Word("leader"), Word("="), _NODE)


@dataclass(frozen=True, slots=True)
class InSync(Statement):
    """The ISR that ZooKeeper holds has these members and no other."""

    nodes: tuple[str, ...]
    FORM: ClassVar[Form] = (Word("isr"), Word("="), Several(Slot("nodes", NODE)))


@dataclass(frozen=True, slots=True)
class Controller(Statement):
    """It has the controller's office; or another node has."""

    holds: bool
    node: str
    FORM: ClassVar[Form] = (Word("controller"), Choice("holds", {"=": True, "!=": False}), _NODE)


@dataclass(frozen=True, slots=True)
class Registered(Statement):
    """It has a registration in ZooKeeper."""

    node: str
    FORM: ClassVar[Form] = (Word("registered"), _NODE)


@dataclass(frozen=True, slots=True)
class Gone(Statement):
    """It has no registration in ZooKeeper."""

    node: str
    FORM: ClassVar[Form] = (Word("gone"), _NODE)


@dataclass(frozen=True, slots=True)
class EpochRises(Statement):
    """ZooKeeper holds a newer epoch."""

    FORM: ClassVar[Form] = (Word("epoch"), Word("rises"))


@dataclass(frozen=True, slots=True)
class Checkpoint(Statement):
    """The high watermark that its checkpoint file has."""

    node: str
    exactly: bool
    offset: Offset
    FORM: ClassVar[Form] = (
        Word("checkpoint"),
        _NODE,
        Choice("exactly", {"=": True, ">=": False}),
        Slot("offset", OFFSET),
    )


@dataclass(frozen=True, slots=True)
class LogEnds(Statement):
    """Where its log ends, as its files have it."""

    node: str
    offset: Offset
    FORM: ClassVar[Form] = (Word("log"), _NODE, Word("="), Slot("offset", OFFSET))


@dataclass(frozen=True, slots=True)
class Settled(Statement):
    """It has caught up, or is stuck."""

    node: str
    FORM: ClassVar[Form] = (Word("settled"), _NODE)


@dataclass(frozen=True, slots=True)
class Acked(Statement):
    """Every record of the group, which was produced `meanwhile`, was acknowledged."""

    group: str
    FORM: ClassVar[Form] = (Word("acked"), Slot("group", GROUP))


@dataclass(frozen=True, slots=True)
class OneBatch(Statement):
    """All records of the group lie in one batch of the leader's log."""

    group: str
    FORM: ClassVar[Form] = (Word("one-batch"), Slot("group", GROUP))


@dataclass(frozen=True, slots=True)
class Heard(Statement):
    """It has heard of the epoch that ZooKeeper holds."""

    node: str
    FORM: ClassVar[Form] = (Word("heard"), _NODE)


@dataclass(frozen=True, slots=True)
class Held(Statement):
    """A hold on that link has stopped a frame."""

    api: str
    src: str
    dst: str
    direction: str = ""
    FORM: ClassVar[Form] = (Word("held"), EITHER_DIRECTION, Slot("api", API), *_LINK)


@dataclass(frozen=True, slots=True)
class Asked(Statement):
    """A question where an epoch ends was seen there."""

    src: str
    dst: str
    FORM: ClassVar[Form] = (Word("asked"), *_LINK)


@dataclass(frozen=True, slots=True)
class Answered(Statement):
    """An answer to such a question was seen there."""

    src: str
    dst: str
    FORM: ClassVar[Form] = (Word("answered"), *_LINK)


@dataclass(frozen=True, slots=True)
class Lost(Statement):
    """A cut there has taken a frame."""

    src: str
    dst: str
    FORM: ClassVar[Form] = (Word("lost"), *_LINK)


@dataclass(frozen=True, slots=True)
class Delayed(Statement):
    """A delay there has taken a frame."""

    api: str
    src: str
    dst: str
    FORM: ClassVar[Form] = (Word("delayed"), Slot("api", API), *_LINK)


@dataclass(frozen=True, slots=True)
class Doubled(Statement):
    """A doubling there has taken a request."""

    api: str
    src: str
    dst: str
    FORM: ClassVar[Form] = (Word("doubled"), Slot("api", API), *_LINK)


@dataclass(frozen=True, slots=True)
class Truncated(Statement):
    """It has learned where to cut its log, and cut it where there was anything to cut."""

    node: str
    FORM: ClassVar[Form] = (Word("truncated"), _NODE)


@dataclass(frozen=True, slots=True)
class Stuck(Statement):
    """It said that it cannot go on following."""

    node: str
    FORM: ClassVar[Form] = (Word("stuck"), _NODE)


@dataclass(frozen=True, slots=True)
class Awaiting(Statement):
    """It came back as leader, and waits for a newer epoch."""

    node: str
    FORM: ClassVar[Form] = (Word("awaiting"), _NODE)


@dataclass(frozen=True, slots=True)
class Fenced(Statement):
    """It was refused, or refused another, for an old epoch."""

    node: str
    FORM: ClassVar[Form] = (Word("fenced"), _NODE)


@dataclass(frozen=True, slots=True)
class Unseen(Statement):
    """It was down and is back in a session of its own, and the controller changed nothing since."""

    node: str
    FORM: ClassVar[Form] = (Word("unseen"), _NODE)


ConditionOfPartition: TypeAlias = Elected | Leads | InSync | Controller | EpochRises | Acked | OneBatch
ConditionOfNode: TypeAlias = (
    Registered | Gone | Checkpoint | LogEnds | Settled | Heard | Truncated | Stuck | Awaiting | Fenced | Unseen
)
ConditionOfLink: TypeAlias = Held | Asked | Answered | Lost | Delayed | Doubled
Condition: TypeAlias = ConditionOfPartition | ConditionOfNode | ConditionOfLink

CONDITIONS: Final[tuple[type[Statement], ...]] = (
    Elected,
    Leads,
    InSync,
    Controller,
    Registered,
    Gone,
    EpochRises,
    Checkpoint,
    LogEnds,
    Settled,
    Acked,
    OneBatch,
    Heard,
    Held,
    Asked,
    Answered,
    Lost,
    Delayed,
    Doubled,
    Truncated,
    Stuck,
    Awaiting,
    Fenced,
    Unseen,
)
