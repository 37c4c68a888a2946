"""
Whole traces of elections, writes and fetches that break a protocol: KAFKA-6361, and the shortest ones (M1, M2).

No broker fails in any of them: leadership moves, and commands or answers that arrive too late do the harm.
"""

from __future__ import annotations

import pytest

from targets.broker.core.rules import PROTOCOLS, Rules
from tests.broker.core.stage import Stage

MENDED = ("kip279-2.0.1", "kip320", "kip380")
V11 = ("kip101", "kip101-text")


# --- KAFKA-6361 by elections ------------------------------------------------------------------------------------
def elected_back_and_forth(rules: Rules | str, n: int) -> Stage:
    """Return a stage where A (1) leads epoch 1, B (2) epoch 2, A epoch 3, no broker fails, and links are late."""
    stage = Stage(rules, (1, 2))
    stage.elect(1, epoch=1)
    stage.write(1, 1, 11, acks=-1)
    stage.pass_ms(1_000)
    stage.deafen(2, 1)
    stage.write(1, 2, 10)  # 11 to 20, on A alone
    stage.mute(1, 2)
    stage.mute(2, 1)
    stage.elect(2)
    stage.write(2, 3, n - 10)  # 11 to n, on B alone
    stage.elect(1)
    stage.write(1, 4, 10)
    stage.release()
    stage.pass_ms(2_000)
    return stage


@pytest.mark.parametrize("n", [15, 20, 25])
@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_kafka_6361_by_elections_ends_as_its_three_cases_say(n: int, protocol: str) -> None:
    """Source: KAFKA-6361. Under `hw` A truncates at once, without asking, and leads from 11: nothing diverges."""
    stage = elected_back_and_forth(protocol, n)
    ends = {"hw": 21, **dict.fromkeys(["kip101", "kip101-text", "kip279", *MENDED], 31)}
    assert (stage.acknowledged(), stage.ends(1)) == ([1], [ends[protocol]])
    expected = (
        range(11, min(n + 1, 21)) if protocol in V11 and n < 25 else range(11, 21 if protocol in V11 else 11)
    )
    assert list(expected) == stage.diverging(1, 2)
    assert (protocol in V11 and n == 15) == stage.is_stopped(2)
    assert (protocol in V11 and n == 25) == (11 not in stage.content(2))


# --- shortest counterexamples ------------------------------------------------------------------------------------
def m1(rules: Rules | str) -> Stage:
    """
    Return M1's stage, whose brokers 0 and 1 are 1 and 2 here.

    0 leads epoch 0 and 1 copies id0; 1 leads epoch 1 and follows 0 again in epoch 2.
    """
    stage = Stage(rules, (1, 2))
    stage.elect(1)
    stage.write(1, 100, acks=-1)
    assert (stage.acknowledged(), stage.replica(2).high_watermark) == ([100], 0)
    stage.mute(1, 2)
    stage.mute(2, 1)
    stage.elect(2, tell=[2])
    stage.elect(1, tell=[2])
    return stage


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_m1_committed_record_leaves_a_member_of_the_isr_under_the_old_rule(protocol: str) -> None:
    """Source: the shortest trace that breaks `hw` (M1): the high watermark of a follower is one fetch late."""
    assert ({} if protocol == "hw" else {0: 100}) == m1(protocol).content(2)


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("writes_again", [False, True])
def test_m2_two_leaders_of_two_brokers_diverge_at_their_first_record_under_one_answer(
    protocol: str, writes_again: bool
) -> None:
    """
    Source:  the shortest trace that breaks `kip101` (M2): 1 writes in epoch 0 and 2 in epoch 1, each alone and
             both as leader; 1 leads epoch 2. Asked for epoch 1, it returns where epoch 2 begins: 1. In 2.0.0 that
             is KAFKA-7415's second half.

    Unless it wrote in epoch 2, 1 as shipped knows no later epoch and answers "undefined": 2 truncates everything.
    """
    stage = Stage(protocol, (1, 2))
    stage.mute(1, 2)
    stage.mute(2, 1)
    stage.elect(1, tell=[1])
    late = stage.elect(2, tell=[2])
    stage.write(1, 100)
    again = stage.elect(1, tell=[1])
    stage.write(2, 101)
    if writes_again:
        stage.write(1, 102)
    assert late.leader_epoch == 1
    stage.tell(2, again)
    stage.release()
    diverges = protocol == "kip101-text" or (writes_again and protocol in ("kip101", "kip279"))
    assert ([0] if diverges else []) == stage.diverging(1, 2)
    assert stage.ends(1) == stage.ends(2)
