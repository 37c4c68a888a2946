"""
A topic that was written by hand gets a mark from the controller before anything that was read of it is its state.

Source:  Kafka Replication Design V3, discussion 5; KIP-516.
"""

from __future__ import annotations

import pytest

from targets.broker.core.assignments import Assignment, Move, encode_assignment, encode_topic
from targets.broker.core.events import ZkAnswered
from targets.broker.core.messages import TopicPartition
from targets.broker.core.rules import PROTOCOLS
from targets.broker.core.zookeeper import (
    BROKER_TOPICS,
    ZkError,
    leader_and_isr_path,
)
from targets.broker.core.zookeeper import CONTROLLER as OFFICE
from tests.broker.core.bench import TP, Bench
from tests.broker.core.cluster import Cluster
from tests.broker.core.test_made import CONTROLLER, PATH, cluster_of, ids_written, node

LATER = 3
MARKS = f"{PATH}/made-*"
STATE = leader_and_isr_path(TP)


def write(cluster: Cluster, *replicas: int) -> int:
    """Write a topic as a tool does that knows nothing of marks; return its id."""
    cluster.zk.put(PATH, encode_assignment({0: replicas}))
    return cluster.zk.nodes[PATH].czxid


def tell(cluster: Cluster) -> None:
    """Let the controller hear that there are other topics now."""
    cluster.benches[CONTROLLER].fire(BROKER_TOPICS)
    cluster.settle()


def marks(cluster: Cluster) -> list[str]:
    above = f"{PATH}/made-"
    return [path.removeprefix(above) for path in cluster.zk.nodes if path.startswith(above)]


def refuse(bench: Bench) -> None:
    """Let ZooKeeper refuse the write that is held: nobody may write there."""
    (ask,) = bench.held
    bench.held = []
    bench._hold = None
    bench.step(ZkAnswered(tag=ask.tag, session=bench.session, results=(ZkError.REFUSED,) * len(ask.ops)))


def test_topic_written_by_hand_gets_its_mark_and_then_its_states() -> None:
    cluster = cluster_of()
    topic_id = write(cluster, 1, 2)
    tell(cluster)
    (mark,) = marks(cluster)
    assert Assignment(replicas={0: (1, 2)}, made=mark) == node(cluster)
    assert (1, topic_id) == (cluster.state().leader, cluster.state().topic_id)


@pytest.mark.parametrize("at", [MARKS, PATH, STATE], ids=["mark's node", "mark", "first state"])
def test_first_state_of_a_topic_written_by_hand_is_not_written_into_the_next(at: str) -> None:
    """Both nodes have version 0; the topic is deleted and written again while a step of its controller is late."""
    cluster = cluster_of()
    written = ids_written(cluster)
    controller = cluster.benches[CONTROLLER]
    controller.hold(at, writes=True)
    write(cluster, 1, 2)
    tell(cluster)
    assert controller.held
    for path in sorted((path for path in cluster.zk.nodes if path.startswith(PATH)), reverse=True):
        cluster.zk.remove(path)
    topic_id = write(cluster, 2, LATER)
    controller.release()
    cluster.pass_ms(2_000)
    assert {topic_id} == set(written)
    assert (2, (2, LATER)) == (cluster.state().leader, cluster.state().isr)
    assert [2, LATER] == sorted(cluster.roles())
    assert node(cluster).made in marks(cluster)


def test_two_controllers_have_one_mark_in_the_end() -> None:
    """The first is deposed after it has made its mark's node, and before the topic has the mark."""
    cluster = cluster_of()
    controller = cluster.benches[CONTROLLER]
    controller.hold(PATH, writes=True)
    write(cluster, 1, 2)
    tell(cluster)
    assert ("", 1) == (node(cluster).made, len(marks(cluster)))
    cluster.zk.remove(OFFICE)
    cluster.benches[1].fire(OFFICE)
    cluster.settle()
    has = node(cluster)
    assert has.made in marks(cluster) and 1 == cluster.state().leader
    controller.release()
    cluster.pass_ms(1_000)
    assert has == node(cluster)
    assert 0 == cluster.state().zk_version


def test_deposed_controller_makes_no_mark() -> None:
    cluster = cluster_of()
    controller = cluster.benches[CONTROLLER]
    controller.hold(MARKS, writes=True)
    write(cluster, 1, 2)
    tell(cluster)
    cluster.zk.seize(7)
    controller.release()
    assert ("", []) == (node(cluster).made, marks(cluster))
    assert STATE not in cluster.zk.nodes


@pytest.mark.parametrize("happened", [False, True], ids=["not written", "written"])
@pytest.mark.parametrize("at", [MARKS, PATH], ids=["mark's node", "mark"])
def test_mark_whose_answer_was_lost_is_made_again(at: str, happened: bool) -> None:
    cluster = cluster_of()
    cluster.benches[CONTROLLER].lose(at, happened=happened, writes=True)
    write(cluster, 1, 2)
    tell(cluster)
    cluster.pass_ms(1_000)
    assert node(cluster).made in marks(cluster)
    assert 1 == cluster.state().leader


@pytest.mark.parametrize("at", [MARKS, PATH], ids=["mark's node", "mark"])
def test_topic_that_cannot_have_a_mark_begins_without_it(at: str) -> None:
    """As where the operator lets nobody else write the topic's node: it is not tried without end."""
    cluster = cluster_of()
    controller = cluster.benches[CONTROLLER]
    controller.hold(at, writes=True)
    write(cluster, 1, 2)
    tell(cluster)
    refuse(controller)
    before = len(marks(cluster))
    cluster.pass_ms(3_000)
    assert ("", before) == (node(cluster).made, len(marks(cluster)))
    assert 1 == cluster.state().leader


def test_topic_that_is_being_deleted_gets_no_mark() -> None:
    """A deletion in several writes has emptied the assignment; a node more would be in its way."""
    cluster = cluster_of()
    cluster.zk.put(PATH, encode_assignment({}))
    tell(cluster)
    assert [] == marks(cluster)


def test_what_a_topic_has_stays_when_it_gets_its_mark() -> None:
    has = Assignment(
        replicas={0: (1, 2, LATER), 1: (2, 1)},
        moves={0: Move(origin=(1, 2), target=(2, LATER))},
        ids={1: 77},
        once=5,
    )
    cluster = cluster_of()
    controller = cluster.benches[CONTROLLER]
    controller.hold(leader_and_isr_path(TopicPartition("t", 0)))
    cluster.zk.put(PATH, encode_topic(has))
    tell(cluster)
    (mark,) = marks(cluster)
    assert (has.replicas, has.moves, has.ids, has.once, mark) == (
        node(cluster).replicas,
        node(cluster).moves,
        node(cluster).ids,
        node(cluster).once,
        node(cluster).made,
    )


@pytest.mark.parametrize("protocol", [name for name, rules in PROTOCOLS.items() if not rules.topic_identity])
def test_release_without_identity_marks_nothing(protocol: str) -> None:
    cluster = cluster_of(protocol)
    write(cluster, 1, 2)
    tell(cluster)
    assert ("", []) == (node(cluster).made, marks(cluster))
    assert 1 == cluster.state().leader


def test_controller_that_is_not_registered_yet_writes_what_its_topics_begin_with() -> None:
    """A mark has the number of a registration, so there is none to give; the version alone is checked."""
    cluster = cluster_of()
    cluster.benches[CONTROLLER].broker.state.registration = 0
    write(cluster, 1, 2)
    tell(cluster)
    assert [] == marks(cluster)
    assert 1 == cluster.state().leader
