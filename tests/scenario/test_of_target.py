"""What a target says of shared scenarios: read with every word checked, and applied to its runs alone."""

from __future__ import annotations

import re

import pytest

from harness.model import UsageError
from harness.scenario.file import Scenario, parse
from harness.scenario.of_target import OfTarget, parse_of_target
from harness.scenario.variant import Variants
from nemesis import NEMESES

SHARED = """
title T
source S
nodes A B replicas, C controller
records m1 1..4, m2 1
produce m1 acks=all
# of two protocols
under kip101, kip380: await isr = A B
unless kip380: kill A
expect kip380: none
"""
TEXT = """
# what is for kip380 is for both
as 1, 1-early: kip380
scenario one
expect 1: none
expect 1-early, 1-early+ack=no: lost m1 A
scenario two
as 1: kip101
expect 1: hang
"""


def change(name: str, changes: object) -> dict[str, str]:
    return {"name": name, "changes": str(changes)}


OWN = Variants(protocols={"1": {}, "1-early": {}}, change=change)
NAMES = Variants(protocols={"kip101": {}, "kip380": {}}, change=change)


def scenario(name: str) -> Scenario:
    return parse(name, SHARED, f"{name}.txt", NEMESES)


def read(text: str = TEXT) -> OfTarget:
    return parse_of_target(text, "mine/expectations.txt", OWN, NAMES)


def test_target_has_its_own_expectations_and_no_others() -> None:
    one = read().applied(scenario("one"))
    assert {"1": "none", "1-early": "lost m1 A", "1-early+ack=no": "lost m1 A"} == one.expectations
    assert {"1": "hang"} == read().applied(scenario("two")).expectations
    assert {} == read().applied(scenario("three")).expectations
    assert {} == read("").applied(scenario("one")).expectations


def test_target_plays_the_steps_of_the_names_that_it_gives() -> None:
    one = read().applied(scenario("one"))
    assert ["produce m1 acks=all", "await isr = A B"] == [str(step.act) for step in one.under(("1",)).steps]
    two = read().applied(scenario("two"))
    assert ["produce m1 acks=all", "await isr = A B", "kill A"] == [
        str(step.act) for step in two.under(("1",)).steps
    ]
    plain = read("").applied(scenario("one"))
    assert ["produce m1 acks=all", "kill A"] == [str(step.act) for step in plain.under(("1",)).steps]


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("expect 1: none", "1: 'expect 1: none'; expected a line 'scenario NAME' before it"),
        ("scenario one\nexpect 2: none", "2: protocol '2'; expected one of 1, 1-early"),
        ("scenario one\nexpect 1", "2: 'expect 1'; expected 'expect VERSION[, VERSION]: OUTCOME'"),
        ("as 1 kip380", "1: 'as 1 kip380'; expected 'as VERSION[, VERSION]: PROTOCOL[, PROTOCOL]'"),
        ("as 1: kip38", "1: protocol 'kip38'; expected one of kip101, kip380. Did you mean 'kip380'?"),
        (
            "scenario one\nexpect 1: none\nexpect 1: hang",
            "3: 'expect 1: hang': 1 twice; expected each version once",
        ),
        ("scenario one\nscenario one", "2: 'scenario one'; expected 'scenario NAME', each once"),
        ("scenari one", "1: 'scenari one'; expected a line of as, expect, scenario. Did you mean 'scenario'?"),
        ("scenario one\nexpect 1: lost m3", "2: expectation 'lost m3': 'm3'; expected a group of records"),
        ("scenario one\nexpect 1: lots", "2: expectation 'lots': 'lots' is not a kind"),
    ],
)
def test_wrong_line_is_told_with_its_place(text: str, says: str) -> None:
    with pytest.raises(UsageError, match=re.escape(f"mine/expectations.txt:{says}")):
        read(text).applied(scenario("one"))


def test_words_that_make_a_version_send_a_group_twice_are_refused() -> None:
    twice = SHARED.replace(
        "unless kip380: kill A", "under kip101: produce m2 acks=1\nunder kip380: produce m2 acks=1"
    )
    both = "as 1: kip101, kip380\n"
    with pytest.raises(UsageError, match=r"mine/expectations.txt: scenario one:\d+: .*sends m2 already"):
        read(both).applied(parse("one", twice, "one.txt", NEMESES))
