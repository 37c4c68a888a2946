"""One sentence for a loss: which node wrote the record, which lost it, why, and whether that was permitted."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from checkers.facts.elections import Takeover
from checkers.facts.view import REASONS, FinalLog, at, epochs_text, offsets_text
from harness.events import Recovered, Truncate
from harness.model import Kind, Op, ranges_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Excuse:
    """The reason why a member of the ISR need not hold the record, with the fault that proves it."""

    member: str
    why: str
    op: Op


@dataclass(frozen=True, slots=True, kw_only=True)
class Loss:
    """
    One lost record, with the judgement.

    Attributes:
        ok: the op that acknowledged it.
        written: the leader's append.
        writer_epoch: the epoch in which the writer led, None if unknown; a log without epochs does not store it.
        takeover: the losing leader.
        cause: the op that took the record from the losing leader; None if it never had the record.
        power: the power loss behind the cause.
        excused: the members of the ISR at acknowledgement that need not hold the record.
        owing: the members of that ISR that must hold it.
        log: the final log that lacks it.
        read: the client's read that lacks it, if only the read does.
    """

    kind: Kind
    name: str
    offset: int
    acks: int
    ok: Op
    written: Op | None
    writer_epoch: int | None
    takeover: Takeover | None
    cause: Op | None
    power: Op | None
    excused: tuple[Excuse, ...]
    owing: tuple[str, ...]
    log: FinalLog | None
    read: Op | None

    @property
    def way(self) -> tuple[object, ...]:
        """The key by which losses are grouped into one sentence."""
        indexes = (op.index if op else None for op in (self.written, self.cause, self.read))
        led = self.takeover.op.index if self.takeover else None
        return (self.kind, self.name, led, self.owing, *indexes)

    @property
    def proof(self) -> tuple[int, ...]:
        """The indexes of the ops that prove the loss."""
        ops = [self.ok, self.written, self.cause, self.power, self.read, *(excuse.op for excuse in self.excused)]
        if self.takeover:
            ops.append(self.takeover.op)
        indexes = [op.index for op in ops if op is not None]
        if self.takeover:
            indexes.append(self.takeover.elected)
        if self.log is not None:
            held = self.log.records.get(self.offset)
            indexes += [self.log.index] + ([held.index] if held else [])
        return tuple(indexes)


def loss_sentence(group: Sequence[Loss]) -> str:
    """Return the sentence for records of one name that were lost in the same way."""
    loss = group[0]
    ranges = ranges_of(each.offset for each in group if each.offset >= 0)
    subject = f"{loss.name} ({offsets_text(ranges)})" if ranges else loss.name
    writer = f"written by {loss.written.process}{_under(loss.writer_epoch)}, " if loss.written else ""
    acks = "all" if loss.acks == -1 else loss.acks
    return (
        f"{subject}, {writer}acknowledged (acks={acks}) at {at(loss.ok)}, is gone: "
        f"{_how(loss)}; {_judgement(loss)}."
    )


def _how(loss: Loss) -> str:
    if loss.read is not None:
        return f"the client's read at {at(loss.read)} does not show it below its high watermark"
    where = _where(loss)
    if loss.takeover is None:
        return f"{where}, though no leader was seen to take over without it"
    node, cause = loss.takeover.node, loss.cause
    if loss.written is None and cause is None:  # no broker events: only final logs show which leaders lacked it
        led = f"in which {node} was elected at {at(loss.takeover.op)}"
        return f"from epoch {loss.takeover.epoch} on, {led}, no leader is known to have had it; {where}"
    how = f"{node} had not copied it"
    if cause is not None:
        match cause.event:
            case Truncate(reason=reason, to=to):
                why = REASONS.get(reason, reason)
                how = f"{node} cut it at {at(cause)} because it truncated to {why} ({to})"
            case Recovered(log_end_offset=end):
                power = f" from the power loss at {at(loss.power)}" if loss.power else ""
                how = f"{node} came back at {at(cause)}{power} with its log ending at {end}"
    verb = "resumed leading" if loss.takeover.resumed else "was elected leader in"
    return f"{how}, and {verb} epoch {loss.takeover.epoch} at {at(loss.takeover.op)} without it; {where}"


def _under(epoch: int | None) -> str:
    return "" if epoch is None else f" in epoch {epoch}"


def _where(loss: Loss) -> str:
    if loss.log is None:
        return "it is not in the final log"
    held = loss.log.records.get(loss.offset)
    if held is None:
        return f"{loss.log.node}'s final log, which ends at {loss.log.end}, does not hold it"
    return f"{loss.log.node}'s final log holds {held.value!r} there, {epochs_text([held.epoch])}"


def _judgement(loss: Loss) -> str:
    match loss.kind:
        case Kind.UNPROMISED:
            return f"acks={loss.acks} promises nothing across a change of leader"
        case Kind.UNCLEAN:
            return "the election was unclean, from outside the ISR, and loses what it lacks"
        case Kind.RETURNED:
            return "a known gap: it lost unflushed bytes and restarted, and no controller had seen it go"
        case Kind.LAST_STANDING:
            return "a known gap: it was the last member of the ISR when it restarted without its unflushed bytes"
        case Kind.PERMITTED:
            return "permitted, as " + " and ".join(
                f"{excuse.member} {excuse.why} ({excuse.op.f} at {at(excuse.op)})" for excuse in loss.excused
            )
        case _ if loss.owing and loss.takeover:
            names = " and ".join(loss.owing)
            still = "was up and had lost no unflushed bytes of it"
            return f"not permitted, as {names}, of the ISR that acknowledged it, {still}"
        case _:
            return "not permitted, as nothing excuses it"
