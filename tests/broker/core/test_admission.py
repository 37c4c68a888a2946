"""
What only brokers may say is refused at the clients' listener, and what another broker is meant by is not heard.

Source:  Kafka, KafkaApis.handleFetchRequest and authorizeClusterOperation (ClusterAction).
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final, get_args

import pytest

from targets.broker.core import messages as m
from targets.broker.core.admission import BROKERS_ONLY
from targets.broker.core.events import Caller, HangUp, Misdirected, Received
from targets.broker.core.messages import ErrorCode, Request, Response
from targets.broker.core.rules import PROTOCOLS
from targets.broker.core.zookeeper import broker_path, encode_registration
from tests.broker.core.asks import epoch_question, fetch, occupied, produce
from tests.broker.core.bench import TP, Bench, answers, registration
from tests.broker.core.cluster import Cluster
from tests.broker.wire import samples

CONSUMER, TOOL, FOLLOWER = -1, -2, 2
NOT_TOPIC, NOT_CLUSTER = ErrorCode.TOPIC_AUTHORIZATION_FAILED, ErrorCode.CLUSTER_AUTHORIZATION_FAILED
LATEST: Final = m.ListOffsetsRequest(
    replica_id=FOLLOWER, partitions=(m.ListOffsetsPartition(tp=TP, timestamp=-1),)
)
EPOCHS: Final = replace(epoch_question(0), replica_id=FOLLOWER)
STATE = m.LeaderAndIsr(tp=TP, leader=1, leader_epoch=9, isr=(1,), zk_version=0, replicas=(1, 2))
COMMAND: Final = m.LeaderAndIsrRequest(
    controller_id=9, controller_epoch=9, ack_timeout_ms=1, is_init=True, partitions=(STATE,)
)
STOP: Final = m.StopReplicaRequest(
    controller_id=9, controller_epoch=9, ack_timeout_ms=1, partitions=(m.StopReplica(tp=TP),)
)
# A fetch that goes on with a session, and names no partition as nothing of it has changed.
SESSION: Final = m.FetchRequest(
    replica_id=FOLLOWER, max_wait_ms=0, min_bytes=1, max_bytes=1, partitions=(), session_id=7, session_epoch=3
)
# Each request of a broker, with the error that a client gets for it: of its partition, or of the whole.
OF_BROKERS: Final[dict[str, tuple[Request, ErrorCode]]] = {
    "Fetch": (fetch(0, replica=FOLLOWER), NOT_TOPIC),
    "Fetch of broker 0": (fetch(0, replica=0), NOT_TOPIC),
    "Fetch in a session": (SESSION, NOT_CLUSTER),
    "ListOffsets": (LATEST, NOT_TOPIC),
    "OffsetForLeaderEpoch": (EPOCHS, NOT_TOPIC),
    "LeaderAndIsr": (COMMAND, NOT_CLUSTER),
    "StopReplica": (STOP, NOT_CLUSTER),
}
# The same of consumers, and of tools that look at replicas.
OF_CLIENTS: Final[dict[str, Request]] = {
    f"{name} of {who}": replace(asked, replica_id=replica)
    for who, replica in (("a consumer", CONSUMER), ("a tool", TOOL))
    for name, asked in (("Fetch", fetch(0)), ("ListOffsets", LATEST), ("OffsetForLeaderEpoch", EPOCHS))
}


def leader(protocol: str = "kip380") -> Bench:
    bench = Bench(protocol)
    bench.command(leader=1, epoch=0)
    return bench


def asked(bench: Bench, request: Request, *, of_client: bool = False, meant_for: int = -1) -> list[Any]:
    caller = Caller(connection=77, number=1)
    return bench.step(Received(caller=caller, request=request, of_client=of_client, meant_for=meant_for))


def error_of(answer: Response) -> ErrorCode:
    parts = getattr(answer, "results", None) or getattr(answer, "answers", ())
    found: ErrorCode = parts[0].error if parts else answer.error  # type: ignore[union-attr]
    return found


def seen(bench: Bench) -> tuple[Any, ...]:
    replica = bench.broker.state.replicas.get(TP)
    if replica is None:
        return ()
    ends = {follower: progress.end for follower, progress in replica.progress.items()}
    return replica.role, replica.leader_epoch, replica.high_watermark, replica.log.end_offset, ends


# --- request by listener ---------------------------------------------------------------------------------------
@pytest.mark.parametrize("name", OF_BROKERS)
def test_what_brokers_say_is_refused_to_clients_and_changes_nothing(name: str) -> None:
    request, error = OF_BROKERS[name]
    bench = leader()
    bench.request(produce())
    before = seen(bench)
    (answer,) = answers(asked(bench, request, of_client=True))
    assert error is error_of(answer)
    assert before == seen(bench)


@pytest.mark.parametrize("name", OF_BROKERS)
def test_what_brokers_say_is_heard_at_their_own_listener(name: str) -> None:
    bench = leader()
    (answer,) = answers(asked(bench, OF_BROKERS[name][0]))
    assert error_of(answer) not in (NOT_TOPIC, NOT_CLUSTER)


@pytest.mark.parametrize("of_client", [True, False], ids=["clients", "brokers"])
@pytest.mark.parametrize("name", OF_CLIENTS)
def test_what_consumers_and_tools_say_is_heard_at_both_listeners(name: str, *, of_client: bool) -> None:
    """Source: Kafka's FetchRequest: DEBUGGING_CONSUMER_ID is -2, as of kafka-replica-verification."""
    (answer,) = answers(asked(leader(), OF_CLIENTS[name], of_client=of_client))
    assert ErrorCode.NONE is error_of(answer)


