"""
The conditions that a scenario awaits or requires, as values; harness/scenario/conditions.py evaluates them.

`asked` and `answered` (about the end of an epoch), `truncated`, `fenced` and `epoch rises` look only at events
since the last step that was not an `await` or a `require`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Final, TypeAlias

from harness.ability import Ability
from harness.scenario.forms import ARROW, Choice, OnLink, Several
from harness.scenario.grammar import Form, Slot, Statement, Word
from harness.scenario.kinds import API, EITHER_DIRECTION, GROUP, LINK_END, NODE, NODE_OR_NONE, OFFSET, OTHER_END
from harness.scenario.offsets import Offset

# Message formats that topics may have, by their words.
MESSAGE_FORMATS: Final = {"1": 1, "2": 2}
_NODE: Final = Slot("node", NODE)
_LINK: Final = (Slot("src", LINK_END), ARROW, Slot("dst", OTHER_END))


@dataclass(frozen=True, slots=True)
class Elected(Statement):
    """The metadata name this node as the leader, or no leader."""

    node: str | None
    FORM: ClassVar[Form] = (Word("elected"), Word("="), Slot("node", NODE_OR_NONE))


@dataclass(frozen=True, slots=True)
class Leads(Statement):
    """The metadata name this node as the leader, and the node itself claims leadership."""

    node: str
    FORM: ClassVar[Form] = (Word("leader"), Word("="), _NODE)


@dataclass(frozen=True, slots=True)
class Led(Statement):
    """The metadata name a leader, and that node itself claims leadership."""

    FORM: ClassVar[Form] = (Word("led"),)


@dataclass(frozen=True, slots=True)
class InSync(Statement):
    """The ISR in the metadata has exactly these members."""

    nodes: tuple[str, ...]
    FORM: ClassVar[Form] = (Word("isr"), Word("="), Several(Slot("nodes", NODE)))


@dataclass(frozen=True, slots=True)
class Controller(Statement):
    """The node is the controller; with `!=`, another node is."""

    holds: bool
    node: str
    FORM: ClassVar[Form] = (Word("controller"), Choice("holds", {"=": True, "!=": False}), _NODE)

    def needs(self) -> tuple[Ability, ...]:
        """The metadata name a controller."""
        return (Ability.CONTROLLER,)


@dataclass(frozen=True, slots=True)
class Registered(Statement):
    """The node is a member of the cluster, as the metadata show it."""

    node: str
    FORM: ClassVar[Form] = (Word("registered"), _NODE)

    def needs(self) -> tuple[Ability, ...]:
        """The metadata show the members."""
        return (Ability.MEMBERS,)


@dataclass(frozen=True, slots=True)
class Gone(Statement):
    """The node is no member of the cluster, as the metadata show it."""

    node: str
    FORM: ClassVar[Form] = (Word("gone"), _NODE)

    def needs(self) -> tuple[Ability, ...]:
        """The metadata show the members."""
        return (Ability.MEMBERS,)


@dataclass(frozen=True, slots=True)
class EpochRises(Statement):
    """The metadata show a newer leader epoch."""

    FORM: ClassVar[Form] = (Word("epoch"), Word("rises"))


@dataclass(frozen=True, slots=True)
class Checkpoint(Statement):
    """The node's checkpoint file has this high watermark, or at least this one."""

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
    """The node's log files end at this offset."""

    node: str
    offset: Offset
    FORM: ClassVar[Form] = (Word("log"), _NODE, Word("="), Slot("offset", OFFSET))


@dataclass(frozen=True, slots=True)
class LogStarts(Statement):
    """The node's log files start at this offset or later: what is below was deleted."""

    node: str
    offset: Offset
    FORM: ClassVar[Form] = (Word("start"), _NODE, Word(">="), Slot("offset", OFFSET))


@dataclass(frozen=True, slots=True)
class Compacted(Statement):
    """The node has compacted its log up to this offset or further."""

    node: str
    offset: Offset
    FORM: ClassVar[Form] = (Word("compacted"), _NODE, Word(">="), Slot("offset", OFFSET))


@dataclass(frozen=True, slots=True)
class HasFormat(Statement):
    """The node has taken up this message format of the topic."""

    node: str
    number: int
    FORM: ClassVar[Form] = (Word("format"), _NODE, Word("="), Choice("number", MESSAGE_FORMATS))


@dataclass(frozen=True, slots=True)
class Settled(Statement):
    """The node has caught up with the leader, is stuck, or ended by itself."""

    node: str
    FORM: ClassVar[Form] = (Word("settled"), _NODE)


