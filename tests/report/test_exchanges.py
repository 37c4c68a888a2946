"""Epoch questions, answers and truncations are paired as the fabric and the brokers recorded them."""

from __future__ import annotations

from dataclasses import replace

from harness.report.exchanges import exchanges_of, mentioned
from tests.report.samples import scenario1, scenario2b


def test_question_answer_and_cut_are_one_exchange() -> None:
    """Source: KIP-101, Scenario 2."""
    (exchange,) = exchanges_of(scenario2b("kip101")[1])
    assert exchange.asked == "A asks B: where does epoch 0 end? (v0)"
    assert exchange.answered == "at 1"
    assert exchange.did == "A cuts 2 → 1, to the leader's answer"


def test_cut_that_nobody_was_asked_about_stands_alone() -> None:
    first = exchanges_of(scenario1("hw")[1])[0]
    assert (first.asked, first.answered, first.did) == (
        "no question was asked",
        "–",
        "A cuts 3 → 1, to its own high watermark",
    )


def test_question_without_an_answer_and_answer_without_a_cut_are_told() -> None:
    _, ops = scenario2b("kip101")
    unanswered = [op for op in ops if op.f not in ("epoch-answer", "truncate")]
    assert [e.answered for e in exchanges_of(unanswered)] == ["no answer was seen"]
    uncut = [op for op in ops if op.f != "truncate"]
    assert [(e.answered, e.did) for e in exchanges_of(uncut)] == [("at 1", "no cut was reported")]


def test_undefined_answers_and_errors_are_told() -> None:
    _, ops = scenario2b("kip101")

    def answers(**value: int) -> list[str]:
        changed = [replace(o, value={**o.value, **value}) if o.f == "epoch-answer" else o for o in ops]
        return [e.answered for e in exchanges_of(changed)]

    assert answers(end_offset=-1) == ["undefined (-1)"]
    assert answers(error=6) == ["error 6"]
    assert answers(leader_epoch=0) == ["epoch 0 ends at 1"]


def test_exchange_names_the_lines_that_it_was_read_from() -> None:
    _, ops = scenario2b("kip101")
    exchanges = exchanges_of(ops)
    assert {"epoch-question", "epoch-answer", "truncate"} == {ops[i].f for i in mentioned(exchanges)}
