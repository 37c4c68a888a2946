"""
The steps of a scenario, as values; harness/scenario/runner.py executes them.

`MESSAGE` is a general word, or a target's own name of another message; *Words by target* says what stands for each
word in a system. A link is (from, to) in the direction of its requests. `*` is any node; `metadata` is the other
end of a node's link to its metadata. A cut, a delay or a doubling must have affected a frame before it is healed
or the scenario ends.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from typing import ClassVar, Final, TypeAlias

from harness.ability import Ability
from harness.cluster.aims import AIMS, AIMS_NEED
from harness.scenario.condition_types import CONDITIONS, MESSAGE_FORMATS, Condition
from harness.scenario.forms import ARROW, Choice, OnLink, Options, Perhaps, Rest, Setting, Several, Then
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
    NODE_OR_AIM,
    OFFSET,
    OTHER_END,
    PLACE,
    PROTOCOL,
    SECONDS,
    SERVICE,
)
from harness.scenario.offsets import Offset
from harness.workload.plan import Place

_API: Final = Slot("api", API)
_LINK: Final = (Slot("src", LINK_END), ARROW, Slot("dst", OTHER_END))
REFUSED: Final = "refused"
MEANWHILE: Final = "meanwhile"


# --- clients and time ------------------------------------------------------------------------------------------
@dataclass(frozen=True, slots=True)
class Produce(Statement):
    """
    Send a group of records to the leader, or with `via A` to that node.

    `refused`: no record may be acknowledged within the time of `for`.
    `meanwhile`: do not wait; `await acked NAME` waits, and the end
    of the run waits for every outcome.
    `of`: to this partition of the head, not to the main one.
    `age`: the records' time is so long before now (CreateTime).
    """

    group: str
    acks: int
    singly: bool = False
    codec: str | None = None
    via: str | None = None
    outcome: str = ""
    within_ms: Decimal | None = None
    # None for the main partition, whose offsets alone `end(NAME)` knows.
    place: Place | None = None
    # None for the client's own way: some have no time.
    age_ms: Decimal | None = None
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
                Then("of", Slot("place", PLACE)),
                Setting("age", Slot("age_ms", MILLISECONDS)),
            )
        ),
    )

    def complaint(self) -> str:
        """Refuse `refused` with `singly` or acks=0: only the answer to one batch shows a refusal."""
        if self.outcome == REFUSED and (self.singly or self.acks == 0):
            return "refused, singly or without acks; expected one batch that waits for its answer"
        return ""


@dataclass(frozen=True, slots=True)
class Read(Statement):
    """Read everything that a consumer may see, from the leader or `via A`."""

    via: str | None = None
    FORM: ClassVar[Form] = (Word("read"), Options((Then("via", Slot("via", NODE)),)))


@dataclass(frozen=True, slots=True)
class Delete(Statement):
    """Delete the records before an offset; done when the ISR has deleted them."""

    before: Offset
    FORM: ClassVar[Form] = (Word("delete"), Word("records"), Word("before"), Slot("before", OFFSET))


@dataclass(frozen=True, slots=True)
class Remove(Statement):
    """
    Have this partition of the head, and all above it, taken out of its topic; done when they are gone.

    Only what is highest can go, and partition 0 stays. What is
    removed is judged as a topic that is deleted.
    """

    place: Place
    FORM: ClassVar[Form] = (Word("remove"), Slot("place", PLACE))

    def complaint(self) -> str:
        """Refuse partition 0: a topic has one at least."""
        return "" if self.place.partition else f"{self.place}: a topic's first partition stays; expected another"

    def needs(self) -> tuple[Ability, ...]:
        """The system takes partitions out of topics."""
        return (Ability.REMOVE,)


@dataclass(frozen=True, slots=True)
class Add(Statement):
    """Ask for more partitions of the topic, up to this one, where the head has them; done when answered."""

    place: Place
    FORM: ClassVar[Form] = (Word("add"), Slot("place", PLACE))


@dataclass(frozen=True, slots=True)
class ChangeFormat(Statement):
    """
    Have the topic's leaders write in this message format from now on.

    1 are the messages of 0.10, which have no epochs, 2 the
    record batches of 0.11; what is in the logs stays as it is.
    Each node takes it up by itself: `await format A = 1`.
    """

    number: int
    FORM: ClassVar[Form] = (Word("format"), Choice("number", MESSAGE_FORMATS))


@dataclass(frozen=True, slots=True)
class Pass(Statement):
    """Let time pass: virtual time in the simulator, real time elsewhere."""

    ms: Decimal
    FORM: ClassVar[Form] = (Word("pass"), Slot("ms", MILLISECONDS))


# --- faults ----------------------------------------------------------------------------------------------------
@dataclass(frozen=True, slots=True)
class Inject(Statement):
    """
    Inject a fault of docs/nemeses.md into all these nodes at once.

    In place of nodes an aim may stand, which means other nodes
    each time: `leader`, `follower`, `controller`, `one`,
    `minority`, `majority`, `all`, `last-in-isr`; or `service`,
    a process that is no replica. `from` names the service, or
    the process of one, that `cut-from-metadata` parts them from.
    """

    fault: str
    nodes: tuple[str, ...]
    # None for the main partition, or for a fault that is about no partition.
    place: Place | None = None
    # None for all services that nodes reach, or for a fault that parts them from none.
    service: str | None = None
    FORM: ClassVar[Form] = (
        Slot("fault", FAULT),
        Several(Slot("nodes", NODE_OR_AIM), until=("of", "from")),
        Then("of", Slot("place", PLACE)),
        Then("from", Slot("service", SERVICE)),
    )

    @property
    def aim(self) -> str:
        """The aim in place of nodes, "" if nodes are named."""
        return self.nodes[0] if self.nodes and self.nodes[0] in AIMS else ""

    def complaint(self) -> str:
        """Return an aim that is not alone."""
        aims = [each for each in self.nodes if each in AIMS]
        return f"{aims[0]} among others; expected an aim alone, or nodes" if aims and len(self.nodes) > 1 else ""

    def needs(self) -> tuple[Ability, ...]:
        """What its aim needs; what the fault needs, its table says."""
        return AIMS_NEED.get(self.aim, ())


@dataclass(frozen=True, slots=True)
class Install(Statement):
    """
    Have these nodes, which are down, follow another protocol from their next start on, on the same disks.

    `kip320@kip101` is the program of kip320 that speaks with
    others as kip101 does (inter.broker.protocol.version),
    `@kip101` the program of the run's protocol that does so,
    `own` the run's protocol.
    """

    protocol: str
    nodes: tuple[str, ...]
    FORM: ClassVar[Form] = (
        Word("install"),
        Slot("protocol", PROTOCOL),
        Word("on"),
        Several(Slot("nodes", NODE)),
    )


@dataclass(frozen=True, slots=True)
class Settle(Statement):
    """
    Undo every fault and every rule of a link, and wait until the cluster is whole.

    In a random schedule each partition must then acknowledge a
    record; if it does not, the schedule ends and the run hangs.
    """

    FORM: ClassVar[Form] = (Word("settle"),)


# --- links -----------------------------------------------------------------------------------------------------
@dataclass(frozen=True, slots=True)
class Hold(OnLink):
    """Hold these frames and all behind them; with `from` only a fetch from that offset on."""

    direction: str
    api: str
    src: str
    dst: str
    offset: Offset | None = None
    FORM: ClassVar[Form] = (Word("hold"), DIRECTION, _API, *_LINK, Then("from", Slot("offset", OFFSET)))


@dataclass(frozen=True, slots=True)
class Release(OnLink):
    """Release these holds and the frames they held; in both directions if none is named."""

    api: str
    src: str
    dst: str
    direction: str = ""
    FORM: ClassVar[Form] = (Word("release"), EITHER_DIRECTION, _API, *_LINK)


@dataclass(frozen=True, slots=True)
class ReleaseAll(Statement):
    """Release every hold and the frames they held."""

    FORM: ClassVar[Form] = (Word("release"), Word("all"))


@dataclass(frozen=True, slots=True)
class Drop(OnLink):
    """Drop the held frames, and reset the connections of the link."""

    api: str
    src: str
    dst: str
    FORM: ClassVar[Form] = (Word("drop"), _API, *_LINK)


@dataclass(frozen=True, slots=True)
class Cut(OnLink):
    """Lose everything sent on the link: silently, or with `close` by a reset."""

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
class Delay(OnLink):
    """Deliver these frames later by that time."""

    direction: str
    api: str
    src: str
    dst: str
    seconds: Decimal
    FORM: ClassVar[Form] = (Word("delay"), DIRECTION, _API, *_LINK, Slot("seconds", SECONDS))


@dataclass(frozen=True, slots=True)
class Double(OnLink):
    """Deliver these requests twice; the sender sees one answer."""

    api: str
    src: str
    dst: str
    FORM: ClassVar[Form] = (Word("double"), _API, *_LINK)


@dataclass(frozen=True, slots=True)
class Heal(OnLink):
    """Undo the cuts, delays and doublings of a link."""

    src: str
    dst: str
    FORM: ClassVar[Form] = (Word("heal"), *_LINK)


@dataclass(frozen=True, slots=True)
class HealAll(Statement):
    """Undo all cuts, delays, doublings and holds."""

    FORM: ClassVar[Form] = (Word("heal"), Word("all"))


# --- conditions ------------------------------------------------------------------------------------------------
@dataclass(frozen=True, slots=True)
class Await(Statement):
    """Wait until the condition holds."""

    condition: Condition
    FORM: ClassVar[Form] = (Word("await"), Rest("condition", CONDITIONS))

    def needs(self) -> tuple[Ability, ...]:
        """What its condition needs."""
        return self.condition.needs()


@dataclass(frozen=True, slots=True)
class Require(Statement):
    """Check that the condition holds now; if not, the run is unknown."""

    condition: Condition
    FORM: ClassVar[Form] = (Word("require"), Rest("condition", CONDITIONS))

    def needs(self) -> tuple[Ability, ...]:
        """What its condition needs."""
        return self.condition.needs()


LinkAct: TypeAlias = Hold | Release | ReleaseAll | Drop | Cut | Delay | Double | Heal | HealAll
ClientAct: TypeAlias = Read | Delete | Remove | Add | ChangeFormat
Act: TypeAlias = Produce | ClientAct | Pass | Inject | Install | Settle | LinkAct | Await | Require

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
STEPS: Final[tuple[type[Statement], ...]] = (
    *(Produce, Read, Delete, Remove, Add, ChangeFormat, Pass, Inject, Install, Settle, Await, Require),
    *LINK_STEPS,
)
