"""
Who is not in office changes nothing: what a controller sends, and what is written to ZooKeeper.

The tree itself says which session won which controller epoch. A controller that does not know yet that its office
is gone may still send; a write of its own is refused by the version of /controller_epoch once a newer epoch began.
An operator may delete /controller: until another session wins, the last winner's writes are lawful.
Source:  Kafka Replication Design V3, D; KAFKA-6082.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from targets.broker.core.events import Event, Send, Start, ZkAnswered, ZkAsk, ZkSession
from targets.broker.core.messages import LeaderAndIsrRequest, StopReplicaRequest, TopicPartition
from targets.broker.core.state import Role
from targets.broker.core.zookeeper import (
    CONTROLLER,
    CONTROLLER_EPOCH,
    PartitionState,
    ZkCreate,
    ZkError,
    ZkExists,
    ZkMulti,
    ZkNode,
    ZkSet,
    leader_and_isr_path,
)
from targets.simulator.broker.coordination import state_in, state_written
from targets.simulator.broker.oracles.partition import PartitionOracle
from targets.simulator.broker.oracles.violation import Rule
from targets.simulator.broker.world import World
from targets.simulator.zookeeper import ops

NOBODY: Final = 0


class Office:
    """Which session won each controller epoch, and what each node's core has been told of its own."""

    def __init__(self, world: World, oracles: Mapping[TopicPartition, PartitionOracle]) -> None:
        """Read ZooKeeper and the nodes, and watch every write from now on."""
        self._world = world
        self._oracles = oracles
        self._of_path = {leader_and_isr_path(tp): oracle for tp, oracle in oracles.items()}
        self._tree = world.zookeeper.tree
        self._sessions = {
            name: NOBODY if node.broker is None else node.broker.state.session
            for name, node in world.nodes.items()
        }
        # Questions who holds the office, by node: their tags. And up to which epoch an answer has deposed a node.
        self._looks: dict[str, set[int]] = {name: set() for name in world.nodes}
        self._deposed = dict.fromkeys(world.nodes, NOBODY)
        self._used = dict.fromkeys(world.nodes, NOBODY)
        self._won: dict[int, int] = {}
        holder = self._tree.nodes.get(CONTROLLER)
        if holder is not None:
            self._won[self._epoch()] = holder.owner
        self._states = {
            path: state_in(node) for path in self._of_path if (node := self._tree.nodes.get(path)) is not None
        }
        self._tree.wrote.append(self._on_write)

    # --- what a node knows -----------------------------------------------------------------------------------
    def on_event(self, name: str, event: Event) -> None:
        """Note what a node's core has just been told."""
        if isinstance(event, ZkSession):
            self._sessions[name] = event.session
        elif isinstance(event, Start):
            self._sessions[name] = self._deposed[name] = self._used[name] = NOBODY
            self._looks[name].clear()
        elif isinstance(event, ZkAnswered) and event.tag in self._looks[name]:
            self._looks[name].discard(event.tag)
            holder = event.results[0]
            # A broker takes an answer as lost of which any part was.
            if event.session == self._sessions[name] and ZkError.LOST not in event.results:
                holds = isinstance(holder, ZkNode) and holder.owner == event.session
                self._deposed[name] = NOBODY if holds else self._used[name]

    def _is_out(self, name: str, epoch: int) -> str:
        """Return why a node knows that it does not hold the office of this epoch, "" if it may believe it."""
        session = self._sessions[name]
        if session == NOBODY:
            return "its session is gone"
        if self._won.get(epoch) != session:
            return "another session won that epoch"
        return "it has read that the office is not its own" if epoch <= self._deposed[name] else ""

    # --- what a node does ------------------------------------------------------------------------------------
    def on_send(self, name: str, sent: Send) -> None:
        """Check a command to a broker."""
        request = sent.request
        if isinstance(request, LeaderAndIsrRequest | StopReplicaRequest):
            what = type(request).__name__.removesuffix("Request")
            tps = [part.tp for part in request.partitions]
            self._judge_use(name, tps, request.controller_epoch, f"sends {what}")
        if isinstance(request, LeaderAndIsrRequest):
            self._judge_age(name, request)

    def _judge_age(self, name: str, request: LeaderAndIsrRequest) -> None:
        """
        Check that nobody is told of an older epoch than the newest: not even in place of what was not answered.

        Where there was no state yet (-1), a replica is named alone so that it stays. What a later controller wrote
        is for that one to tell: who is deposed, and has read it, may not have heard that it is.
        """
        broker = self._world.nodes[name].broker
        known = {} if broker is None else broker.state.controller.states
        for told in request.partitions if known else ():
            newest, oracle = known.get(told.tp), self._oracles.get(told.tp)
            if newest is None or oracle is None or newest.topic_id != told.topic_id:
                continue
            if newest.controller_epoch > request.controller_epoch:
                continue
            if 0 <= told.leader_epoch < newest.leader_epoch:
                text = f"{name} tells of epoch {told.leader_epoch} of {told.tp}; newest is {newest.leader_epoch}"
                oracle.violated(Rule.OFFICE, (name,), -1, text)

    def on_ask(self, name: str, asked: ZkAsk) -> None:
        """Check a controller's decision; note a leader's ISR, and a question who holds the office."""
        for op in asked.ops:
            if isinstance(op, ZkMulti):
                self._judge_multi(name, op)
            elif isinstance(op, ZkExists) and op.path == CONTROLLER:
                self._looks[name].add(asked.tag)

    def _judge_multi(self, name: str, multi: ZkMulti) -> None:
        for part in multi.ops:
            oracle = self._of_path.get(part.path)
            if oracle is not None and isinstance(part, ZkCreate | ZkSet):
                self._judge_decision(name, oracle, state_written(part.data))

    def _judge_decision(self, name: str, oracle: PartitionOracle, state: PartitionState) -> None:
        broker = self._world.nodes[name].broker
        replica = None if broker is None else broker.state.replicas.get(oracle.tp)
        leads = replica is not None and replica.role is Role.LEADER and replica.leader_epoch == state.leader_epoch
        if leads and state.leader == self._world.ids[name]:
            oracle.on_isr_asked(name, state.isr)
        else:
            self._judge_use(name, [oracle.tp], state.controller_epoch, "asks ZooKeeper to write a leader and ISR")

    def _judge_use(self, name: str, tps: Sequence[TopicPartition], epoch: int, does: str) -> None:
        why = self._is_out(name, epoch)
        self._used[name] = max(self._used[name], epoch)
        if why:
            oracle = next((self._oracles[tp] for tp in tps if tp in self._oracles), None)
            oracle = oracle or next(iter(self._oracles.values()))
            oracle.violated(
                Rule.OFFICE, (name,), -1, f"{name} {does} as controller of epoch {epoch}, though {why}"
            )

    # --- what has been written -------------------------------------------------------------------------------
    def _on_write(self, parts: Sequence[ops.Write], session: int) -> None:
        for part in parts:
            if part.path == CONTROLLER and isinstance(part, ops.Create):
                self._won[self._epoch()] = session
            oracle = self._of_path.get(part.path)
            if oracle is not None and isinstance(part, ops.Create | ops.Set):
                state = state_written(part.data)
                self._judge_write(oracle, state, self._states.get(part.path), session)
                self._states[part.path] = state
            elif oracle is not None and isinstance(part, ops.Delete):
                self._states.pop(part.path, None)

    def _judge_write(
        self, oracle: PartitionOracle, state: PartitionState, old: PartitionState | None, session: int
    ) -> None:
        """Allow the newest controller epoch's session, and the leader to change its ISR in its own epoch."""
        epoch = self._epoch()
        if self._won.get(epoch) == session:
            return
        known = self._world.zookeeper.sessions.get(session)
        owner = "an operator" if known is None else known.owner
        same = old is not None and (old.leader, old.leader_epoch) == (state.leader, state.leader_epoch)
        if not same or owner != self._world.name_of(state.leader):
            text = (
                f"{owner} writes leader {self._world.name_of(state.leader)} and epoch {state.leader_epoch} to "
                f"ZooKeeper, though it neither won controller epoch {epoch}, the newest, nor leads in that epoch"
            )
            nodes = () if known is None else (owner,)
            oracle.violated(Rule.OFFICE, nodes, -1, text)

    def _epoch(self) -> int:
        node = self._tree.nodes.get(CONTROLLER_EPOCH)
        return NOBODY if node is None else int(node.data)
