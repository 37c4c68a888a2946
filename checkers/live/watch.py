"""
The live check: takes the ops of a run one by one, and returns the first violation that no later op can excuse.

It makes no verdict: a violation ends a run's schedule, and the checkers judge the whole history as always. It does
no IO and reads no clock. An op costs as much time as it has records, and memory has a limit for each partition.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass, field
from typing import Final

from checkers.facts.acked import ACKS_ALL
from checkers.facts.moments import SAID
from checkers.facts.view import at
from checkers.live.high_watermarks import fall_of_leader
from checkers.live.known import WINDOW_OFFSETS, KnownRecords
from checkers.live.partition import Asked, PartitionWatch
from checkers.live.replicas import SAID_FS, Replicas
from harness.effect import LOSSY, Effect, nature_of
from harness.events import (
    DeleteRecords,
    Injection,
    Leader,
    LogCleaned,
    LogStart,
    MetadataState,
    OfPartition,
    Produce,
    Read,
    Recovered,
    ScheduleStopped,
    Setup,
    Started,
)
from harness.model import HistoryError, Op, OpType, Source
from harness.target.traits import Commit, Seen, traits_of

# The event of a log whose start moved.
_MOVED: Final = frozenset({"log-start", "cleaned"})
# Calls of clients that may be under way at once; of more, the oldest are forgotten, and their ends say nothing.
CALLS_MAX: Final = 65_536
# The host on which ops are recorded in the order in which they happened.


@dataclass(slots=True, kw_only=True)
class LiveCheck:
    """
    Watches one run.

    Attributes:
        window: how many offsets of a partition are known one by one.
        since: the index of the last op that may have ended copies of records.
    """

    window: int = WINDOW_OFFSETS
    since: int = -1
    _clean: bool = False
    _exact: bool = False
    _polled: bool = False
    _quorum: bool = False
    # Whether what is acknowledged is promised by the leader alone.
    _alone: bool = False
    _changed: int = -1
    _names: dict[int, str] = field(default_factory=dict)
    _churned: frozenset[str] = frozenset()
    _partitions: dict[tuple[str, int], PartitionWatch] = field(default_factory=dict)
    _replicas: Replicas = field(default_factory=Replicas)
    _calls: OrderedDict[tuple[str, str], Asked] = field(default_factory=OrderedDict)

    def step(self, op: Op) -> ScheduleStopped | None:
        """
        Follow the next op; return the violation that it shows.

        An op that cannot be read shows none: it makes the run unknown, as checker `whole` says. Nor does one of a
        topic or partition that is deleted and comes again: its offsets and epochs begin anew each time.
        """
        if self._churned and (place := op.place) is not None and self._comes_and_goes(*place):
            return None
        try:
            match op.source:
                case Source.CLIENT:
                    return self._client(op)
                case Source.BROKER if op.f in SAID_FS or op.f in _MOVED:
                    return self._broker(op)
                case Source.NEMESIS:
                    self._fault(op)
                case Source.METADATA:
                    return self._state(op)
                case Source.RUNNER if isinstance(event := op.event, Setup):
                    self._clean, traits = not event.unclean, traits_of(event)
                    self._exact, self._polled = traits.exact_order, traits.seen is Seen.POLLED
                    self._quorum, self._alone = traits.commit is Commit.QUORUM, traits.commit is Commit.LEADER
                    self._churned = frozenset((*(event.churned or ()), *(event.removed or ())))
                    self._names = {broker: node for node, broker in event.nodes.items()}
        except HistoryError:
            pass
        return None

    def _comes_and_goes(self, topic: str, partition: int) -> bool:
        return topic in self._churned or f"{topic}-{partition}" in self._churned

    @property
    def entries(self) -> int:
        """How many entries are remembered, of all partitions and calls."""
        return len(self._calls) + sum(len(each.known) + len(each.electable) for each in self._partitions.values())

    @property
    def touched(self) -> int:
        """How many entries were read or written so far."""
        return sum(each.known.touched for each in self._partitions.values())

    # --- by source -------------------------------------------------------------------------------------------
    def _client(self, op: Op) -> ScheduleStopped | None:
        event = op.event
        if isinstance(event, DeleteRecords):
            self._of(event).electable.deleted(event.before)
        if not isinstance(event, Produce | Read):
            return None
        about, call = self._of(event), (op.process, event.value if isinstance(event, Produce) else "")
        if self._polled:
            about.changed = op.index  # another may lead since the last look at the metadata
        if op.type is OpType.INVOKE:
            self._calls[call] = about.asked(op)
            if len(self._calls) > CALLS_MAX:
                self._calls.popitem(last=False)
            return None
        asked = self._calls.pop(call, None)
        if asked is None:
            return None
        if isinstance(event, Read):
            if op.type is OpType.OK:
                return about.read(op, event, asked, since=self.since if self._clean else None)
            return about.told(op, event, asked)
        if op.type is OpType.OK and event.acks == ACKS_ALL and self._clean and not self._alone:
            return about.acknowledged(op, event, asked, since=self.since)
        return None

    def _broker(self, op: Op) -> ScheduleStopped | None:
        event = op.event
        if isinstance(event, Started):
            self._replicas.start(op.process)
            for each in self._partitions.values():
                each.electable.start(op.process)
        if isinstance(event, LogStart):
            self._of(event).electable.deleted(event.to)
        if isinstance(event, LogCleaned):  # which records went is left to the rules
            self._of(event).forget()
            self._of(event).electable.deleted(event.upto)
        if not isinstance(event, SAID) or not isinstance(event, OfPartition):
            return None
        about = self._of(event)
        if isinstance(event, Leader | Recovered):
            about.changed = op.index
        step = self._replicas.step(op, event, about.place)
        if step is not None and (fall := fall_of_leader(step)):
            text = f"{op.process}'s high watermark is {fall.now} at {at(op)}, and was {fall.before} before"
            return about.fell(fall, f"{text}; it leads, and that of a leader does not fall", op)
        gone = about.electable.step(op, event, self._names)
        return about.gone(gone, op) if gone and self._clean else None

    def _state(self, op: Op) -> ScheduleStopped | None:
        event = op.event
        if not isinstance(event, MetadataState):
            return None
        about = self._of(event)
        about.changed = op.index
        if self._quorum:
            if about.joined({*map(str, event.isr)}):
                self.since = op.index  # who left may have taken records along
                about.forget()
            return None
        gone = about.electable.state(op, event, exact=self._exact)
        return about.gone(gone, op) if gone and self._clean else None

    def _fault(self, op: Op) -> None:
        if not isinstance(op.event, Injection):
            return
        effect = nature_of(op).effect
        if effect is not Effect.NONE:
            self._changed = op.index
            for about in self._partitions.values():
                about.changed = op.index
        if effect in LOSSY:
            self.since = op.index
            for about in self._partitions.values():
                about.forget()

    def _of(self, event: OfPartition) -> PartitionWatch:
        place = event.topic, event.partition
        found = self._partitions.get(place)
        if found is None:
            known = KnownRecords(window=self.window)
            found = PartitionWatch(place=place, changed=self._changed, known=known)
            self._partitions[place] = found
        return found
