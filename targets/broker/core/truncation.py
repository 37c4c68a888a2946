"""
The follower's truncation decision: where to truncate after the leader's answer, and whether to ask again.

Source:  KIP-101 steps 4.3 to 4.5 and its fallback; KIP-279; Kafka's AbstractFetcherThread,
         getOffsetTruncationState.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from targets.broker.core.epochs import UNDEFINED_EPOCH, UNDEFINED_OFFSET, EpochCache, EpochEnd


class Reason(StrEnum):
    """Why a log was truncated; histories and reports contain these words."""

    HIGH_WATERMARK = "high-watermark"
    EPOCH_ANSWER = "epoch-answer"
    NO_EPOCH_INFORMATION = "no-epoch-information"
    OUT_OF_RANGE = "out-of-range"
    FULL = "full"
    CORRUPT = "corrupt"


@dataclass(frozen=True, slots=True, kw_only=True)
class Cut:
    """Where to truncate and why; the log's own end removes nothing. Unless `done`, ask again afterwards."""

    to: int
    reason: Reason
    done: bool = True


def decide(answer: EpochEnd, *, log_end_offset: int, fallback: int) -> Cut:
    """
    Turn the leader's answer into a truncation; fall back to the high watermark if it knows nothing.

    Source:  KIP-101: "if the leader can't find the LastOffset [...] the follower will fall back to the
             current approach by truncating the log to its high watermark."
    """
    if answer.end == UNDEFINED_OFFSET:
        return Cut(to=min(fallback, log_end_offset), reason=Reason.NO_EPOCH_INFORMATION)
    return Cut(to=min(answer.end, log_end_offset), reason=Reason.EPOCH_ANSWER)


def walk(answer: EpochEnd, own: EpochCache, *, log_end_offset: int, fallback: int) -> Cut:
    """
    Walk to the last epoch that both logs know: each answer ends the walk or goes one epoch back.

    Args:
        own: the follower's cache.
        fallback: the offset of its last truncation; the high watermark before the first one.

    Source:  KIP-279, "Proposed Changes".
    """
    if answer.end == UNDEFINED_OFFSET or answer.epoch == UNDEFINED_EPOCH:
        # The leader does not know the epoch, or it is older than KIP-279 and names no epoch.
        return decide(answer, log_end_offset=log_end_offset, fallback=fallback)
    mine = own.end_offset_for(answer.epoch, log_end_offset)
    if mine.end == UNDEFINED_OFFSET:
        # Up to 2.0.0 also where the follower's first epoch is newer than the leader's (KAFKA-7415).
        return Cut(to=min(answer.end, log_end_offset), reason=Reason.EPOCH_ANSWER)
    if mine.epoch != answer.epoch:
        # This log has no records of that epoch: those past its last earlier epoch are not the leader's.
        return Cut(to=min(mine.end, log_end_offset), reason=Reason.EPOCH_ANSWER, done=False)
    return Cut(to=min(mine.end, answer.end, log_end_offset), reason=Reason.EPOCH_ANSWER)
