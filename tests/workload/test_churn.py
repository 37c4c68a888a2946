"""A churner's line is read as it is printed, and its script goes through generation after generation."""

from __future__ import annotations

from itertools import groupby, pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.model import UsageError
from harness.scenario.file import parse
from harness.scenario.text import first_step_line, text_of
from harness.workload.plan import ChurnPlan, Clients, Place
from harness.workload.script import ChurnAct, ChurnScript, Create, Delete, Write
from harness.workload.text import line_of, read_churner
from tests.faults import NEMESES

PLACES = (Place("log", 0), Place("side", 0))
PLAN = ChurnPlan(name="n1", topic="temp", nodes=("A", "B", "C"), partitions=2, replication=2, records=(1, 4))
HEAD = """title T
source chance
nodes A B replicas, C controller
records m1 1
settings min_isr=1
"""

spans = st.tuples(st.integers(1, 400), st.integers(0, 400)).map(lambda pair: (pair[0], sum(pair)))
plans = st.builds(
    ChurnPlan,
    name=st.from_regex(r"[a-z][a-z0-9]{0,5}", fullmatch=True),
    topic=st.just("temp"),
    nodes=st.permutations("ABC").map(tuple),
    partitions=st.integers(1, 100),
    replication=st.integers(1, 3),
    every_ms=spans,
    records=spans,
    within_ms=st.integers(1, 1000),
)


def acts(plan: ChurnPlan, seed: int, count: int = 400) -> list[ChurnAct]:
    script = ChurnScript(plan, seed)
    return [script.next()[1] for _ in range(count)]


@given(plans)
def test_a_churner_is_read_as_it_is_printed(plan: ChurnPlan) -> None:
    assert read_churner("here", line_of(plan), PLACES, "ABC") == plan


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("N temp A B", r"here: churner 'N'; expected a name of small letters and digits, such as p1"),
        ("n1 log A B", r"here: churner n1: topic 'log'; expected .* none of log, side"),
        ("n1 A B", r"here: churner n1: topic 'A'; expected a name of small letters and digits"),
        ("n1", r"here: churner n1: topic ''; expected a name"),
        ("n1 temp", r"here: churner 'n1 temp'; expected its topic and then its nodes, each once"),
        ("n1 temp A A", r"here: churner 'n1 temp A A'; expected its topic and then its nodes, each once"),
        ("n1 temp A X", r"here: churner n1: 'X'; expected nodes of A, B, C"),
        ("n1 temp A", r"here: churner n1: 1 nodes; expected at least 2, a node for each replica"),
        ("n1 temp A B partitions=0", r"here: churner n1: option 'partitions=0'; expected partitions=N, up to 100"),
        ("n1 temp A B acks=all", r"here: churner n1: option 'acks=all'; expected NAME=VALUE with a name of "),
    ],
)
def test_a_wrong_churner_names_the_word_and_what_was_expected(text: str, error: str) -> None:
    with pytest.raises(UsageError, match=error):
        read_churner("here", text, PLACES, "ABC")


def test_scenario_with_a_churner_is_read_as_it_is_printed_and_its_nodes_hold_logs() -> None:
    scenario = parse("T", f"{HEAD}churner n1 temp B C\n\nproduce m1 acks=all\n", "T", NEMESES)
    assert ("temp",) == scenario.clients.churned
    assert ("C", "A", "B") == scenario.stores
    assert parse("T", text_of(scenario), "T", NEMESES) == scenario
    assert first_step_line(0, scenario.clients) == scenario.steps[0].line


@pytest.mark.parametrize(
    ("lines", "error"),
    [
        (
            "churner n1 temp A B\nchurner n2 temp A B\n",
            "a second churner of topic 'temp'; expected each topic once",
        ),
        ("churner p1 temp A B\nproducer p1 log-0\n", "a second client 'p1'; expected each name once"),
        ("partition temp-0 A\nchurner n1 temp A B\n", "topic 'temp'; expected"),
    ],
)
def test_a_churner_shares_neither_its_name_nor_its_topic(lines: str, error: str) -> None:
    with pytest.raises(UsageError, match=error):
        parse("T", f"{HEAD}{lines}\nproduce m1 acks=all\n", "T", NEMESES)


def test_a_churner_creates_writes_and_deletes_and_its_values_tell_the_generation() -> None:
    kinds = [kind for kind, _ in groupby(type(act) for act in acts(PLAN, 3))]
    assert Create is kinds[0]
    assert {(Create, Write), (Create, Delete), (Write, Delete), (Delete, Create)} == {*pairwise(kinds)}
    values = [value for act in acts(PLAN, 3) if isinstance(act, Write) for value in act.values]
    assert len({*values}) == len(values) > 100
    generation = 0
    for before, act in zip([None, *acts(PLAN, 3)], acts(PLAN, 3), strict=False):
        generation += isinstance(act, Create) and not isinstance(before, Create)
        if isinstance(act, Write):
            assert all(value.startswith(f"n1.{generation}.") for value in act.values)


def test_a_churner_now_and_then_asks_twice_and_draws_its_replicas_among_its_nodes() -> None:
    found = acts(PLAN, 5)
    pairs = {(type(one), type(two)) for one, two in pairwise(found)}
    assert {(Create, Create), (Delete, Delete)} < pairs
    placed = {each for act in found if isinstance(act, Create) for each in act.assignments}
    assert {("A", "B"), ("B", "A"), ("A", "C"), ("C", "A"), ("B", "C"), ("C", "B")} == placed


def test_one_seed_and_plan_give_one_sequence() -> None:
    one, other = ChurnScript(PLAN, 7), ChurnScript(PLAN, 7)
    assert [one.next() for _ in range(50)] == [other.next() for _ in range(50)]
    assert acts(PLAN, 7, 50) != acts(PLAN, 8, 50)
    assert Clients(churners=(PLAN,))
