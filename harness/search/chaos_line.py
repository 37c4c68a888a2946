"""The live line of a long run: rates, faults in force, elections, the first violation, the time that is left."""

from __future__ import annotations

import threading
from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Final

from rich.console import Console

from checkers.live.watch import LiveCheck
from harness.effect import nature_of
from harness.events import Injection, LeaderAndIsr, Produce
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
    What a long run showed so far.

    Attributes:
        calls: how many calls of clients have ended.
        acked: how many records were acknowledged.
        in_force: the faults that last, each with its node.
        elections: how many leaders came after the first of their partition.
    """

    now_ns: int = 0
    calls: int = 0
    acked: int = 0
    bit: int = 0
    in_force: dict[tuple[str, str], str] = field(default_factory=dict)
    epochs: set[tuple[str, int, int]] = field(default_factory=set)
    partitions: set[tuple[str, int]] = field(default_factory=set)

    @property
    def elections(self) -> int:
        """How many leaders came after the first of their partition."""
        return len(self.epochs) - len(self.partitions)

    def add(self, op: Op) -> None:
        """Count one op."""
        self.now_ns = op.time_ns
        match op.event:
            case Injection(name=name, nodes=nodes) if op.source is Source.NEMESIS and op.type is OpType.OK:
                self._add_fault(op, name, nodes)
            case LeaderAndIsr(topic=topic, partition=partition, epoch=epoch):
                self.epochs.add((topic, partition, epoch))
                self.partitions.add((topic, partition))
            case Produce() if op.type is OpType.OK:
                self.acked += 1
        self.calls += op.source is Source.CLIENT and op.type is not OpType.INVOKE

    def _add_fault(self, op: Op, name: str, nodes: Collection[str]) -> None:
        nature = nature_of(op)
        self.bit += 1
        healed = {effect.value for effect in nature.heals}
        self.in_force = {
            key: effect for key, effect in self.in_force.items() if key[1] not in nodes or effect not in healed
        }
        if nature.effect.lasts:
            self.in_force |= {(name, node): nature.effect.value for node in nodes}


class ChaosLine(RunProgress):
    """
    Shows one long run: a line that changes on a terminal, else a line for every minute.

    It listens to the history, in the thread that records an op, and only counts.
    """

    def __init__(self, console: Console, spec: RunSpec) -> None:
        super().__init__(console, 1)
        assert spec.seconds is not None, "a long run has a time"
        self._until_s = spec.seconds
        self._seen = Seen()
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
            self._seen.add(op)
            if self._seen.now_ns - self._shown_ns < (LIVE_NS if self._live else PRINTED_NS):
                return
            text = self._text()
            self._shown_ns = self._seen.now_ns
            self._before = (self._seen.now_ns, self._seen.calls, self._seen.acked)
        if self._live:
            RunProgress.step(self, self._name, text)
        else:
            self._console.print(text, highlight=False, markup=False, soft_wrap=True)

    def _text(self) -> str:
        seen = self._seen
        ns, calls, acked = self._before
        seconds = max(1e-9, (seen.now_ns - ns) / 1e9)
        faults = " ".join(sorted(f"{name}:{node}" for name, node in seen.in_force)) or "none"
        violation = self._stop.violation
        left_s = max(0.0, self._until_s - seen.now_ns / 1e9)
        return (
            f"{seen.now_ns / 1e9:.0f} s: {(seen.calls - calls) / seconds:.0f} ops/s, "
            f"{(seen.acked - acked) / seconds:.0f} acked/s of {seen.acked}, {seen.bit} faults bit, "
            f"in force {faults}, "
            f"{seen.elections} elections, {violation.sentence if violation else 'no violation so far'}, "
            f"{left_s:.0f} s left"
        )
