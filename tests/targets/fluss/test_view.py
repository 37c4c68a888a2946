"""The view of a cluster of Fluss: how a table is made, who is elected, and what is read and recorded."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import permutations, product
from types import SimpleNamespace
from typing import Any

import pytest
from kazoo.exceptions import BadVersionError, NodeExistsError, NoNodeError

from harness.ability import Ability
from harness.events import Assigned, Event, Members, MetadataState
from harness.metadata.recorder import Recorder
from harness.model import PreconditionError, TargetError, UsageError
from harness.target.metadata import PartitionTruth
from harness.target.operator import requests_of
from targets.fluss import tables, view
from targets.fluss.target import TARGET
from targets.fluss.view import FlussView

IDS = {"A": 1, "B": 2, "C": 3}
TABLE = tables.table_path("log")


class ZooKeeper:
    """A client of ZooKeeper with znodes of its own, and who watches them."""

    def __init__(self) -> None:
        self.nodes: dict[str, tuple[bytes, int, int]] = {}
        self.written: list[tuple[str, bytes]] = []
        self.after: Callable[[str, bytes, bytes | None], None] = lambda path, data, before: None
        self.watches: list[tuple[str, Any]] = []
        self.transactions = 0

    def get(self, path: str) -> tuple[bytes, Any]:
        if path not in self.nodes:
            raise NoNodeError
        data, version, owner = self.nodes[path]
        return data, SimpleNamespace(version=version, ephemeralOwner=owner, mzxid=self.transactions)

    def create(self, path: str, data: bytes, makepath: bool) -> None:
        assert makepath
        if path in self.nodes:
            raise NodeExistsError
        parts = path.split("/")
        for count in range(2, len(parts)):
            self.nodes.setdefault("/".join(parts[:count]), (b"", 0, 0))
        self._write(path, data, 0, None)

    def set(self, path: str, data: bytes, version: int) -> None:
        if path not in self.nodes:
            raise NoNodeError
        before, known, _ = self.nodes[path]
        if version != known:
            raise BadVersionError
        self._write(path, data, version + 1, before)

    def put(self, path: str, data: bytes, owner: int = 0) -> None:
        """Write as somebody else."""
        self.nodes[path] = data, self.nodes.get(path, (b"", -1, 0))[1] + 1, owner

    def ensure_path(self, path: str) -> None:
        self.nodes.setdefault(path, (b"", 0, 0))

    def DataWatch(self, path: str, changed: Any) -> None:
        self.watches.append((path, changed))
        changed(*(self.get(path) if path in self.nodes else (None, None)))

    def ChildrenWatch(self, path: str, changed: Any) -> None:
        self.watches.append((path, changed))
        changed([each.removeprefix(f"{path}/") for each in self.nodes if each.startswith(f"{path}/")])

    def _write(self, path: str, data: bytes, version: int, before: bytes | None) -> None:
        self.transactions += 1
        self.nodes[path] = data, version, 0
        self.written.append((path, data))
        self.after(path, data, before)


@dataclass
class Room:
    """A view of such a client, and what it recorded."""

    client: ZooKeeper = field(default_factory=ZooKeeper)
    recorded: list[Event] = field(default_factory=list)
    lost: list[Exception] = field(default_factory=list)

    def __post_init__(self) -> None:
        run: Any = SimpleNamespace(record=self.recorded.append, give_up=self.lost.append)
        self.view = FlussView.__new__(FlussView)
        vars(self.view).update(
            client=self.client,
            run=run,
            lock=threading.RLock(),
            names={number: name for name, number in IDS.items()},
            recorder=Recorder(run.record, ()),
            _ids=IDS,
            _newest={},
            _silent="",
            _address="zk:2181",
        )

    def holds(self, leader: int, isr: Sequence[int], order: Sequence[int], bucket: int = 0) -> None:
        """Have a bucket's state, and its table's replicas."""
        self.client.put(tables.state_path("log", bucket), state(leader, isr))
        self.client.put(
            tables.assignment_path("log"),
            json.dumps({"version": 1, "buckets": {str(bucket): [*order]}}).encode(),
        )

    def registers(self, *names: str) -> None:
        for name in names:
            self.client.put(f"{tables.SERVERS}/{IDS[name]}", b"{}", owner=100 + IDS[name])

    def fires(self, path: str) -> None:
        """Tell a watch what stands there."""
        (changed,) = [each for watched, each in self.client.watches if watched == path]
        changed(*self.client.get(path))


def state(leader: int, isr: Sequence[int] = (1,), epoch: int = 0) -> bytes:
    return json.dumps({"leader": leader, "leader_epoch": epoch, "isr": [*isr]}).encode()


@pytest.fixture
def room() -> Room:
    return Room()


# --- tables ----------------------------------------------------------------------------------------------------
@pytest.fixture
def _at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Look once, and wait for nothing."""
    monkeypatch.setattr(view, "_EMPTY_S", 0.0)
    monkeypatch.setattr(view, "_TAKEN_UP_S", 0.0)


