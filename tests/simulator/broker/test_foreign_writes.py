"""
Whatever others write into ZooKeeper, at any moment: a new topic is writable within two sessions.

    node x edit x moment; the topic is created after the edit, by a broker that runs, on any two of them.
Whoever decides by a node's version reads again when a check fails, and resigns if it is no longer in office.
Source:  Kafka, ControllerMovedException and KafkaController.maybeResign; ZooKeeper's documentation of zkCli.
"""

from __future__ import annotations

from itertools import product
from typing import Final

import pytest

from targets.broker.core.messages import CreateTopicsRequest, ErrorCode, NewTopic, TopicErrors
from targets.broker.core.permanent_paths import PERMANENT
from targets.broker.core.zookeeper import (
    ADMIN,
    CONFIG_TOPICS,
    CONTROLLER,
    CONTROLLER_EPOCH,
    broker_path,
    config_path,
    decode_registration,
    encode_config,
    topic_path,
)
from targets.broker_target.target import SETTINGS
from targets.simulator.broker.clients.caller import Caller, Outcome
from targets.simulator.broker.clients.client import SimClient
from targets.simulator.broker.disturbances.by_hand import depose_controller
from targets.simulator.broker.world import World
from targets.simulator.engine.clock import NS_PER_MS, NS_PER_S
from targets.simulator.zookeeper import ops
from tests.kept import keep
from tests.simulator.foreign import EDITS, NODES, Found
from tests.simulator.worlds import IDS, TOPIC, WAIT_S, Ops, cluster, kill, leads, registered

SESSION_MS: Final = 2_000
WITHIN_S: Final = 2 * SESSION_MS / 1_000
# How long one request may take, of those that are repeated.
REQUEST_NS: Final = NS_PER_S // 4
# How long a broker that is stopped may take until another leads; more than the two sessions.
SHUTDOWN_MS: Final = 8_000
MOMENTS: Final = ("idle", "election", "no-controller", "new-topic")
MADE: Final = "made-meanwhile"


class Tree:
    """A hand in the simulator's tree."""

    def __init__(self, world: World) -> None:
        self._tree = world.zookeeper.tree

    def read(self, path: str) -> bytes | None:
        node = self._tree.nodes.get(path)
        return None if node is None else node.data

    def below(self, path: str) -> list[str]:
        return [each for each in self._tree.nodes if each.rpartition("/")[0] == path]

    def write(self, path: str, data: bytes) -> None:
        there = path in self._tree.nodes
        write = (
            ops.Set(path=path, data=data, version=ops.ANY_VERSION) if there else ops.Create(path=path, data=data)
        )
        self._tree.write((write,), ops.OPERATOR)

    def delete(self, path: str) -> None:
        self._tree.write((ops.Delete(path=path),), ops.OPERATOR)


