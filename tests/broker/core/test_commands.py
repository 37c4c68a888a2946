"""The controller's commands: sent in order, one in flight per broker, and sent again until they are answered."""

from __future__ import annotations

from targets.broker.core.commands import QUEUE_COMMANDS_MAX
from targets.broker.core.events import Effect
from targets.broker.core.messages import (
    ErrorCode,
    LeaderAndIsrRequest,
    LeaderAndIsrResponse,
    StopReplicaRequest,
    TopicPartition,
)
from targets.broker.core.zookeeper import (
    BROKER_IDS,
    BROKER_TOPICS,
    broker_path,
    encode_assignment,
    encode_registration,
    topic_path,
)
from tests.broker.core.bench import Bench, answers, registration

TP_A = TopicPartition("a", 0)
DONE = LeaderAndIsrResponse(error=ErrorCode.NONE, errors=())


def controller_of(*others: int) -> Bench:
    """Return broker 1 as controller; the others are registered, and the test answers every message to them."""
    bench = Bench("hw")
    bench.start(session=5)
    for broker in others:
        bench.zk.put(broker_path(broker), encode_registration(registration(broker)), owner=100 + broker)
    bench.fire(BROKER_IDS)
    return bench


def create(bench: Bench, topic: str, *replicas: int) -> list[Effect]:
    bench.zk.put(topic_path(topic), encode_assignment({0: replicas}))
    return bench.fire(BROKER_TOPICS)


def said(bench: Bench, effects: list[Effect]) -> list[tuple[int, str]]:
    """Return the receiver and the topic of each command sent."""
    found = []
    for send in bench.sent(effects):
        assert isinstance(send.request, LeaderAndIsrRequest | StopReplicaRequest)
        (named,) = send.request.partitions
        found.append((send.to, named.tp.topic))
    return found


def test_commands_to_one_broker_go_in_order_and_one_at_a_time() -> None:
    """Source: Kafka Replication Design V3, optimizations 1: "we can have a command queue"."""
    bench = controller_of(2)
    assert said(bench, create(bench, "a", 2)) == [(2, "a")]
    assert said(bench, create(bench, "b", 2)) == []
    assert said(bench, create(bench, "c", 2)) == []
    assert said(bench, bench.answer(DONE)) == [(2, "b")]
    assert said(bench, bench.answer(DONE)) == [(2, "c")]
    assert said(bench, bench.answer(DONE)) == []


def test_command_to_one_broker_does_not_wait_for_another() -> None:
    """Source: Kafka Replication Design V3, optimizations 1."""
    bench = controller_of(2, 3)
    assert said(bench, create(bench, "a", 2)) == [(2, "a")]
    assert said(bench, create(bench, "b", 3, 2)) == [(3, "b")]


def test_command_that_was_not_answered_is_sent_again_before_the_next_one() -> None:
    """Source: Kafka Replication Design V3, discussion 2."""
    bench = controller_of(2)
    create(bench, "a", 2)
    create(bench, "b", 2)
    for _ in range(3):
        assert said(bench, bench.answer(None)) == []
        assert said(bench, bench.pass_ms(499)) == []
        assert said(bench, bench.pass_ms(1)) == [(2, "a")]
    assert said(bench, bench.answer(DONE)) == [(2, "b")]


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
    queue = bench.broker.state.controller.channels[2]
    assert (queue.tag, queue.queue[0]) == (before.tag, before.request)


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


def test_queue_has_a_limit_and_what_is_dropped_is_told() -> None:
    bench = controller_of(2)
    create(bench, "a", 2)
    command = bench.sent()[-1].request
    assert isinstance(command, LeaderAndIsrRequest)
    bench.broker.state.controller.channels[2].queue += [command] * (QUEUE_COMMANDS_MAX - 1)
    effects = create(bench, "b", 2)
    assert [{"broker": 2, "queued": QUEUE_COMMANDS_MAX}] == bench.observed("command-dropped", effects)