def test_every_request_is_one_of_brokers_or_one_that_any_client_may_send() -> None:
    """A new request must be put on one side."""
    asked_by_brokers = {type(request) for request, _ in samples.PEER.values()}
    assert asked_by_brokers == BROKERS_ONLY.keys()
    assert {type(request) for request, _ in OF_BROKERS.values()} == BROKERS_ONLY.keys()
    of_clients = set(get_args(Request)) - BROKERS_ONLY.keys()
    assert {
        "AlterConfigsRequest",
        "AlterReassignmentsRequest",
        "CreatePartitionsRequest",
        "CreateTopicsRequest",
        "DeleteRecordsRequest",
        "DeleteTopicsRequest",
        "DescribeConfigsRequest",
        "DescribeLogDirsRequest",
        "ElectLeadersRequest",
        "InitProducerIdRequest",
        "ListReassignmentsRequest",
        "MetadataRequest",
        "ProduceRequest",
    } == {each.__name__ for each in of_clients}


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_clients_fetch_that_claims_to_be_a_followers_acknowledges_nothing(protocol: str) -> None:
    cluster = Cluster(protocol, brokers=(3, 1, 2))
    cluster.create(replicas=(1, 2))
    cluster.drop = lambda _asker, _send: True  # the follower is cut off
    assert [] == cluster.produce(1, acks=-1)
    bench = cluster.benches[1]
    epoch = cluster.replica(1).leader_epoch
    for offset in (0, 1):
        asked(bench, fetch(offset, replica=2, epoch=epoch), of_client=True)
    assert 0 == cluster.replica(1).high_watermark
    asked(bench, fetch(1, replica=2, epoch=epoch))
    assert 1 == cluster.replica(1).high_watermark


def begun(bench: Bench, replica: int) -> int:
    """Begin a fetch session, and return its id."""
    (answer,) = answers(asked(bench, replace(fetch(0, replica=replica), session_epoch=0)))
    assert isinstance(answer, m.FetchResponse) and answer.session_id
    return answer.session_id


@pytest.mark.parametrize(("owner", "other"), [(FOLLOWER, CONSUMER), (CONSUMER, FOLLOWER)])
def test_session_of_a_follower_is_no_consumers_and_the_other_way_round(owner: int, other: int) -> None:
    """Source: KIP-227. An id can be guessed: a consumer would end a follower's session, or move what it asks."""
    bench = leader()
    number = begun(bench, owner)
    going_on = replace(SESSION, session_id=number, session_epoch=1)
    (refused,) = answers(asked(bench, replace(going_on, replica_id=other)))
    assert isinstance(refused, m.FetchResponse)
    assert ErrorCode.FETCH_SESSION_ID_NOT_FOUND is refused.error
    asked(bench, replace(fetch(0, replica=other), session_id=number, session_epoch=0))
    (answer,) = answers(asked(bench, replace(going_on, replica_id=owner)))
    assert isinstance(answer, m.FetchResponse)
    assert (ErrorCode.NONE, number) == (answer.error, answer.session_id)


