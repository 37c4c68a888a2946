"""
What others write into ZooKeeper, as cells of a table: node, edit, moment.

A node is named by what it is; which path it has is known once a cluster runs. An edit is done by a hand, which
writes into the simulator's tree or into a real ZooKeeper, without a session and without asking for a version.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final, Protocol

from targets.broker.core.zookeeper import (
    ADMIN,
    BROKER_IDS,
    BROKER_TOPICS,
    CONFIG,
    CONFIG_TOPICS,
    CONTROLLER,
    CONTROLLER_EPOCH,
    ELECTIONS,
    broker_path,
    config_path,
    topic_path,
)


class Hand(Protocol):
    """Somebody who writes into ZooKeeper as a shell does."""

    def read(self, path: str) -> bytes | None:
        """Return what a node holds, None if there is none."""

    def below(self, path: str) -> list[str]:
        """Return the paths of a node's children."""

    def write(self, path: str, data: bytes) -> None:
        """Write a node that is there, or create it."""

    def delete(self, path: str) -> None:
        """Delete a node without children; do nothing if there is none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """
    Where the nodes of a cluster are.

    Attributes:
        controller, leader, other: ids of the brokers in office, leading the topic, and one of neither, if any.
        topic: one with partition 0.
    """

    controller: int
    leader: int
    other: int
    topic: str


Path = Callable[[Hand, Found], str]


def _child(parent: Callable[[Found], str], prefix: str) -> Path:
    def path(hand: Hand, found: Found) -> str:
        names = [each for each in hand.below(parent(found)) if each.rpartition("/")[2].startswith(prefix)]
        return names[0] if names else f"{parent(found)}/{prefix}"

    return path


def _partition(found: Found) -> str:
    return f"{topic_path(found.topic)}/0"


NODES: Final[Mapping[str, Path]] = {
    "controller": lambda _, __: CONTROLLER,
    "controller-epoch": lambda _, __: CONTROLLER_EPOCH,
    "brokers": lambda _, __: BROKER_IDS.rpartition("/")[0],
    "ids": lambda _, __: BROKER_IDS,
    "registration-of-controller": lambda _, found: broker_path(found.controller),
    "registration-of-leader": lambda _, found: broker_path(found.leader),
    "registration-of-other": lambda _, found: broker_path(found.other),
    "topics": lambda _, __: BROKER_TOPICS,
    "topic": lambda _, found: topic_path(found.topic),
    "mark": _child(lambda found: topic_path(found.topic), "made-"),
    "partition": lambda _, found: _partition(found),
    "state": lambda _, found: f"{_partition(found)}/leaderAndISR",
    "topic-id": _child(_partition, "id-"),
    "admin": lambda _, __: ADMIN,
    "elections": lambda _, __: ELECTIONS,
    "config": lambda _, __: CONFIG,
    "configs": lambda _, __: CONFIG_TOPICS,
    "config-of-topic": lambda _, found: config_path(found.topic),
}

IMPOSSIBLE: Final[Mapping[str, bytes]] = {
    "empty": b"",
    "nul": b"\0\0\0",
    "text": b"not JSON",
    "other-shape": b'{"version": 99, "brokerid": [1], "partitions": 7, "config": []}',
    "huge": b"9" * 40,
    "last": str(2**31 - 2).encode(),
    "negative": b"-7",
}


def edits() -> dict[str, Callable[[Hand, str, bytes | None], None]]:
    """Return what is done to a node, by name; each is given the node's path and what it held at first."""

    def rewritten(hand: Hand, path: str, _: bytes | None) -> None:
        hand.write(path, hand.read(path) or b"")

    def old(hand: Hand, path: str, before: bytes | None) -> None:
        hand.write(path, before or b"")

    def impossible(data: bytes) -> Callable[[Hand, str, bytes | None], None]:
        return lambda hand, path, _: hand.write(path, data)

    def higher(hand: Hand, path: str, _: bytes | None) -> None:
        there = hand.read(path) or b""
        hand.write(path, str(int(there) + 7).encode() if there.isdigit() else b"7")

    def deleted(hand: Hand, path: str, _: bytes | None) -> None:
        delete_all(hand, path)

    def given_back(hand: Hand, path: str, _: bytes | None) -> None:
        for each, data in delete_all(hand, path):
            hand.write(each, data)

    return {
        "equal": rewritten,
        "old": old,
        **{f"impossible-{name}": impossible(data) for name, data in IMPOSSIBLE.items()},
        "higher": higher,
        "deleted": deleted,
        "given-back": given_back,
    }


EDITS: Final = edits()


def delete_all(hand: Hand, path: str) -> list[tuple[str, bytes]]:
    """Delete a node with all that is below it; return what was there, parents first."""
    data = hand.read(path)
    if data is None:
        return []
    gone = [(path, data)]
    for each in hand.below(path):
        gone += delete_all(hand, each)
    hand.delete(path)
    return gone
