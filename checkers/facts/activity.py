"""
Counts what happened in a run: faults, elections, acknowledged records, steps.

A link rule takes effect with the first frame that it changes; later frames do not count.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from checkers.facts.fact import fact
from harness.effect import Effect, nature_of
from harness.events import (
    Assigned,
    ClientKilled,
    CreateTopic,
    Heal,
    Injection,
    LinkRule,
    MetadataState,
    OfFrame,
    OfLink,
    Poll,
    Produce,
    Setup,
    Step,
    World,
)
from harness.model import Op, OpType, Source
from harness.random_schedule.final_records import FINAL_RECORDS
from harness.run.result import Activity

# The kill of a client's process: no fault of the cluster, so it proves nothing by taking effect.
_KILLS: Final = "kill-client"
# The event that the fabric emits when a link rule changes a frame -> the kind of rule.
_BITES: Final[Mapping[str, str]] = {"held": "hold", "lost": "cut", "delayed": "delay", "doubled": "double"}
_UNDONE: Final[Mapping[str, tuple[str, ...]]] = {"release": ("hold",), "heal": ("cut", "delay", "double")}
_COUNTED: Final = frozenset(
    {Source.NEMESIS, Source.FABRIC, Source.METADATA, Source.CLIENT, Source.SIMULATOR, Source.RUNNER}
)
_ANY: Final = "*"
_METADATA: Final = "metadata"


def activity_of(ops: Sequence[Op]) -> Activity:
    """Return the counts of a run's faults, elections, acknowledged records and steps."""
    counts = count(ops)
    return Activity(
        asked=dict(counts.asked),
        bit=dict(counts.bit),
        elections=counts.elections,
        acked=counts.acked,
        steps=counts.steps,
        virtual_s=counts.virtual_ns / 1e9,
        skipped=counts.skipped,
        coverage=counts.coverage,
        polls=counts.polls,
        records_read=counts.records_read,
        records_sent=counts.records_sent,
        bytes_sent=counts.bytes_sent,
        replicas_moved=counts.replicas_moved,
        recreated=sum(max(0, made - 1) for made in (counts.created | counts.begun).values()),
    )


@fact
def count(ops: Sequence[Op]) -> Counts:
    """Return the counts of a run's ops."""
    counts = Counts()
    for op in ops:
        if op.source in _COUNTED:  # most ops are of brokers and logs, and decoding them would be slow
            counts.add(op)
    return counts


@dataclass(slots=True, kw_only=True)
class _Rule:
    """A link rule in force; api and direction are "" for a cut, which drops every frame."""

    kind: str
    api: str
    direction: str
    link: tuple[str, str]
    bit: bool = field(default=False, compare=False)

    @staticmethod
    def of(kind: str, event: OfLink) -> _Rule:
        api, direction = "", ""
        if isinstance(event, LinkRule | OfFrame | Heal):
            api, direction = event.api or "", event.direction or ""
        return _Rule(kind=kind, api=api, direction=direction, link=event.link)

    def takes(self, frame: _Rule) -> bool:
        """Return True if the frame matches this rule and is the first one that does."""
        fits = all(mine in (_ANY, theirs) for mine, theirs in zip(self.link, frame.link, strict=True))
        named = (self.kind, self.direction) == (frame.kind, frame.direction)
        named = named and self.api in (_ANY, frame.api)
        return named and fits and not self.bit

    @property
    def name(self) -> str:
        """The name under which it is counted."""
        return f"{self.kind} {self.api}".strip()


