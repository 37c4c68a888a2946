"""One sentence for a loss: which node wrote the record, the fate of each copy, and whether that was permitted."""

from __future__ import annotations

from collections.abc import Sequence

from checkers.facts.printed_cuts import cuts_text
from checkers.facts.view import at, epochs_text, offsets_text
from checkers.rules.circumstances import Circumstances
from checkers.rules.lost_record import Loss
from checkers.rules.quorum_loss import listed
from harness.model import Kind, ranges_of


def loss_sentence(group: Sequence[Loss], around: Circumstances) -> str:
    """Return the sentence for records of one name that were lost in the same way."""
    loss = group[0]
    record = loss.record
    ranges = ranges_of(each.record.offset for each in group if each.record.offset >= 0)
    subject = f"{record.name} ({offsets_text(ranges)})" if ranges else record.name
    writer = f"written by {record.written.process}{_under(loss.writer_epoch)}, " if record.written else ""
    how = "; ".join(filter(None, (_how(loss, around), cuts_text(loss.cuts))))
    text = f"{subject}, {writer}{record.said}, is gone: {how}; {_judgement(loss)}."
    return text[0].upper() + text[1:] if record.acked is None else text


def _how(loss: Loss, around: Circumstances) -> str:
    if loss.read is not None:
        return f"the client's read at {at(loss.read)} does not show it below its high watermark"
    where = _where(loss)
    if loss.by_quorum:
        return where
    where += "".join(f"; {node} {what}" for node, what in around.others)
    if loss.takeover is None:
        return f"{where}{_led_before(loss, around)}, though no leader was seen to take over without it"
    node = loss.takeover.node
    if not loss.how:  # no broker events: only final logs show which leaders lacked it
        led = f"in which {node} was elected at {at(loss.takeover.op)}{around.after}"
        return f"from epoch {loss.takeover.epoch} on, {led}, no leader is known to have had it; {where}"
    verb = "resumed leading" if loss.takeover.resumed else "was elected leader in"
    return f"{loss.how}, and {verb} epoch {loss.takeover.epoch} at {at(loss.takeover.op)} without it; {where}"


def _led_before(loss: Loss, around: Circumstances) -> str:
    """Return who led when the record was promised, where that is all that is known of an election."""
    led = around.led
    if led is None:
        return ""
    since = f"; {led.node} had been elected in epoch {led.epoch} at {at(led.op)}{around.after}"
    return f"{since}, before it was {'acknowledged' if loss.record.acked else 'committed'}"


def _under(epoch: int | None) -> str:
    return "" if epoch is None else f" in epoch {epoch}"


def _where(loss: Loss) -> str:
    if loss.log is None:
        return "it is not in the final log"
    held = loss.log.records.get(loss.record.offset)
    if held is None:
        if loss.nowhere:
            return f"none of {listed(loss.nowhere)} has a file of the log any more"
        return f"{loss.log.node}'s final log, which ends at {loss.log.end}, does not hold it"
    return f"{loss.log.node}'s final log holds {held.value!r} there, {epochs_text([held.epoch])}"


def _judgement(loss: Loss) -> str:
    excuses = " and ".join(f"{excuse.member} {excuse.text}" for excuse in loss.excused)
    match loss.kind:
        case Kind.UNPROMISED:
            assert loss.record.acked is not None, "a record that no client was told of was committed"
            return f"acks={loss.record.acked.record.acks} promises nothing across a change of leader"
        case Kind.UNCHECKED:
            return f"this cannot be judged, as {loss.lacking}"
        case Kind.UNCLEAN:
            return "permitted, as the election was unclean, from outside the ISR, and loses what it lacks"
        case Kind.RETURNED if loss.excused and loss.takeover is None:
            return f"a known gap: {excuses}, and no controller had seen it go"
        case Kind.RETURNED:
            return "a known gap: it lost unflushed bytes and restarted, and no controller had seen it go"
        case Kind.LAST_STANDING:
            return "a known gap: it was the last member of the ISR when it restarted without its unflushed bytes"
        case Kind.PERMITTED:
            return f"permitted, as {excuses or 'an upgrade from a version without epochs may lose it'}"
        case _ if loss.breaches:
            return "not permitted, as " + " and ".join(breach.text for breach in loss.breaches)
        case _ if loss.owing and loss.takeover:
            others = f" ({excuses})" if excuses else ""
            return f"not permitted, as no fault excuses {' and '.join(loss.owing)}{others}"
        case _:
            return "not permitted, as nothing excuses it"
