"""Every step and condition prints the text that it was read from, and is a value."""

from __future__ import annotations

from decimal import Decimal

import pytest

from harness.model import UsageError
from harness.scenario.condition_types import CONDITIONS, Checkpoint, Controller
from harness.scenario.grammar import Statement
from harness.scenario.offsets import Mark
from harness.scenario.steps import MEANWHILE, STEPS, Await, Cut, Hold, Inject, Pass, Produce, ReleaseAll, Require
from tests.scenario.words import condition, step

STEP_TEXTS = """
produce m1 acks=all
produce m1 acks=0 codec=gzip
produce m2 acks=1 singly via A meanwhile for=1500ms
produce m2 acks=all refused for=12.50ms
read
read via B
delete records before end(m1)
remove orders-1
add orders-2
produce m1 acks=all of orders-1
pass 3.0ms
kill A
power-loss A B
hold answers fetch A -> B
hold requests question * -> B from end(m1)
hold requests fetch A -> * from 4
release all
release fetch A -> B
release answers command C -> A
drop fetch A -> B
cut A -> metadata close
cut A <-> B
delay answers fetch A -> B 0.020
double command * -> A
install kip320@kip101 on A B
install own on A
settle
format 2
heal all
heal A -> B
await leader = A
require isr = A B
"""
CONDITION_TEXTS = """
elected = A
elected = none
leader = A
led
isr = A B C
controller = C
controller != C
registered A
gone A
epoch rises
checkpoint A = end(m1)
checkpoint A >= 12
start A >= end(m1)
compacted A >= end(m1)
format A = 1
log A = start(m2)
settled A
acked m1
one-batch m1
heard A
held fetch A -> B
held answers question A -> B
asked A -> B
answered A -> B
lost A -> metadata
delayed fetch A -> B
doubled question A -> B
truncated A
stuck A
awaiting A
fenced A
sound A
unseen A
"""


@pytest.mark.parametrize("text", STEP_TEXTS.strip().splitlines())
def test_step_prints_the_words_that_it_was_read_from(text: str) -> None:
    assert text == str(step(text))


@pytest.mark.parametrize("text", CONDITION_TEXTS.strip().splitlines())
def test_condition_prints_the_words_that_it_was_read_from(text: str) -> None:
    assert text == str(condition(text))


def test_every_kind_is_among_them() -> None:
    steps = {type(step(text)) for text in STEP_TEXTS.strip().splitlines()}
    conditions = {type(condition(text)) for text in CONDITION_TEXTS.strip().splitlines()}
    assert (set(STEPS), set(CONDITIONS)) == (steps, conditions)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("produce m1 meanwhile acks=all", Produce("m1", acks=-1, outcome=MEANWHILE)),
        ("pass 12.5ms", Pass(Decimal("12.5"))),
        ("flush B A", Inject("flush", ("B", "A"))),
        ("hold answers fetch A -> B from end(m1)", Hold("answers", "fetch", "A", "B", Mark("end", "m1"))),
        ("cut A <-> B close", Cut("A", True, "B", close=True)),
        ("release all", ReleaseAll()),
        ("await checkpoint A >= 3", Await(Checkpoint("A", exactly=False, offset=3))),
        ("require controller != C", Require(Controller(holds=False, node="C"))),
    ],
)
def test_words_are_read_as_a_value(text: str, value: Statement) -> None:
    assert value == step(text)


@pytest.mark.parametrize("kind", [*STEPS, *CONDITIONS], ids=lambda kind: kind.__name__)
def test_kind_says_what_it_means(kind: type[Statement]) -> None:
    assert kind.__doc__ and not kind.__doc__.startswith(f"{kind.__name__}(")


def test_fault_is_a_word_only_where_the_table_has_it() -> None:
    with pytest.raises(UsageError, match="'kill A': 'kill'; expected one of produce"):
        step("kill A", faults=())
