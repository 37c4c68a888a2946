"""
The paths that are always there: created when a session begins, and again by a broker that finds one gone.

An operator may delete any of them; what was below it is gone with it, and the next topic needs it all the same.
Source:  Kafka Replication Design V3, Paths; Kafka, KafkaZkClient.createTopLevelPaths.
"""

from __future__ import annotations

from dataclasses import dataclass

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
        paths = ("/brokers", BROKER_IDS, BROKER_TOPICS, ADMIN)
        core.ask(
            AwaitPaths(),
            *(ZkCreate(path=path) for path in paths),
            ZkCreate(path=CONTROLLER_EPOCH, data=b"0"),
            ZkCreate(path=CONFIG),
            ZkCreate(path=CONFIG_TOPICS),
            *watching_configs(),
        )