@dataclass(slots=True)
class Counts:
    """
    What has happened in a run so far.

    Attributes:
        asked: the number of faults that were requested, by kind.
        bit: the number of faults that took effect, by kind.
        epochs: the leader epochs that were in the metadata.
        acked: the number of the schedule's records that were acknowledged with acks=all.
        skipped: the number of steps that were not applicable.
        coverage: what the simulator counted of its cores.
        polls: the number of polls that were answered.
        records_read: the number of records that they showed, each as often as it was shown.
        records_sent: the number of acknowledged records.
        bytes_sent: the bytes of their values.
        replicas_moved: the number of replicas that left their partition.
        created: how often each topic was created by a client that was told so: again only after a deletion.
        begun: how often the metadata showed the first state of each topic: also of one that no client was told of.
    """

    asked: Counter[str] = field(default_factory=Counter)
    bit: Counter[str] = field(default_factory=Counter)
    epochs: set[int] = field(default_factory=set)
    acked: int = 0
    polls: int = 0
    records_read: int = 0
    records_sent: int = 0
    bytes_sent: int = 0
    steps: int = 0
    virtual_ns: int = 0
    skipped: int = 0
    coverage: Mapping[str, int] = field(default_factory=dict)
    replicas_moved: int = 0
    created: Counter[str] = field(default_factory=Counter)
    begun: Counter[str] = field(default_factory=Counter)
    # The replicas that each partition has, but those of topics that come and go: another topic's are others.
    _replicas: dict[str, frozenset[str | None]] = field(default_factory=dict)
    _standing: list[_Rule] = field(default_factory=list)
    # Nemeses that heal, or that have no effect: they prove nothing by taking effect.
    _harmless: set[str] = field(default_factory=set)

    def add(self, op: Op) -> None:
        """Count one op."""
        event = op.event
        if isinstance(event, Produce) and op.type is OpType.OK:
            self.records_sent += 1
            self.bytes_sent += len(event.value.encode())
        match event:
            case Injection(name=name, nodes=nodes):
                if nature_of(op).effect is Effect.NONE:
                    self._harmless.add(name)
                if op.type is OpType.INVOKE:
                    self.asked[name] += len(nodes)
                elif op.type is OpType.OK:
                    self.bit[name] += len(nodes)
            case ClientKilled():
                self._harmless.add(_KILLS)
                self.asked[_KILLS] += op.type is OpType.INVOKE
                self.bit[_KILLS] += op.type is OpType.OK
            case OfLink() as event:
                self._add_link(op.f, event)
            case MetadataState(topic=topic, partition=partition, epoch=epoch, version=version):
                self.epochs.add(epoch)
                self.begun[topic] += (partition, version) == (0, 0)
            case Produce(acks=-1, name=name) if op.type is OpType.OK and name not in FINAL_RECORDS:
                self.acked += 1
            case Step(skipped=str(why)) if why:
                self.skipped += 1
            case Setup() as setup:
                self._replicas = _replicas_of(setup)
            case Assigned(topic=topic, partition=partition, replicas=replicas):
                self._add_assigned(f"{topic}-{partition}", frozenset(replicas))
            case CreateTopic(topic=topic) if op.type is OpType.OK:
                self.created[topic] += 1
            case Poll(records=records) if op.type is OpType.OK:
                self.polls += 1
                self.records_read += len(records or ())
            case World() as world:
                self._add_world(world)

    @property
    def elections(self) -> int:
        """The number of leader epochs after the first."""
        return max(0, len(self.epochs) - 1)

    @property
    def bitten(self) -> bool:
        """Whether a fault took effect that can break something."""
        return any(number for kind, number in self.bit.items() if kind not in self._harmless)

    def _add_assigned(self, name: str, replicas: frozenset[str | None]) -> None:
        """Count who is no replica any more: on its way a partition is on its old and its new nodes."""
        if name in self._replicas:
            self.replicas_moved += len(self._replicas[name] - replicas)
            self._replicas[name] = replicas

    def _add_world(self, world: World) -> None:
        self.steps, self.virtual_ns, self.coverage = world.steps, world.virtual_ns, world.coverage or {}
        self.asked["metadata"] += world.metadata_faults_asked
        self.bit["metadata"] += world.metadata_faults_bit

    def _add_link(self, f: str, event: OfLink) -> None:
        if f in _BITES.values():
            rule = _Rule.of(f, event)
            # The rules that cut a zombie off from the metadata are counted as the zombie.
            if _METADATA not in rule.link:
                self._standing.append(rule)
                self.asked[rule.name] += 1
        elif f in _BITES:
            frame = _Rule.of(_BITES[f], event)
            taker = next((rule for rule in reversed(self._standing) if rule.takes(frame)), None)
            if taker is not None:
                taker.bit = True
                self.bit[taker.name] += 1
        elif f in _UNDONE:
            undone = [_Rule.of(kind, event) for kind in _UNDONE[f]]
            gone = next((rule for rule in self._standing if rule in undone), None)
            if gone is not None:
                self._standing.remove(gone)


def _replicas_of(setup: Setup) -> dict[str, frozenset[str | None]]:
    """Return the replicas of the partitions that last, by name."""
    found: dict[str, frozenset[str | None]] = {
        f"{setup.topic}-{partition}": frozenset(setup.replicas)
        for partition in range(setup.partition, setup.partition + setup.partitions)
    }
    for name, nodes in (setup.further or {}).items():
        if name not in (setup.removed or ()):
            found[name] = frozenset(nodes)
    return found
