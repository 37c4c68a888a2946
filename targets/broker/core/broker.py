"""
The broker as one state machine: `step(now_ns, event) -> effects`; the effects must be applied in order.

It does no IO, reads no clock and draws no random number; asyncio, the simulator and tests drive the same one.
Length:  the tables of what handles each event, request, answer and timer, and little else.
"""

from __future__ import annotations

from typing import assert_never

from targets.broker.core import (
    admission,
    altering,
    command_queue,
    compaction,
    configs,
    controller,
    damage,
    deletions,
    elections,
    fetches,
    follower,
    isr,
    leader,
    leaving,
    log_dirs,
    made,
    marking,
    membership,
    metadata,
    moves,
    neighbours,
    office,
    partitions,
    permanent_paths,
    producer_ids,
    questions,
    reading,
    removal,
    replicas,
    retention,
    round_answers,
    rounds,
    state_writes,
    topic_configs,
    topics,
)
from targets.broker.core.events import (
    Answered,
    Arm,
    Caller,
    Effect,
    Event,
    Flushed,
    Hungup,
    Leave,
    Misdirected,
    Received,
    Start,
    Tick,
    WriteHighWatermarks,
    ZkAnswered,
    ZkFired,
    ZkSession,
)
from targets.broker.core.fetcher import AwaitLeader
from targets.broker.core.messages import (
    AlterConfigsRequest,
    AlterReassignmentsRequest,
    CreatePartitionsRequest,
    CreateTopicsRequest,
    DeleteRecordsRequest,
    DeleteTopicsRequest,
    DescribeConfigsRequest,
    DescribeLogDirsRequest,
    ElectLeadersRequest,
    ErrorCode,
    FetchRequest,
    InitProducerIdRequest,
    LeaderAndIsrRequest,
    LeaderAndIsrResponse,
    ListOffsetsRequest,
    ListReassignmentsRequest,
    MetadataRequest,
    OffsetForLeaderEpochRequest,
    ProduceRequest,
    Request,
    StopReplicaRequest,
    StopReplicaResponse,
)
from targets.broker.core.state import UNBOUNDED, AwaitRest, Config, Core, DiskPort, Role, State
from targets.broker.core.timers import NEVER, TimerKey
from targets.broker.core.zookeeper import (
    ADMIN,
    BROKER_IDS,
    BROKER_TOPICS,
    CONFIG_TOPICS,
    CONTROLLER,
    ELECTIONS,
    ZkError,
    broker_path,
)

# What awaits writes that check the controller's epoch.
_CHECKS_OFFICE = (
    state_writes.AwaitStateWrites
    | marking.AwaitMarksMade
    | marking.AwaitMarksWritten
    | reading.AwaitElectionsRemoval
    | reading.AwaitWishesTaken
    | moves.AwaitMovesNoted
    | partitions.AwaitTopicsExtended
)
# In place of a session: an ask whose parts were answered in different ones.
NO_SESSION = 0


class Broker:
    """
    One broker. `state` is its whole state; the disk port is the only thing outside it that it touches.

    Attributes:
        effects: of the last step; if a handler raised, those that belong to what the state has become by then.
    """

    def __init__(self, config: Config, disk: DiskPort) -> None:
        self.state = State(config=config)
        self.effects: list[Effect] = []
        self._disk = disk

    def step(self, now_ns: int, event: Event, room: int = UNBOUNDED, *, wall_ms: int = -1) -> list[Effect]:
        """
        Process one event and return the effects, in order.

        Args:
            now_ns: time of any monotonic clock, in nanoseconds; timers use the same clock.
            event: the event to process.
            room: how many bytes of records the answers to clients may hold.
            wall_ms: what the wall clock shows, in ms since 1970, for the age of records alone; -1: nobody knows.
        """
        self.effects = []
        core = Core(
            state=self.state, disk=self._disk, now_ns=now_ns, wall_ms=wall_ms, room=room, effects=self.effects
        )
        try:
            _dispatch(core, event)
        finally:
            command_queue.send_next(core)
            rounds.send_ready(core)
            _arm(core)
            if core.ending is not None:
                self.effects.append(core.ending)
        return self.effects


