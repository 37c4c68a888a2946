"""checkers/checker.py: splitting by partition, missing sources, rules that crash."""

from __future__ import annotations

from collections.abc import Sequence

from checkers.checker import Checker, check, of_run, partitions
from harness.model import Anomaly, Kind, Op, Source
from tests.checkers.golden import RECORDS, scenario_2
from tests.checkers.story import Story


def _checker(rule: object = lambda _ops: [], *needs: tuple[Source, ...]) -> dict[str, Checker]:
    return {"it": Checker(name="it", needs=needs, rule=rule, doc="", source="")}  # type: ignore[arg-type]


def _crashes(ops: Sequence[Op]) -> list[Anomaly]:
    raise KeyError(f"{len(ops)} ops")


def test_partitions_give_each_its_own_ops_and_the_global_ones() -> None:
    story = Story(RECORDS).fault("kill", "A").started("A")
    for partition in (1, 2):
        story.broker("A", "append", topic="t", partition=partition, base=0, end=1, epoch=0, role="leader")
    parts = partitions(story.ops)
    assert {("t", 1): [0, 1, 2, 3, 4], ("t", 2): [0, 1, 2, 3, 5]} == {
        key: [op.index for op in ops] for key, ops in parts.items()
    }


def test_partitions_give_one_part_when_the_run_never_came_to_one() -> None:
    assert [("t", 0)] == [*partitions(Story(RECORDS).ops)]
    assert [("", -1)] == [*partitions([])]


def test_check_is_unchecked_when_the_rule_crashes() -> None:
    (found,) = check(Story(RECORDS).ops, _checker(_crashes))
    assert (Kind.UNCHECKED, "t", 0, "it") == (found.kind, found.topic, found.partition, found.checker)
    assert "Checker it could not judge t-0: KeyError: '1 ops'." == found.sentence


def test_check_is_unchecked_when_a_needed_source_is_missing() -> None:
    checkers = _checker(_crashes, (Source.LOG,), (Source.BROKER, Source.METADATA), (Source.RUNNER,))
    (found,) = check(Story(RECORDS).ops, checkers)
    assert "the history has nothing from log and broker or metadata" in found.sentence


def test_check_goes_on_when_one_rule_crashes() -> None:
    ghost = Anomaly(kind=Kind.LOST, topic="t", partition=0)
    both = _checker(_crashes) | {
        "next": Checker(name="next", needs=(), rule=lambda _ops: [ghost], doc="", source="")
    }
    assert [("it", Kind.UNCHECKED), ("next", Kind.LOST)] == [
        (found.checker, found.kind) for found in check(scenario_2("hw").ops, both)
    ]


def test_run_proves_nothing_only_if_none_of_its_partitions_proves_anything() -> None:
    nothing = Anomaly(kind=Kind.VACUOUS, topic="t", partition=0)
    lost = Anomaly(kind=Kind.LOST, topic="t", partition=1)
    assert [nothing, lost] == of_run([[nothing], [nothing, lost]])
    assert [lost] == of_run([[nothing, lost], []])
    assert [] == of_run([[], [nothing]])
    assert [] == of_run([])
