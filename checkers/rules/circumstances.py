"""What is told of a loss or divergence where brokers report nothing: who led, after what fault, who holds what."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from checkers.facts.copies import copies_of
from checkers.facts.elections import Takeover, takeovers
from checkers.facts.view import FinalLog, at, epochs_text, final_logs
from harness.effect import Effect, nature_of
from harness.events import Injection
from harness.model import Op, OpType, events_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Circumstances:
    """
    What stands around a loss.

    Attributes:
        led: who became leader last before the record was promised; None if nobody is known to have.
        fault: the last fault that began before the losing leader was elected, or else before `led` was; None for
            none.
        others: each other replica whose final log is known, with what it holds in the record's place.
    """

    led: Takeover | None = None
    fault: Op | None = None
    others: tuple[tuple[str, str], ...] = ()

    @property
    def after(self) -> str:
        """The fault in words, to stand behind an election; "" for none."""
        if self.fault is None or not isinstance(self.fault.event, Injection):
            return ""
        return f" after {self.fault.event.name} {' '.join(self.fault.event.nodes)} at {at(self.fault)}"


UNKNOWN: Final = Circumstances()


def circumstances_of(
    ops: Sequence[Op], place: tuple[int, str], promised: Op, takeover: Takeover | None, log: FinalLog | None
) -> Circumstances:
    """
    Return what stands around a loss; UNKNOWN where brokers report what they do, or no log lacks the record.

    Args:
        place: the record's offset and value.
        promised: the op by which it was.
        takeover: the losing leader; None if nobody is known to have taken over without the record.
        log: the final log that lacks it.
    """
    if log is None or copies_of(ops).reported:
        return UNKNOWN
    led = max(
        (each for each in takeovers(ops) if each.op.index < promised.index),
        key=lambda each: each.op.index,
        default=None,
    )
    decided = takeover or led
    others = ((node, _held(each, *place)) for node, each in sorted(final_logs(ops).items()) if node != log.node)
    return Circumstances(
        led=led, fault=None if decided is None else _last_fault(ops, decided.elected), others=tuple(others)
    )


def led_since(ops: Sequence[Op], promised: Op, node: str) -> str:
    """Return, of a node that has another record in place of a promised one, when it led since, or who led then."""
    before = [each for each in takeovers(ops) if each.op.index < promised.index]
    since = [each for each in takeovers(ops) if each.op.index > promised.index and each.node == node]
    if since:
        return f"was elected since{_elected(ops, since[0])}"
    return "was not elected since" + (f"; {before[-1].node} had been{_elected(ops, before[-1])}" if before else "")


def _elected(ops: Sequence[Op], led: Takeover) -> str:
    fault = _last_fault(ops, led.elected)
    return f", in epoch {led.epoch} at {at(led.op)}{Circumstances(fault=fault).after}"


def _last_fault(ops: Sequence[Op], before: int) -> Op | None:
    """Return the last fault that began before an op; what undoes another one is none."""
    found = None
    for op, event in events_of(ops, Injection):
        if op.index < before and op.type is OpType.INVOKE and nature_of(op).effect is not Effect.NONE:
            found = op if not event.heals else found
    return found


def _held(log: FinalLog, offset: int, value: str) -> str:
    """Return what a log holds in place of a record, in words."""
    if offset < 0:
        return "has it" if any(each.value == value for each in log.records.values()) else "has it not"
    held = log.records.get(offset)
    if held is None:
        return f"ends at {log.end}" if log.end <= offset else "has nothing there"
    return "has it" if held.value == value else f"holds {held.value!r} {epochs_text([held.epoch])}"
