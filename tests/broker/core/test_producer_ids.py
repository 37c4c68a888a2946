"""Producers' ids: unique over brokers and their lives, whatever happens to the answers of ZooKeeper."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from targets.broker.core.events import Effect, Hungup
from targets.broker.core.messages import ErrorCode, InitProducerIdRequest, InitProducerIdResponse
from targets.broker.core.producer_ids import BLOCK_IDS
from targets.broker.core.zookeeper import PRODUCER_IDS, decode_block_end, encode_block
from tests.broker.core.asks import occupied
from tests.broker.core.bench import Bench, MemoryZk, answers

LOADING = (ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, -1, -1)
ASK = InitProducerIdRequest()


def started(zk: MemoryZk, broker_id: int = 1, *, session: int = 7) -> Bench:
    bench = Bench("kip380", broker_id, zk=zk)
    bench.start(session=session)
    return bench


def told(effects: Sequence[Effect]) -> list[tuple[ErrorCode, int, int]]:
    """Return error, id and epoch of each answer."""
    found = [answer for answer in answers(effects) if isinstance(answer, InitProducerIdResponse)]
    return [(answer.error, answer.producer_id, answer.producer_epoch) for answer in found]


def ids(bench: Bench, count: int) -> list[int]:
    """Ask for ids one after another; return them."""
    found = [told(bench.request(ASK)) for _ in range(count)]
    assert all(error is ErrorCode.NONE and epoch == 0 for ((error, _, epoch),) in found)
    return [producer_id for ((_, producer_id, _),) in found]


def test_first_broker_reserves_the_first_block_in_the_node_that_kafka_has() -> None:
    """Source: Kafka, ProducerIdBlockZNode."""
    zk = occupied()
    assert [0, 1, 2] == ids(started(zk), 3)
    assert b'{"version": 1, "broker": 1, "block_start": "0", "block_end": "999"}' == zk.nodes[PRODUCER_IDS].data


def test_no_id_is_given_twice_by_brokers_or_by_the_lives_of_one() -> None:
    """Source: KIP-98: a producer id is unique in the cluster."""
    zk = occupied()
    first = started(zk)
    given = ids(first, BLOCK_IDS + 1) + ids(started(zk, 2, session=8), 2)
    given += ids(started(zk, 1, session=9), 2) + ids(first, 1)
    assert len(given) == len(set(given))
    assert 4 * BLOCK_IDS - 1 == decode_block_end(zk.nodes[PRODUCER_IDS].data)


def test_who_asks_while_a_block_is_reserved_is_answered_from_it_with_one_question() -> None:
    bench = started(occupied())
    bench.hold(PRODUCER_IDS)
    assert [] == told([*bench.request(ASK), *bench.request(ASK)])
    assert 1 == len(bench.held)
    bench.step(Hungup(connection=1))
    assert [(ErrorCode.NONE, 0, 0)] == told(bench.release())


def test_block_that_another_broker_has_taken_meanwhile_is_not_given() -> None:
    zk = occupied()
    bench = started(zk)
    bench.hold(PRODUCER_IDS, writes=True)
    bench.request(ASK)
    zk.put(PRODUCER_IDS, encode_block(2, 0, BLOCK_IDS - 1))
    assert [(ErrorCode.NONE, BLOCK_IDS, 0)] == told(bench.release())


@pytest.mark.parametrize("happened", [True, False])
def test_block_of_a_write_whose_answer_is_lost_is_not_given(happened: bool) -> None:
    zk = occupied()
    bench = started(zk)
    bench.lose(PRODUCER_IDS, happened=happened, writes=True)
    assert [LOADING] == told(bench.request(ASK))
    assert [BLOCK_IDS if happened else 0] == ids(bench, 1)


def test_producer_is_told_to_ask_again_while_zookeeper_cannot_be_reached() -> None:
    bench = started(occupied())
    bench.connect(0)
    assert [LOADING] == told(bench.request(ASK))
    bench.connect(8)
    assert [0] == ids(bench, 1)


@pytest.mark.parametrize(
    "data", [b"", b"7", b'{"block_end": "-1"}', b'{"block_end": "x"}', encode_block(2, 0, 2**63 - 2)]
)
def test_node_that_cannot_be_read_or_followed_is_left_as_it_is(data: bytes) -> None:
    zk = occupied()
    zk.put(PRODUCER_IDS, data)
    assert [(ErrorCode.UNKNOWN_SERVER_ERROR, -1, -1)] == told(started(zk).request(ASK))
    assert data == zk.nodes[PRODUCER_IDS].data


def test_transactional_producer_is_refused() -> None:
    """Source: KIP-98; there are no transactions here."""
    effects = started(occupied()).request(InitProducerIdRequest(transactional=True))
    assert [(ErrorCode.UNSUPPORTED_VERSION, -1, -1)] == told(effects)
