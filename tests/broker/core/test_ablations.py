"""Every rule prevents a harm (harms.py), which occurs in `kip320` and `kip380` only when the rule is off."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields

import pytest

from targets.broker.core.rules import Rules, as_text, with_rule
from tests.broker.core import harms
from tests.broker.core.stage import rules_of

# In a session that is blind no fence of a fetch holds.
BASES = ("kip320+fetch_sessions=fenced", "kip380")


@dataclass(frozen=True, kw_only=True)
class Ablation:
    """A rule turned off, and the event sequence in harms.py that shows the harm."""

    change: str
    shows: Callable[[Rules], bool]


ABLATIONS = (
    Ablation(change="epochs=no", shows=harms.restarts_behind),
    Ablation(change="epochs=no", shows=harms.returns_to_another_history),
    Ablation(change="truncate_to=high_watermark", shows=harms.restarts_behind),
    Ablation(change="truncate_to=high_watermark", shows=harms.returns_to_another_history),
    Ablation(change="truncate_to=first_fetch", shows=harms.returns_to_another_history),
    Ablation(change="truncate_to=one_answer", shows=harms.asks_for_an_epoch_that_its_leader_does_not_know),
    Ablation(change="unknown_epoch=undefined", shows=harms.falls_back_though_the_leader_could_have_said),
    Ablation(change="undefined_query=log_end", shows=harms.asks_without_an_epoch),
    Ablation(change="below_first_epoch=undefined", shows=harms.asks_for_an_epoch_before_its_leaders_first),
    Ablation(change="epoch_assigned_on_lead=no", shows=harms.asks_a_leader_that_has_written_nothing),
    Ablation(change="truncate_when_leader_unchanged=no", shows=harms.hears_nothing_of_another_leader),
    Ablation(change="join_isr_past_epoch_start=no", shows=harms.is_let_in_before_the_epochs_start),
    Ablation(change="drop_stale_answer=no", shows=harms.believes_an_answer_of_an_older_epoch),
    Ablation(change="fence_truncation_query=no", shows=harms.asks_a_leader_that_is_cut_afterwards),
    Ablation(change="fence_fetch=no", shows=harms.fetches_in_an_epoch_that_is_over),
    Ablation(change="fence_high_watermark=no", shows=harms.acknowledges_what_it_does_not_hold),
    Ablation(change="fence_isr_join=no", shows=harms.joins_by_a_fetch_that_is_refused),
    Ablation(change="fetch_sessions=epoch_blind", shows=harms.fetches_in_an_epoch_that_is_over),
    Ablation(change="fetch_sessions=epoch_blind", shows=harms.acknowledges_what_it_does_not_hold),
    Ablation(change="fetch_sessions=epoch_blind", shows=harms.joins_by_a_fetch_that_is_refused),
    Ablation(change="forget_follower_ends=no", shows=harms.is_believed_to_hold_what_it_held),
    Ablation(change="returning_leader=resumes", shows=harms.returns_to_lead_what_it_has_half_lost),
    Ablation(change="fence_broker_epoch=no", shows=harms.bounces_unseen),
    Ablation(change="delete_past_high_watermark=yes", shows=harms.deletes_what_no_follower_has),
    Ablation(change="clean_past_high_watermark=yes", shows=harms.compacts_what_no_follower_has),
    Ablation(change="tombstone_horizon=no", shows=harms.forgets_a_tombstone_that_was_just_cleaned),
    Ablation(change="start_inside_batch=no", shows=harms.cannot_begin_where_its_leaders_log_does),
    Ablation(change="topic_identity=no", shows=harms.keeps_a_deleted_topics_records),
    Ablation(change="idempotence=no", shows=harms.appends_what_is_sent_again),
    Ablation(change="epoch_cut=past", shows=harms.walks_past_an_epoch_that_it_does_not_forget),
    Ablation(change="epoch_trim=up_to_start", shows=harms.asks_about_what_its_leader_has_half_deleted),
)
# Rules that no sequence can show in a protocol with all others on, and why.
HARMLESS = {
    "newest_epoch_wins": "a follower's own cut removes what a newer epoch would contradict, before it comes",
    "epochs_flushed": "recovery rebuilds from the batches what the file lacks",
    "leo_after_cut": "the walk never ends inside a batch: under truncate_to=one_answer it shows (S3, n>20)",
}


@pytest.mark.parametrize("base", BASES)
@pytest.mark.parametrize("case", ABLATIONS, ids=lambda case: f"{case.change}-{case.shows.__name__}")
def test_rule_turned_back_does_the_harm_that_it_was_made_against(case: Ablation, base: str) -> None:
    """Source: KIP-101, KIP-279, KIP-320, KIP-380, KIP-516 and the issues that harms.py cites."""
    assert case.shows(rules_of(*base.split("+"), case.change))


@pytest.mark.parametrize("base", BASES)
@pytest.mark.parametrize("case", ABLATIONS, ids=lambda case: f"{case.change}-{case.shows.__name__}")
def test_rule_as_it_stands_prevents_that_harm(case: Ablation, base: str) -> None:
    """Source: KIP-101, KIP-279, KIP-320, KIP-380 and the issues that harms.py cites."""
    name = case.change.partition("=")[0]
    assert not case.shows(with_rule(rules_of(*base.split("+")), f"{name}={as_text(rules_of('kip380'))[name]}"))


@pytest.mark.parametrize(
    "change", ["newest_epoch_wins=no", "epochs_flushed=with_segment", "leo_after_cut=physical"]
)
@pytest.mark.parametrize("case", ABLATIONS, ids=lambda case: f"{case.change}-{case.shows.__name__}")
def test_rule_said_to_be_harmless_does_none_of_the_harm_above(case: Ablation, change: str) -> None:
    assert change.partition("=")[0] in HARMLESS
    assert not case.shows(rules_of("kip380", change))


def test_rejected_alternative_passes_scenario_1_and_fails_scenario_2() -> None:
    """Source: KIP-101, Rejected Alternatives: to truncate only when the first fetch returns."""
    rules = rules_of("kip101", "truncate_to=first_fetch")
    assert (harms.restarts_behind(rules), harms.returns_to_another_history(rules)) == (False, True)


def test_every_rule_is_shown_or_said_to_be_harmless() -> None:
    shown = {case.change.partition("=")[0] for case in ABLATIONS}
    assert shown.isdisjoint(HARMLESS)
    assert {rule.name for rule in fields(Rules)} == shown | set(HARMLESS)
