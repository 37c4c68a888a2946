"""A checkpoint that cannot be read is reported at the next start, and made anew from the log."""

from __future__ import annotations

import pytest

from harness.events import BrokerNote, Recovered
from harness.model import Kind, Verdict, events_of
from tests.nemesis.simulated import played, refused, seen

ON_BOTH = "produce m1 acks=all\nproduce m2 acks=all\nproduce m3 acks=all\nawait checkpoint B = end(m3)\n"
FAULT = "bit-rot-checkpoint"


@pytest.mark.parametrize("end", ["kill", "stop"])
def test_epochs_are_made_of_the_batches_when_their_file_cannot_be_read(end: str) -> None:
    expire = "expire B\n" if end == "kill" else ""
    steps = f"{end} B\n{FAULT} B\n{expire}await isr = A\nrestart B\nawait isr = A B\nawait sound B\n"
    result, ops = played(FAULT, ON_BOTH + steps)
    assert Verdict.VALID is result.verdict, result.anomalies
    assert "leader-epoch-checkpoint: 'q'; expected a whole number" in seen(ops, FAULT)
    (told,) = [told for _, told in events_of(ops, Recovered)]
    assert ("clean+epoch-checkpoint-unreadable", ((0, 0),)) == (told.reason, told.epochs)


def test_high_watermarks_that_cannot_be_read_are_0_and_come_back() -> None:
    """Under hw there are no epochs, so the flip is in the checkpoint of high watermarks."""
    steps = f"{ON_BOTH}kill B\n{FAULT} B\nexpire B\nrestart B\nawait isr = A B\nawait sound B\n"
    result, ops = played(FAULT, steps, "hw")
    assert Verdict.VALID is result.verdict, result.anomalies
    (told,) = [told for _, told in events_of(ops, Recovered)]
    assert ("clean+replication-offset-checkpoint-unreadable", 0) == (told.reason, told.high_watermark)
    assert ["replication-offset-checkpoint-unreadable"] == [
        note.text.partition(":")[0] for _, note in events_of(ops, BrokerNote)
    ]


def test_checkpoint_that_nobody_has_written_again_is_permitted_at_the_end() -> None:
    result, _ = played(FAULT, f"{ON_BOTH}{FAULT} B\n")
    assert [(Kind.BIT_ROT, ("B",))] == [(anomaly.kind, anomaly.nodes) for anomaly in result.anomalies]


def test_node_without_a_checkpoint_has_no_byte_to_flip() -> None:
    _, ops = played(FAULT, f"{FAULT} C\n")
    assert "C: no checkpoint with entries of log-0" in refused(ops, FAULT)
