"""
Elections without a failure, and ZooKeeper's state, by Kafka's own paths; the same from 0.10.2 to 3.9.

The module is a `Layout` of targets/kafka_family/zookeeper/layout.py.

A leader is elected as an operator would do it: first reorder the replicas, which needs all of them in the ISR and
raises the epoch, then elect the preferred replica, which raises it again; the ISR stays whole.

Source:  Kafka's documentation, Operations, "Balancing leadership" and "Expanding your cluster".
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, Final

from harness import limits
from harness.cleanup.process import until
from harness.model import PreconditionError, TargetError, UsageError
from targets.kafka_family.zookeeper.layout import Port, StateNode

CONTROLLER: Final = "/controller"
REASSIGN: Final = "/admin/reassign_partitions"
PREFERRED: Final = "/admin/preferred_replica_election"


def registration_path(broker_id: int) -> str:
    """Return the path of a broker's ephemeral node."""
    return f"/brokers/ids/{broker_id}"


def controller_path() -> str:
    """Return the path of the controller's node."""
    return CONTROLLER


def elections_path() -> str:
    """Return where the election of the preferred replica is asked for."""
    return PREFERRED


def topic_path(topic: str) -> str:
    """Return the path of a topic's assignment."""
    return f"/brokers/topics/{topic}"


def partition_path(topic: str, partition: int) -> str:
    """Return the path of a partition's leader and ISR."""
    return f"{topic_path(topic)}/partitions/{partition}/state"


def controller_id(data: bytes) -> int:
    """Read the controller's node."""
    return int(_json(CONTROLLER, data)["brokerid"])


def assignment(data: bytes) -> Mapping[int, tuple[int, ...]]:
    """Read a topic's node: partition -> replicas."""
    found: Mapping[str, Sequence[int]] = _json("a topic's assignment", data)["partitions"]
    return {int(partition): tuple(replicas) for partition, replicas in found.items()}


def partition_state(data: bytes, version: int) -> StateNode:
    """Read a partition's node; version is the node's own."""
    state = _json("a partition's state", data)
    return StateNode(
        leader=int(state["leader"]),
        leader_epoch=int(state["leader_epoch"]),
        isr=tuple(int(member) for member in state["isr"]),
        version=version,
    )


def elect(zookeeper: Port, topic: str, partition: int, broker_id: int) -> str:
    """
    Elect a member of the ISR without a failure; return when the controller has accepted the request.

    Raises:
        PreconditionError: it leads already or is not in the ISR; or the replicas must be reordered and one is
            not in the ISR; or the controller does not accept a request in time.
    """
    assigned, state = _assigned(zookeeper, topic, partition), _state(zookeeper, topic, partition)
    where = f"elect {broker_id} for {topic}-{partition}"
    if state.leader == broker_id or broker_id not in state.isr:
        raise PreconditionError(
            f"{where}: leader {state.leader}, ISR {list(state.isr)}; expected it in the ISR, and another leader"
        )
    place = {"topic": topic, "partition": partition}
    order = [broker_id, *(replica for replica in assigned if replica != broker_id)]
    asked = ""
    if order != assigned:
        if set(assigned) - set(state.isr):
            raise PreconditionError(
                f"{where}: ISR {list(state.isr)} of replicas {assigned}; expected all of them in it, "
                "or the order would not be changed"
            )
        _ask(zookeeper, REASSIGN, {**place, "replicas": order}, where)
        if (now := _assigned(zookeeper, topic, partition)) != order:
            raise PreconditionError(f"{where}: the controller left replicas {now}; expected {order}")
        asked = f"replicas put in order {order}, "
    _ask(zookeeper, PREFERRED, place, where)
    return f"{asked}preferred replica {broker_id} asked for"


def move(zookeeper: Port, topic: str, partition: int, broker_ids: Sequence[int]) -> str:
    """
    Ask the controller to move a partition to these replicas, once it has ended the move before.

    Raises:
        PreconditionError: another move is not over in time.
    """
    if not until(lambda: zookeeper.read(REASSIGN) is None, limits.CONDITION_WAIT_S_MAX):
        raise PreconditionError(
            f"move {topic}-{partition} to {list(broker_ids)}: {REASSIGN} is still there after "
            f"{limits.CONDITION_WAIT_S_MAX:.0f} s; expected no other move in progress"
        )
    where = f"move {topic}-{partition} to {list(broker_ids)}"
    place = {"topic": topic, "partition": partition, "replicas": list(broker_ids)}
    _write(zookeeper, REASSIGN, place, where)
    return f"replicas {list(broker_ids)} of {topic}-{partition} asked for at {REASSIGN}"


def remove(zookeeper: Port, topic: str, partitions: Sequence[int]) -> str:
    """Refuse: V3's PartitionRemove path was never built."""
    del zookeeper
    raise UsageError(
        f"remove partitions {list(partitions)} of {topic}: no release of Apache Kafka can remove partitions; "
        "expected the target broker"
    )


def wanted(zookeeper: Port, topic: str, partition: int) -> tuple[int, ...]:
    """Return the replicas that a partition is to have: those of a move that is not over, else those it has."""
    asked = zookeeper.read(REASSIGN)
    # It stands there until the move is over; the topic's node has both sets of replicas meanwhile.
    for each in [] if asked is None else _json(REASSIGN, asked)["partitions"]:
        if (each["topic"], each["partition"]) == (topic, partition):
            return tuple(each["replicas"])
    return tuple(_assigned(zookeeper, topic, partition))


def _ask(zookeeper: Port, path: str, about: dict[str, Any], where: str) -> None:
    """Write a request for the controller, and wait until the controller removes it because it is done."""
    _write(zookeeper, path, about, where)
    if not until(lambda: zookeeper.read(path) is None, limits.CONDITION_WAIT_S_MAX):
        raise PreconditionError(
            f"{where}: the controller has not taken {path} within {limits.CONDITION_WAIT_S_MAX:.0f} s"
        )


def _write(zookeeper: Port, path: str, about: dict[str, Any], where: str) -> None:
    """Write a request where none may stand: the controller takes a node whole, and would forget another's."""

    def anew(there: bytes | None) -> bytes:
        if there is not None:
            raise PreconditionError(
                f"{where}: {path} exists already, with {there[:200]!r}; expected no other request in progress"
            )
        return json.dumps({"version": 1, "partitions": [about]}).encode()

    zookeeper.update(path, anew)


def _assigned(zookeeper: Port, topic: str, partition: int) -> list[int]:
    path = topic_path(topic)
    found: Sequence[int] = _json(path, _there(zookeeper, path))["partitions"][str(partition)]
    return list(found)


def _state(zookeeper: Port, topic: str, partition: int) -> StateNode:
    return partition_state(_there(zookeeper, partition_path(topic, partition)), version=-1)


def _there(zookeeper: Port, path: str) -> bytes:
    data = zookeeper.read(path)
    if data is None:
        raise PreconditionError(f"{path}: no such node in ZooKeeper; expected the topic to be made")
    return data


def _json(what: str, data: bytes) -> dict[str, Any]:
    try:
        found: dict[str, Any] = json.loads(data)
    except ValueError as error:
        raise TargetError(f"{what}: {data[:120]!r}; expected JSON") from error
    return found
