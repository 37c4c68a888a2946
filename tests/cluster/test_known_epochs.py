from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any, cast

import pytest

from harness.cluster import known_epochs
from harness.cluster.cluster import Cluster
from harness.cluster.known_epochs import KnownEpochs
from harness.events.log import WITH_EPOCHS
from harness.logs.record import NO_EPOCH
from harness.logs.replica import BatchSeen, ReplicaLog
from harness.model import PreconditionError
from harness.target.traits import Epochs, Traits
from harness.workload.plan import Place

AT = Place("log", 0)


def record(offset: int, digest: str, epoch: int = NO_EPOCH) -> BatchSeen:
    return BatchSeen(
        base=offset,
        last=offset,
        epoch=epoch,
        magic=WITH_EPOCHS if epoch >= 0 else WITH_EPOCHS - 1,
        crc=0,
        codec="none",
        position=0,
        segment="1.blk",
        records=((offset, digest, digest),),
    )


def log_of(*batches: BatchSeen, epochs: tuple[tuple[int, int], ...] | None = None) -> ReplicaLog:
    return ReplicaLog(
        topic="log",
        partition=0,
        log_start_offset=1,
        log_end_offset=9,
        batches=batches,
        epochs=epochs,
        high_watermark=None,
    )


class World:
    """A partition on three nodes, each with a second store that tests write; a clock that they set."""

    def __init__(self, epochs: Epochs = Epochs.BESIDE) -> None:
        self.stores: dict[str, Sequence[BatchSeen] | Exception] = {"A": (), "B": (), "C": ()}
        self.asked: list[str] = []
        self.hit: list[str] = []
        self.seconds = 0.0
        self.takes = 0.0
        partition = SimpleNamespace(place=AT, replicas=("A", "B", "C"), second_store=self._second_store)
        cluster = SimpleNamespace(traits=Traits(epochs=epochs), partitions=[partition], in_force=self)
        self.known = KnownEpochs(cluster=cast(Cluster, cluster), clock=lambda: self.seconds)

    def __iter__(self) -> Any:
        return iter([SimpleNamespace(node=name) for name in self.hit])

    def _second_store(self, name: str) -> tuple[str, Sequence[BatchSeen]]:
        self.asked.append(name)
        self.seconds += self.takes
        found = self.stores[name]
        if isinstance(found, Exception):
            raise found
        return "raft", found

    def look(self, *, after: float = 1000.0) -> None:
        self.seconds += after
        self.known.look()


def test_record_whose_epoch_is_gone_at_the_end_has_the_one_that_a_store_had() -> None:
    world = World()
    world.stores["A"] = [record(1, "one", 2), record(2, "two", 2), record(3, "three", 4)]
    world.look()
    found = world.known.filled(log_of(record(1, "one"), record(2, "two"), record(3, "three", 4), epochs=((4, 3),)))
    assert [(1, 2), (2, 2), (3, 4)] == [(batch.base, batch.epoch) for batch in found.batches]
    assert {WITH_EPOCHS} == {batch.magic for batch in found.batches}
    assert ((2, 1), (4, 3)) == found.epochs


def test_nothing_is_filled_in_by_another_record_or_against_what_a_log_knows() -> None:
    world = World()
    world.stores["A"] = [record(1, "one", 2), record(2, "two", 2)]
    world.look()
    log = log_of(record(1, "other"), record(2, "two", 3), record(3, "two"), epochs=((3, 2),))
    assert log == world.known.filled(log)


def test_record_that_two_epochs_had_at_one_offset_has_none() -> None:
    world = World()
    world.stores = {"A": [record(1, "one", 2)], "B": [record(1, "one", 3)], "C": []}
    world.look()
    world.look()
    log = log_of(record(1, "one"))
    assert log == world.known.filled(log)


def test_replicas_are_read_in_turn_and_none_that_a_fault_has_hit() -> None:
    world = World()
    for _ in range(4):
        world.look()
    assert ["A", "B", "C", "A"] == world.asked
    world.hit = ["A", "C"]
    world.look()
    assert "B" == world.asked[-1]
    world.hit = ["A", "B", "C"]
    world.look()
    assert 5 == len(world.asked)


def test_store_that_cannot_be_read_is_left_for_the_next_time() -> None:
    world = World()
    world.stores = {"A": PreconditionError("away"), "B": OSError("gone"), "C": [record(1, "one", 2)]}
    for _ in range(3):
        world.look()
    assert [2] == [batch.epoch for batch in world.known.filled(log_of(record(1, "one"))).batches]


def test_looks_leave_a_run_ten_times_as_long_as_they_take() -> None:
    world = World()
    world.look(after=0.0)
    world.look(after=4.9)
    assert 1 == len(world.asked)
    world.takes = 3.0
    world.look(after=0.2)
    world.look(after=29.9)
    assert 2 == len(world.asked)
    world.look(after=0.2)
    assert 3 == len(world.asked)


@pytest.mark.parametrize("epochs", [Epochs.IN_RECORDS, Epochs.NONE])
def test_nothing_is_read_where_records_have_their_epochs_or_there_are_none(epochs: Epochs) -> None:
    world = World(epochs)
    world.look()
    assert [] == world.asked


def test_no_more_is_kept_than_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(known_epochs, "RECORDS_MAX", 2)
    world = World()
    world.stores["A"] = [record(1, "one", 2), record(2, "two", 2)]
    world.look()
    assert world.known.is_full
    world.look()
    assert ["A"] == world.asked
