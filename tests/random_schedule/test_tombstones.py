"""Tombstones are drawn apart from all else, and only where records have keys."""

from __future__ import annotations

from harness.keys import is_tombstone, key_of, keyed
from harness.random_schedule.tombstones import DELAYS_MS, SHARES, with_tombstones
from harness.target.settings import Settings
from harness.workload.plan import Clients, Place, ProducerPlan
from harness.workload.script import ProducerScript

PRODUCER = ProducerPlan(name="p1", places=(Place("log", 0),), keys=2)
CLIENTS = Clients(producers=(PRODUCER,))
GROUPS = [f"m{number}" for number in range(20)]


def test_runs_without_keys_have_no_tombstones() -> None:
    clients = Clients(producers=(ProducerPlan(name="p1", places=(Place("log", 0),)),))
    assert all((Settings(), clients) == with_tombstones(seed, Settings(), clients, GROUPS) for seed in range(30))


def test_share_of_the_records_of_some_runs_are_tombstones() -> None:
    drawn = [with_tombstones(seed, Settings(keys=2), CLIENTS, GROUPS) for seed in range(60)]
    some = [(settings, clients) for settings, clients in drawn if settings.delete_retention_ms is not None]
    assert 20 < len(some) < 50
    assert set(DELAYS_MS) == {settings.delete_retention_ms for settings, _ in some}
    assert set(SHARES) == {clients.producers[0].tombstones for _, clients in some}
    assert 0.1 < sum(len(settings.tombstones) for settings, _ in some) / len(some) / len(GROUPS) < 0.6


def test_record_has_the_same_key_and_pauses_whether_or_not_it_is_a_tombstone() -> None:
    one, other = (
        ProducerScript(ProducerPlan(name="p1", places=PRODUCER.places, keys=3, tombstones=share), 5)
        for share in (0.0, 0.5)
    )
    values = [
        [value for _ in range(30) for part in script.next().parts for value in part[1]] for script in (one, other)
    ]
    assert [key_of(value) for value in values[0]] == [key_of(value) for value in values[1]]
    deleted = sum(map(is_tombstone, values[1]))
    assert 0.3 * len(values[1]) < deleted < 0.7 * len(values[1])
    assert not any(map(is_tombstone, values[0]))
    assert one.pause_ms() == other.pause_ms()


def test_value_without_a_key_is_no_tombstone() -> None:
    assert "m1.0" == keyed("m1.0", 0, 1.0)
    assert not is_tombstone("~m1.0")
    assert is_tombstone(keyed("m1.0", 1, 1.0))