# --- who is meant ----------------------------------------------------------------------------------------------
@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("name", OF_BROKERS)
def test_what_another_broker_is_meant_by_is_not_answered_and_changes_nothing(name: str, protocol: str) -> None:
    bench = leader(protocol)
    before = seen(bench)
    effects = asked(bench, OF_BROKERS[name][0], meant_for=8)
    assert [77] == [effect.connection for effect in effects if isinstance(effect, HangUp)]
    assert [] == answers(effects)
    assert before == seen(bench) != ()


@pytest.mark.parametrize("name", OF_BROKERS)
def test_what_this_broker_is_meant_by_is_heard(name: str) -> None:
    effects = asked(leader(), OF_BROKERS[name][0], meant_for=1)
    assert [1, []] == [len(answers(effects)), [each for each in effects if isinstance(each, HangUp)]]


def test_registration_that_leads_to_another_broker_is_named_once() -> None:
    bench = leader()
    first = asked(bench, COMMAND, meant_for=8)
    again = bench.step(Misdirected(connection=78, meant_for=8))
    other = bench.step(Misdirected(connection=79, meant_for=5))
    reasons = [[each.reason for each in some if isinstance(each, HangUp)] for some in (first, again, other)]
    error = (
        "it leads to broker 1; expected the address of broker 8: delete the node, or give that broker an address "
        "of its own"
    )
    assert [[f"broker 8 is meant; /brokers/ids/8: {error}"], [""]] == reasons[:2]
    assert reasons[2][0].startswith("broker 5 is meant; ")
    named = [(told["path"], told["error"]) for told in bench.observed("unreadable-metadata")]
    assert ("/brokers/ids/8", error) == named[0]
    assert ["/brokers/ids/8", "/brokers/ids/5"] == [path for path, _ in named]


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_registration_with_another_brokers_address_costs_that_broker_nothing(protocol: str) -> None:
    """
    The controller's INIT for 8 would reach 1, which would delete what 8 is not assigned.

    Source:  Kafka Replication Design V3, C 3: a command with INIT names every replica that is assigned there.
    """
    cluster = Cluster(protocol, brokers=(3, 1, 2))
    cluster.create(replicas=(1, 2))
    for _ in range(10):
        assert [ErrorCode.NONE] == [each.error for each in cluster.produce(1, count=10)]
    cluster.leads_to[8] = 1
    copied = replace(registration(1), node="node-8")
    cluster.zk.put(broker_path(8), encode_registration(copied), owner=88)
    cluster.crash(3)  # the next controller tells every broker all that it is to have
    cluster.pass_ms(3_000)
    assert [100, 100] == [cluster.replica(broker).log.end_offset for broker in (1, 2)]
    # Nor does anybody believe that 8 has answered: what it is to be told stays to be told.
    waiting = cluster.benches[cluster.controller].broker.state.controller.channels[8]
    assert waiting.is_init or waiting.sent is not None
    cluster.expire(88)
    for broker in (1, 2):
        cluster.crash(broker)
        cluster.start(broker)
        cluster.pass_ms(3_000)
    (acknowledged,) = cluster.produce(cluster.state().leader)
    assert (ErrorCode.NONE, 100) == (acknowledged.error, acknowledged.base_offset)


def test_registered_broker_zero_is_meant_by_its_id() -> None:
    """Broker ids begin with 0."""
    bench = Bench("kip380", broker_id=0, zk=occupied())
    assert [77] == [
        effect.connection for effect in asked(bench, COMMAND, meant_for=1) if isinstance(effect, HangUp)
    ]
    assert [] == [effect for effect in asked(bench, COMMAND, meant_for=0) if isinstance(effect, HangUp)]
