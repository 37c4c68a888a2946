"""The words that the judge knows for the protocol's rules are those of the table of rules."""

from __future__ import annotations

from dataclasses import fields

from checkers.rules.values import RULES
from targets.broker.core.rules import PROTOCOLS, Rules, as_text, values_of


def test_judge_knows_every_value_of_every_rule() -> None:
    kinds = {field.name: type(getattr(next(iter(PROTOCOLS.values())), field.name)) for field in fields(Rules)}
    assert {name: {*values} for name, values in RULES.items()} == {
        name: {*values_of(kind)} for name, kind in kinds.items()
    }


def test_judge_knows_every_rule_that_a_run_records() -> None:
    for rules in PROTOCOLS.values():
        assert as_text(rules).keys() == RULES.keys()
