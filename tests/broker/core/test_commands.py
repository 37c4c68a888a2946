"""The controller's commands: of each partition the newest, one request in flight per broker, none lost."""

from __future__ import annotations

import pytest

from targets.broker.core import command_queue
from targets.broker.core.assignments import encode_assignment
from targets.broker.core.events import Answered, Effect, Send
from targets.broker.core.messages import (
    EPOCH_DURING_DELETE as DELETED,
)
from targets.broker.core.messages import (
    ErrorCode,
    LeaderAndIsrRequest,
    LeaderAndIsrResponse,
    StopReplica,
    StopReplicaRequest,
    TopicPartition,
)
from targets.broker.core.state import Core
from targets.broker.core.wishes import Wishes, encode_wishes
from targets.broker.core.zookeeper import (
    BROKER_IDS,
    BROKER_TOPICS,
    ELECTIONS,
    PartitionState,
    broker_path,
    encode_registration,
    encode_state,
    leader_and_isr_path,
    partition_path,
    topic_id_path,
    topic_path,
)
from tests.broker.core.bench import Bench, answers, registration

TP_A = TopicPartition("a", 0)
DONE = LeaderAndIsrResponse(error=ErrorCode.NONE, errors=())
OLD = PartitionState(leader=2, leader_epoch=4, isr=(2,), controller_epoch=0, zk_version=0)


def controller_of(*others: int, rules: str = "hw") -> Bench:
    """Return broker 1 as controller; the others are registered, and the test answers every message to them."""
    bench = Bench(rules)
    bench.start(session=5)
    for broker in others:
        bench.zk.put(broker_path(broker), encode_registration(registration(broker)), owner=100 + broker)
    bench.fire(BROKER_IDS)
    return bench


def create(bench: Bench, topic: str, *replicas: int, partitions: int = 1) -> list[Effect]:
    bench.zk.put(topic_path(topic), encode_assignment(dict.fromkeys(range(partitions), replicas)))
    return bench.fire(BROKER_TOPICS)


def said(bench: Bench, effects: list[Effect]) -> list[tuple[int, str]]:
    """Return the receiver and the topics of each command sent; a StopReplica's are marked."""
    found = []
    for send in bench.sent(effects):
        assert isinstance(send.request, LeaderAndIsrRequest | StopReplicaRequest)
        mark = "-" if isinstance(send.request, StopReplicaRequest) else ""
        found.append(
            (send.to, mark + " ".join(dict.fromkeys(named.tp.topic for named in send.request.partitions)))
        )
    return found


def epochs(send: Send) -> list[int]:
    assert isinstance(send.request, LeaderAndIsrRequest)
    return [state.leader_epoch for state in send.request.partitions]


def elect(bench: Bench, leader: int) -> list[Effect]:
    """Have the controller elect a leader of topic a, whose state it reads."""
    bench.zk.put(ELECTIONS, encode_wishes(Wishes(elections={TP_A: leader})))
    return bench.fire(ELECTIONS)


def test_one_request_to_one_broker_is_in_flight_and_what_is_decided_meanwhile_goes_in_the_next() -> None:
    """Source: Kafka Replication Design V3, A 4 and optimizations 1: "multiple commands in one RPC"."""
    bench = controller_of(2)
    assert said(bench, create(bench, "a", 2)) == [(2, "a")]
    assert said(bench, create(bench, "b", 2)) == []
    assert said(bench, create(bench, "c", 2)) == []
    assert said(bench, bench.answer(DONE)) == [(2, "b c")]
    assert said(bench, bench.answer(DONE)) == []


def test_of_each_partition_only_the_newest_state_is_told() -> None:
    """Source: Kafka Replication Design V3, optimizations 1: a broker obeys only what has a larger epoch."""
    bench = controller_of(2, 3)
    create(bench, "a", 2, 3)
    first = {send.to: send for send in bench.sent()}
    for leader in (3, 2, 3):
        elect(bench, leader)
    (newest,) = bench.sent(bench.answer(DONE, to=first[2]))
    assert [3] == epochs(newest)
    assert said(bench, bench.answer(DONE, to=newest)) == []
    assert [3] == [state.leader_epoch for state in bench.broker.state.controller.channels[3].states.values()]


