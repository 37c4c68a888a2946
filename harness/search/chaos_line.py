"""The live line of a long run: rates, faults in force, elections, the first violation, the time that is left."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from typing import Final

from rich.console import Console

from checkers.live.watch import LiveCheck
from checkers.measures.availability import REAL_NS, WindowsSoFar
from checkers.measures.in_force import InForce
from harness.events import Injection, MetadataState, OfLink, Produce
from harness.model import Op, OpType, Source
from harness.run.spec import RunSpec
from harness.scenario.stop import Stop
from harness.suite.progress import RunProgress

# How often the line changes on a terminal, and how often a line is printed elsewhere, in the run's own time.
LIVE_NS: Final = 1_000_000_000
PRINTED_NS: Final = 60_000_000_000


@dataclass(slots=True)
class Seen:
    """
    What a long run showed so far, from its ops.

    Attributes:
        calls: how many calls of clients have ended.
        acked: how many records were acknowledged.
        bit: how many faults took effect.
        faults: when each fault and each rule of a link was in force.
        windows: the seconds in which a record was tried, and whether one was acknowledged.
    """

    now_ns: int = 0
    calls: int = 0
    acked: int = 0
    bit: int = 0
    faults: InForce = field(default_factory=InForce)
    windows: WindowsSoFar = field(default_factory=lambda: WindowsSoFar(window_ns=REAL_NS))
    _epochs: set[tuple[str, int, int]] = field(default_factory=set)
    _partitions: set[tuple[str, int]] = field(default_factory=set)
    _waiting: dict[tuple[object, ...], int] = field(default_factory=dict)

    @property
    def elections(self) -> int:
        """How many leaders came after the first of their partition."""
        return len(self._epochs) - len(self._partitions)

    def add(self, op: Op) -> None:
        """Count one op."""
        self.now_ns = op.time_ns
        self.calls += op.source is Source.CLIENT and op.type is not OpType.INVOKE
        match op.event:
            case Produce() as produce:
                self._add_produce(op, produce)
            case Injection():
                self.bit += op.type is OpType.OK
                self.faults.add(op)
            case OfLink():
                self.faults.add(op)
            case MetadataState(topic=topic, partition=partition, epoch=epoch):
                self._epochs.add((topic, partition, epoch))
                self._partitions.add((topic, partition))

    def _add_produce(self, op: Op, produce: Produce) -> None:
        key = op.process, *produce.asked
        if op.type is OpType.INVOKE:
            self._waiting[key] = op.time_ns
            return
        sent_ns = self._waiting.pop(key, op.time_ns)
        acked = op.type is OpType.OK and produce.acks != 0
        self.acked += op.type is OpType.OK
        self.windows.add(sent_ns, op.time_ns, acked)


class ChaosLine(RunProgress):
    """
    Shows one long run: a line that changes on a terminal, else a line for every minute.

    It listens to the history, in the thread that records an op, and only counts.

    Attributes:
        seen: what was counted.
    """

    def __init__(self, console: Console, spec: RunSpec) -> None:
        super().__init__(console, 1)
        assert spec.seconds is not None, "a long run has a time"
        self._until_s = spec.seconds
        self.seen = Seen()
        self._stop = Stop(LiveCheck())
        self._mutex = threading.Lock()
        self._shown_ns = 0
        self._before = (0, 0, 0)
        self._name = spec.name

    def step(self, name: str, text: str) -> None:
        """Show nothing of single steps."""

    def listen(self, op: Op) -> None:
        """Count an op, and show a new line when it is time."""
        with self._mutex:
            self._stop.listen(op)
            self.seen.add(op)
            if self.seen.now_ns - self._shown_ns < (LIVE_NS if self._live else PRINTED_NS):
                return
            text = self._text()
            self._shown_ns = self.seen.now_ns
            self._before = (self.seen.now_ns, self.seen.calls, self.seen.acked)
        if self._live:
            RunProgress.step(self, self._name, text)
        else:
            self._console.print(text, highlight=False, markup=False, soft_wrap=True)

    def _text(self) -> str:
        seen = self.seen
        ns, calls, acked = self._before
        seconds = max(1e-9, (seen.now_ns - ns) / 1e9)
        faults = " ".join(seen.faults.standing()) or "none"
        violation = self._stop.violation
        left_s = max(0.0, self._until_s - seen.now_ns / 1e9)
        return (
            f"{seen.now_ns / 1e9:.0f} s: {(seen.calls - calls) / seconds:.0f} ops/s, "
            f"{(seen.acked - acked) / seconds:.0f} acked/s of {seen.acked}, {seen.bit} faults bit, "
            f"in force {faults}, "
            f"{seen.elections} elections, {violation.sentence if violation else 'no violation so far'}, "
            f"{left_s:.0f} s left"
        )
