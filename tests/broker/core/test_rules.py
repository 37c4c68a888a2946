"""The rules: read and written as text, and the exact rules in which the protocols differ."""

from __future__ import annotations

from dataclasses import FrozenInstanceError, fields
from typing import Any, get_type_hints

import pytest

from targets.broker.core.rules import PROTOCOLS, Rules, as_text, from_text, values_of, with_rule

KINDS: dict[str, Any] = get_type_hints(Rules)
EVERY_VALUE = [(name, value) for name, kind in KINDS.items() for value in values_of(kind)]


def difference(one: str, other: str) -> dict[str, tuple[str, str]]:
    a, b = as_text(PROTOCOLS[one]), as_text(PROTOCOLS[other])
    return {name: (a[name], b[name]) for name in a if a[name] != b[name]}


def test_protocols_stand_in_the_order_of_the_ladder() -> None:
    """Source: KIP-279; KIP-320; KIP-380."""
    assert list(PROTOCOLS) == ["hw", "kip101", "kip101-text", "kip279", "kip279-2.0.1", "kip320", "kip380"]


def test_kip_101_changed_exactly_these_rules() -> None:
    """Source: KIP-101: the epoch in every message, truncation by the leader's answer, returning leaders."""
    assert difference("hw", "kip101") == {
        "epochs": ("no", "yes"),
        "truncate_to": ("high_watermark", "one_answer"),
        "returning_leader": ("resumes", "awaits"),
        "delete_past_high_watermark": ("yes", "no"),  # KAFKA-5634, in 0.11.0.1
        "idempotence": ("no", "yes"),  # KIP-98 came in the same release
    }


def test_letter_differs_from_what_was_shipped_in_three_places_alone() -> None:
    """
    Source:  KIP-101, steps 3 and 4.4, Unclean Shutdown, and Maintaining the LeaderEpochSequenceFile, against Kafka
             0.11.0 to 1.1.1.
    """
    assert difference("kip101", "kip101-text") == {
        "epoch_assigned_on_lead": ("no", "yes"),
        "epoch_cut": ("at_or_past", "past"),
        "epoch_trim": ("folded", "up_to_start"),
    }


def test_kip_279_changed_exactly_these_rules() -> None:
    """Source: KIP-279; KAFKA-6857, KAFKA-6975 and KAFKA-7786, fixed in 2.0.0 too; KIP-227, in 1.1.0."""
    assert difference("kip101", "kip279") == {
        "truncate_to": ("one_answer", "epoch_walk"),
        "undefined_query": ("log_end", "undefined"),
        "drop_stale_answer": ("no", "yes"),
        "start_inside_batch": ("no", "yes"),
        "fetch_sessions": ("none", "epoch_blind"),
    }


def test_release_2_0_1_mended_exactly_these_rules() -> None:
    """Source: KAFKA-7128, KAFKA-7164, and KAFKA-7415 with its cache."""
    assert difference("kip279", "kip279-2.0.1") == {
        "below_first_epoch": ("undefined", "first_start"),
        "epoch_assigned_on_lead": ("no", "yes"),
        "newest_epoch_wins": ("no", "yes"),
        "truncate_when_leader_unchanged": ("no", "yes"),
        "join_isr_past_epoch_start": ("no", "yes"),
    }


def test_kip_320_changed_exactly_the_fences() -> None:
    """Source: KIP-320."""
    fences = ("fence_truncation_query", "fence_fetch", "fence_high_watermark", "fence_isr_join")
    assert difference("kip279-2.0.1", "kip320") == dict.fromkeys(fences, ("no", "yes"))


def test_kip_380_changed_only_who_sees_a_bounce_the_sessions_topic_identity_and_what_is_compacted() -> None:
    """Source: KIP-380; KAFKA-9338, KIP-516, KIP-534 and KAFKA-13194, which came under the same name here."""
    assert difference("kip320", "kip380") == {
        "clean_past_high_watermark": ("yes", "no"),
        "fence_broker_epoch": ("no", "yes"),
        "fetch_sessions": ("epoch_blind", "fenced"),
        "tombstone_horizon": ("no", "yes"),
        "topic_identity": ("no", "yes"),
    }


@pytest.mark.parametrize(("name", "value"), EVERY_VALUE)
def test_any_rule_can_be_switched_to_any_of_its_values(name: str, value: str) -> None:
    for rules in PROTOCOLS.values():
        changed = as_text(with_rule(rules, f"{name}={value}"))
        assert {**as_text(rules), name: value} == changed


@pytest.mark.parametrize("name", KINDS)
def test_every_rule_has_at_least_two_values(name: str) -> None:
    assert len(values_of(KINDS[name])) >= 2


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_rules_are_read_back_as_they_were_written(protocol: str) -> None:
    rules = PROTOCOLS[protocol]
    assert rules == from_text(as_text(rules))
    assert list(as_text(rules)) == [field.name for field in fields(Rules)]


def test_rules_cannot_be_changed_in_place() -> None:
    with pytest.raises(FrozenInstanceError):
        PROTOCOLS["hw"].epochs = True  # type: ignore[misc]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("trunkate_to=one_answer", "rule 'trunkate_to': no such rule; expected one of below_first_epoch, "),
        (
            "truncate_to=epoch_walk_9",
            "rule truncate_to='epoch_walk_9': expected one of high_watermark, first_fetch, one_answer, "
            "epoch_walk. Did you mean 'epoch_walk'?",
        ),
        ("epochs=true", "rule epochs='true': expected one of no, yes"),
        ("epochs", "rule epochs='': expected one of no, yes"),
    ],
)
def test_wrong_rule_is_refused_with_what_was_expected(text: str, message: str) -> None:
    with pytest.raises(ValueError, match="expected one of") as caught:
        with_rule(PROTOCOLS["hw"], text)
    assert str(caught.value).startswith(message)


@pytest.mark.parametrize("change", ["missing", "unknown", "no such value"])
def test_rules_from_text_must_be_whole_and_sound(change: str) -> None:
    values = as_text(PROTOCOLS["hw"])
    if change == "missing":
        del values["epochs"]
    else:
        values["epoch" if change == "unknown" else "epochs"] = "maybe"
    with pytest.raises(ValueError, match="expected"):
        from_text(values)
