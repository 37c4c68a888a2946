"""checkers/verdict.py: texts for users, and exact comparison with expectations."""

from __future__ import annotations

from dataclasses import replace

import pytest

from checkers import CHECKERS
from checkers.checker import check
from checkers.verdict import difference, found_text, records_of, verdict_of
from harness.model import Anomaly, Kind, UsageError, Verdict
from harness.scenario.expectation import Expected, parse_expectation
from tests.checkers.golden import scenario_1, scenario_2, scenario_2b, scenario_3
from tests.checkers.story import Story

RECORDS = {"m1": {0: 5, 1: 6, 2: 7}, "m2": {3: 10, 4: 11}, "m3": {3: 20, 4: 21, 5: 22}}


def _anomaly(
    kind: Kind, *ranges: tuple[int, int], nodes: str = "", epoch: int | None = None, **more: object
) -> Anomaly:
    return Anomaly(
        kind=kind,
        topic="t",
        partition=0,
        ranges=ranges,
        nodes=tuple(nodes),
        epoch=epoch,
        **more,  # type: ignore[arg-type]
    )


def _found(story: Story) -> list[Anomaly]:
    return check(story.ops, CHECKERS)


@pytest.mark.parametrize(
    ("story", "verdict", "text"),
    [
        (scenario_1("hw"), Verdict.INVALID, "lost m2"),
        (scenario_1("kip101"), Verdict.VALID, "none"),
        (scenario_2("hw"), Verdict.INVALID, "permitted m2, diverged m2 A B"),
        (scenario_2("kip101"), Verdict.PERMITTED, "permitted m2"),
        (scenario_2b(), Verdict.INVALID, "permitted m2, diverged m2 A B, stuck A"),
        (scenario_3("hw"), Verdict.INVALID, "permitted m2, diverged m2 A B, led-twice A epoch 0"),
        (scenario_3("kip101"), Verdict.PERMITTED, "permitted m2"),
    ],
)
def test_scenarios_of_kip_101_read_as_the_issue_has_them(story: Story, verdict: Verdict, text: str) -> None:
    """Source: KIP-101, Scenarios 1 and 2, and its returning leaders."""
    found, records = _found(story), records_of(story.ops)
    assert verdict == verdict_of(found)
    assert text == found_text(found, records)
    assert "" == difference(parse_expectation(text), found, records)


def test_twin_that_loses_is_a_mismatch_when_nothing_was_expected() -> None:
    """Source: KIP-101, Scenario 1."""
    story = scenario_1("hw")
    assert "unexpected: lost m2" == difference((), _found(story), records_of(story.ops))


def test_records_have_the_names_of_the_set_up_with_their_acknowledged_offsets() -> None:
    records = records_of(scenario_2("hw").ops)
    assert {"m1": [0, 1, 2], "m2": [3, 4], "m3": [3, 4, 5]} == {n: [*acked] for n, acked in records.items()}


@pytest.mark.parametrize(
    ("anomalies", "text"),
    [
        ([], "none"),
        ([_anomaly(Kind.LOST, (0, 5))], "lost m1, lost m2"),
        ([_anomaly(Kind.LOST, (0, 3)), _anomaly(Kind.LOST, (3, 5))], "lost m1, lost m2"),
        ([_anomaly(Kind.LOST, (1, 3), (11, 16), (20, 21))], "lost 1-2, lost 11-15, lost 20"),
        ([_anomaly(Kind.LOST, (3, 5), proof=(10, 11))], "lost m2"),
        ([_anomaly(Kind.LOST, (3, 6), proof=(20, 21, 22))], "lost m3"),
        ([_anomaly(Kind.LOST, (3, 5), proof=(20, 21))], "lost 3-4"),
        ([_anomaly(Kind.DIVERGED, (3, 6), nodes="BA")], "diverged m3 A B"),
        ([_anomaly(Kind.HOLE, (11, 21), nodes="B")], "hole 11-20 B"),
        ([_anomaly(Kind.LED_TWICE, nodes="A", epoch=0)], "led-twice A epoch 0"),
        ([_anomaly(Kind.TWO_LEADERS, nodes="AB", epoch=3)], "two-leaders A B epoch 3"),
        ([_anomaly(Kind.STUCK, nodes="B"), _anomaly(Kind.LOST, (9, 10), nodes="A", epoch=4)], "lost 9, stuck B"),
        ([_anomaly(Kind.STUCK)], "hang"),
        ([_anomaly(Kind.UNPROMISED)], "unpromised"),
        ([_anomaly(Kind.UNCHECKED), _anomaly(Kind.UNCHECKED)], "unchecked"),
    ],
)
def test_found_text_is_short_and_canonical(anomalies: list[Anomaly], text: str) -> None:
    assert text == found_text(anomalies, RECORDS)
    assert text == found_text(reversed(anomalies), RECORDS)