def coordinator(room: Room, buckets: int, *, misses: int = 0) -> list[bytes]:
    """Have a coordinator that takes up the table when data come into its empty znode, but for the first times."""
    seen: list[bytes] = []

    def after(path: str, data: bytes, before: bytes | None) -> None:
        if path == TABLE and data and before == b"":
            seen.append(data)
            if len(seen) > misses:
                for bucket in range(buckets):
                    room.client.put(tables.state_path("log", bucket), state(1))

    room.client.after = after
    return seen


@pytest.mark.usefixtures("_at_once")
def test_table_is_made_by_its_znodes_in_their_order_after_its_database(room: Room) -> None:
    coordinator(room, 2)
    said = room.view.create("log", [["B", "A"], ["A", "C"]])
    assert "table log with replicas [[2, 1], [1, 3]]" == said
    paths = [path for path, _ in room.client.written]
    expected = [path for path, _ in tables.znodes_of("log", [[2, 1], [1, 3]], 0)]
    assert ["/metadata/databases/fencepost", *expected] == paths
    assert {0: ("B", "A"), 1: ("A", "C")} == room.view.assignment("log")
    assert "leader" in json.loads(room.client.nodes[tables.state_path("log", 1)][0])


@pytest.mark.usefixtures("_at_once")
def test_second_table_finds_its_database(room: Room) -> None:
    room.client.put("/metadata/databases/fencepost", b"{}")
    coordinator(room, 1)
    room.view.create("log", [["A"]])
    assert "/metadata/databases/fencepost" not in [path for path, _ in room.client.written]


@pytest.mark.usefixtures("_at_once")
@pytest.mark.parametrize("misses", [1, 3])
def test_table_that_is_not_taken_up_is_emptied_and_written_again(room: Room, misses: int) -> None:
    seen = coordinator(room, 1, misses=misses)
    room.view.create("log", [["A"]])
    of_table = [data for path, data in room.client.written if path == TABLE]
    assert [bool(number % 2 == 0) for number in range(2 * misses + 1)] == [bool(data) for data in of_table]
    assert misses + 1 == len(seen)
    assert 1 == len({*filter(None, of_table)})
    # The others are written once.
    assert 1 == [path for path, _ in room.client.written].count(tables.assignment_path("log"))


@pytest.mark.usefixtures("_at_once")
def test_table_of_which_one_bucket_has_no_leader_is_not_taken_up(room: Room) -> None:
    seen = coordinator(room, 1)
    with pytest.raises(PreconditionError, match="create log: no leaders; expected a coordinator that takes up"):
        room.view.create("log", [["A"], ["B"]])
    assert view._WRITES_MAX == len(seen)


@pytest.mark.usefixtures("_at_once")
def test_table_whose_name_has_no_number_is_refused_before_anything_is_written(room: Room) -> None:
    with pytest.raises(UsageError, match="topic 'much-too-long': expected 1 to 7"):
        room.view.create("much-too-long", [["A"]])
    assert [] == room.client.written


# --- elections -------------------------------------------------------------------------------------------------
class Electing:
    """Ends sessions, and elects as the coordinator does: the first that is alive and in the ISR."""

    def __init__(self, room: Room, order: Sequence[str], isr: Sequence[str], leader: str) -> None:
        self.order, self.isr, self.leader = order, isr, leader
        self.alive, self.ended = {*IDS}, list[str]()
        numbers = {f"{tables.SERVERS}/{number}": name for name, number in IDS.items()}

        def end_session(path: str) -> str:
            self._gone(numbers[path])
            return "closed"

        vars(room.view)["end_session"] = end_session

    def _gone(self, name: str) -> None:
        self.ended.append(name)
        self.alive.discard(name)
        if name == self.leader:
            self.leader = next(each for each in self.order if each in self.alive and each in self.isr)


CASES = [
    (order, isr, leader, name)
    for order in permutations("ABC")
    for isr in ("ABC", "BC", "AC", "AB")
    for leader, name in product(isr, isr)
    if leader != name
]


