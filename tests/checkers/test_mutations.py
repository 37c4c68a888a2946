"""A judge with one rule, or one condition of the proof, turned off judges a golden history wrongly."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from typing import Any

import pytest

from checkers import CHECKERS
from checkers.checker import Checker, check, partitions
from checkers.facts import acked, anew, fates, keepers, losing, polls, proof, uncommitted
from checkers.rules import (
    acknowledged,
    committed,
    isr,
    loss,
    lost,
    poll_order,
    producer_order,
    read_loss,
    readers_differ,
    replicas,
    seen_without,
    told,
    unreported,
    whole,
)
from harness.model import ORACLES, Anomaly, Kind, Op
from tests.checkers.golden import STORIES, ops_of
from tests.checkers.plants.table import PLANTS

# What may be turned off, beside whole rules: (module, name, what it then returns).
PARTS: list[tuple[Any, str, Any]] = [
    (fates, "flushed", lambda *_: None),
    (fates, "_reported_log", lambda *_: False),
    (fates, "_power_loss", lambda *_: None),
    (proof, "_down_at", lambda *_: None),
    (proof, "joined_before_return", lambda *_: True),
    (loss, "returned_unseen", lambda *_: False),
    (loss, "last_standing", lambda *_: False),
    (loss, "missing_evidence", lambda *_: ""),
    (loss, "must_hold", lambda *_: False),
    (lost, "must_hold", lambda *_: False),
    (committed, "_never_copied", lambda *_: True),
    (committed, "_never_copied", lambda *_: False),
    (acknowledged, "_elsewhere", lambda *_: iter(())),
    (acknowledged, "polled_places", lambda *_: {}),
    (producer_order, "_shown_together", lambda *_: iter(())),
    (uncommitted, "_above_own", lambda *_: iter(())),
    (uncommitted, "_unpassed", lambda *_: iter(())),
    (uncommitted, "_uncopied", lambda *_: iter(())),
    (read_loss, "_assured", lambda *_: None),
    (read_loss, "twice_polled", lambda *_: {}),
    (polls, "appended_anew", lambda *_: False),
    (polls, "appended_anew", lambda *_: True),
    (anew, "_written_without", lambda *_: True),
    (readers_differ, "_is_excused", lambda *_: False),
    (poll_order, "_back", lambda *_: iter(())),
    (poll_order, "_skips", lambda *_: iter(())),
    (told, "_falling", lambda *_: iter(())),
    (told, "_beyond", lambda *_: iter(())),
    (whole, "_polled", lambda *_: None),
    (replicas, "_restamped", lambda *_: iter(())),
    (replicas, "_unheard", lambda *_: iter(())),
    (isr, "_cut_off", lambda *_: True),
    (losing, "_must_have_had", lambda *_: None),
    (seen_without, "_in_isr", lambda *_: True),
    (unreported, "_breaches", lambda *_: ()),
    (unreported, "_excuse", lambda *_: None),
    (keepers.Keepers, "_durable", lambda *_: False),
    (keepers.Keepers, "_excuse", lambda *_: None),
    (keepers.Keepers, "_follow", lambda *_: None),
    (keepers.Keepers, "_joined", lambda *_: None),
    (keepers.Keepers, "_read_logs", lambda *_: None),
    (keepers.Keepers, "_refuted_by", lambda *_: None),
]


@cache
def _ops(name: str) -> Sequence[Op]:
    return PLANTS[name].ops


def _found(ops: Sequence[Op], checkers: Mapping[str, Checker]) -> list[Anomaly]:
    return [found for part in partitions(ops).values() for found in check(part, checkers)]


def _wrong(checkers: Mapping[str, Checker], names: Iterable[str] = tuple(PLANTS)) -> Iterator[str]:
    """Yield the golden histories, of those with these names, that the checkers judge wrongly."""
    for name in names:
        if PLANTS[name].kinds != {anomaly.kind for anomaly in _found(_ops(name), checkers)}:
            yield name


@cache
def _finders(name: str) -> frozenset[str]:
    """Return the checkers that find something in a plant."""
    return frozenset(anomaly.checker for anomaly in _found(_ops(name), CHECKERS))


def _nearest_first(module: Any) -> list[str]:
    """Return all plants, those first in which that checker, or one of lost records, finds something."""
    word = getattr(module, "__module__", module.__name__).rpartition(".")[2].replace("_", "-")
    near = {word} if word in CHECKERS else {"lost", "seen-without", "acknowledged"}
    return sorted(PLANTS, key=lambda each: not near & _finders(each))


@pytest.mark.parametrize("name", CHECKERS)
def test_golden_histories_fail_when_a_rule_is_turned_off(name: str) -> None:
    rest = {each: checker for each, checker in CHECKERS.items() if each != name}
    stories = (
        story for story in STORIES if any(anomaly.checker == name for anomaly in _found(ops_of(story), CHECKERS))
    )
    assert next(stories, None) or next(_wrong(rest, [each for each in PLANTS if name in _finders(each)]), None)


@pytest.mark.parametrize("condition", proof.CONDITIONS)
def test_golden_histories_fail_when_a_condition_of_the_proof_is_turned_off(
    condition: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(proof.CONDITIONS, condition, lambda _case: iter(()))
    assert next(_wrong(CHECKERS), None)


@pytest.mark.parametrize("condition", acked.PROMISES)
def test_golden_histories_fail_when_a_condition_of_the_acknowledgement_is_turned_off(
    condition: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(acked.PROMISES, condition, lambda _given: iter(()))
    assert next(_wrong(CHECKERS), None)


@pytest.mark.parametrize(("module", "name", "instead"), PARTS, ids=[name for _, name, _ in PARTS])
def test_golden_histories_fail_when_a_part_of_the_proof_is_turned_off(
    module: Any, name: str, instead: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = _nearest_first(module)
    monkeypatch.setattr(module, name, instead)
    assert next(_wrong(CHECKERS, names), None)


def test_every_kind_of_anomaly_is_found_in_a_golden_history() -> None:
    planted = {kind for plant in PLANTS.values() for kind in plant.kinds}
    told = {anomaly.kind for story in STORIES for anomaly in _found(ops_of(story), CHECKERS)}
    # One rule returns what all oracles recorded.
    assert {*Kind} - planted - told - ORACLES == set()


@pytest.mark.parametrize(
    ("checker", "plant"),
    [
        ("acknowledged", "ack-before-a-member-copied"),
        ("batches", "end-beyond-the-batches"),
        ("chain", "chain-append-missing"),
        ("committed", "cut-and-copied-again"),
        ("contents", "value-never-sent"),
        ("controllers", "controller-epoch-falls-1"),
        ("links", "links-held-without-hold"),
        ("poll-order", "poll-skips"),
        ("polled-contents", "polled-twice"),
        ("read-lost", "read-and-gone-kafka"),
        ("read-uncommitted", "read-from-a-follower"),
        ("readers-differ", "readers-differ"),
        ("told-high-watermark", "polled-mark-falls-kafka"),
        ("producer-order", "producer-order-1"),
        ("reads", "read-goes-back"),
        ("registrations", "registrations-seen-twice"),
        ("replicas", "longer-on-kafka-1"),
        ("sights", "sights-append-without-a-fetch"),
        ("states", "states-write-of-nothing"),
        ("whole", "whole-ok-without-invoke"),
    ],
)
def test_checker_without_stories_finds_its_plant(checker: str, plant: str) -> None:
    assert checker in {anomaly.checker for anomaly in _found(_ops(plant), CHECKERS)}
