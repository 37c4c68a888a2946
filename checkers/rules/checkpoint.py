"""
The epoch checkpoint agrees with its log.

An entry (epoch, start) says that the epoch's records begin at start. Under `kip101-text` a leader writes its entry
before it has a record, so an entry may have no records: its start is then where the next entry's records begin, or
the log's end. As shipped (0.11 to 1.1.1), an entry is written with the first record. One rule checks both: at
every batch, the last entry that starts at or below the batch has the batch's epoch.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Final

from checkers.definition import Definition
from checkers.facts.compacted import kept_of
from checkers.facts.moments import follows, is_polled
from checkers.facts.rot import rotten
from checkers.facts.view import FinalLog, final_logs, key_of, rules_of, setup_of, traits
from harness.events import Elected, Follower, Installed, Leader, MetadataState
from harness.model import Anomaly, Kind, Op, events_of

_OFF = ("no", "false")


KINDS: Final = (
    Definition(
        kind=Kind.CHECKPOINT,
        formula="entries (e, s), (f, t) next to each other with f <= e or t < s; or s outside the log; or the "
        "first batch of e not at s; or a batch of e where the last entry at or below it is another epoch's; or "
        "e that no state, elected, leader, follower or batch ever had. Where message_format is "
        "without_epochs, or a client has changed it, a batch below every entry is right, and an entry may be at a "
        "later batch of its epoch; a batch below is right too, and the first entry may start later, where "
        "epoch_trim is up_to_start and the log no longer starts at 0",
        words="A replica's epoch checkpoint contradicts its log, or names an epoch that never was.",
        evidence="log: snapshot, batch; metadata: state; broker: elected, leader, follower",
        unchecked="A state of the metadata that the watch may have missed: then no epoch is called unknown.",
        source="KIP-101, steps 3 and 4.4; KAFKA-16541",
    ),
)


def checkpoint(ops: Sequence[Op]) -> list[Anomaly]:
    """
    Find replicas whose epoch checkpoint contradicts their final log.

    Batches without an epoch (-1) need no entry. No batch needs one if the protocol has no epochs. In a cluster of
    the older message format brokers write epochs one after another, and a batch without one clears the checkpoint:
    a batch then needs no entry, but an entry must be right. So it may be in a cluster that was upgraded; a broker
    that was set back to a protocol without epochs does not look at what it wrote before. By the letter of KIP-101
    the first records of a log whose oldest are deleted have no entry either (epoch_trim).

    Args:
        ops: the ops of one partition and the global ones.

    Returns:
        One anomaly for each node, with all contradictions.

    Source:  KIP-101, steps 3 and 4.4; KAFKA-7897; KAFKA-16541 for stale entries, which no running replica may
             keep.
    """
    topic, partition = key_of(ops)
    setup = setup_of(ops)
    upgraded = next(events_of(ops, Installed), None) is not None
    older = upgraded or (setup is not None and setup.message_format == "without_epochs")
    known = _known_epochs(ops)
    found: list[Anomaly] = []
    file = traits(ops).epochs_file
    for log in final_logs(ops).values():
        if log.snapshot.epochs is None and (not file or rotten(ops, log.node, file) is not None):
            continue  # there is no such file, or a fault has changed a byte of it, so that it cannot be read
        rules = rules_of(ops, log.node, log.index)
        has_epochs = rules.get("epochs") not in _OFF
        if upgraded and not has_epochs:
            continue
        trimmed = rules.get("epoch_trim") == "up_to_start" and log.start > traits(ops).first_offset
        complaints = _entries(ops, log, trimmed=trimmed, older=older)
        if has_epochs:
            complaints += _batches(log, older=older or trimmed) + _strange(log, known)
        if complaints:
            found.append(
                Anomaly(
                    kind=Kind.CHECKPOINT,
                    topic=topic,
                    partition=partition,
                    nodes=(log.node,),
                    sentence=f"{log.node}'s epoch checkpoint contradicts its log: "
                    f"{'; '.join(text for text, _ in complaints)}.",
                    proof=tuple(sorted({log.index, *(index for _, index in complaints)})),
                )
            )
    return found


def _entries(ops: Sequence[Op], log: FinalLog, *, trimmed: bool, older: bool) -> list[tuple[str, int]]:
    """
    Return (complaint, index) for each entry that contradicts the entries, the log's ends or its first batch.

    Of a log that is trimmed by the letter of KIP-101 the first entry may be one that a later record brought back.
    In a cluster of the older message format an epoch may begin anew, with a later batch, after the checkpoint was
    cleared.
    """
    entries = log.snapshot.epochs or ()
    found: list[tuple[str, int]] = []
    for (epoch, start), (next_epoch, next_start) in pairwise(entries):
        if next_epoch <= epoch or next_start < start:
            found.append((f"entry {next_epoch}@{next_start} after {epoch}@{start} does not rise", log.index))
    firsts = {batch.epoch: (index, batch) for index, batch in reversed(log.batches) if batch.last >= log.start}
    begun = {(batch.epoch, batch.base) for _, batch in log.batches}
    for epoch, start in entries:
        # A checkpoint may be trimmed some time after the log's start has moved.
        if start > log.end or start < log.start <= traits(ops).first_offset:
            text = f"entry {epoch}@{start} lies outside the log, which spans {log.start} to {log.end}"
            found.append((text, log.index))
        index, first = firsts.get(epoch, (0, None))
        if any(begin <= start < end for begin, end in log.snapshot.unread or ()):
            continue  # its first batch may be there, and cannot be read
        if first is not None and start < first.base and not kept_of(ops, start, first.base):
            continue  # compaction removed the epoch's first records; its entry stays
        if first is not None and trimmed and start > first.base and (epoch, start) == entries[0]:
            continue
        if first is not None and older and start > first.base and (epoch, start) in begun:
            continue
        if first is not None and start != max(first.base, log.start) and not start < log.start:
            found.append((f"entry {epoch}@{start}, but its first batch is at {first.base}", index))
    return found


def _batches(log: FinalLog, *, older: bool) -> list[tuple[str, int]]:
    """Return (complaint, index) for each epoch with a batch to which the checkpoint assigns another epoch."""
    wrong: dict[int, tuple[str, int]] = {}
    for index, batch in log.batches:
        if batch.last < log.start:
            continue  # retention or DeleteRecords removed it; its segment is still there
        below = [epoch for epoch, start in log.snapshot.epochs or () if start <= max(batch.base, log.start)]
        said = below[-1] if below else None
        if batch.epoch >= 0 and said != batch.epoch and not (older and said is None):
            says = "no epoch" if said is None else f"epoch {said}"
            text = f"the batch at {batch.base} has epoch {batch.epoch}, where the checkpoint has {says}"
            wrong.setdefault(batch.epoch, (text, index))
    return list(wrong.values())


def _strange(log: FinalLog, known: frozenset[int] | None) -> list[tuple[str, int]]:
    """Return (complaint, index) for each entry of an epoch that never was."""
    entries = () if known is None else log.snapshot.epochs or ()
    strange = [(epoch, start) for epoch, start in entries if known is not None and epoch not in known]
    return [(f"entry {epoch}@{start} is of an epoch that never was", log.index) for epoch, start in strange]


def _known_epochs(ops: Sequence[Op]) -> frozenset[int] | None:
    """Return every epoch that the metadata, a broker or a batch had; None if one may have been missed."""
    states = list(events_of(ops, MetadataState))
    elected = {decision.epoch for _, decision in events_of(ops, Elected)}
    whole = bool(states) and all(follows(ops, a.version, b.version) for (_, a), (_, b) in pairwise(states))
    whole = whole and not is_polled(ops)
    if not elected and not (whole and states[0][1].version == 0):
        return None
    epochs = elected | {state.epoch for _, state in states}
    epochs |= {led.epoch for _, led in events_of(ops, Leader)}
    epochs |= {word.epoch for _, word in events_of(ops, Follower)}
    epochs |= {batch.epoch for log in final_logs(ops).values() for _, batch in log.batches}
    return frozenset(epochs)
