"""Faults of NATS's own: a storm of stepdowns, a power loss right after a snapshot, members, bits of files."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from harness.ability import Ability
from harness.bit_rot import Where
from harness.cluster.cluster import Cluster
from harness.effect import Effect
from harness.model import PreconditionError
from nemesis import faults_of
from targets.nats.nemeses import FAULTS, of_nats, peer_remove, power_loss_after_snapshot, stepdown_storm
from targets.nats.operating import NatsOperator
from targets.nats.target import TARGET
from targets.nats.view import NatsView


class Asked(NatsOperator):
    """An operator that notes what it is asked, and grants it after some refusals."""

    def __init__(self, room: Room, refusals: int) -> None:
        self.room, self.refusals, self.asked = room, refusals, list[str]()

    def step_down(self, topic: str, partition: int) -> None:
        self._granted("anybody")
        self.room.leader = "C"

    def elect(self, topic: str, partition: int, name: str) -> str:
        self._granted(name)
        self.room.leader = name if self.room.follows else "C"
        self.room.snapshots[name] = self.room.takes
        return "asked"

    def _granted(self, whom: str) -> None:
        if self.refusals:
            self.refusals -= 1
            raise PreconditionError("no leader")
        self.asked.append(whom)
        self.room.term += self.room.rises


class Shows(NatsView):
    """Metadata that show what the room has."""

    def __init__(self, room: Room) -> None:
        self.room = room

    def truth(self, topic: str, partition: int) -> Any:
        return SimpleNamespace(leader=self.room.leader, epoch=self.room.term)

    def snapshot(self, topic: str, partition: int, name: str) -> int:
        return self.room.snapshots.get(name, 0)


class Room:
    """
    A cluster of NATS without servers.

    Attributes:
        rises: by how much the term rises with each stepdown.
        follows: whether who is preferred comes to lead.
        takes: up to which index a snapshot goes that is taken when a node begins to lead; 0: none is.
    """

    def __init__(self, *, refusals: int = 0, rises: int = 1, follows: bool = True, takes: int = 7) -> None:
        self.leader: str | None = "A"
        self.term, self.rises, self.follows, self.takes = 3, rises, follows, takes
        self.snapshots: dict[str, int] = {}
        self.lost: list[str] = []
        self.operator, self.metadata = Asked(self, refusals), Shows(self)
        partition = SimpleNamespace(place=("log", 0), leader=lambda: self.leader, isr=lambda: {"A", "B", "C"})
        host = SimpleNamespace(power_loss=self.lost.append)
        self.cluster: Any = SimpleNamespace(
            named=partition,
            operator=self.operator,
            metadata=self.metadata,
            target=TARGET,
            cancelled=False,
            time=SimpleNamespace(until=_until),
            host=host,
            take_down=lambda name, how: f"{name} down {how(name) or ''}",
        )


def _until(condition: Callable[[], bool], seconds: float) -> bool:
    """Look a few times, in place of waiting."""
    del seconds
    return any(condition() for _ in range(3))


def storm(room: Room, name: str) -> tuple[str, str]:
    """Return what the storm says it did, and what its probe saw instead."""
    probe = stepdown_storm.watch(room.cluster, name)
    return stepdown_storm.inject(room.cluster, name), probe()


# --- a storm ---------------------------------------------------------------------------------------------------
def test_storm_asks_for_so_many_stepdowns_and_one_for_its_node() -> None:
    room = Room(refusals=2)
    assert ("10 stepdowns, and more until B led", "") == storm(room, "B")
    assert [*["anybody"] * stepdown_storm.STEPDOWNS, "B"] == room.operator.asked


def test_storm_that_hardly_raised_the_term_did_not_bite() -> None:
    assert "the term rose by 0; expected 5 at least" == storm(Room(rises=0), "B")[1]


def test_storm_after_which_another_leads_did_not_bite() -> None:
    with pytest.raises(PreconditionError, match=r"^stepdown-storm B: C leads; expected B then$"):
        storm(Room(follows=False), "B")


def test_storm_that_nobody_grants_says_why() -> None:
    with pytest.raises(PreconditionError, match=r"^stepdown-storm B: no leader$"):
        storm(Room(refusals=99), "B")


# --- a power loss after a snapshot -----------------------------------------------------------------------------
def test_power_is_lost_once_the_node_that_leads_has_its_snapshot() -> None:
    room = Room()
    said = power_loss_after_snapshot.inject(room.cluster, "B")
    assert said.startswith("snapshot up to index 7 of its Raft log; B down")
    assert (["B"], ["B"]) == (room.operator.asked, room.lost)


@pytest.mark.parametrize(
    ("room", "name", "why"),
    [
        (Room(takes=0), "B", "it took none within 5 s; expected one as it leads"),
        (Room(), "A", "it leads already; expected another to lead"),
    ],
)
def test_power_stays_without_a_snapshot(room: Room, name: str, why: str) -> None:
    with pytest.raises(PreconditionError, match=f"^power-loss-after-snapshot {name}: {why}$"):
        power_loss_after_snapshot.inject(room.cluster, name)
    assert [] == room.lost


@pytest.mark.parametrize(
    ("name", "leader", "has", "why"),
    [
        ("B", "A", 0, ""),
        ("B", "A", 4, "B has a snapshot up to index 4, and takes no other for it"),
        ("A", "A", 0, "A leads"),
        ("B", None, 0, "nobody leads"),
        ("D", "A", 0, "D is no member of the stream's group"),
    ],
)
def test_node_takes_a_snapshot_only_if_it_has_none_and_another_leads(
    name: str, leader: str | None, has: int, why: str
) -> None:
    room = Room()
    room.leader, room.snapshots = leader, {name: has}
    assert why == power_loss_after_snapshot.why_not(room.cluster, name)


# --- both ------------------------------------------------------------------------------------------------------
def test_faults_are_those_of_nats_alone() -> None:
    assert {*FAULTS} <= {*faults_of(TARGET)}
    assert all(name == fault.name for name, fault in FAULTS.items())
    other: Cluster = SimpleNamespace(operator=object(), metadata=object(), target=TARGET)  # type: ignore[assignment]
    for look in (of_nats.operator_of, lambda cluster: of_nats.snapshot_of(cluster, "A")):
        with pytest.raises(PreconditionError, match="expected a cluster of NATS"):
            look(other)


# --- a member that is removed ----------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("name", "ids", "why"),
    [
        ("B", "ABCD", ""),
        ("D", "ABCD", "D is no member of the stream's group"),
        ("B", "ABC", "no other server could take its place"),
    ],
)
def test_member_is_removed_if_another_server_can_take_its_place(name: str, ids: str, why: str) -> None:
    room = Room()
    room.operator.wanted = lambda topic, partition: ("A", "B", "C")
    room.operator.expel = lambda topic, partition, name: f"{name} of {topic}-{partition}"
    room.cluster.ids = dict.fromkeys(ids, 1)
    assert why == peer_remove.why_not(room.cluster, name)
    assert f"{name} of log-0" == peer_remove.inject(room.cluster, name)


# --- bits of files ---------------------------------------------------------------------------------------------
@pytest.mark.parametrize("where", [where for where in Where if where.is_state])
def test_file_of_each_state_has_a_fault_that_says_how_it_is_probed(where: Where) -> None:
    fault = FAULTS[f"bit-rot-{where.value}"]
    assert (f"bit-rot-{where.value}", Effect.BIT_ROT, 0.0) == (fault.name, fault.effect, fault.weight)
    assert (Ability.BIT_ROT,) == fault.needs
    assert "probe" in (fault.inject.__doc__ or "")
