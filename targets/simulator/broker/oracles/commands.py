"""
What a broker does on a command: it obeys one that is in force, and no other changes anything.

A command is in force unless its controller epoch is older than one that this process obeyed before or, where
registrations are told apart, it is addressed to another registration. Of one in force, a partition's part counts
only if its leader epoch is higher than the replica's own; to delete the replica, if neither that nor the id of the
topic is lower.
Source:  Kafka Replication Design V3, C and "Potential optimizations" 1; KIP-380, KIP-516, KIP-570.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeAlias

from targets.broker.core.messages import (
    NO_TOPIC_ID,
    ErrorCode,
    LeaderAndIsrRequest,
    LeaderAndIsrResponse,
    Response,
    StopReplicaRequest,
    StopReplicaResponse,
    TopicPartition,
)
from targets.broker.core.state import Role
from targets.simulator.broker.oracles.partition import PartitionOracle
from targets.simulator.broker.oracles.replicas import Before, Seen
from targets.simulator.broker.oracles.violation import Rule
from targets.simulator.broker.world import World

Command: TypeAlias = LeaderAndIsrRequest | StopReplicaRequest
ANY_REGISTRATION = -1


class Commands:
    """The highest controller epoch that each node's process has obeyed."""

    def __init__(self, world: World, oracles: Mapping[TopicPartition, PartitionOracle]) -> None:
        """Start from what the processes know now."""
        self._world = world
        self._oracles = oracles
        self._epochs = {
            name: 0 if node.broker is None else node.broker.state.controller_epoch
            for name, node in world.nodes.items()
        }

    def on_start(self, name: str) -> None:
        """Forget what the process before knew."""
        self._epochs[name] = 0

    def on_answered(self, name: str, commands: Sequence[tuple[Command, Response]]) -> None:
        """
        Check what a node's step did on the commands that it answered.

        Several in one step are those that waited for the node's registration: only their epochs are checked.
        """
        for request, response in commands:
            late = self._late(name, request)
            if len(commands) == 1:
                for oracle in self._oracles.values():
                    wrong = self._wrong(oracle, name, request, response, late)
                    if wrong:
                        self._violated(oracle, name, request, wrong)
            if (
                isinstance(response, LeaderAndIsrResponse | StopReplicaResponse)
                and response.error is ErrorCode.NONE
            ):
                if late:
                    self._violated(next(iter(self._oracles.values())), name, request, f"accepts it, though {late}")
                self._epochs[name] = max(self._epochs[name], request.controller_epoch)

    def _late(self, name: str, request: Command) -> str:
        """Return why a command is not in force for this process, "" if it is."""
        if request.controller_epoch < self._epochs[name]:
            return f"it has obeyed controller epoch {self._epochs[name]}"
        broker = self._world.nodes[name].broker
        if (
            broker is None
            or not broker.state.config.rules.fence_broker_epoch
            or request.broker_epoch == ANY_REGISTRATION
        ):
            return ""
        own = broker.state.registration
        if not own:
            return "it does not know its own registration"
        other = request.broker_epoch != own
        return f"it is for registration {request.broker_epoch}, and its own is {own}" if other else ""

    def _wrong(self, oracle: PartitionOracle, name: str, request: Command, response: Response, late: str) -> str:
        """Return what a command did to a partition and must not have, "" if nothing."""
        seen = oracle.replicas.seen[name]
        before = seen.before(self._world.core_steps)
        if before.replica is None and seen.replica is None:
            return ""
        if isinstance(request, StopReplicaRequest):
            obeyed = (
                isinstance(response, StopReplicaResponse)
                and dict(response.errors).get(oracle.tp) is ErrorCode.NONE
            )
            return _stopped(request, oracle.tp, before, seen, late=late, obeyed=obeyed)
        obeyed = isinstance(response, LeaderAndIsrResponse) and response.error is ErrorCode.NONE
        return _led(request, oracle.tp, before, seen, late=late, obeyed=obeyed)

    def _violated(self, oracle: PartitionOracle, name: str, request: Command, wrong: str) -> None:
        what = type(request).__name__.removesuffix("Request")
        text = f"{name}, commanded by {what} of controller epoch {request.controller_epoch}, {wrong}"
        oracle.violated(Rule.OFFICE, (name,), -1, text)


def _led(
    request: LeaderAndIsrRequest, tp: TopicPartition, before: Before, seen: Seen, *, late: str, obeyed: bool
) -> str:
    named = next((part for part in request.partitions if part.tp == tp), None)
    deletes = request.is_init and named is None
    if seen.replica is None:
        return "" if deletes and not late else f"deletes its replica of {tp}{_though(late)}"
    if deletes and obeyed and not late and seen.replica is before.replica:
        return f"keeps its replica of {tp}, which the command, the first of a controller, does not name"
    was = (before.role, before.epoch, before.leader)
    if seen.replica is not before.replica:
        was = (Role.NONE, -1, -1)
    if (seen.role, seen.epoch, seen.leader) == was:
        return ""
    becomes = f"becomes {seen.role.value} of {tp} in epoch {seen.epoch}"
    if late or named is None:
        return becomes + (_though(late) or ", which the command does not name")
    return "" if named.leader_epoch > was[1] else f"{becomes}, though it was in epoch {was[1]} already"


def _stopped(
    request: StopReplicaRequest, tp: TopicPartition, before: Before, seen: Seen, *, late: str, obeyed: bool
) -> str:
    gone, named = (
        seen.replica is not before.replica,
        next((part for part in request.partitions if part.tp == tp), None),
    )
    if named is not None and before.replica is not None and not late:
        if 0 <= named.leader_epoch < before.epoch:
            late = f"it was in epoch {before.epoch} already"
        elif NO_TOPIC_ID < named.topic_id < before.replica.topic_id:
            late = "it is of a newer topic"
    if gone and (late or named is None):
        return f"deletes its replica of {tp}{_though(late) or ', which the command does not name'}"
    return f"keeps its replica of {tp}" if named is not None and obeyed and not late and not gone else ""


def _though(late: str) -> str:
    return f", though {late}" if late else ""
