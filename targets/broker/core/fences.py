"""The fence of KIP-320: a request that names a leader epoch is for that epoch alone."""

from __future__ import annotations

from targets.broker.core.epochs import UNDEFINED_EPOCH
from targets.broker.core.messages import ErrorCode
from targets.broker.core.state import Replica


def fence(replica: Replica, current: int) -> ErrorCode:
    """Compare the epoch of a request (-1: it has none) with this replica's leader epoch."""
    if current in (UNDEFINED_EPOCH, replica.leader_epoch):
        return ErrorCode.NONE
    older = current < replica.leader_epoch
    return ErrorCode.FENCED_LEADER_EPOCH if older else ErrorCode.UNKNOWN_LEADER_EPOCH
