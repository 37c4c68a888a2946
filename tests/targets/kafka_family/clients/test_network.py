"""The connections of a workload's client, what it believes of leaders, and answers for several partitions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from harness.workload.plan import Place
from targets.broker.wire import versions
from targets.kafka_family.clients import questions
from targets.kafka_family.clients.connection import NoAnswer, NotSent
from targets.kafka_family.clients.network import Network
from tests.broker.log.batches import TP
from tests.broker.wire.tiny_server import TinyBroker, running
from tests.workloads.peers import peer

pytestmark = pytest.mark.slow

PLACE = Place(TP.topic, TP.partition)
OTHER = Place(TP.topic, 1)
WITHIN_S = 20.0


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[TinyBroker]:
    """Start a broker with one partition that answers at once."""
    with running(tmp_path / "data") as served:
        yield served


def network(broker: TinyBroker, places: Sequence[Place] = (PLACE,), **more: str) -> Network:
    """Return the network of a client that asks B for metadata, whose other nodes are given."""
    nodes = {**more, "B": f"127.0.0.1:{broker.port}"}
    return Network("client-1", places, nodes, lambda names: "B" if "B" in names else names[0])


def test_leader_is_believed_until_it_is_forgotten(broker: TinyBroker) -> None:
    with network(broker) as mine:
        assert None is mine.leader(PLACE)
        assert ["", ""] == [mine.refresh(), mine.refresh()]
        assert "B" == mine.leader(PLACE)
        mine.forget([PLACE])
        assert ("", "B") == (mine.refresh(), mine.leader(PLACE))
    assert 2 == [key for key, _ in broker.seen].count(versions.METADATA)


def test_partition_without_a_leader_stays_unknown_beside_others(broker: TinyBroker) -> None:
    with network(broker, (PLACE, OTHER)) as mine:
        assert ("", "B", None) == (mine.refresh(), mine.leader(PLACE), mine.leader(OTHER))


def test_node_that_closed_its_connection_is_asked_over_a_new_one_and_leads_no_more(broker: TinyBroker) -> None:
    with network(broker) as mine:
        mine.refresh()
        connection = mine._open["B"]
        broker.hang_up()
        connection._socket.settimeout(WITHIN_S)
        assert b"" == connection._socket.recv(1)
        found = mine.ask("B", WITHIN_S, lambda asked: questions.leaders(asked, [PLACE]))
        assert ([PLACE], None) == (list(found), mine.leader(PLACE))
        assert mine._open["B"] is not connection


def test_node_without_an_answer_is_not_believed_and_its_connection_is_closed(broker: TinyBroker) -> None:
    with peer(lambda _: None) as silent, network(broker, A=silent) as mine:
        with pytest.raises(NoAnswer, match="hung up"):
            mine.ask("A", WITHIN_S, lambda asked: questions.leaders(asked, [PLACE]))
        assert {} == mine._open


def test_node_that_does_not_listen_was_sent_nothing(broker: TinyBroker) -> None:
    with network(broker, A="127.0.0.1:1") as mine, pytest.raises(NotSent, match="refused"):
        mine.ask("A", WITHIN_S, lambda asked: questions.leaders(asked, [PLACE]))


@pytest.mark.parametrize(
    ("results", "words"),
    [
        pytest.param({PLACE: 1}, "1 entries in an answer: topic-0; expected one for each of", id="missing"),
        pytest.param({PLACE: 1, Place("x", 1): 2}, "topic-0, x-1; expected", id="another"),
        pytest.param({}, "0 entries in an answer: none; expected", id="none"),
    ],
)
def test_answer_that_is_not_for_what_was_asked_is_none(results: dict[Place, int], words: str) -> None:
    with pytest.raises(NoAnswer, match=words):
        questions._each(results, {PLACE: 0, OTHER: 0})


def test_answer_for_what_was_asked_is_told_by_partition() -> None:
    assert {PLACE: 1, OTHER: 2} == questions._each({OTHER: 2, PLACE: 1}, {PLACE: 0, OTHER: 0})
