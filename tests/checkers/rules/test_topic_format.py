"""A topic's message format changes in a run: who writes epochs then, and what an append without one proves."""

from __future__ import annotations

import pytest

from checkers.facts.view import changes_format, setup_of
from checkers.rules.chain.rule import chain
from checkers.rules.values import strange_values
from harness.model import OpType, PartOps, Source
from tests.checkers.story import TOPIC, Story

RULES = {"epochs": "yes", "newest_epoch_wins": "yes", "epoch_assigned_on_lead": "yes"}
WITHOUT = "appended without an epoch"


def story(message_format: str = "with_epochs") -> Story:
    """Return a run in which A leads and B follows, and both may yet take up a format."""
    made = Story({}, "kip380", rules=RULES, message_format=message_format).started("A", "B")
    made.broker("A", "member", session="0x1", replaced=None)
    return made.broker("B", "member", session="0x2", replaced=None)


def asked(made: Story, to: str, setting: str = "message.format.version") -> Story:
    for type_ in (OpType.INVOKE, OpType.OK):
        made.add(Source.CLIENT, "client-1", type_, "alter-topic", topic="t", setting=setting, to=to)
    return made


def took(made: Story, to: int, *nodes: str) -> Story:
    for node in nodes:
        made.broker(node, "format", **TOPIC, to=to)
    return made


def leads(made: Story, epochs: tuple[tuple[int, int], ...] = ()) -> Story:
    if epochs:
        made.broker("A", "checkpoint", **TOPIC, what="epochs", content=[list(entry) for entry in epochs])
    return made.leads("A", 0, 0)


def appends(made: Story, node: str, epoch: int, role: str, base: int = 0) -> Story:
    return made.broker(node, "append", **TOPIC, base=base, end=base + 1, epoch=epoch, role=role)


def said(made: Story) -> list[str]:
    return [each.sentence for each in chain(made.done().ops) if "appended" in each.sentence]


@pytest.mark.parametrize(
    ("to", "epoch", "text"),
    [
        (0, 0, ""),
        (0, -1, WITHOUT),
        (1, -1, ""),
        (1, 0, "appended in epoch 0, in message format 1, which has none,"),
        (2, 0, ""),
        (2, -1, WITHOUT),
    ],
)
def test_leader_writes_epochs_in_the_format_that_it_has_taken_up(to: int, epoch: int, text: str) -> None:
    """Source: KIP-101, Compatibility: epochs are in format 2 alone."""
    made = leads(story(), () if to == 1 else ((0, 0),))
    if to:
        took(asked(made, "0.10.2"), to, "A", "B")
    found = said(appends(made, "A", epoch, "leader"))
    assert bool(text) == bool(found)
    assert all(text in each for each in found)


def test_follower_may_get_what_a_leader_wrote_that_has_not_taken_it_up_yet() -> None:
    """Each broker takes up the format by its own watch."""
    for may in (True, False):
        made = leads(story(), ((0, 0),))
        if may:
            took(asked(made, "0.11.0"), 2, "B")
        made.follows("B", "A", 0, 0).cut("B", 0, 0, "high-watermark")
        assert may != any(WITHOUT in each for each in said(appends(made, "B", -1, "follower")))


def test_node_that_starts_again_has_the_format_that_it_was_started_with() -> None:
    made = took(asked(leads(story(), ((0, 0),)), "0.10.2"), 1, "A")
    made.fault("kill", "A").started("A")
    made.broker("A", "member", session="0x3", replaced=None)
    leads(made, ((1, 0),))
    assert WITHOUT in said(appends(made, "A", -1, "leader"))[0]


def test_format_that_a_node_has_is_not_taken_up_again() -> None:
    found = [each.sentence for each in chain(took(took(story(), 1, "A"), 1, "A").done().ops)]
    assert any("A took up message format 1, which it had," in each for each in found)


def test_only_a_change_of_the_format_makes_epochs_uncertain() -> None:
    changed, other = asked(story(), "0.10.2").ops, asked(story(), "7", "retention.ms").ops
    assert (True, False) == (changes_format(changed), changes_format(other))
    formats = [setup.message_format for setup in map(setup_of, (changed, other)) if setup is not None]
    assert ["without_epochs", "with_epochs"] == formats


@pytest.mark.parametrize(("to", "wrong"), [(0, True), (1, False), (2, False), (3, True)])
def test_no_other_format_can_be_taken_up(to: int, wrong: bool) -> None:
    said = [text for text, _ in strange_values(PartOps(took(story(), to, "A").ops)) if "'format'" in text]
    assert ([f"has to {to}; expected 1, 2" in text for text in said]) == [True] * wrong
