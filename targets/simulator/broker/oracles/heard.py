"""
What ZooKeeper told a broker, and what the broker made of it.

    void      what another session was told, or a reading of an earlier office, or one of which a part was lost,
              decides nothing
    isr       a leader takes an ISR only from its own session's answer; if another write followed its lost one, the
              followers that this one added count on
    reading   each election that an operator asked for takes place, commands for brokers that are gone are dropped,
              and a partition's first leader is the first live one in the order of its assignment
    topics    a topic counts as deleted if every write of its deletion was made; one that was only to be validated
              is not written

An ask may be sent in parts; it is judged once, when its last part is answered.
Source:  Kafka Replication Design V3, A, B, D, E and G; KAFKA-7165: what an older session was told is void.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from targets.broker.core import (
    altering,
    isr,
    membership,
    metadata,
    office,
    partitions,
    producer_ids,
    reading,
    topics,
)
from targets.broker.core.decided import Decided
from targets.broker.core.events import Answer, Arm, Effect, Event, Observe, Start, ZkAnswered, ZkAsk
from targets.broker.core.fences import is_same_topic
from targets.broker.core.messages import NO_TOPIC_ID, ErrorCode, TopicErrors, TopicPartition
from targets.broker.core.state import AwaitRest, State
from targets.broker.core.state_writes import AwaitStateWrites
from targets.broker.core.zookeeper import (
    PartitionState,
    ZkDone,
    ZkError,
    ZkNode,
    ZkResult,
    decode_registration,
    decode_state,
    topic_path,
)
from targets.simulator.broker.oracles.operator_node import read_asked
from targets.simulator.broker.oracles.reread import Reread
from targets.simulator.broker.oracles.retries import unmoved, unread, untried
from targets.simulator.broker.oracles.settings import misread
from targets.simulator.broker.oracles.violation import Rule, Violations
from targets.simulator.broker.world import World

_OF_CLIENTS: Final = (
    metadata.AwaitMetadataNames,
    metadata.AwaitMetadataNodes,
    metadata.AwaitMetadataStates,
    topics.AwaitLiveBrokers,
    topics.AwaitTopicsToDelete,
    topics.AwaitPartitionsToDelete,
    topics.AwaitTopicsWrite,
    partitions.AwaitTopicsToExtend,
    partitions.AwaitTopicsExtended,
    altering.AwaitTopicsToAlter,
    altering.AwaitConfigsWritten,
    producer_ids.AwaitLastBlock,
    producer_ids.AwaitBlock,
)
_OF_ISR: Final = (isr.AwaitIsrWrite, isr.AwaitIsrRead)
# Not the first reading of a controller: of its three answers it needs two.
_WHOLE: Final = (
    membership.AwaitTopicNames,
    membership.AwaitAssignments,
    membership.AwaitPartitionStates,
    office.AwaitLook,
    reading.AwaitNodes,
    reading.AwaitStates,
)
_OF_OFFICE: Final = (reading.AwaitNames, reading.AwaitNodes, reading.AwaitStates)
_OF_REGISTRATION: Final = (membership.AwaitRegistrationRead, membership.AwaitRegistrationWrite)


@dataclass(slots=True)
class _Asked:
    """An ask, whole or in parts: what it is for, and what was answered so far, in which sessions."""

    pending: Any
    results: list[ZkResult] = field(default_factory=list)
    sessions: set[int] = field(default_factory=set)

    @property
    def about(self) -> Any:
        """What continues once everything is answered."""
        return self.pending.continuation if isinstance(self.pending, AwaitRest) else self.pending


class Heard:
    """Judges what the brokers of one world make of ZooKeeper's answers."""

    def __init__(self, world: World, violations: Violations, main: TopicPartition) -> None:
        """Know no ask yet; report what is about no partition with the main one."""
        self._world = world
        self._violations = violations
        self._main = main
        self._asked: dict[str, dict[int, _Asked]] = {name: {} for name in world.nodes}
        self._reread: dict[str, Reread] = {name: Reread() for name in world.nodes}

    def on_step(self, name: str, event: Event, effects: Sequence[Effect], state: State | None) -> None:
        """Note a step's asks, and judge it if it ends one."""
        asked = self._asked[name]
        if isinstance(event, Start):
            asked.clear()
        answered = asked.pop(event.tag, None) if isinstance(event, ZkAnswered) else None
        if isinstance(event, ZkAnswered) and answered is not None:
            answered.results += event.results
            answered.sessions.add(event.session)
        if state is None:
            return
        goes_on = False
        for effect in effects:
            if type(effect) is ZkAsk:
                pending = state.pending.get(effect.tag)
                if answered is not None and isinstance(pending, AwaitRest) and pending is answered.pending:
                    asked[effect.tag], goes_on = answered, True
                else:
                    asked[effect.tag] = _Asked(pending)
        if answered is not None and not goes_on:
            if isinstance(answered.pending, AwaitRest):  # once an answer is lost, so is the rest, unasked
                answered.results += [ZkError.LOST] * len(answered.pending.left)
            void = _void(answered.about, answered, state)
            for of, text in self._reread[name].wrong(self._world, answered.about, state, void=bool(void)):
                self._violations.add(Rule.OFFICE, of, (name,), -1, f"{name} {text}")
            for tp, text in _wrong(self._world, answered, effects, state):
                rule = Rule.ANSWERS if isinstance(answered.about, _OF_CLIENTS) else Rule.OFFICE
                self._violations.add(rule, tp or self._main, (name,), -1, f"{name} {text}")
            node = self._world.nodes[name]
            if node.held_up(self._world.clock.now_ns):
                return  # the step was before the time that its disk took
            told = answered.about, answered.results, answered.sessions, state
            for text in (untried(*told, node.clock.now_ns), unread(*told), unmoved(*told), misread(*told)):
                if text:
                    self._violations.add(Rule.DUE, self._main, (name,), -1, f"{name} {text}")