def test_expectation_reads_every_part_of_a_term() -> None:
    assert () == parse_expectation(" none ")
    assert (
        Expected(kind=Kind.DIVERGED, spans=((11, 15), (17, 17)), names=("m2",), nodes=("A", "B"), epoch=3),
        Expected(kind=Kind.STUCK, nodes=("A",)),
    ) == parse_expectation("diverged 11-15 17 m2 A B epoch 3, stuck A")


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "'' is not a kind; expected none, hang, or one of lost, permitted"),
        ("hang A", "'hang' is not a kind; expected none, hang, or one of"),
        ("loss m2", "'loss' is not a kind"),
        ("lost", "lost needs offsets"),
        ("stuck m2", "stuck is not about offsets"),
        ("lost m2, ", "'' is not a kind"),
        ("lost m2 epoch", "'epoch' is unknown; expected an offset"),
        ("lost 1..2", "'1..2' is unknown; expected an offset"),
    ],
)
def test_expectation_says_what_is_wrong_with_it(text: str, says: str) -> None:
    with pytest.raises(UsageError, match=says):
        parse_expectation(text)


LOST_M2 = _anomaly(Kind.LOST, (3, 5), nodes="A", epoch=1, proof=(10, 11))
DIVERGED = _anomaly(Kind.DIVERGED, (3, 5), nodes="AB")
LED_TWICE = _anomaly(Kind.LED_TWICE, nodes="A", epoch=0)


@pytest.mark.parametrize(
    ("text", "anomalies", "differs"),
    [
        ("lost m2", [LOST_M2], ""),
        ("lost 3-4", [LOST_M2], ""),
        ("lost 3-4 A epoch 1", [LOST_M2], ""),
        ("lost 3, lost 4", [LOST_M2], ""),
        ("diverged m2, lost m2, led-twice", [LOST_M2, LED_TWICE, DIVERGED], ""),
        ("none", [_anomaly(Kind.UNPROMISED, (3, 5))], ""),
        ("unpromised 3-4", [_anomaly(Kind.UNPROMISED, (3, 5))], ""),
        ("none", [LOST_M2], "unexpected: lost m2"),
        ("lost m2", [], "missing: lost m2"),
        ("lost 3", [LOST_M2], "unexpected: lost 4"),
        ("lost 3-5", [LOST_M2], "missing: lost 5"),
        ("permitted m2", [LOST_M2], "missing: permitted m2; unexpected: lost m2"),
        ("lost m2 B", [LOST_M2], "missing: lost m2; unexpected: lost m2"),
        ("lost m2 epoch 2", [LOST_M2], "missing: lost m2; unexpected: lost m2"),
        ("lost m3", [LOST_M2], "missing: lost m3; unexpected: lost m2"),
        ("diverged m2 A C", [DIVERGED], "missing: diverged m2 A C; unexpected: diverged m2 A B"),
        ("diverged m2", [DIVERGED, DIVERGED], "unexpected: diverged m2 A B"),
        ("led-twice A epoch 0, led-twice A", [LED_TWICE], "missing: led-twice A"),
        ("led-twice A epoch 1", [LED_TWICE], "missing: led-twice A epoch 1; unexpected: led-twice A epoch 0"),
        ("none", [_anomaly(Kind.UNCHECKED)], "unexpected: unchecked"),
        ("unpromised m1", [], "missing: unpromised m1"),
        ("hang", [_anomaly(Kind.STUCK)], ""),
        ("hang", [], "missing: hang"),
        ("none", [_anomaly(Kind.STUCK)], "unexpected: hang"),
        ("hang", [_anomaly(Kind.STUCK, nodes="A")], "missing: hang; unexpected: stuck A"),
        ("stuck, stuck A", [_anomaly(Kind.STUCK, nodes="A"), _anomaly(Kind.STUCK, nodes="B")], ""),
    ],
)
def test_difference_is_empty_only_when_found_is_exactly_what_was_expected(
    text: str, anomalies: list[Anomaly], differs: str
) -> None:
    assert differs == difference(parse_expectation(text), anomalies, RECORDS)


def test_difference_refuses_a_record_that_nobody_acknowledged() -> None:
    with pytest.raises(UsageError, match="lost m9: no record of that name was acknowledged; expected one of: m1,"):
        difference(parse_expectation("lost m9"), [], RECORDS)


def test_loss_of_very_many_records_is_told_without_their_names_and_in_bounded_text() -> None:
    lost = Anomaly(kind=Kind.LOST, topic="t", partition=0, ranges=((0, 300_000), (400_000, 400_001)))
    records = {"m1": dict.fromkeys(range(300_000), 1)}
    assert "lost 0-299999, lost 400000" == found_text([lost], records)
    scattered = replace(lost, ranges=tuple((10 * n, 10 * n + 3) for n in range(100_000)))
    text = found_text([scattered, replace(lost, kind=Kind.STUCK, ranges=(), nodes=("A",))], records)
    assert text.startswith("lost 0-2, lost 10-12, ")
    assert text.endswith("lost 490-492 and 99950 more ranges, stuck A")
