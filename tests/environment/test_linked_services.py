"""A linked service: what its process is told of the run, and where nodes, the metadata and it reach each other."""

from __future__ import annotations

import socket
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, closing
from itertools import product
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Final, cast

import pytest

from harness import limits
from harness.cleanup.process import until
from harness.cluster.cluster import Cluster
from harness.cluster.link_fault import isolate, to_metadata
from harness.effect import Effect
from harness.environment.opening import open_machines
from harness.environment.services import Own
from harness.history.file import History, read_history
from harness.launch import Address, Launch, Place
from harness.model import PreconditionError, UsageError
from harness.run.spec import RunSpec
from harness.scenario.file import Draw, parse
from harness.scenario.variant import Variant
from harness.target.operator import Operator
from harness.target.services import OfRun, Others, Process, Service
from harness.target.target import NodeSpec
from harness.target.traits import Traits
from harness.target.wire import METADATA, Between, LinkKind, Sender
from nemesis import cut_from_metadata
from tests.fabric.toy import ToyWire, frame

LOOPBACK: Final = "127.0.0.1"
SCENARIO: Final = """title T
source S
nodes A B C replicas
records m1 1
settings min_isr=2
produce m1 acks=all
expect 1: none
"""


class Wire(ToyWire):
    """The toy's, with links to its metadata."""

    links: Sequence[LinkKind] = (
        *ToyWire.links,
        LinkKind(name="store", between=Between.METADATA, sender=Sender.LISTENER),
    )


class FakeHost:
    """A host on which everything listens at one address, and every process runs that was started."""

    name, power_tier, bind_address = "fake", None, LOOPBACK

    def __init__(self, listening: Address) -> None:
        self._listening = listening
        self.started: dict[str, Launch] = {}
        self.listeners: dict[str, int] = {}

    def open(self) -> None:
        """Do nothing."""

    def close(self) -> None:
        """Do nothing."""

    def lacks(self, _ability: object) -> str:
        return ""

    def note_flushed(self, _node: str, _file: str, _end: int) -> None:
        """Do nothing."""

    def require_all(self) -> None:
        """Do nothing."""

    def add_node(self, name: str, **how: Any) -> Place:
        self.listeners[name] = how.get("listeners", 1)
        at = self._listening
        return Place(
            data_dir=f"/data/{name}",
            conf_dir="conf",
            python="python",
            client=at,
            internal=at,
            client_outside=at,
            internal_outside=at,
        )

    def start(self, name: str, launch: Launch) -> None:
        self.started[name] = launch

    def alive(self, name: str) -> bool:
        return name in self.started

    def log_text(self, _name: str) -> str:
        return ""


class Room:
    """A run of three nodes, a store of its metadata, and a linked boss, which may hold them in its place."""

    def __init__(self, stack: ExitStack, folder: Path, *, stores: int = 1, governs: bool = False) -> None:
        listening = stack.enter_context(socket.create_server((LOOPBACK, 0)))
        self.at = Address(host=LOOPBACK, port=listening.getsockname()[1])
        self.host = FakeHost(self.at)
        self.stores = [f"store-{number}" for number in range(1, stores + 1)]
        self.told: dict[str, OfRun | None] = {}
        self.others: dict[str, Others] = {}
        target: Any = SimpleNamespace(
            name="toy",
            wire=Wire(),
            faults={},
            abilities=frozenset(),
            logs=None,
            clocks=None,
            services=(
                Service(
                    name="store",
                    launch=self._launch,
                    mode=lambda _: "active",
                    several=stores,
                    holds_metadata=not governs,
                ),
                Service(
                    name="boss",
                    launch=self._launch,
                    mode=lambda _: "active",
                    listeners=2,
                    linked=True,
                    holds_metadata=governs,
                ),
            ),
            metadata=lambda run: SimpleNamespace(close=lambda: None, watch=lambda _: None),
            operator=lambda run, metadata: Operator(),
            printed=lambda line: None,
        )
        scenario = parse("s", SCENARIO, "s.txt", ())
        spec = RunSpec(
            target="toy",
            host="fake",
            variant=Variant(protocol="1"),
            rules={"speed": "high"},
            traits=Traits(metadata="Store", emits_events=True),
            scenario=scenario,
            draw=Draw(seed=1, ids={"A": 4, "B": 5, "C": 6}, counts={"m1": 1}),
        )
        self.history = History(folder / "history.jsonl")
        self.folder = folder

        def make_host(*_: Any, **__: Any) -> Any:
            return self.host

        self.cluster: Cluster = stack.enter_context(
            closing(
                open_machines(
                    spec,
                    folder,
                    self.history,
                    make_host=make_host,
                    target=target,
                    shared={},
                    power_tier=None,
                    own=Own(counts={"store": stores}),
                )
            )
        )
        machines: Any = self.cluster.host
        self.specs: dict[str, NodeSpec] = machines.specs

    def _launch(self, process: Process, _peers: Sequence[Process], others: Others) -> Launch:
        self.told[process.name], self.others[process.name] = process.run, others
        return Launch(argv=("run", process.name))

    def links_of(self, address: Address) -> list[tuple[str, str]]:
        """Dial an address, and return the links on which the fabric has one connection more then."""
        ends = [*self.cluster.ids, *self.told, METADATA]
        links = [(src, dst) for src in ends for dst in ends if src != dst and not {src, dst} & set(self.stores)]

        def count() -> Counter[tuple[str, str]]:
            return Counter({link: self.cluster.fabric.connections(*link) for link in links})

        before = count()
        with socket.create_connection((address.host, address.port)):
            assert until(lambda: bool(count() - before), limits.CONDITION_WAIT_S_MAX)
            return [*(count() - before)]


