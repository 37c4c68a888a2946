"""A record that is missing at the end, with what was promised of it, and its loss as it is judged."""

from __future__ import annotations

from dataclasses import dataclass

from checkers.facts.acked import Acked, Promise
from checkers.facts.assured import Assured
from checkers.facts.elections import Takeover
from checkers.facts.printed_cuts import PrintedCut
from checkers.facts.proof import Breach, Excuse
from checkers.facts.view import FinalLog
from harness.model import Kind, Op


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """
    A record that is missing at the end, with what was promised of it.

    Attributes:
        name: the name of its group, else its offset.
        value: its text; "" if no client was told of it.
        said: how it was promised, for the sentence.
        ok: the op that acknowledged it, else the one that committed it.
        written: the leader's append, None if brokers did not report it.
        promise: None if nothing was promised across a change of leader.
        acked: None if no client was told of it.
        assured: which nodes must have had it, if a reader was shown it and no acknowledgement says so.
    """

    name: str
    value: str
    offset: int
    said: str
    ok: Op
    written: Op | None
    promise: Promise | None
    acked: Acked | None
    assured: Assured | None = None

    @property
    def by_all(self) -> bool:
        """Whether it was acknowledged with acks=all."""
        return self.acked is not None and self.acked.by_all


@dataclass(frozen=True, slots=True, kw_only=True)
class Loss:
    """
    One lost record, with the judgement.

    Attributes:
        writer_epoch: the epoch in which the writer led, None if unknown; a log without epochs does not store it.
        takeover: the losing leader.
        cause: the op that ended the losing leader's copy; None if it never had one.
        how: how the losing leader came to lack it; "" if only final logs show that it did.
        excused: the replicas that need not hold the record.
        owing: those that must hold it.
        breaches: the conditions of the proof that do not hold.
        lacking: the evidence that is missing, "" if none.
        log: the final log that lacks it.
        read: the client's read that lacks it, if only the read does.
        cuts: what nodes printed of cuts below it, if they report no events.
        by_quorum: whether a majority of a group had promised it, so that no election is asked.
        nowhere: the members, if none of them has a file of the log any more; the log is empty then.
    """

    kind: Kind
    record: Record
    writer_epoch: int | None
    takeover: Takeover | None
    cause: Op | None = None
    how: str = ""
    excused: tuple[Excuse, ...] = ()
    owing: tuple[str, ...] = ()
    breaches: tuple[Breach, ...] = ()
    lacking: str = ""
    log: FinalLog | None
    read: Op | None
    cuts: tuple[PrintedCut, ...] = ()
    by_quorum: bool = False
    nowhere: tuple[str, ...] = ()

    @property
    def way(self) -> tuple[object, ...]:
        """The key by which losses are grouped into one sentence."""
        indexes = (op.index if op else None for op in (self.cause, self.read))
        led = self.takeover.op.index if self.takeover else None
        broken = tuple(breach.text for breach in self.breaches)
        writer = self.record.written.process if self.record.written else ""
        return (self.kind, self.record.name, writer, self.writer_epoch, led, self.owing, broken, *indexes)

    @property
    def proof(self) -> tuple[int, ...]:
        """The indexes of the ops that prove the loss."""
        record = self.record
        ops = [record.ok, record.written, self.cause, self.read, *(excuse.op for excuse in self.excused)]
        ops += [cut.op for cut in self.cuts]
        ops += [op for breach in self.breaches for op in breach.ops]
        indexes = [op.index for op in ops if op is not None]
        if self.takeover:
            indexes += [self.takeover.op.index, self.takeover.elected]
        if self.log is not None:
            held = self.log.records.get(record.offset)
            indexes += [self.log.index] + ([held.index] if held else [])
        return tuple(indexes)