class Cell:
    """A cluster in its second controller epoch, and what its nodes held in the first."""

    def __init__(self, **settings: int) -> None:
        self.ops = Ops()
        found = {**SETTINGS, **settings}
        self.world = cluster("kip380", replicas=("A", "B", "C"), session_timeout_ms=SESSION_MS, settings=found)
        self.world.record_into(self.ops)
        self.hand = Tree(self.world)
        self.hand.write(config_path(TOPIC), encode_config({"segment.bytes": "150"}))
        self.hand.write(CONFIG_TOPICS, b"")
        first = self.found("C")
        self.before = {name: self.hand.read(path(self.hand, first)) for name, path in NODES.items()}
        depose_controller(self.world)
        assert self.world.until(lambda: len(self.office()) == 1 and bool(self.holder()), WAIT_S)
        self.world.run(0.2)
        self.at = self.found(self.holder())
        assert leads(self.world, "A")

    def found(self, controller: str) -> Found:
        other = next(name for name in IDS if name not in ("A", controller))
        return Found(controller=IDS[controller], leader=IDS["A"], other=IDS[other], topic=TOPIC)

    def holder(self) -> str:
        """Return the broker in office, "" for none."""
        number = self.world.zookeeper.session_of(CONTROLLER)
        session = self.world.zookeeper.sessions.get(number)
        return "" if session is None else session.owner

    def office(self) -> list[str]:
        """Return the brokers that believe that they are in office."""
        return [
            name
            for name, node in self.world.nodes.items()
            if node.broker is not None and node.broker.state.controller.active
        ]

    # --- moments -------------------------------------------------------------------------------------------
    def come_to(self, moment: str) -> None:
        """Let the world come to where the edit is to be done."""
        world, tree = self.world, self.world.zookeeper.tree
        if moment == "election":
            kill(world, "A")
            assert world.until(lambda: broker_path(IDS["A"]) not in tree.nodes, WAIT_S)
        elif moment == "no-controller":
            kill(world, self.holder())
            assert world.until(lambda: CONTROLLER not in tree.nodes, WAIT_S)
        elif moment == "new-topic":
            made = self._asked(f"{MADE}", "C")
            assert world.until(lambda: topic_path(MADE) in tree.nodes, WAIT_S)
            assert not made or made[0].response is not None

    def _asked(self, topic: str, node: str) -> list[Outcome]:
        new = NewTopic(topic=topic, partitions=1, replication_factor=2)
        found: list[Outcome] = []
        request = CreateTopicsRequest(topics=(new,), timeout_ms=1_000)
        Caller(self.world, f"creator of {topic} on {node}").ask(node, request, REQUEST_NS, found.append)
        return found

    # --- what is asked of the cluster -----------------------------------------------------------------------
    def writes_a_new_topic(self) -> str:
        """Create a topic and write to it, within two sessions; return what was seen if it was not possible."""
        until = self.world.clock.now_ns + int(WITHIN_S * NS_PER_S)
        client, saw, number = SimClient(self.world), "nothing", 0
        created = ""
        while self.world.clock.now_ns < until:
            number += 1
            if not created:
                topic = f"new-{number}"
                saw = self._create(topic, number)
                created = topic if not saw else ""
                continue
            made = client.begin_produce(created, 0, "m", [f"m{number}"], acks=-1, timeout_s=0.25)
            self.world.until(lambda made=made: made.done, WAIT_S)
            if not made.error:
                return ""
            saw = f"{created}: {made.error}"
        return saw

    def _create(self, topic: str, number: int) -> str:
        alive = [name for name, node in self.world.nodes.items() if node.listening]
        if not alive:
            return "no broker runs"
        found = self._asked(topic, alive[number % len(alive)])
        self.world.until(lambda: bool(found), WAIT_S)
        response = found[0].response
        if isinstance(response, TopicErrors):
            ((_, error, text),) = response.errors
            if error is ErrorCode.NONE:
                return ""
            saw = f"{topic}: {error.name} {text}"
        else:
            saw = f"{topic}: {found[0].error}"
        self.world.run(0.1)
        return saw

    def has_all_paths(self) -> bool:
        """Return True if every permanent path is there."""
        return self.world.zookeeper.tree.nodes.keys() >= {*PERMANENT}


CELLS: Final = [pytest.param(*cell) for cell in product(NODES, EDITS, MOMENTS)]
# Each edit of the epoch, each node deleted, and what each moment alone showed.
KEPT: Final = (
    *(("controller-epoch", edit, "idle") for edit in EDITS),
    *((node, "deleted", "idle") for node in NODES if node != "controller-epoch"),
    ("controller-epoch", "deleted", "no-controller"),
    ("controller-epoch", "equal", "new-topic"),
    ("controller-epoch", "impossible-huge", "election"),
    ("controller", "given-back", "new-topic"),
    ("controller", "old", "no-controller"),
    ("controller", "higher", "election"),
)


@pytest.mark.parametrize(("node", "edit", "moment"), keep(CELLS, *KEPT))
def test_new_topic_is_writable_within_two_sessions_of_a_foreign_write(node: str, edit: str, moment: str) -> None:
    cell = Cell()
    path = NODES[node](cell.hand, cell.at)
    cell.come_to(moment)
    EDITS[edit](cell.hand, path, cell.before[node])
    assert "" == cell.writes_a_new_topic()