@pytest.mark.parametrize(("order", "isr", "leader", "name"), CASES, ids=["-".join(map("".join, c)) for c in CASES])
def test_node_that_is_asked_for_is_the_first_that_the_coordinator_can_elect(
    order: Sequence[str], isr: str, leader: str, name: str
) -> None:
    room = Room()
    room.holds(IDS[leader], [IDS[each] for each in isr], [IDS[each] for each in order])
    room.registers(*IDS)
    electing = Electing(room, order, isr, leader)
    said = room.view.elect("log", 0, name)
    assert (name, leader) == (electing.leader, electing.ended[-1])
    # Nobody's session is ended twice, and none of a node that would come later anyway.
    assert {*electing.ended} == {leader, *order[: order.index(name)]}
    assert len(electing.ended) == len({*electing.ended})
    assert f"sessions of {', '.join(electing.ended)} ended, so that {name} is the first that may lead" == said


def test_node_that_is_not_registered_has_no_session_to_end() -> None:
    room = Room()
    room.holds(3, [1, 2, 3], [1, 2, 3])
    room.registers("B", "C")
    electing = Electing(room, "ABC", "ABC", "C")
    electing.alive.discard("A")
    room.view.elect("log", 0, "B")
    assert (["C"], "B") == (electing.ended, electing.leader)


@pytest.mark.parametrize(
    ("leader", "isr", "order", "name"),
    [
        (1, [1, 2], [1, 2, 3], "C"),  # not in the ISR
        (1, [1, 2, 3], [1, 2], "C"),  # no replica
        (1, [1, 2], [1, 2], "A"),  # it leads already
        (-1, [1, 2], [1, 2], "A"),  # nobody leads
        (9, [1, 2, 9], [9, 1, 2], "A"),  # a stranger leads
    ],
)
def test_node_that_cannot_be_elected_is_refused_and_no_session_ends(
    room: Room, leader: int, isr: list[int], order: list[int], name: str
) -> None:
    room.holds(leader, isr, order)
    room.registers(*IDS)
    electing = Electing(room, "", "", "")
    with pytest.raises(
        PreconditionError, match=f"^elect {name} for log-0: .*; expected it in the ISR, and another"
    ):
        room.view.elect("log", 0, name)
    assert [] == electing.ended


def test_table_that_is_not_there_elects_nobody(room: Room) -> None:
    with pytest.raises(PreconditionError, match=r"elect A for log-0: None; expected it in the ISR"):
        room.view.elect("log", 0, "A")


def test_session_that_cannot_be_ended_says_whose(room: Room) -> None:
    def refuses(path: str) -> str:
        raise PreconditionError(f"no session owns {path}")

    vars(room.view)["end_session"] = refuses
    with pytest.raises(PreconditionError, match=r"^expire B: no session owns /tabletservers/ids/2$"):
        room.view.expire("B")


def test_what_it_can_be_asked_for_is_what_the_target_says() -> None:
    assert {Ability.ELECT, Ability.EXPIRE} == requests_of(FlussView)
    assert {Ability.ELECT, Ability.EXPIRE, Ability.MEMBERS} == TARGET.abilities


# --- what is read and recorded ---------------------------------------------------------------------------------
def test_state_that_is_read_is_recorded_and_a_registration_is_the_session_that_owns_it(room: Room) -> None:
    room.view.watch([("log", 0)])
    assert (None, {}, 0) == (room.view.truth("log", 0), room.view.assignment("log"), room.view.incarnation("A"))
    room.holds(2, [2, 9], [2, 1, 9])
    room.registers("A")
    assert PartitionTruth(leader="B", epoch=0, in_sync=("B", None), version=0) == room.view.truth("log", 0)
    assert {0: ("B", "A", None)} == room.view.assignment("log")
    assert (101, 0) == (room.view.incarnation("A"), room.view.incarnation("B"))
    assert (None, None) == (room.view.controller(), room.view.office())
    assert ["B"] == [event.leader for event in room.recorded if isinstance(event, MetadataState)]


def test_watches_record_what_stands_there_and_nonsense_is_an_observation_lost(room: Room) -> None:
    room.holds(1, [1, 2], [1, 2])
    room.registers("C", "A")
    room.view.watch([("log", 0)])
    assert [("A", "C")] == [event.nodes for event in room.recorded if isinstance(event, Members)]
    assert [("A", "B")] == [event.isr for event in room.recorded if isinstance(event, MetadataState)]
    assert [] == [event for event in room.recorded if isinstance(event, Assigned)]
    room.holds(1, [1, 2], [2, 3])
    room.fires(tables.assignment_path("log"))
    assert [("B", "C")] == [event.replicas for event in room.recorded if isinstance(event, Assigned)]
    room.client.put(tables.assignment_path("log"), b"what nodes must name")
    room.fires(tables.assignment_path("log"))
    assert [] == room.lost
    room.client.put(tables.state_path("log", 0), b"nonsense")
    room.fires(tables.state_path("log", 0))
    (lost,) = room.lost
    assert isinstance(lost, TargetError)
    assert "a bucket's state: b'nonsense'" in str(lost)
