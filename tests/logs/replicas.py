"""Replicas' logs as data, for tests: batches by their values, and a log of such batches."""

from __future__ import annotations

from harness.logs.replica import BatchSeen, ReplicaLog


def seen(base: int, text: str, *, epoch: int = 0, problem: str = "", unopened: str = "") -> BatchSeen:
    """Return a batch whose records are the text's words; `_` is an offset without a record."""
    words = text.split()
    return BatchSeen(
        base=base,
        last=base + len(words) - 1,
        epoch=epoch,
        magic=2,
        crc=0,
        codec="none",
        position=0,
        segment=f"{0:020d}.log",
        records=tuple((base + i, f"digest of {w}", w) for i, w in enumerate(words) if w != "_" and not unopened),
        problem=problem,
        unopened=unopened,
    )


def replica(
    *batches: BatchSeen,
    start: int = 0,
    end: int | None = None,
    epochs: tuple[tuple[int, int], ...] | None = None,
    unread: tuple[tuple[int, int | None], ...] = (),
    cleaned_to: int = 0,
    high_watermark: int | None = None,
) -> ReplicaLog:
    """Return a replica's log of these batches; its default end is the highest end of a batch."""
    return ReplicaLog(
        topic="t",
        partition=0,
        log_start_offset=start,
        log_end_offset=max((b.end for b in batches), default=start) if end is None else end,
        batches=batches,
        epochs=epochs,
        high_watermark=high_watermark,
        unread=unread,
        cleaned_to=cleaned_to,
    )