@dataclass(frozen=True, slots=True)
class Acked(Statement):
    """Every record of the group, produced `meanwhile`, was acknowledged."""

    group: str
    FORM: ClassVar[Form] = (Word("acked"), Slot("group", GROUP))


@dataclass(frozen=True, slots=True)
class OneBatch(Statement):
    """The leader's log has all records of the group in one batch."""

    group: str
    FORM: ClassVar[Form] = (Word("one-batch"), Slot("group", GROUP))


@dataclass(frozen=True, slots=True)
class Heard(Statement):
    """The node has learned the leader epoch that the metadata hold."""

    node: str
    FORM: ClassVar[Form] = (Word("heard"), _NODE)


@dataclass(frozen=True, slots=True)
class Held(OnLink):
    """A hold on that link has stopped a frame."""

    api: str
    src: str
    dst: str
    direction: str = ""
    FORM: ClassVar[Form] = (Word("held"), EITHER_DIRECTION, Slot("api", API), *_LINK)


@dataclass(frozen=True, slots=True)
class Asked(OnLink):
    """A request for the end offset of an epoch was seen on the link."""

    src: str
    dst: str
    FORM: ClassVar[Form] = (Word("asked"), *_LINK)


@dataclass(frozen=True, slots=True)
class Answered(OnLink):
    """An answer to such a request was seen on the link."""

    src: str
    dst: str
    FORM: ClassVar[Form] = (Word("answered"), *_LINK)


@dataclass(frozen=True, slots=True)
class Lost(OnLink):
    """A cut on that link has lost a frame."""

    src: str
    dst: str
    FORM: ClassVar[Form] = (Word("lost"), *_LINK)


@dataclass(frozen=True, slots=True)
class Delayed(OnLink):
    """A delay on that link has delayed a frame."""

    api: str
    src: str
    dst: str
    FORM: ClassVar[Form] = (Word("delayed"), Slot("api", API), *_LINK)


@dataclass(frozen=True, slots=True)
class Doubled(OnLink):
    """A doubling on that link has doubled a request."""

    api: str
    src: str
    dst: str
    FORM: ClassVar[Form] = (Word("doubled"), Slot("api", API), *_LINK)


@dataclass(frozen=True, slots=True)
class Truncated(Statement):
    """The node has learned where to truncate its log, and has truncated it if it had to."""

    node: str
    FORM: ClassVar[Form] = (Word("truncated"), _NODE)


@dataclass(frozen=True, slots=True)
class Stuck(Statement):
    """The node reported that it cannot go on following."""

    node: str
    FORM: ClassVar[Form] = (Word("stuck"), _NODE)


@dataclass(frozen=True, slots=True)
class Awaiting(Statement):
    """The node restarted as leader, and waits for a newer epoch."""

    node: str
    FORM: ClassVar[Form] = (Word("awaiting"), _NODE)


@dataclass(frozen=True, slots=True)
class Fenced(Statement):
    """The node's leader refused it because its epoch is old."""

    node: str
    FORM: ClassVar[Form] = (Word("fenced"), _NODE)


@dataclass(frozen=True, slots=True)
class Sound(Statement):
    """Every batch of the replica's log, and its checkpoint, can be read as they were written."""

    node: str
    FORM: ClassVar[Form] = (Word("sound"), _NODE)


@dataclass(frozen=True, slots=True)
class Unseen(Statement):
    """The node was down and registered anew, and the controller changed nothing since."""

    node: str
    FORM: ClassVar[Form] = (Word("unseen"), _NODE)

    def needs(self) -> tuple[Ability, ...]:
        """The metadata show the members."""
        return (Ability.MEMBERS,)


ConditionOfPartition: TypeAlias = Elected | Leads | Led | InSync | Controller | EpochRises | Acked | OneBatch
ConditionOfNode: TypeAlias = (
    Registered
    | Gone
    | Checkpoint
    | LogStarts
    | Compacted
    | HasFormat
    | LogEnds
    | Settled
    | Heard
    | Truncated
    | Stuck
    | Awaiting
    | Fenced
    | Sound
    | Unseen
)
ConditionOfLink: TypeAlias = Held | Asked | Answered | Lost | Delayed | Doubled
Condition: TypeAlias = ConditionOfPartition | ConditionOfNode | ConditionOfLink

CONDITIONS: Final[tuple[type[Statement], ...]] = (
    Elected,
    Leads,
    Led,
    InSync,
    Controller,
    Registered,
    Gone,
    EpochRises,
    Checkpoint,
    LogEnds,
    LogStarts,
    Compacted,
    HasFormat,
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
    Sound,
    Unseen,
)
