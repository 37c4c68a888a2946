"""
Oracles: invariants of every step of a world, each checked where its data has changed.

    committed       every record that was once below the high watermark of a broker that claims leadership is on
                    every electable replica (ZooKeeper's ISR), and no other record is committed at its offset
    prefix          a follower that has truncated its log and fetches from a leader in that leader's epoch agrees
                    with it below both ends
    acknowledged    a record that was acknowledged with acks=all is committed at that very offset, by enough
                    replicas; with acks=1 it is at least in the leader's log there
    leaders         one broker leads in one epoch
    high-watermark  that of a leader does not fall within its epoch, and lies within its log
    follower-high-watermark
                    that of any other replica lies within its log, and the records below it are the committed ones
    served          what a consumer is served is committed, whole, in order and below the high watermark, and comes
                    from a broker that leads by its own state
    checkpoint      the epoch checkpoint rises and has the epoch of every batch
    log-start       the start of a log does not fall while its log is there, and a follower's is no leader's ahead
    answers         an answer names all partitions that were asked, but in a fetch session those that have not
                    changed, and comes when it is due: to a fetch once there are records, to any request at the end
                    of its wait
    due             what a step must do at once it does: who lags leaves the ISR in time, and nobody else; the high
                    watermark moves with the ISR, what a closed connection waited for is dropped, timers fire, and
                    no ask to ZooKeeper is larger than it may be
    rest            once all is healed, each broker agrees with ZooKeeper and its disk, and has nothing left to do
    fail-stop       a broker whose write or flush failed ends in that step, and says why
    office          only the controller in office, or a leader for its ISR, changes a partition's state, and a
                    broker obeys only commands that are in force; what is written of where partitions are was asked
                    for, and nothing that was asked for is dropped

Every partition is watched. Only the first violation of a rule in a partition is kept; its consequences are not
recorded.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from harness.events import Healed, Produce
from harness.model import Op, OpType, Source
from targets.broker.core.events import (
    Effect,
    Event,
    Hungup,
    Observe,
    Received,
    Send,
    Start,
    Tick,
    ZkAnswered,
    ZkAsk,
    ZkSession,
)
from targets.broker.core.log_port import WITH_EPOCHS
from targets.broker.core.messages import (
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    FetchRequest,
    FetchResponse,
    LeaderAndIsrRequest,
    ProduceRequest,
    ProduceResponse,
    StopReplicaRequest,
    TopicPartition,
)
from targets.broker.core.state import Replica, State
from targets.broker.core.truncation import Reason
from targets.broker.core.zookeeper import leader_and_isr_path
from targets.simulator.broker.node import Node
from targets.simulator.broker.oracles.asking import Asking
from targets.simulator.broker.oracles.calls import COMMANDS, Calls, Told
from targets.simulator.broker.oracles.checkpoint import Checkpoints
from targets.simulator.broker.oracles.commands import Commands
from targets.simulator.broker.oracles.compacted import Compaction
from targets.simulator.broker.oracles.deletions import Deletions
from targets.simulator.broker.oracles.due import Due
from targets.simulator.broker.oracles.fail_stop import FailStop
from targets.simulator.broker.oracles.heard import Heard
from targets.simulator.broker.oracles.lag import Lag
from targets.simulator.broker.oracles.lives import Lives
from targets.simulator.broker.oracles.numbered import Numbered
from targets.simulator.broker.oracles.office import Office
from targets.simulator.broker.oracles.partition import PartitionOracle
from targets.simulator.broker.oracles.placing import Placing
from targets.simulator.broker.oracles.produced import ACKS_ALL, Produced
from targets.simulator.broker.oracles.rest import left_over
from targets.simulator.broker.oracles.served import judge_served
from targets.simulator.broker.oracles.sessions import Sessions
from targets.simulator.broker.oracles.settings import wrong_settings
from targets.simulator.broker.oracles.topic_ids import TopicIds
from targets.simulator.broker.oracles.violation import Rule, Violation, Violations
from targets.simulator.broker.oracles.waits import Waits
from targets.simulator.broker.world import World
from targets.simulator.engine.clock import NS_PER_S

# Longer than two waits of a fetch, with the back-off and the latencies: if the epoch rises meanwhile, the first
# ends in vain, and the next one brings the last high watermark.
REST_S: Final = 1.2
# The events that the oracles of offices and of answers heed.
_OF_OFFICE: Final = frozenset((ZkSession, ZkAnswered, Start))
_OF_DUE: Final = frozenset((Hungup, Received, Tick, ZkAnswered))
_OF_CALLS: Final = frozenset((Received, Hungup, Start))
_NONE: Final[Mapping[TopicPartition, Replica]] = {}
# How brokers say that they cut a log to their high watermark.
_FALLEN_BACK: Final = frozenset({Reason.HIGH_WATERMARK, Reason.NO_EPOCH_INFORMATION})


class Oracles:
    """
    The rules, checked on the partitions of one world.

    listen(op) receives the world's history; without it clients' acknowledgements are not checked.
    """

    def __init__(self, world: World, places: Iterable[TopicPartition]) -> None:
        """Start to watch these partitions."""
        self._world = world
        self._violations = Violations(world)
        self._lives = Lives(world)
        self._partitions = {tp: PartitionOracle(world, tp, self._violations, self._lives) for tp in places}
        self._of_path = {leader_and_isr_path(tp): oracle for tp, oracle in self._partitions.items()}
        # Some batches have no epoch.
        self._mixed = not all(map(_stamps, world.nodes.values()))
        # Whether brokers with epochs were set back to a version without them: then followers may fall back.
        self._had_epochs = all(node.config.rules.epochs for node in world.nodes.values())
        self._window = False
        self._of_node = {
            name: [
                (tp, oracle.replicas.seen[name], oracle, Checkpoints(oracle, name))
                for tp, oracle in self._partitions.items()
            ]
            for name in world.nodes
        }
        self._calls = Calls(world.nodes)
        self._sessions = Sessions(world, self._violations)
        self._produced = Produced(world, self._partitions)
        self._office = Office(world, self._partitions)
        self._placing = Placing(world, self._violations, next(iter(self._partitions)))
        self._commands = Commands(world, self._partitions)
        self._waits = Waits(world, self._violations, next(iter(self._partitions)))
        self._due = Due(world, self._partitions.keys())
        self._deletions = Deletions(world)
        TopicIds(world, self._violations, next(iter(self._partitions)))
        self._asking = Asking(world)
        self._numbered = Numbered()
        parts = {tp: oracle.compacted for tp, oracle in self._partitions.items()}
        self._compaction = Compaction(world, parts)
        self._lag = Lag(world, self._partitions.keys())
        self._heard = Heard(world, self._violations, next(iter(self._partitions)))
        self._fail_stop = FailStop(world)
        self._healed = False
        world.watchers.append(self._on_step)
        world.zookeeper.tree.changed.append(self._on_zookeeper)

    @property
    def violations(self) -> Mapping[tuple[Rule, TopicPartition], Violation]:
        """The first violation of each rule in each partition, in the order of steps."""
        return self._violations.found

    def listen(self, op: Op) -> None:
        """Note the client answers in an op of the history, and whether the run was healed."""
        if op.source is Source.RUNNER and isinstance(op.event, Healed):
            self._healed = op.type is OpType.OK
        if op.source is not Source.CLIENT or op.type is not OpType.OK:
            return
        match op.event:
            case Produce(acks=acks, offset=int(offset), value=value) if acks == ACKS_ALL:
                oracle = self._partitions.get(TopicPartition(op.event.topic, op.event.partition))
                if oracle is not None:
                    oracle.on_acknowledged(offset, value)

    def end(self) -> None:
        """
        Judge the world at rest, if the run was healed.

        The runner has waited until every record was everywhere. A last high watermark may still wait for the end
        of a fetch: what is not at rest then gets more time, by the slowest node's clock, in which nothing is asked
        and nothing recorded.
        """
        if not self._healed:
            return
        if self._left():
            self._world.record_into(None)
            self._world.run(REST_S * NS_PER_S / self._slowest_ns())
        for name, tp, text in self._left():
            self._violations.add(Rule.REST, tp or next(iter(self._partitions)), (name,), -1, text)
        for name, text in wrong_settings(self._world):
            self._overdue(name, None, text)

    def _slowest_ns(self) -> int:
        """Return what the slowest clock of a node shows of a second."""
        now_ns, clocks = self._world.clock.now_ns, [node.clock for node in self._world.nodes.values()]
        return min(NS_PER_S, *(clock.own(now_ns + NS_PER_S) - clock.own(now_ns) for clock in clocks))

    def _left(self) -> list[tuple[str, TopicPartition | None, str]]:
        waiting = self._calls.waiting
        callers = {name: waiting[name].keys() for name in self._world.nodes}
        forgotten = [
            (name, None, f"{name} has not answered a {type(request).__name__}")
            for name in self._world.nodes
            for request, _ in waiting[name].values()
            if type(request) in COMMANDS
        ]
        return [*forgotten, *left_over(self._world, self._partitions, callers)]

    # --- every step ------------------------------------------------------------------------------------------
    def _on_step(self, name: str, event: Event, effects: Sequence[Effect]) -> None:
        """Look first, so that what the step committed counts for what it answered; most steps change nothing."""
        kind = type(event)
        event, effects = self._sessions.whole(name, event, effects)
        if kind is Received or kind is Start:
            self._lives.on_event(name, event)
        if kind is Start:
            self._mixed |= not _stamps(self._world.nodes[name])
            self._window |= self._had_epochs and not self._world.nodes[name].config.rules.epochs
        if kind in _OF_OFFICE:
            self._office.on_event(name, event)
        for effect in effects:
            if type(effect) is ZkAsk:
                self._office.on_ask(name, effect)
                self._placing.on_ask(name, effect)
                if text := self._due.asked(name, effect):
                    self._overdue(name, None, text)
            elif type(effect) is Send and type(effect.request) in COMMANDS:
                self._office.on_send(name, effect)
        if text := self._fail_stop.wrong(name, event, effects):
            self._violations.add(Rule.FAIL_STOP, next(iter(self._partitions)), (name,), -1, text)
        node, changed = self._world.nodes[name], False
        state = None if node.process is None else node.process.broker.state
        self._heard.on_step(name, event, effects, state)
        if state is not None and (text := self._due.timers(name, event, state)):
            self._overdue(name, None, text)
        for of, text in () if state is None else self._asking.wrong(name, event, effects, state):
            self._overdue(name, of, text)
        for tp, text in () if state is None else self._deletions.wrong(name, event, effects, state):
            self._overdue(name, tp, text)
        for tp, text in () if state is None else self._compaction.wrong(name, event, effects, state):
            self._overdue(name, tp, text)
        self._compaction.note(name, effects)
        replicas = _NONE if state is None else state.replicas
        logs = node.disk.logs
        for tp, seen, oracle, checkpoint in self._of_node[name]:
            if not seen.is_still(replicas.get(tp), logs.get(tp)):
                changed = True
                fell_back = self._window and _fell_back(effects, tp)
                oracle.on_step(name, started=kind is Start, fell_back=fell_back)
                own = None if state is None else state.topic_configs.get(tp.topic)
                config = node.config if own is None else own.config
                self._mixed |= config.message_format < WITH_EPOCHS
                checkpoint.judge(config, mixed=self._mixed)
                if text := self._numbered.wrong(name, tp, state, logs.get(tp)):
                    self._overdue(name, tp, text)
        if kind in _OF_DUE and state is not None:
            self._judge_due(name, event, state)
        if kind in _OF_CALLS:
            self._note(name, event)
        if changed:
            self._produced.on_change(name)
        if self._calls.waiting[name]:
            told = self._calls.told(name, effects)
            if told:
                self._judge(name, told)
                # A deletion of old records ends waits whose time has not come.
                if kind is Tick and not any(type(each) is Observe and each.f == "log-start" for each in effects):
                    self._waits.in_order(name, told)

    def _judge_due(self, name: str, event: Event, state: State) -> None:
        """Check what a step had to do at once."""
        for tp, text in self._due.wrong(name, event, state):
            self._overdue(name, tp, text)
        if isinstance(event, ZkAnswered):
            self._lag.look(name, state)  # a broker that starts reads what it leads
            for tp, text in self._due.behind(name, state):
                self._overdue(name, tp, text)
        elif isinstance(event, Received):
            if isinstance(event.request, FetchRequest) and event.request.replica_id >= 0:
                self._lag.on_fetch(name, state, event.request)
                for tp, text in self._due.counted(name, state, event.request):
                    self._overdue(name, tp, text)
            elif isinstance(event.request, LeaderAndIsrRequest):
                self._lag.look(name, state)
        elif isinstance(event, Tick):
            for tp, text in self._lag.wrong(name, self._world.nodes[name], state):
                self._overdue(name, tp, text)

    def _overdue(self, name: str, tp: TopicPartition | None, text: str) -> None:
        self._violations.add(Rule.DUE, tp or next(iter(self._partitions)), (name,), -1, text)

    def _note(self, name: str, event: Event) -> None:
        """Note what later answers are judged by."""
        self._calls.note(name, event, self._world.clock.now_ns)
        if isinstance(event, Received):
            if isinstance(event.request, ProduceRequest) and event.request.acks:
                self._produced.on_received(name, event.request)
        else:
            self._produced.forget(name, [request for request, _ in self._calls.waiting[name].values()])
        if isinstance(event, Start):
            self._commands.on_start(name)

    def _judge(self, name: str, told: Sequence[Told]) -> None:
        """Check what a step answered."""
        core_step = self._world.core_steps
        for request, response, received_ns in told:
            self._waits.on_answered(name, request, response, received_ns)
            if isinstance(request, FetchRequest) and isinstance(response, FetchResponse):
                for part in request.partitions if request.replica_id < 0 else ():
                    if part.tp in self._partitions:
                        judge_served(self._partitions[part.tp], name, core_step, request, response)
            elif isinstance(request, ProduceRequest) and isinstance(response, ProduceResponse):
                self._produced.on_answered(name, request, response)
            elif isinstance(request, DeleteRecordsRequest) and isinstance(response, DeleteRecordsResponse):
                broker = self._world.nodes[name].broker
                for tp, text in (
                    () if broker is None else self._deletions.answered(name, request, response, broker.state)
                ):
                    self._overdue(name, tp, text)
        commands = [
            (request, response)
            for request, response, _ in told
            if isinstance(request, LeaderAndIsrRequest | StopReplicaRequest)
        ]
        if commands and self._world.nodes[name].process is not None:
            self._commands.on_answered(name, commands)

    def _on_zookeeper(self, path: str) -> None:
        oracle = self._of_path.get(path)
        if oracle is not None:
            oracle.on_state()


def _fell_back(effects: Sequence[Effect], tp: TopicPartition) -> bool:
    """Return True if a step cut a log to its high watermark."""
    said = (dict(each.value) for each in effects if type(each) is Observe and each.f == "truncate")
    return any((told["topic"], told["partition"]) == tp and told["reason"] in _FALLEN_BACK for told in said)


def _stamps(node: Node) -> bool:
    return node.config.rules.epochs and node.config.message_format >= WITH_EPOCHS
