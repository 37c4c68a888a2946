"""A judge with one rule, or one condition of the proof, turned off judges a golden history wrongly."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import pytest

from checkers import CHECKERS
from checkers.checker import Checker, check, partitions
from checkers.facts import acked, anew, fates, keepers, losing, polls, proof, quorum, uncommitted
from checkers.rules import (
    acked_twice,
    acknowledged,
    committed,
    diverged,
    epochs,
    holes,
    isr,
    loss,
    lost,
    poll_order,
    producer_order,
    read_loss,
    readers_differ,
    replicas,
    seen_without,
    stores,
    told,
    unreported,
    whole,
)
from harness.model import ORACLES, Anomaly, Kind, Op
from tests.checkers.golden import STORIES, ops_of
from tests.checkers.plants.histories import HISTORIES, found_in
from tests.checkers.plants.table import PLANTS

# What may be turned off, beside whole rules: (module, name, what it then returns, a plant then judged wrongly).
PARTS: list[tuple[Any, str, Any, str]] = [
    (fates, "flushed", lambda *_: None, "flushed-by-the-harness"),
    (fates, "_reported_log", lambda *_: False, "spared-then-lost"),
    (fates, "_power_loss", lambda *_: None, "ack-before-a-member-copied-sim"),
    (proof, "_down_at", lambda *_: None, "ack-below-min-isr"),
    (proof, "joined_before_return", lambda *_: True, "let-in-without-it-before-an-unclean-election"),
    (loss, "returned_unseen", lambda *_: False, "loss-by-an-unseen-return-lawful"),
    (loss, "last_standing", lambda *_: False, "loss-of-the-last-standing-lawful"),
    (loss, "missing_evidence", lambda *_: "", "copy-of-an-unknown-record"),
    (loss, "must_hold", lambda *_: False, "gone-without-an-election-kafka"),
    (lost, "must_hold", lambda *_: False, "hang-beside-a-record-that-is-gone"),
    (committed, "_never_copied", lambda *_: True, "joined-before-it-tells-of-its-copy-lawful"),
    (committed, "_never_copied", lambda *_: False, "append-after-following"),
    (acknowledged, "_elsewhere", lambda *_: iter(()), "ack-at-another-offset"),
    (acknowledged, "polled_places", lambda *_: {}, "polled-elsewhere-than-acknowledged"),
    (producer_order, "_shown_together", lambda *_: iter(()), "polled-in-another-order-sim"),
    (uncommitted, "_above_own", lambda *_: iter(()), "read-above-its-own-mark-kafka"),
    (uncommitted, "_unpassed", lambda *_: iter(()), "read-what-was-never-committed"),
    (uncommitted, "_uncopied", lambda *_: iter(()), "read-before-a-member-copied-it"),
    (read_loss, "_assured", lambda *_: None, "read-and-gone-with-acks-1-kafka-lawful"),
    (read_loss, "twice_polled", lambda *_: {}, "polled-twice-kafka"),
    (polls, "appended_anew", lambda *_: False, "polled-lost-and-sent-again-lawful"),
    (polls, "appended_anew", lambda *_: True, "polled-twice-by-an-idempotent-client"),
    (anew, "_written_without", lambda *_: True, "polled-twice-by-an-idempotent-client"),
    (readers_differ, "_is_excused", lambda *_: False, "read-and-gone-kafka-lawful"),
    (poll_order, "_back", lambda *_: iter(()), "poll-goes-back"),
    (poll_order, "_skips", lambda *_: iter(()), "poll-skips"),
    (told, "_falling", lambda *_: iter(()), "polled-mark-falls-kafka"),
    (told, "_beyond", lambda *_: iter(()), "polled-mark-beyond-the-log-kafka"),
    (whole, "_polled", lambda *_: None, "whole-poll-answers-another"),
    (replicas, "_restamped", lambda *_: iter(()), "epochs-changed-alike"),
    (replicas, "_unheard", lambda *_: iter(()), "epochs-changed-alike-kafka"),
    (isr, "_cut_off", lambda *_: True, "isr-that-no-leader-wrote-1"),
    (losing, "_must_have_had", lambda *_: None, "seen-leading-with-it-before-a-power-loss-lawful"),
    (seen_without, "_in_isr", lambda *_: True, "ack-at-another-offset-kafka"),
    (unreported, "_breaches", lambda *_: (), "ack-at-another-offset-of-all"),
    (unreported, "_excuse", lambda *_: None, "ack-at-another-offset-kafka"),
    (keepers.Keepers, "_durable", lambda *_: False, "records-gone-without-retention-kafka"),
    (keepers.Keepers, "_excuse", lambda *_: None, "ack-at-another-offset-kafka"),
    (keepers.Keepers, "_follow", lambda *_: None, "ack-at-another-offset-kafka"),
    (keepers.Keepers, "_joined", lambda *_: None, "ack-at-another-offset-of-all"),
    (keepers.Keepers, "_read_logs", lambda *_: None, "text-altered-on-all-kafka"),
    (quorum, "_robbed", lambda *_: None, "quorum-gone-by-no-fault-lawful"),
    (quorum, "flushed", lambda *_: None, "quorum-gone-though-flushed"),
    (quorum, "_is_disturbed", lambda *_: True, "quorum-gone-as-a-member-was-moved"),
    (quorum, "_is_disturbed", lambda *_: False, "quorum-gone-as-the-group-grew-lawful"),
    (quorum, "may_be_flipped", lambda *_: True, "quorum-on-disk-gone-by-a-flip-elsewhere"),
    (loss, "is_quorum", lambda *_: False, "quorum-gone-by-no-fault-lawful"),
    (read_loss, "is_quorum", lambda *_: False, "quorum-read-and-gone-lawful"),
    (acknowledged, "acked_twice", lambda *_: iter(()), "quorum-acknowledged-two"),
    (acked_twice, "_lost_before", lambda *_: False, "quorum-acknowledged-two-lawful"),
    (diverged, "flipped_at", lambda *_: False, "quorum-diverged-beside-a-flip-lawful"),
    (holes, "_lacking", lambda *_: iter(()), "gap-of-one-replica"),
    (holes, "flipped", lambda *_: False, "gap-beside-a-flip-lawful"),
    (stores, "_within", lambda *_: iter(()), "stores-of-one-replica-differ-in-its-log-alone"),
    (stores, "_across", lambda *_: iter(()), "stores-of-two-replicas-differ"),
    (stores, "flipped_at", lambda *_: False, "stores-differ-beside-a-flip-lawful"),
    (epochs, "is_polled", lambda *_: False, "polled-two-leaders-of-a-term-lawful"),
    (keepers.Keepers, "_refuted_by", lambda *_: None, "seen-two-records-at-one-offset"),
]


def _found(ops: Sequence[Op], checkers: Mapping[str, Checker]) -> list[Anomaly]:
    return [found for part in partitions(ops).values() for found in check(part, checkers)]


def _wrong(checkers: Mapping[str, Checker], names: Iterable[str] = tuple(PLANTS)) -> Iterator[str]:
    """Yield the golden histories, of those with these names, that the checkers judge wrongly."""
    for name in names:
        if PLANTS[name].kinds != {anomaly.kind for anomaly in _found(HISTORIES[name], checkers)}:
            yield name


def _finders(name: str) -> frozenset[str]:
    """Return the checkers that find something in a plant."""
    return frozenset(anomaly.checker for anomaly in found_in(name))


@pytest.mark.parametrize("name", CHECKERS)
def test_golden_histories_fail_when_a_rule_is_turned_off(name: str) -> None:
    rest = {each: checker for each, checker in CHECKERS.items() if each != name}
    wrong = next(_wrong(rest, [each for each in PLANTS if name in _finders(each)]), None)
    assert wrong or any(
        anomaly.checker == name for story in STORIES for anomaly in _found(ops_of(story), CHECKERS)
    )


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


@pytest.mark.parametrize(("module", "name", "instead", "plant"), PARTS, ids=[name for _, name, *_ in PARTS])
def test_golden_histories_fail_when_a_part_of_the_proof_is_turned_off(
    module: Any, name: str, instead: Any, plant: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, name, instead)
    assert [plant] == [*_wrong(CHECKERS, [plant])], f"expected one of {', '.join(_wrong(CHECKERS))}"


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
        ("stores", "stores-of-one-replica-differ"),
        ("whole", "whole-ok-without-invoke"),
    ],
)
def test_checker_without_stories_finds_its_plant(checker: str, plant: str) -> None:
    assert checker in _finders(plant)