@pytest.mark.parametrize(
    ("node", "moment"),
    keep(
        [
            pytest.param(*cell)
            for cell in product(("brokers", "ids", "topics", "admin", "config", "configs"), MOMENTS)
        ],
        ("admin", "idle"),
        ("admin", "no-controller"),
        ("config", "idle"),
        ("topics", "idle"),
    ),
)
def test_permanent_path_that_others_deleted_is_there_again_within_two_sessions(node: str, moment: str) -> None:
    """`/admin` was made again with the next session of a broker alone, though no new topic needs it."""
    cell = Cell()
    path = NODES[node](cell.hand, cell.at)
    assert path in PERMANENT
    cell.come_to(moment)
    EDITS["deleted"](cell.hand, path, None)
    assert cell.world.until(cell.has_all_paths, WITHIN_S)


def test_broker_that_is_stopped_after_admin_was_deleted_has_another_lead_first() -> None:
    """Its request is a node below `/admin`: without that it waited out its time, and left no leader behind."""
    cell = Cell(controlled_shutdown_ms=SHUTDOWN_MS)
    EDITS["deleted"](cell.hand, ADMIN, None)
    before = cell.world.clock.now_ns
    cell.world.nodes["A"].stop()
    assert cell.world.until(lambda: leads(cell.world, "B") or leads(cell.world, "C"), WITHIN_S)
    assert cell.world.until(lambda: cell.world.nodes["A"].process is None, WITHIN_S)
    assert cell.world.clock.now_ns - before < SHUTDOWN_MS * NS_PER_MS


def told(cell: Cell) -> list[str]:
    return [str(each["then"]) for each in cell.ops.of("office-doubted")]


@pytest.mark.parametrize(
    ("node", "edit", "then"),
    [
        ("controller-epoch", "equal", "goes on"),
        ("controller-epoch", "old", "begins a new epoch"),
        ("controller-epoch", "higher", "begins a new epoch"),
        ("controller-epoch", "deleted", "begins a new epoch"),
        ("controller-epoch", "impossible-text", "begins a new epoch"),
        ("controller", "deleted", "resigns"),
        ("controller", "given-back", "resigns"),
        ("controller", "impossible-nul", "writes its id there"),
    ],
)
def test_controller_says_what_it_found_and_what_it_does(node: str, edit: str, then: str) -> None:
    cell = Cell()
    EDITS[edit](cell.hand, NODES[node](cell.hand, cell.at), cell.before[node])
    assert "" == cell.writes_a_new_topic()
    assert then in told(cell)
    (holder,) = cell.office()
    assert holder == cell.holder()
    assert str(IDS[holder]).encode() == cell.hand.read(CONTROLLER)


@pytest.mark.parametrize("edit", ["equal", "old", "higher", "deleted", "given-back"])
def test_controller_epoch_never_falls_whatever_is_written_there(edit: str) -> None:
    cell = Cell()
    before = cell.hand.read(CONTROLLER_EPOCH)
    EDITS[edit](cell.hand, CONTROLLER_EPOCH, cell.before["controller-epoch"])
    assert "" == cell.writes_a_new_topic()
    after = cell.hand.read(CONTROLLER_EPOCH)
    assert before is not None and after is not None and int(before) <= int(after)
    epochs = [int(str(each["epoch"])) for each in cell.ops.of("controller") if each["active"]]
    assert sorted({*epochs}) == epochs, "each office has a later epoch"


@pytest.mark.parametrize("edit", ["deleted", "given-back", "impossible-text"])
def test_broker_whose_registration_others_wrote_registers_again(edit: str) -> None:
    cell = Cell()
    EDITS[edit](cell.hand, broker_path(IDS["A"]), None)
    assert cell.world.until(lambda: registered(cell.world, "A"), WITHIN_S)
    cell.world.run(0.5)
    node = cell.world.zookeeper.tree.nodes[broker_path(IDS["A"])]
    assert "A" == decode_registration(node.data).node