def _wrong(
    world: World, asked: _Asked, effects: Sequence[Effect], state: State
) -> Iterator[tuple[TopicPartition | None, str]]:
    about = asked.about
    if isinstance(about, _OF_CLIENTS):
        yield from ((None, text) for text in _of_topics(about, asked.results, effects))
    elif isinstance(about, _OF_ISR):
        yield from ((about.tp, text) for text in _of_isr(about, asked, effects, state))
    elif why := _void(about, asked, state):
        if did := [type(effect).__name__ for effect in effects if type(effect) is not Arm]:
            yield None, f"acts ({did[0]}) on answers for {type(about).__name__}, though {why}"
    elif isinstance(about, _OF_REGISTRATION):
        own = asked.results[-1]
        if _says("member", effects) and isinstance(own, ZkNode) and own.owner != state.session:
            yield None, f"takes itself for registered, though the registration is of session {own.owner:#x}"
        elif isinstance(about, membership.AwaitRegistrationRead) and isinstance(own, ZkNode):
            there = decode_registration(own.data).node
            if there != state.config.registration.node:  # a process that ends has no state any more
                yield None, f"goes on under an id under which it has read the machine {there} to be registered"
    elif isinstance(about, reading.AwaitStates):
        yield from _of_reading(world, about, asked.results, effects, state)


def _void(about: Any, asked: _Asked, state: State) -> str:
    """Return why an answer must decide nothing, "" if it may."""
    if asked.sessions != {state.session}:
        told = ", ".join(f"{session:#x}" for session in sorted(asked.sessions))
        return f"session {told} was told them, and its own is {state.session:#x}"
    if isinstance(about, _OF_OFFICE) and not (state.controller.active and state.controller.epoch == about.office):
        return f"they were asked for in controller epoch {about.office}, and it left that office"
    lost = isinstance(about, _WHOLE) and ZkError.LOST in asked.results
    return "a part of them was lost" if lost else ""


def _says(f: str, effects: Sequence[Effect]) -> bool:
    return any(isinstance(effect, Observe) and effect.f == f for effect in effects)


# --- an ISR --------------------------------------------------------------------------------------------------
def _of_isr(about: Any, asked: _Asked, effects: Sequence[Effect], state: State) -> Iterator[str]:
    replica, result = state.replicas.get(about.tp), asked.results[-1]
    if asked.sessions != {state.session}:
        if _says("isr", effects):
            yield f"takes the ISR {about.isr} of {about.tp} from the answer to another session of its own"
        return
    if replica is None or replica.generation != about.generation or not isinstance(result, ZkNode):
        return
    if isinstance(about, isr.AwaitIsrRead):
        found = decode_state(result)
        mine = (state.config.broker_id, replica.leader_epoch, about.isr)
        overtaken = found.zk_version != replica.zk_version and mine != (
            found.leader,
            found.leader_epoch,
            found.isr,
        )
        if overtaken and not about.refused and replica.isr_asked != about.isr:
            yield f"forgets the ISR {about.isr} of {about.tp}, which may have been written before {found}"


