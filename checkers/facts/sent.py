"""What clients sent: each value, how often it may have been appended, and its digest."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from checkers.facts.fact import fact
from checkers.facts.view import final_logs, setup_of, traits
from harness.events import Produce
from harness.logs.record import sent_digest
from harness.model import Op, OpType, events_of


@dataclass(slots=True, kw_only=True)
class Sent:
    """
    One value that clients sent.

    Attributes:
        name: the name of its group, else the value.
        digests: the digest of each record that was sent with this value; empty if it is not known.
        invokes: the ops that sent it.
        failed: the ops that say that it was surely not appended.
        ended: how many of the sends have an outcome.
        numbered: whether brokers must know it again when it is sent again.
        acked: the offsets at which it was acknowledged, each with the op.
    """

    name: str
    digests: set[str] = field(default_factory=set)
    invokes: list[Op] = field(default_factory=list)
    failed: list[Op] = field(default_factory=list)
    ended: int = 0
    numbered: bool = False
    acked: dict[int, Op] = field(default_factory=dict)

    def asked(self, told: Op) -> int:
        """Return the index of the first request that sent it, of the op that tells of it if none is there."""
        return min((op.index for op in self.invokes), default=told.index)

    @property
    def appends_max(self) -> int:
        """How often it may have been appended, if no client sends it again: not at all if every send failed."""
        return max(len(self.invokes), self.ended) - len(self.failed)


@fact
def sent_values(ops: Sequence[Op]) -> Mapping[str, Sent]:
    """Return every value that a client sent to the partition."""
    found: dict[str, Sent] = {}
    setup = setup_of(ops)
    numbered = frozenset(setup.idempotent or ()) if setup else frozenset[str]()
    for op, record in events_of(ops, Produce):
        sent = found.get(record.value)
        if sent is None:
            name = record.name or record.value
            sent = found[record.value] = Sent(name=name, numbered=name in numbered)
        if record.digest:
            sent.digests.add(record.digest)
        if op.type is OpType.INVOKE:
            sent.invokes.append(op)
            continue
        sent.ended += 1
        if op.type is OpType.FAIL:
            sent.failed.append(op)
        elif record.offset is not None and record.offset >= 0:
            sent.acked.setdefault(record.offset, op)
    return found


@fact
def sent_digests(ops: Sequence[Op]) -> Mapping[str, frozenset[str]]:
    """
    Return the digests of what was sent with each value, as far as they are known.

    Older histories do not tell them. The raw client sends neither a key nor headers nor a timestamp, so that the
    digest of its records follows from their values; that is believed if it is so of some record of a final log.
    """
    told = {value: frozenset(sent.digests) for value, sent in sent_values(ops).items() if sent.digests}
    setup = setup_of(ops)
    if setup is None or not setup.sends_once or traits(ops).exact_order or len(told) == len(sent_values(ops)):
        return told
    guessed = {value: sent_digest(value) for value in sent_values(ops) if value not in told}
    stored = (record for log in final_logs(ops).values() for record in log.records.values())
    if any(guessed.get(record.value) == record.digest for record in stored):
        told |= {value: frozenset((digest,)) for value, digest in guessed.items()}
    return told
