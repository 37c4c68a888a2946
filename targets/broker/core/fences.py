"""
The fences: a request that names a leader epoch (KIP-320) or a topic's id (KIP-516) is for that one alone, and a
controller writes in its own office alone (KAFKA-6082).
"""

from __future__ import annotations

from targets.broker.core.epochs import UNDEFINED_EPOCH
from targets.broker.core.messages import NO_TOPIC_ID, ErrorCode
from targets.broker.core.state import Core, Replica
from targets.broker.core.zookeeper import CONTROLLER_EPOCH, ZkCheck


def fence(replica: Replica, current: int) -> ErrorCode:
    """Compare the epoch of a request (-1: it has none) with this replica's leader epoch."""
    if current in (UNDEFINED_EPOCH, replica.leader_epoch):
        return ErrorCode.NONE
    older = current < replica.leader_epoch
    return ErrorCode.FENCED_LEADER_EPOCH if older else ErrorCode.UNKNOWN_LEADER_EPOCH


def topic_id_of(core: Core, czxid: int) -> int:
    """Return the id of the topic whose node was created so: none where topics have no identity."""
    return czxid if core.rules.topic_identity else NO_TOPIC_ID


def is_same_topic(one: int, other: int) -> bool:
    """Return False for the ids of two topics of one name; without an id, nothing distinguishes them."""
    return one == other or NO_TOPIC_ID in (one, other)


def is_older(one: tuple[int, int], other: tuple[int, int]) -> bool:
    """
    Return True if (topic id, epoch) is older than another: of an older topic, or of an earlier epoch of the same.

    Ids rise with every creation. Without an id nothing distinguishes two topics, and epochs alone count: in an
    upgrade one of both may have come from a broker that knows of no ids.
    """
    (topic_id, epoch), (other_id, other_epoch) = one, other
    return epoch < other_epoch if is_same_topic(topic_id, other_id) else topic_id < other_id


def in_office(core: Core) -> ZkCheck:
    """Return what a controller's write checks: it is refused once another has taken office."""
    return ZkCheck(path=CONTROLLER_EPOCH, version=core.state.controller.epoch_version)
