"""
What a rule looks up in a partition's ops: names, the final logs, the final leader, and words for sentences.

Nothing here judges. Docs/history.md gives the keys of every op.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

from harness.model import HistoryError, Op, OpType, Source

NO_KEY: Final = ("", -1)

# How a sentence says why a replica cut its log.
REASONS: Final[dict[str, str]] = {
    "high-watermark": "its high watermark",
    "epoch-answer": "the leader's answer for its epoch",
    "no-epoch-information": "its high watermark, as the leader had no epoch information",
    "out-of-range": "the leader's log end, as its fetch was out of range",
    "full": "nothing, to copy the leader's log anew",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """One record of a final log, with the op of the batch that holds it."""

    offset: int
    digest: str
    value: str
    epoch: int
    index: int


@dataclass(frozen=True, slots=True, kw_only=True)
class FinalBatch:
    """One batch of a final log; base..last inclusive, index is its op's."""

    base: int
    last: int
    epoch: int
    index: int
    records: tuple[tuple[int, str, str], ...]


@dataclass(frozen=True, kw_only=True)  # without slots: cached_property needs a place to keep what it found
class FinalLog:
    """
    One replica's log as read from its own files at the end.

    Shapes:  batches in the order of the files. end is exclusive. epochs is the checkpoint as read, None when
             there is none. promised is how many batches the snapshot said would follow.
    """

    node: str
    index: int
    start: int
    end: int
    epochs: tuple[tuple[int, int], ...] | None
    problems: tuple[str, ...]
    promised: int
    batches: tuple[FinalBatch, ...]

    @cached_property
    def records(self) -> Mapping[int, Record]:
        """Give the record at every offset; the last one where a broken log has two."""
        return {
            offset: Record(offset=offset, digest=digest, value=value, epoch=batch.epoch, index=batch.index)
            for batch in self.batches
            for offset, digest, value in batch.records
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Leadership:
    """Who leads, as last seen; node None when the partition has no leader."""

    node: str | None
    epoch: int
    index: int


def key_of(ops: Sequence[Op]) -> tuple[str, int]:
    """Give the (topic, partition) that the ops are about; the set-up's, or ("", -1), when none names one."""
    about = (op for op in ops if op.value.get("partition") is not None)
    own = next((op for op in about if op.source not in (Source.RUNNER, Source.NEMESIS)), None)
    value = own.value if own else setup_of(ops)
    return (str(value["topic"]), int(value["partition"])) if "partition" in value else NO_KEY


def setup_of(ops: Sequence[Op]) -> Mapping[str, Any]:
    """Give what the runner set up, {} when the history does not say."""
    return next((op.value for op in ops if (op.source, op.f) == (Source.RUNNER, "setup")), {})


def names_of(ops: Sequence[Op]) -> dict[int, str]:
    """Give each broker id's node name."""
    names = {int(broker): str(name) for name, broker in (setup_of(ops).get("nodes") or {}).items()}
    started = (op for op in ops if (op.source, op.f) == (Source.BROKER, "started"))
    return names | {int(op.value["id"]): op.process for op in started}


def final_logs(ops: Sequence[Op]) -> dict[str, FinalLog]:
    """
    Give each node's log as its last good snapshot and the batches after it tell it, by node name.

    Raises:  HistoryError when a batch comes before any snapshot of its node.
    """
    snapshots: dict[str, Op] = {}
    batches: dict[str, list[FinalBatch]] = {}
    for op in ops:
        if (op.source, op.type, op.f) == (Source.LOG, OpType.OK, "snapshot"):
            snapshots[op.process], batches[op.process] = op, []
        elif (op.source, op.f) == (Source.LOG, "batch"):
            if op.process not in batches:
                raise HistoryError(f"op {op.index}: a batch of {op.process} before its snapshot; expected after")
            batches[op.process].append(_batch(op))
    return {node: _log(op, batches[node]) for node, op in sorted(snapshots.items())}


def final_leader(ops: Sequence[Op]) -> Leadership | None:
    """Give the partition's leader as ZooKeeper said it last, else the newest epoch's; None when unknown."""
    states = zookeeper_states(ops)
    if states:
        return Leadership(
            node=states[-1].value["leader"], epoch=int(states[-1].value["epoch"]), index=states[-1].index
        )
    led = [op for op in ops if (op.source, op.f) == (Source.BROKER, "leader")]
    if not led:
        return None
    newest = max(led, key=lambda op: (int(op.value["epoch"]), op.index))
    return Leadership(node=newest.process, epoch=int(newest.value["epoch"]), index=newest.index)


def zookeeper_states(ops: Sequence[Op]) -> list[Op]:
    """Give every leaderAndISR that ZooKeeper was seen to hold, in order."""
    return [op for op in ops if (op.source, op.f) == (Source.ZOOKEEPER, "leaderAndISR")]


def at(op: Op) -> str:
    """Say when the op was recorded: `12.031 s`."""
    return f"{op.time_ns / 1e9:.3f} s"


def offsets_text(ranges: Sequence[tuple[int, int]]) -> str:
    """Say [first, end) ranges with both ends included: `offset 1`, `offsets 1-3, 7`."""
    spans = ", ".join(str(first) if end == first + 1 else f"{first}-{end - 1}" for first, end in ranges)
    return f"offset{'s' if sum(end - first for first, end in ranges) > 1 else ''} {spans}"


def epochs_text(epochs: Sequence[int]) -> str:
    """Say in which epochs records stand: `in epoch 1`, `in epochs 1, 3`, `without an epoch`."""
    known = sorted({epoch for epoch in epochs if epoch >= 0})
    if not known:
        return "without an epoch"
    return f"in epoch{'s' if len(known) > 1 else ''} {', '.join(map(str, known))}"


def _batch(op: Op) -> FinalBatch:
    return FinalBatch(
        base=int(op.value["base"]),
        last=int(op.value["last"]),
        epoch=int(op.value["epoch"]),
        index=op.index,
        records=tuple((int(offset), str(digest), str(value)) for offset, digest, value in op.value["records"]),
    )


def _log(op: Op, batches: Sequence[FinalBatch]) -> FinalLog:
    epochs = op.value.get("epochs")
    return FinalLog(
        node=op.process,
        index=op.index,
        start=int(op.value["log_start_offset"]),
        end=int(op.value["log_end_offset"]),
        epochs=None if epochs is None else tuple((int(epoch), int(start)) for epoch, start in epochs),
        problems=tuple(map(str, op.value.get("problems") or ())),
        promised=int(op.value["batches"]),
        batches=tuple(batches),
    )
