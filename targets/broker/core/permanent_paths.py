"""
The paths that are always there: created when a session begins, and again by a broker that finds one gone.

An operator may delete any of them. What was below it is gone with it, and the next topic needs it all the same, or
what the next operator asks for. The controller watches `/brokers/ids`, `/brokers/topics` and `/admin`, and every
broker the parent of topics' settings; `/controller_epoch` is missed by the next write that checks it.
Source:  Kafka Replication Design V3, Paths; Kafka, KafkaZkClient.createTopLevelPaths.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from targets.broker.core.state import Core
from targets.broker.core.zookeeper import (
    ADMIN,
    BROKER_IDS,
    BROKER_TOPICS,
    CONFIG,
    CONFIG_TOPICS,
    CONTROLLER_EPOCH,
    ZkChildren,
    ZkCreate,
    ZkExists,
    ZkOp,
)

# In the order in which they are made: path -> what is in it at first.
PERMANENT: Final[Mapping[str, bytes]] = {
    "/brokers": b"",
    BROKER_IDS: b"",
    BROKER_TOPICS: b"",
    ADMIN: b"",
    CONTROLLER_EPOCH: b"0",
    CONFIG: b"",
    CONFIG_TOPICS: b"",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class AwaitPaths:
    """The permanent paths are being created; one that exists already counts as created."""


def watching_configs() -> tuple[ZkOp, ...]:
    """Return what sets the watch on topics' settings and then reads the names."""
    return ZkExists(path=CONFIG_TOPICS, watch=True), ZkChildren(path=CONFIG_TOPICS)


def create(core: Core) -> None:
    """
    Create those that are missing, and read which topics have settings, whose path is one of them.

    So it is when a session begins, and again after a lost connection. A watch may have made this broker the
    controller in between. It stays in office: /controller is its session's, so no other broker can take over.
    """
    if core.state.session:
        made = (ZkCreate(path=path, data=data) for path, data in PERMANENT.items())
        core.ask(AwaitPaths(), *made, *watching_configs())
