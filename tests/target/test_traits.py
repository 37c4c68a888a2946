"""Traits are read as they were recorded, and a set-up of before there were any has those of its target."""

from __future__ import annotations

import json
from dataclasses import fields, replace

import pytest

from harness.events import Setup
from harness.model import HistoryError, Op
from harness.target.traits import Commit, Epochs, Promise, Seen, Traits, traits_of
from targets.broker_target.target import TARGET as OURS
from targets.kafka.target import TARGET as KAFKA
from tests.checkers.plants.edit import RUNS

OTHER = Traits(
    metadata="a file",
    named="mylog:2",
    models="hw",
    emits_events=True,
    exact_order=True,
    tells_flushes=False,
    epochs=Epochs.BESIDE,
    epochs_file="epochs",
    marks_file="marks",
    clean_file="clean",
    flushed_files=".*[.]log",
    files_move=True,
    begins_flushed=True,
    maps_log=True,
    deletes_later=True,
    refuses_old_membership=True,
    idempotence=True,
    commit=Commit.QUORUM,
    promise=Promise.DISK,
    one_group=True,
    dense=False,
    first_offset=1,
    seen=Seen.POLLED,
    names_controller=False,
    shows_members=False,
    election_s=2.5,
    catch_up_s=60.0,
)


def setup_of(run: str) -> Setup:
    event = Op.from_json((RUNS / f"{run}.jsonl").read_text(encoding="utf-8").splitlines()[0]).event
    assert isinstance(event, Setup)
    return event


def test_every_trait_is_read_as_it_was_recorded() -> None:
    assert not [each.name for each in fields(Traits) if getattr(OTHER, each.name) == getattr(Traits(), each.name)]
    for traits in (OTHER, Traits()):
        assert traits == Traits.of(json.loads(json.dumps(traits.as_text())))


def test_set_up_with_traits_has_them_whatever_its_target() -> None:
    setup = replace(setup_of("local-kip101-1"), target="nobody-knows-it", traits=OTHER.as_text())
    assert traits_of(setup) == OTHER


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ({"speed": "high"}, "trait 'speed'; expected one of .*exact_order"),
        ({"dense": "maybe"}, "dense is 'maybe'"),
    ],
)
def test_trait_that_is_none_is_named(text: dict[str, str], says: str) -> None:
    with pytest.raises(HistoryError, match=says):
        Traits.of(text)


@pytest.mark.parametrize(("run", "exact"), [("local-kip101-1", False), ("sim-hw-66", True)])
def test_older_run_of_our_broker_has_what_was_known_by_its_name_and_its_host(run: str, *, exact: bool) -> None:
    traits = traits_of(setup_of(run))
    assert ("ZooKeeper", True, exact, not exact) == (
        traits.metadata,
        traits.emits_events,
        traits.exact_order,
        traits.tells_flushes,
    )
    assert "" == traits.models == traits.named


def test_older_run_of_apache_kafka_has_what_stood_among_its_rules() -> None:
    setup = replace(
        setup_of("kafka-kip101-1"),
        rules={"models": "kip279", "named": "kafka:2.0.1", "idempotence": "yes"},
        deletes_later=True,
    )
    traits = traits_of(setup)
    assert ("kip279", "kafka:2.0.1", True, True, False) == (
        traits.models,
        traits.named,
        traits.idempotence,
        traits.deletes_later,
        traits.emits_events,
    )


def test_run_of_an_unknown_target_without_traits_has_the_defaults() -> None:
    assert Traits() == traits_of(replace(setup_of("local-kip101-1"), target="nobody-knows-it"))


@pytest.mark.parametrize("target", [OURS, KAFKA], ids=lambda target: target.name)
def test_settings_that_are_traits_are_no_rules(target: object) -> None:
    assert isinstance(target, type(OURS) | type(KAFKA))
    for protocol, rules in target.protocols().items():
        assert not {"models", "named", "deletes", "old_registration"} & rules.keys()
        assert target.traits(protocol, ()).metadata == "ZooKeeper"


def test_our_protocols_have_epochs_since_kip_101_and_ids_of_producers_with_the_rule() -> None:
    assert Epochs.NONE is OURS.traits("hw", ()).epochs
    assert Epochs.IN_RECORDS is OURS.traits("kip101", ()).epochs
    assert (True, False) == tuple(OURS.traits("kip380", way).idempotence for way in ((), ("idempotence=no",)))