def _dispatch(core: Core, event: Event) -> None:
    match event:
        case Received(caller=caller, request=request):
            if admission.admits(core, event):
                _on_request(core, caller, request)
        case Misdirected(connection=connection, meant_for=meant_for):
            admission.hang_up(core, connection, meant_for)
        case Answered():
            _on_answered(core, event)
        case ZkAnswered():
            _on_zookeeper(core, event)
        case Tick():
            _on_tick(core)
        case ZkFired(path=path):
            _on_fired(core, path)
        case ZkSession(session=session):
            membership.on_session(core, session)
        case Flushed(tp=tp, generation=generation, upto=upto):
            _on_flushed(core, Flushed(tp=tp, generation=generation, upto=upto))
        case Hungup(connection=connection):
            _on_hungup(core, connection)
        case Start(logs=logs):
            for log, recovery in logs:
                replicas.open_replica(core, log, recovery)
            core.after_ms(("isr-check",), max(1, core.config.replica_lag_ms_max // 2))
            core.after_ms(("checkpoint",), core.config.high_watermark_checkpoint_ms)
            retention.begin(core)
            compaction.begin(core)
            elections.begin(core)
        case Leave():
            leaving.begin(core)
        case _:
            assert_never(event)


def _on_request(core: Core, caller: Caller, request: Request) -> None:
    match request:
        case LeaderAndIsrRequest() | StopReplicaRequest():
            replicas.on_command(core, caller, request)
            if core.state.leaving:
                leaving.check(core)
        case FetchRequest():
            whole = fetches.of_session(core, caller, request)
            if whole is not None:
                leader.on_fetch(core, caller, whole)
            for part in whole.partitions if whole is not None and core.state.deletions else ():
                deletions.complete(core, part.tp)
        case ProduceRequest():
            leader.on_produce(core, caller, request)
        case OffsetForLeaderEpochRequest():
            questions.on_offset_for_leader_epoch(core, caller, request)
        case ListOffsetsRequest():
            questions.on_list_offsets(core, caller, request)
        case MetadataRequest():
            metadata.on_metadata(core, caller, request)
        case CreateTopicsRequest():
            topics.on_create_topics(core, caller, request)
        case CreatePartitionsRequest():
            partitions.on_create_partitions(core, caller, request)
        case AlterReassignmentsRequest():
            moves.on_alter(core, caller, request)
        case ListReassignmentsRequest():
            moves.on_list(core, caller, request)
        case ElectLeadersRequest():
            elections.on_elect_leaders(core, caller, request)
            controller.read(core)
        case DeleteTopicsRequest():
            topics.on_delete_topics(core, caller, request)
        case DeleteRecordsRequest():
            deletions.on_delete_records(core, caller, request)
        case DescribeConfigsRequest():
            configs.on_describe_configs(core, caller, request)
        case AlterConfigsRequest():
            altering.on_alter_configs(core, caller, request)
        case DescribeLogDirsRequest():
            log_dirs.on_describe_log_dirs(core, caller, request)
        case InitProducerIdRequest():
            producer_ids.on_init_producer_id(core, caller, request)
        case _:
            assert_never(request)


def _on_answered(core: Core, event: Answered) -> None:
    continuation = core.state.pending.pop(event.tag, None)
    match continuation:
        case AwaitLeader():
            round_answers.on_answered(core, continuation, event.tag, event.response)
        case command_queue.AwaitCommandAck():
            command_queue.on_commanded(core, continuation, event.tag, event.response)
            match event.response:
                case LeaderAndIsrResponse(error=error) | StopReplicaResponse(error=error):
                    if error is ErrorCode.STALE_CONTROLLER_EPOCH:
                        office.heed(core, continuation.controller_epoch + 1)
        case None:
            pass  # void: nothing waits for it any more
        case _:
            raise AssertionError(
                f"answer {event.tag}: {continuation!r} has no handler; expected one in _on_answered"
            )


def _on_zookeeper(core: Core, event: ZkAnswered) -> None:
    continuation = core.state.pending.pop(event.tag, None)
    if isinstance(continuation, AwaitRest):
        _on_part(core, continuation, event)
        return
    results = event.results
    # A reply of an older session: its writes belong to that session, not to this one.
    stale = event.session != core.state.session
    if isinstance(continuation, _CHECKS_OFFICE) and not stale:
        office.on_checked(core, results)
    match continuation:
        case isr.AwaitIsrWrite():
            isr.on_asked(core, continuation, ZkError.LOST if stale else results[0])
        case isr.AwaitIsrRead():
            isr.on_read(core, continuation, ZkError.LOST if stale or ZkError.LOST in results else results[-1])
        case metadata.AwaitMetadataNames():
            metadata.on_names_read(core, continuation, results)
        case metadata.AwaitMetadataNodes():
            metadata.on_nodes_read(core, continuation, results)
        case metadata.AwaitMetadataStates():
            metadata.on_partitions_read(core, continuation, results)
        case topics.AwaitLiveBrokers():
            topics.on_live_read(core, continuation, results)
        case topics.AwaitTopicsToDelete():
            topics.on_to_delete(core, continuation, results)
        case topics.AwaitPartitionsToDelete():
            topics.on_partitions_to_delete(core, continuation, results)
        case topics.AwaitTopicsWrite():
            topics.on_topics_written(core, continuation, results)
        case partitions.AwaitTopicsToExtend():
            partitions.on_read(core, continuation, results)
        case partitions.AwaitTopicsExtended():
            partitions.on_written(core, continuation, results)
        case leaving.AwaitRequests():
            leaving.on_requests(core, results[0])
        case leaving.AwaitSuccession():
            pass  # it looks again after a while
        case moves.AwaitTopicsToMove():
            moves.on_read(core, continuation, results)
        case moves.AwaitMovesNoted():
            moves.on_written(core, continuation, results)
        case moves.AwaitTopicNamesToList():
            moves.on_names_to_list(core, continuation, results[0])
        case moves.AwaitTopicsToList():
            moves.on_read_to_list(core, continuation, results)
        case configs.AwaitTopicsDescribed():
            configs.on_topics_read(core, continuation, results)
        case altering.AwaitTopicsToAlter():
            altering.on_read(core, continuation, results)
        case altering.AwaitConfigsWritten():
            altering.on_written(core, continuation, results)
        case producer_ids.AwaitLastBlock():
            producer_ids.on_read(core, results[0])
        case producer_ids.AwaitBlock():
            producer_ids.on_written(core, continuation, results[0])
        case _ if not stale and continuation is not None:  # any other reply is void
            _on_membership(core, event, continuation)
    if isinstance(continuation, isr.AwaitIsrWrite | isr.AwaitIsrRead) and continuation.tp in core.state.replicas:
        leader.advance_high_watermark(core, core.state.replicas[continuation.tp])
        deletions.complete(core, continuation.tp)


def _on_part(core: Core, rest: AwaitRest, event: ZkAnswered) -> None:
    """Go on with a long ask, or with what awaited it; once an answer is lost, so is the rest, unasked."""
    rest.results += event.results
    rest.session = event.session if rest.session in (None, event.session) else NO_SESSION
    if rest.left and ZkError.LOST not in event.results:
        core.ask_rest(rest)
        return
    results = (*rest.results, *(ZkError.LOST for _ in rest.left))
    tag = core.number()
    core.state.pending[tag] = rest.continuation
    _on_zookeeper(core, ZkAnswered(tag=tag, session=rest.session or NO_SESSION, results=results))


def _on_membership(core: Core, event: ZkAnswered, continuation: object) -> None:
    results = event.results
    match continuation:
        case permanent_paths.AwaitPaths():
            membership.on_paths(core, results)
        case topic_configs.AwaitConfigNames():
            if topic_configs.on_names(core, results[-1]):
                controller.read(core)
        case topic_configs.AwaitConfigs(starting=starting):
            if topic_configs.on_read(core, continuation, results):
                membership.register(core) if starting else controller.read(core)
        case membership.AwaitRegistrationRead():
            membership.on_registration_read(core, *results)
        case neighbours.AwaitNeighbourNames():
            neighbours.on_look(core, results[0])
        case neighbours.AwaitNeighbours():
            membership.on_neighbours_read(core, continuation, results)
        case membership.AwaitRegistrationWrite():
            membership.on_registration_written(core, continuation, results)
        case membership.AwaitRegistrationWatched():
            membership.on_registration_watched(core, ZkError.LOST if ZkError.LOST in results else results[-1])
        case membership.AwaitRegistrationMended():
            pass  # it fires the watch, as any write that came before it has
        case membership.AwaitTopicNames():
            membership.on_topics_listed(core, results[0])
        case membership.AwaitAssignments():
            membership.on_topics_read(core, continuation, results)
        case membership.AwaitPartitionStates():
            membership.on_states_read(core, continuation, results)
        case office.AwaitLook():
            office.on_looked(core, continuation, results[0], results[1])
        case office.AwaitElection():
            office.on_elected(core, continuation, results[0])
        case office.AwaitNamed():
            office.on_named(core, results[0])
        case reading.AwaitNames():
            controller.on_names(core, continuation, results)
        case reading.AwaitNodes():
            controller.on_nodes(core, continuation, results)
        case reading.AwaitStates():
            if controller.on_states(core, continuation, results):
                office.heed(core)
        case state_writes.AwaitStateWrites():
            controller.on_wrote(core, continuation, results[0])
        case made.AwaitMark():
            made.on_looked(core, continuation, *results)
        case marking.AwaitMarksMade():
            marking.on_made(core, continuation, results)
        case marking.AwaitMarksWritten():
            if marking.on_written(core, continuation, results):
                controller.read(core)
        case removal.AwaitBelow():
            controller.on_below(core, continuation, results)
        case reading.AwaitWishesTaken():
            controller.on_wishes_taken(core, continuation, results[0])
        case reading.AwaitElectionsRemoval():
            pass  # the next reading finds a node that was not removed
        case _:
            raise AssertionError(
                f"ZooKeeper's answer {event.tag}: {continuation!r} has no handler; expected one in _on_membership"
            )


def _on_fired(core: Core, path: str) -> None:
    if path == CONTROLLER:
        office.on_fired(core)
    elif path in (BROKER_IDS, BROKER_TOPICS, ELECTIONS, ADMIN):
        controller.read(core)
    elif path == CONFIG_TOPICS:
        topic_configs.read(core)
    elif path == broker_path(core.config.broker_id):
        membership.watch_registration(core)
    else:
        raise AssertionError(f"watch {path}: no handler; expected a path on which the core sets watches")


def _on_flushed(core: Core, event: Flushed) -> None:
    replica = core.state.replicas.get(event.tp)
    if replica is not None and replica.generation == event.generation:
        core.observe_replica("flushed", replica, upto=event.upto)


def _on_hungup(core: Core, connection: int) -> None:
    for number in core.state.fetches.of_connection(connection):
        core.state.fetches.pop(number)
        core.state.timers.drop(("fetch-wait", number))
    for number in core.state.produces.of_connection(connection):
        core.state.produces.pop(number)
        core.state.timers.drop(("produce", number))
    deletions.drop(core, connection)
    producer_ids.drop(core, connection)
    elections.drop(core, connection)
    if core.state.early:
        # The controller sends it again while this broker is registered.
        core.state.early = [command for command in core.state.early if command[0].connection != connection]


def _on_tick(core: Core) -> None:
    core.state.armed_ns = NEVER  # spent: the next timer is armed again, also after an early tick
    for key in core.state.timers.due(core.now_ns):
        if core.state.timers.drop(key):
            _on_timer(core, key)


def _on_timer(core: Core, key: TimerKey) -> None:
    match key:
        case ("isr-check",):
            isr.check_all(core)
        case ("isr-read", tp, int(generation), isr_asked):
            isr.read(core, isr.AwaitIsrRead(tp=tp, generation=generation, isr=isr_asked))
        case ("checkpoint",):
            _checkpoint(core)
            damage.look_through(core)
        case ("retention",):
            retention.apply(core)
        case ("compaction",):
            compaction.apply(core)
        case ("fetch-wait", int(number)):
            fetches.on_fetch_timeout(core, number)
        case ("produce", int(number)):
            leader.on_produce_timeout(core, number)
        case ("delete-records", int(number)):
            deletions.on_timeout(core, number)
        case ("fetch-retry", tp, int(generation)):
            replica = core.state.replicas.get(tp)
            if replica is not None and replica.generation == generation:
                follower.proceed(core, replica)
        case ("fetcher-rest", int(), str()):
            pass  # what is ready goes out at the end of this step
        case ("command", int(broker)):
            command_queue.pump(core, broker)
        case ("controller-read",) | ("reassignment",):
            controller.read(core)
        case ("office", int(tried)):
            office.run_for_office(core, tried)
        case ("elect-leaders", int(number)):
            elections.on_timeout(core, number)
        case ("preferred-leaders",):
            elections.prefer(core)
            controller.read(core)
        case ("register",):
            membership.register(core)
        case ("neighbours",):
            neighbours.look(core)
        case ("registration",):
            membership.watch_registration(core)
        case ("startup",):
            membership.read_topics_again(core)
        case ("paths",):
            permanent_paths.create(core)
        case ("configs",):
            topic_configs.read(core)
        case ("leave",):
            leaving.ask(core)
        case ("left",):
            leaving.leave(core)
        case ("early",):
            replicas.take_early(core)
        case _:
            raise AssertionError(f"timer {key!r}: no handler")


def _checkpoint(core: Core) -> None:
    """V3's HW checkpoint thread: write all high watermarks if one of them moved."""
    core.after_ms(("checkpoint",), core.config.high_watermark_checkpoint_ms)
    current = {
        tp: replica.high_watermark
        for tp, replica in core.state.replicas.items()
        if replica.role is not Role.NONE or replica.log.end_offset
    }
    if current != core.state.checkpointed:
        core.state.checkpointed = current
        core.effects.append(WriteHighWatermarks(high_watermarks=tuple(current.items())))


def _arm(core: Core) -> None:
    """Request the next tick if the earliest timer changed."""
    earliest = core.state.timers.earliest()
    if earliest not in (NEVER, core.state.armed_ns):
        core.state.armed_ns = earliest
        core.effects.append(Arm(at_ns=earliest))
