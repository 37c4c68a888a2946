"""S1 and S2 on real brokers: the epoch request and answer that the fabric saw match KIP-101 and the truncation."""

from __future__ import annotations

import pytest

from harness.model import Op, Source
from tests.kept import keep
from tests.suite.conftest import PlayOne, judged, ops_of

pytestmark = pytest.mark.slow


def exchange(ops: list[Op], link: list[str]) -> tuple[int, int]:
    """Return the first epoch exchange without an error on a link: (requested epoch, end offset of the answer)."""
    said = [op for op in ops if op.source is Source.FABRIC and op.value.get("link") == link]
    answer = next(op for op in said if op.f == "epoch-answer" and op.value["error"] == 0)
    question = [op for op in said if op.f == "epoch-question" and op.index < answer.index][-1]
    return int(question.value["leader_epoch"]), int(answer.value["end_offset"])


def first_cut_after(ops: list[Op], node: str, after: int) -> tuple[int, int, str]:
    """Return a node's next truncation after an op: (log end before it, log end after it, reason)."""
    cut = next(op for op in ops if op.index > after and op.process == node and op.f == "truncate")
    return int(cut.value["from"]), int(cut.value["end"]), str(cut.value["reason"])


def restarted(ops: list[Op], node: str) -> int:
    """Return the index of the op of a node's last start."""
    return [op.index for op in ops if op.process == node and op.f == "started"][-1]


@pytest.mark.parametrize("protocol", keep(["kip101", "kip101-text"], "kip101"))
def test_s1_the_leader_answers_its_log_end_and_nothing_is_cut(play_one: PlayOne, protocol: str) -> None:
    """Source: KIP-101, Scenario 1: "the LeaderEpochResponse returns offset 2 [...] m2 is not lost" (S1)."""
    played = play_one("kip101-1", protocol, name="-s1")
    ops, counts = ops_of(played), played.spec.draw.counts
    end = counts["m1"] + counts["m2"]
    started = [op.index for op in ops if op.process == "A" and op.f == "started"][1]
    after = [op for op in ops if op.index > started]
    assert (0, end) == exchange(after, ["A", "B"])
    assert (end, end, "epoch-answer") == first_cut_after(ops, "A", started)
    assert "none" == judged(played).found


@pytest.mark.parametrize("protocol", keep(["kip101", "kip101-text"], "kip101"))
def test_s2_the_leader_answers_where_its_epoch_began_and_the_orphan_is_cut(
    play_one: PlayOne, protocol: str
) -> None:
    """Source: KIP-101, Scenario 2: "This returns the first offset of LG1, which is offset 1" (S2)."""
    played = play_one("kip101-2", protocol, name="-s2")
    ops, counts = ops_of(played), played.spec.draw.counts
    orphan, end = counts["m1"], counts["m1"] + counts["m2"]
    started = restarted(ops, "A")
    assert (0, orphan) == exchange([op for op in ops if op.index > started], ["A", "B"])
    assert (end, orphan, "epoch-answer") == first_cut_after(ops, "A", started)
    assert "permitted m2" == judged(played).found


def test_without_root_unflushed_bytes_are_lost_all_the_same(play_one: PlayOne) -> None:
    """The watermark tier shows the anomalies of scenario 2, as the loss of a real page cache does."""
    played = play_one("kip101-2", "hw", name="-watermark", power_tier="watermark")
    assert ("watermark", "permitted m2, diverged m2 A B") == (played.run.power_tier, judged(played).found)