def test_memory_of_a_broker_that_answers_nothing_is_bounded_by_its_partitions() -> None:
    """However often a leader changes meanwhile, the broker learns where it ended."""
    bench = controller_of(2, 3)
    create(bench, "a", 2, 3, partitions=3)
    command = next(send for send in bench.sent() if send.to == 3)
    for turn in range(3_000):
        elect(bench, (3, 2)[turn % 2])
    assert [TP_A] == list(bench.broker.state.controller.channels[3].states)
    (last,) = bench.sent(bench.answer(DONE, to=command))
    assert [3_000] == epochs(last)
    assert [] == bench.observed("command-dropped")


@pytest.mark.parametrize("partitions", [1_500, 3])
def test_no_command_to_a_healthy_broker_is_lost_however_many_partitions_it_has(partitions: int) -> None:
    """Beyond a thousand queued requests the rest was dropped once: of 1,500 partitions 500 had no leader."""
    bench = controller_of(2)
    create(bench, "many", 2, partitions=partitions)
    told = {}
    for _ in range(partitions):
        channel = bench.broker.state.controller.channels[2]
        if channel.tag is None:
            break
        assert isinstance(channel.sent, LeaderAndIsrRequest)
        assert len(channel.sent.partitions) <= bench.broker.state.config.together.states_max
        told |= {state.tp.partition: state.leader for state in channel.sent.partitions}
        bench.step(Answered(tag=channel.tag, response=DONE))
    assert dict.fromkeys(range(partitions), 2) == told


def test_deletion_that_waits_goes_first_and_takes_the_place_of_older_states() -> None:
    """Where topics have no ids, the next topic of that name is told after the deletion, never before."""
    bench = controller_of(2)
    create(bench, "x", 2)
    create(bench, "a", 2)
    bench.zk.remove(leader_and_isr_path(TP_A))
    bench.zk.remove(partition_path(TP_A))
    bench.zk.remove(topic_path("a"))
    assert said(bench, bench.fire(BROKER_TOPICS)) == []
    assert [] == list(bench.broker.state.controller.channels[2].states)
    assert said(bench, create(bench, "a", 2)) == []
    assert said(bench, bench.answer(DONE)) == [(2, "-a")]
    assert said(bench, bench.answer(None)) == []
    assert said(bench, bench.pass_ms(500)) == [(2, "-a")]
    assert said(bench, bench.answer(DONE)) == [(2, "a")]


def test_command_to_one_broker_does_not_wait_for_another() -> None:
    """Source: Kafka Replication Design V3, optimizations 1."""
    bench = controller_of(2, 3)
    assert said(bench, create(bench, "a", 2)) == [(2, "a")]
    assert said(bench, create(bench, "b", 3, 2)) == [(3, "b")]


def test_command_that_was_not_answered_is_sent_again_with_what_came_after_it() -> None:
    """Source: Kafka Replication Design V3, discussion 2."""
    bench = controller_of(2)
    create(bench, "a", 2)
    create(bench, "b", 2)
    for _ in range(3):
        assert said(bench, bench.answer(None)) == []
        assert said(bench, bench.pass_ms(499)) == []
        assert said(bench, bench.pass_ms(1)) == [(2, "a b")]
    assert said(bench, bench.answer(DONE)) == []


def test_init_that_was_not_answered_is_sent_again_whole_and_with_what_was_decided_since() -> None:
    """Source: Kafka Replication Design V3, C 3: a broker deletes what it does not name."""
    bench = Bench("hw")
    bench.zk.put(broker_path(2), encode_registration(registration(2)), owner=102)
    for topic in ("a", "b"):
        bench.zk.put(topic_path(topic), encode_assignment({0: (2,)}))
        bench.zk.put(leader_and_isr_path(TopicPartition(topic, 0)), encode_state(OLD))
    bench.start(session=5)
    init = next(send for send in bench.sent() if send.to == 2)
    assert isinstance(init.request, LeaderAndIsrRequest) and init.request.is_init
    create(bench, "c", 2)
    bench.answer(None, to=init)
    (again,) = bench.sent(bench.pass_ms(500))
    assert isinstance(again.request, LeaderAndIsrRequest) and again.request.is_init
    assert {"a": 4, "b": 4, "c": 0} == {each.tp.topic: each.leader_epoch for each in again.request.partitions}


