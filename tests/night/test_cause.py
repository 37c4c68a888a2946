"""Causes are told apart by what proofs say, and not by nodes, offsets or times."""

from __future__ import annotations

from dataclasses import replace

import pytest

from harness.model import Anomaly, Kind, Verdict
from harness.night.cause import Cause, cause_of, without_names
from tests.search.results import result_of

CUT = (
    "m2 (offsets 0-1), written by A in epoch 0, acknowledged (acks=all) at 0.013 s, is gone: B truncated it at "
    "0.130 s to its high watermark (1), and was elected leader in epoch 2 at 0.140 s without it; B's final log "
    "holds 'm3.0' there; not permitted, as {}."
)
ONE = CUT.format("B truncated it at 0.130 s to its high watermark (1)")
TWO = CUT.format(
    "A truncated it at 0.430 s to its high watermark (2) and C truncated it at 0.431 s to its high watermark (2)"
).replace("m2", "p7.3")


def cause(kind: Kind, sentence: str, *more: Anomaly) -> Cause:
    one = Anomaly(kind=kind, topic="log", partition=0, sentence=sentence, checker="lost")
    return cause_of(replace(result_of(Verdict.INVALID), anomalies=(*more, one)))


def test_losses_that_nodes_cause_alike_have_one_cause_however_many_nodes_there_are() -> None:
    expected = Cause(kind="lost", checker="lost", text="a node truncated it to its high watermark")
    assert expected == cause(Kind.LOST, ONE) == cause(Kind.LOST, TWO)


def test_losses_that_come_about_differently_have_two_causes() -> None:
    unexcused = cause(Kind.LOST, CUT.format("no fault excuses A and C"))
    assert "no fault excuses a node" == unexcused.text
    assert cause(Kind.LOST, ONE) != unexcused


@pytest.mark.parametrize(
    ("sentence", "text"),
    [
        (
            "A waits for an epoch newer than 12, and none comes.",
            "a node waits for an epoch newer than N, and none comes",
        ),
        (
            "B, of the ISR, lacks what A committed at 0.516 s: it truncated it at 1.069 s to its end (3).",
            "it truncated it to its end",
        ),
        (
            "A and B differ at offsets 7-8: A holds 'm5.0' in epoch 1 and B holds 'p1.3'.",
            "a node holds … in epoch N and a node holds …",
        ),
    ],
)
def test_sentence_without_names_says_what_every_such_run_has(sentence: str, text: str) -> None:
    assert text == cause(Kind.STUCK, sentence).text


def test_cause_is_that_of_the_gravest_anomaly_and_of_losses_before_what_leads_to_them() -> None:
    oracle = Anomaly(kind=Kind.ORACLE_COMMITTED, topic="log", partition=0, sentence="Step 4: x.")
    stuck = Anomaly(kind=Kind.STUCK, topic="log", partition=0, sentence="A is stuck.")
    assert "lost" == cause(Kind.LOST, ONE, oracle, stuck).kind


def test_text_has_no_node_offset_record_or_time() -> None:
    text = without_names("C (leader in epoch 5), ISR A B C at 0.1 s: log-0 ends at 12, 'm1.0' and \"x\" are there")
    assert "a node, ISR nodes: N ends at N, … and … are there" == text