# --- a controller's reading ----------------------------------------------------------------------------------
def _of_reading(
    world: World,
    about: reading.AwaitStates,
    results: Sequence[ZkResult],
    effects: Sequence[Effect],
    state: State,
) -> Iterator[tuple[TopicPartition | None, str]]:
    live = state.controller.live
    if gone := sorted(state.controller.channels.keys() - live.keys()):
        yield None, f"keeps commands for broker {', '.join(map(str, gone))}, which it has read to be gone"
    ids = {topic: czxid if state.config.rules.topic_identity else NO_TOPIC_ID for topic, czxid, _ in about.topics}
    # Those that were removed and added again have ids of their own.
    own = dict(about.ids) if state.config.rules.topic_identity else {}
    # What was not read now was read or written before.
    found = {tp: there for tp, there in state.controller.states.items() if tp not in about.read} | {
        tp: there
        for tp, node in zip(about.read, results, strict=False)
        if isinstance(node, ZkNode)
        and is_same_topic((there := decode_state(node)).topic_id, own.get(tp, ids[tp.topic]))
    }
    decided = {each.tp: each.state for each in _decisions(effects, state)}
    for tp, leader in _elections(about.asked or ZkError.NO_NODE).items():
        before = found.get(tp)
        if before is None or leader == before.leader or tp in decided:
            continue
        if leader in before.isr and leader in live:
            yield tp, f"does not elect broker {leader} in {tp}, as an operator asked, though its ISR has it"
    for tp, decision in decided.items():
        if tp not in found:
            yield from ((tp, text) for text in _of_first(_assigned(world, tp, about.topics), decision, live))


def _decisions(effects: Sequence[Effect], state: State) -> Iterator[Decided]:
    asks = [state.pending.get(effect.tag) for effect in effects if isinstance(effect, ZkAsk)]
    for pending in asks:
        sent = pending.continuation if isinstance(pending, AwaitRest) else pending
        if isinstance(sent, AwaitStateWrites):
            yield from sent.decisions
    yield from state.controller.writes


def _of_first(assigned: Sequence[int], first: PartitionState, live: Collection[int]) -> Iterator[str]:
    if dead := sorted(set(first.isr) - set(live)):
        yield f"puts broker {', '.join(map(str, dead))} into a partition's first ISR, which it has read to be gone"
    preferred = next((broker for broker in assigned if broker in first.isr), first.leader)
    if first.leader != preferred:
        yield f"makes broker {first.leader} a partition's first leader; of {list(assigned)} it is {preferred}"


# The two nodes are read here as an operator wrote them: what a broker makes of them is judged.
def _assigned(world: World, tp: TopicPartition, read: Iterable[tuple[str, int, object]]) -> Sequence[int]:
    """Return the replicas of a partition of a topic that was read; none if another one has its name by now."""
    node = world.zookeeper.tree.nodes.get(topic_path(tp.topic))
    if node is None or not any((tp.topic, node.czxid) == (topic, czxid) for topic, czxid, _ in read):
        return ()
    return [int(broker) for broker in json.loads(node.data)["partitions"].get(str(tp.partition), ())]


def _elections(node: ZkResult) -> dict[TopicPartition, int]:
    return dict(read_asked(node.data if isinstance(node, ZkNode) else None).elections)


# --- topics --------------------------------------------------------------------------------------------------
def _of_topics(about: Any, results: Sequence[ZkResult], effects: Sequence[Effect]) -> Iterator[str]:
    if isinstance(about, topics.AwaitLiveBrokers) and about.request.validate_only:
        if any(isinstance(effect, ZkAsk) and effect.ops for effect in effects):
            yield "writes a topic to ZooKeeper that it was only to validate"
    elif isinstance(about, topics.AwaitTopicsWrite | partitions.AwaitTopicsExtended):
        failed = {
            name for name, result in zip(about.names, results, strict=False) if not isinstance(result, ZkDone)
        }
        for effect in effects:
            if isinstance(effect, Answer) and isinstance(effect.response, TopicErrors):
                for name, error, _ in effect.response.errors:
                    if error is ErrorCode.NONE and name in failed:
                        does = "extended" if isinstance(about, partitions.AwaitTopicsExtended) else "created"
                        does = "deleted" if isinstance(about, topics.AwaitTopicsWrite) and about.deleting else does
                        yield f"says that topic {name} is {does}, and a write of that failed"