def test_broker_with_too_much_to_delete_is_told_all_that_it_has(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its deletions would grow with time: INIT says the same."""
    monkeypatch.setattr(command_queue, "UNSTOPPED_MAX", 2)
    bench = controller_of(2, rules="kip380")
    create(bench, "stays", 2)
    for topic in ("a", "b", "c"):
        create(bench, topic, 2)
    for topic in ("a", "b", "c"):
        for path in sorted((p for p in bench.zk.nodes if p.startswith(topic_path(topic))), reverse=True):
            bench.zk.remove(path)
        bench.fire(BROKER_TOPICS)
    bench.pass_ms(1)
    channel = bench.broker.state.controller.channels[2]
    assert channel.is_init and ["stays"] == [tp.topic for tp in channel.states] and not channel.stops


def test_commands_to_a_broker_that_died_are_dropped() -> None:
    """Source: Kafka Replication Design V3, discussion 2."""
    bench = controller_of(2)
    create(bench, "a", 2)
    create(bench, "b", 2)
    lost = bench.sent()[-1]
    bench.zk.close_session(102)
    bench.fire(BROKER_IDS)
    assert said(bench, bench.answer(None, to=lost)) == []
    assert said(bench, bench.pass_ms(60_000)) == []
    assert list(bench.broker.state.controller.channels) == [1]


def test_answer_to_a_command_before_the_broker_died_does_not_move_the_new_queue() -> None:
    """Source: Kafka Replication Design V3, discussion 2."""
    bench = controller_of(2)
    create(bench, "a", 2)
    old = bench.sent()[-1]
    bench.zk.close_session(102)
    bench.fire(BROKER_IDS)
    bench.zk.put(broker_path(2), encode_registration(registration(2)), owner=202)
    bench.fire(BROKER_IDS)
    before = bench.sent()[-1]
    assert before is not old
    assert said(bench, bench.answer(DONE, to=old)) == []
    channel = bench.broker.state.controller.channels[2]
    assert (channel.tag, channel.sent) == (before.tag, before.request)


def test_commands_of_an_office_that_was_left_are_not_sent_again() -> None:
    bench = controller_of(2)
    create(bench, "a", 2)
    command = bench.sent()[-1]
    bench.connect(0)
    assert said(bench, bench.answer(None, to=command)) == []
    assert said(bench, bench.pass_ms(60_000)) == []


def test_controller_commands_itself_over_the_network_as_it_does_others() -> None:
    """Until its own command arrives, its replica does not know the decision, as in Apache Kafka."""
    bench = controller_of(2)
    assert said(bench, create(bench, "a", 1, 2)) == [(2, "a")]
    taken_office = next(send for send in bench.sent() if send.to == 1)
    assert said(bench, bench.answer(DONE, to=taken_office)) == [(1, "a")]
    command = bench.sent()[-1]
    assert bench.observed("leader") == []
    effects = bench.request(command.request)
    assert answers(effects) == [LeaderAndIsrResponse(error=ErrorCode.NONE, errors=((TP_A, ErrorCode.NONE),))]
    assert [("a", 0)] == [(seen["topic"], seen["epoch"]) for seen in bench.observed("leader", effects)]


def test_commands_carry_the_controllers_epoch_and_v3s_fields() -> None:
    """Source: Kafka Replication Design V3, LeaderAndISRRequest and LeaderAndISR."""
    bench = controller_of(2)
    create(bench, "a", 2, 1)
    (request,) = [send.request for send in bench.sent() if (send.to, send.channel) == (2, "controller")]
    assert isinstance(request, LeaderAndIsrRequest)
    assert (request.controller_id, request.controller_epoch, request.is_init) == (1, 1, False)
    (state,) = request.partitions
    found = (state.leader, state.leader_epoch, state.isr, state.zk_version, state.replicas)
    assert found == (2, 0, (2, 1), 0, (2, 1))


# --- topics whose ids not every broker knows ---------------------------------------------------------------------
def write_state(bench: Bench, leader: int, epoch: int, topic_id: int = 57) -> None:
    """Write a state as a broker of a release with ids does, or (0) one of a release without them."""
    if topic_id_path(TP_A, 57) not in bench.zk.nodes:
        bench.zk.put(topic_id_path(TP_A, 57))
    bench.zk.put_state(leader, epoch, (2, 3), tp=TP_A, topic_id=topic_id)


def queued(bench: Bench, broker: int = 3) -> list[tuple[int, int]]:
    """Return id and epoch of each state that waits for a broker."""
    waiting = bench.broker.state.controller.channels[broker].states.values()
    return [(state.topic_id, state.leader_epoch) for state in waiting]


@pytest.mark.parametrize(("first", "second"), [(57, 0), (0, 57)])
def test_state_with_an_id_and_one_without_are_compared_by_their_epochs(first: int, second: int) -> None:
    """A controller of an older release reads states with ids, and such as a leader of that release wrote anew."""
    bench = controller_of(2, 3, rules="kip320")
    create(bench, "a", 2, 3)
    write_state(bench, 2, 4, first)
    elect(bench, 3)
    assert [(first, 5)] == queued(bench)
    write_state(bench, 3, 5, second)
    elect(bench, 2)
    assert [(second, 6)] == queued(bench)


def test_state_that_was_not_answered_does_not_return_over_a_newer_one_without_an_id() -> None:
    bench = controller_of(2, 3, rules="kip320")
    create(bench, "a", 2, 3)
    write_state(bench, 2, 4)
    elect(bench, 3)
    (sent,) = [send for send in bench.sent(bench.answer(DONE, to=bench.sent()[-1])) if send.to == 3]
    assert [5] == epochs(sent)
    write_state(bench, 3, 5, 0)
    elect(bench, 2)
    bench.answer(None, to=sent)
    assert [(0, 6)] == queued(bench)


def test_deletion_without_an_id_voids_a_state_that_has_one() -> None:
    """The next topic of that name begins with epoch 0 again, and is told."""
    bench = controller_of(2, 3, rules="kip320")
    create(bench, "a", 2, 3)
    write_state(bench, 2, 4)
    elect(bench, 3)
    for path in (leader_and_isr_path(TP_A), topic_id_path(TP_A, 57), partition_path(TP_A), topic_path("a")):
        bench.zk.remove(path)
    bench.fire(BROKER_TOPICS)
    assert [] == queued(bench)
    create(bench, "a", 2, 3)
    assert [(0, 0)] == queued(bench)


@pytest.mark.parametrize(
    ("known", "asked", "expected"),
    [
        ((57, DELETED), (0, DELETED), (0, DELETED)),  # the later one, which deletes whatever is there
        ((0, DELETED), (57, DELETED), (57, DELETED)),
        ((57, 4), (0, 5), (0, 5)),
        ((57, 5), (0, 4), (57, 5)),
        ((57, 5), (0, DELETED), (0, DELETED)),
        ((0, DELETED), (57, 5), (0, DELETED)),
        ((57, DELETED), (90, 1), (90, 1)),
        ((90, 1), (57, DELETED), (90, 1)),
    ],
)
def test_missed_deletion_of_two_is_the_newer_whichever_has_an_id(
    known: tuple[int, int], asked: tuple[int, int], expected: tuple[int, int]
) -> None:
    bench = controller_of(2, rules="kip320")
    core = Core(state=bench.broker.state, disk=bench)
    for topic_id, epoch in (known, asked):
        missed = StopReplica(tp=TP_A, leader_epoch=epoch, topic_id=topic_id)
        command_queue.note_unstopped(core, 3, [missed])
    (noted,) = bench.broker.state.controller.unstopped[3].values()
    assert expected == (noted.topic_id, noted.leader_epoch)


def test_deletion_of_an_older_topic_leaves_what_was_not_answered_about_the_next() -> None:
    bench = controller_of(2, rules="kip380")
    create(bench, "a", 2)
    (init,) = [send for send in bench.sent() if send.to == 2]
    (sent,) = bench.sent(bench.answer(DONE, to=init))
    assert [0] == epochs(sent)
    core = Core(state=bench.broker.state, disk=bench)
    command_queue.stop(core, 2, [StopReplica(tp=TP_A, topic_id=1)])
    bench.answer(None, to=sent)
    assert [0] == [state.leader_epoch for state in bench.broker.state.controller.channels[2].states.values()]
