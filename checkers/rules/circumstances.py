"""What is told of a loss or divergence where brokers report nothing: who led, after what fault, who holds what."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from checkers.facts.copies import copies_of
from checkers.facts.elections import Takeover, takeovers
from checkers.facts.fact import fact
from checkers.facts.view import FinalLog, at, epochs_text, final_logs
from checkers.rules.lost_record import Loss
from harness.effect import Effect, nature_of
from harness.events import Injection
from harness.model import Kind, Op, OpType, events_of

# What no excuse permits.
_ACCUSED: Final = frozenset({Kind.LOST, Kind.COMMITTED_LOST, Kind.READ_LOST})


@dataclass(frozen=True, slots=True, kw_only=True)
class Circumstances:
    """
    What stands around a loss.

    Attributes:
        led: who became leader last before the record was promised; None if nobody is known to have.
        after: the last fault that began before the losing leader was elected, or else before `led` was, in words
            that stand behind an election; "" for none.
        others: each other replica whose final log is known, with what it holds in the record's place.
    """

    led: Takeover | None = None
    after: str = ""
    others: tuple[tuple[str, str], ...] = ()


UNKNOWN: Final = Circumstances()


def circumstances_of(ops: Sequence[Op], loss: Loss) -> Circumstances:
    """Return what stands around a loss; UNKNOWN where brokers report what they do, or no log lacks the record."""
    log, record = loss.log, loss.record
    if log is None or loss.by_quorum or loss.kind not in _ACCUSED or copies_of(ops).reported:
        return UNKNOWN
    led = _led_before(ops, record.ok)
    decided = loss.takeover or led
    others = sorted((node, each) for node, each in final_logs(ops).items() if node != log.node)
    return Circumstances(
        led=led,
        after=_after_fault(ops, decided.elected) if decided else "",
        others=tuple((node, _held(each, record.offset, record.value)) for node, each in others),
    )


def led_since(ops: Sequence[Op], promised: Op, node: str) -> str:
    """Return, of a node that has another record in place of a promised one, when it led since, or who led then."""
    since = next((each for each in takeovers(ops) if each.op.index > promised.index and each.node == node), None)
    if since is not None:
        return f"was elected since{_elected(ops, since)}"
    led = _led_before(ops, promised)
    return "was not elected since" + (f"; {led.node} had been{_elected(ops, led)}" if led else "")


def _led_before(ops: Sequence[Op], promised: Op) -> Takeover | None:
    return next((each for each in reversed(takeovers(ops)) if each.op.index < promised.index), None)


def _elected(ops: Sequence[Op], led: Takeover) -> str:
    return f", in epoch {led.epoch} at {at(led.op)}{_after_fault(ops, led.elected)}"


def _after_fault(ops: Sequence[Op], before: int) -> str:
    """Return the last fault that began before an op, in words; "" for none."""
    begun = _begun(ops)
    index = bisect_left(begun, before, key=lambda each: each[0].index)
    if not index:
        return ""
    op, fault = begun[index - 1]
    return f" after {fault.name} {' '.join(fault.nodes)} at {at(op)}"


@fact
def _begun(ops: Sequence[Op]) -> list[tuple[Op, Injection]]:
    """Return where faults began, in index order; what undoes another one, or has no effect, is none."""
    return [
        (op, fault)
        for op, fault in events_of(ops, Injection)
        if op.type is OpType.INVOKE and not fault.heals and nature_of(op).effect is not Effect.NONE
    ]


def _held(log: FinalLog, offset: int, value: str) -> str:
    """Return what a log holds in place of a record, in words."""
    if offset < 0:
        return "has it" if any(each.value == value for each in log.records.values()) else "has it not"
    held = log.records.get(offset)
    if held is None:
        return f"ends at {log.end}" if log.end <= offset else "has nothing there"
    return "has it" if held.value == value else f"holds {held.value!r} {epochs_text([held.epoch])}"