@pytest.fixture
def stack() -> Iterator[ExitStack]:
    with ExitStack() as made:
        yield made


@pytest.fixture
def room(stack: ExitStack, tmp_path: Path) -> Room:
    return Room(stack, tmp_path)


class Sending:
    """A run's time in which a frame is sent on a connection whenever something is waited for."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection

    def until(self, condition: Callable[[], bool], _within_s: float) -> bool:
        self._connection.sendall(frame(b"C", 5))
        return until(condition, limits.CONDITION_WAIT_S_MAX)


# --- what is told ----------------------------------------------------------------------------------------------
def test_linked_process_is_told_its_run_and_where_each_node_and_the_metadata_are_reached(room: Room) -> None:
    boss = room.told["boss-1"]
    assert boss is not None
    assert (room.folder, "1", {"speed": "high"}, 2) == (
        boss.folder,
        boss.protocol,
        boss.rules,
        boss.settings.min_isr,
    )
    assert {"A", "B", "C"} == {*boss.reached}
    for name, address in boss.reached.items():
        assert [(name, "boss-1")] == room.links_of(address)
    (store,) = boss.metadata
    assert [("boss-1", METADATA)] == room.links_of(store)
    # The store was there before, at its own address.
    assert {"store": (room.at,)} == room.others["boss-1"]


def test_process_that_is_not_linked_is_told_its_run_and_of_no_links(room: Room) -> None:
    store = room.told["store-1"]
    assert store is not None
    assert (room.folder, {}, ()) == (store.folder, store.reached, store.metadata)
    assert ["store-1", "boss-1", "A", "B", "C"] == [*room.host.listeners]
    assert (1, 2) == (room.host.listeners["store-1"], room.host.listeners["boss-1"])


@pytest.mark.parametrize("name", "ABC")
def test_node_is_told_where_it_reaches_the_process_and_where_that_reaches_it(room: Room, name: str) -> None:
    spec = room.specs[name]
    others = {*"ABC", "boss-1"} - {name}
    assert (others, others) == ({*spec.peers}, {*spec.reached})
    for other in others:
        assert [(name, other)] == room.links_of(spec.peers[other])
        assert [(other, name)] == room.links_of(spec.reached[other])
    (store,) = spec.services
    assert [(name, METADATA)] == room.links_of(store)
    boss = room.told["boss-1"]
    assert boss is not None
    assert boss.reached[name] == spec.peers["boss-1"]


def test_linked_process_that_holds_the_metadata_is_reached_by_its_links_alone(
    stack: ExitStack, tmp_path: Path
) -> None:
    room = Room(stack, tmp_path, governs=True)
    spec = room.specs["A"]
    assert ((), {*"BC", "boss-1"}) == (spec.services, {*spec.peers})
    assert {("A", "boss-1"), ("boss-1", "A")} == {*to_metadata(room.cluster, "A")}
    address = spec.peers["boss-1"]
    with socket.create_connection((address.host, address.port)):
        assert until(lambda: room.cluster.fabric.connections("A", "boss-1") == 1, limits.CONDITION_WAIT_S_MAX)
        said = cut_from_metadata.inject(room.cluster, "A")
    assert "frames lost: whole connections on A -> boss-1" == said


def test_step_parts_a_node_from_the_service_that_it_names_alone(stack: ExitStack, tmp_path: Path) -> None:
    room = Room(stack, tmp_path, governs=True)
    cluster = room.cluster
    for named in ("boss", "boss-1", None):
        with cluster.naming(None, named):
            assert {("A", "boss-1"), ("boss-1", "A")} == {*to_metadata(cluster, "A")}
    with cluster.naming(None, "store"), pytest.raises(PreconditionError, match="expected one of boss-1"):
        to_metadata(cluster, "A")
    assert cluster.parted_from is None


def test_metadata_with_links_of_their_own_are_cut_by_these(room: Room) -> None:
    assert [("A", METADATA)] == to_metadata(room.cluster, "A")


def test_every_link_has_an_address_of_its_own_and_none_is_the_listener_s(room: Room) -> None:
    reached = [address for spec in room.specs.values() for address in spec.reached.values()]
    peers = [address for spec in room.specs.values() for address in spec.peers.values()]
    boss = room.told["boss-1"]
    assert boss is not None
    every = {*reached, *boss.reached.values(), *boss.metadata}
    every |= {address for spec in room.specs.values() for address in spec.services}
    # Of three nodes and the process each pair, in both directions; each of the four to the store.
    assert 12 + 4 == len(every - {room.at})
    assert {*peers} <= every


def test_run_s_services_say_which_of_them_are_linked(room: Room) -> None:
    services = room.cluster.services
    assert services is not None
    assert (("boss-1",), ("store-1", "boss-1")) == (services.linked, room.cluster.service_nodes)


def test_process_must_have_another_name_than_every_node_and_process(room: Room) -> None:
    for name in ("A", "boss-1", METADATA):
        with pytest.raises(UsageError, match=f"fabric: end '{name}' already exists; expected another name"):
            room.cluster.fabric.add_end(name)  # type: ignore[attr-defined]


# --- isolated --------------------------------------------------------------------------------------------------
def test_linked_process_that_is_isolated_loses_its_links_to_nodes_and_not_those_to_the_metadata(
    room: Room,
) -> None:
    address = room.specs["A"].peers["boss-1"]
    with socket.create_connection((address.host, address.port)) as connection:
        assert until(lambda: room.cluster.fabric.connections("A", "boss-1") == 1, limits.CONDITION_WAIT_S_MAX)
        room.cluster.time = cast(Any, Sending(connection))
        said = isolate(room.cluster, "partition-isolate", Effect.PARTITIONED, "boss-1")
    assert "frames lost: 1 on A -> boss-1" == said
    (found,) = room.cluster.in_force
    handle: Any = found.handle
    (rule,) = handle.rules
    assert {*product("ABC", ["boss-1"]), *product(["boss-1"], "ABC")} == {*rule.links}
    with pytest.raises(PreconditionError, match="partition-isolate boss-1: in force already"):
        isolate(room.cluster, "partition-isolate", Effect.PARTITIONED, "boss-1")


def test_lone_store_beside_a_linked_process_can_be_isolated_and_nodes_lose_it(room: Room) -> None:
    (address,) = room.specs["B"].services
    with socket.create_connection((address.host, address.port)):
        assert until(lambda: room.cluster.fabric.connections("B", METADATA) == 1, limits.CONDITION_WAIT_S_MAX)
        said = isolate(room.cluster, "partition-isolate", Effect.PARTITIONED, "store-1")
    assert f"frames lost: whole connections on B -> {METADATA}" == said
    (found,) = room.cluster.in_force
    handle: Any = found.handle
    assert {(name, METADATA) for name in "ABC"} <= {link for rule in handle.rules for link in rule.links}
    assert not {link for rule in handle.rules for link in rule.links if "boss-1" in link and METADATA not in link}


def test_one_of_several_stores_cannot_be_isolated_and_the_linked_process_is_none_of_them(
    stack: ExitStack, tmp_path: Path
) -> None:
    room = Room(stack, tmp_path, stores=3)
    with pytest.raises(PreconditionError, match="store-2: links to several processes of services are one"):
        isolate(room.cluster, "partition-isolate", Effect.PARTITIONED, "store-2")
    boss = room.told["boss-1"]
    assert boss is not None
    assert 3 == len({*boss.metadata})
    assert 3 == len({*room.specs["A"].services} - {*boss.metadata})


def test_history_of_its_links_names_the_process(room: Room) -> None:
    address = room.specs["A"].reached["boss-1"]
    with socket.create_connection((address.host, address.port)) as connection:
        connection.sendall(frame(b"C", 7))

        def fetches() -> list[Any]:
            return [op for op in read_history(room.history.path) if op.f == "fetch"]

        assert until(lambda: bool(fetches()), limits.CONDITION_WAIT_S_MAX)
    assert [["boss-1", "A"]] == [op.value["link"] for op in fetches()]
