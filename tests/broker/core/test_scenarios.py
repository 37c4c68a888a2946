"""
The issues' scenarios as numbers: a leader's log, a follower's log, and where the follower truncates.

S numbers the scenarios: one truncation offset for each protocol, run through the cores of a leader and a
follower up to the fetches, so that the resulting logs are checked too. `kip101-text` follows its own rules: it
assigns on lead as 2.0.1 does, and otherwise answers as 0.11.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import pytest

from targets.broker.core.messages import ErrorCode, FetchRequest
from targets.broker.core.rules import PROTOCOLS, FetchSessions, Rules
from tests.broker.core.asks import fetch, fetched
from tests.broker.core.stage import Span, Stage, rules_of

MENDED = ("kip279-2.0.1", "kip320", "kip380")
V11 = ("kip101", "kip101-text")


@dataclass(frozen=True, kw_only=True)
class Scenario:
    """Broker 1 leads `leader` in this epoch; broker 2 starts to follow with `follower` at the high watermark."""

    leader: Sequence[Span]
    epoch: int
    follower: Sequence[Span]
    high_watermark: int


S1 = Scenario(leader=[(0, 1, 1), (0, 1, 2)], epoch=0, follower=[(0, 1, 1), (0, 1, 2)], high_watermark=1)
S2 = Scenario(leader=[(0, 1, 1), (1, 1, 3)], epoch=1, follower=[(0, 1, 1), (0, 1, 2)], high_watermark=2)
S4 = Scenario(leader=[(0, 1, 1), (2, 1, 3)], epoch=2, follower=[(1, 1, 2)], high_watermark=0)
S5 = Scenario(leader=[(0, 1, 1)], epoch=2, follower=[(0, 1, 1), (1, 1, 2)], high_watermark=0)
S8 = Scenario(leader=[(1, 1, 3), (3, 1, 4)], epoch=3, follower=[(0, 1, 1), (2, 1, 2)], high_watermark=2)


def kafka_6361(n: int) -> Scenario:
    """Return KAFKA-6361's case n: A leads epoch 3 from 21; B wrote 11 to n in epoch 2, which A does not know."""
    return Scenario(
        leader=[(1, 11, 1), (1, 10, 2), (3, 10, 4)],
        epoch=3,
        follower=[(1, 11, 1), (2, n - 10, 3)],
        high_watermark=11,
    )


def play(scenario: Scenario, rules: Rules | str) -> Stage:
    """Elect the leader, and let the follower ask, truncate and fetch until nothing more happens."""
    stage = Stage(
        rules,
        logs={1: scenario.leader, 2: scenario.follower},
        high_watermarks={1: scenario.high_watermark, 2: scenario.high_watermark},
    )
    stage.elect(1, epoch=scenario.epoch)
    return stage


ANSWERS: list[tuple[str, Scenario, dict[str, int]]] = [
    ("S1", S1, {"hw": 1, **dict.fromkeys([*V11, "kip279", *MENDED], 2)}),
    ("S2", S2, {"hw": 2, **dict.fromkeys([*V11, "kip279", *MENDED], 1)}),
    ("S3a", kafka_6361(15), {"hw": 11, **dict.fromkeys(V11, 16), **dict.fromkeys(["kip279", *MENDED], 11)}),
    ("S3b", kafka_6361(20), {"hw": 11, **dict.fromkeys(V11, 21), **dict.fromkeys(["kip279", *MENDED], 11)}),
    ("S3c", kafka_6361(25), {"hw": 11, **dict.fromkeys(V11, 21), **dict.fromkeys(["kip279", *MENDED], 11)}),
    ("S4", S4, {"hw": 0, **dict.fromkeys([*V11, "kip279"], 1), **dict.fromkeys(MENDED, 0)}),
    ("S5", S5, {**dict.fromkeys(["hw", "kip101", "kip279"], 0), **dict.fromkeys(["kip101-text", *MENDED], 1)}),
    # The walk of 2.0.0 falls back to the offset that it has reached, not to a high watermark below that.
    (
        "S8, HW 0",
        replace(S8, high_watermark=0),
        {"hw": 0, **dict.fromkeys([*V11, "kip279"], 1), **dict.fromkeys(MENDED, 0)},
    ),
    ("S8", S8, {"hw": 2, **dict.fromkeys([*V11, "kip279"], 1), **dict.fromkeys(MENDED, 0)}),
]


@pytest.mark.parametrize("case", ANSWERS, ids=lambda case: case[0])
@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_follower_cuts_where_the_scenario_says(case: tuple[str, Scenario, dict[str, int]], protocol: str) -> None:
    """Source: KIP-101, Scenario 1, Scenario 2, Appendix; KAFKA-6361; KAFKA-7415."""
    _, scenario, expected = case
    assert expected[protocol] == play(scenario, protocol).cuts(2)[-1]


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_s2_logs_agree_afterwards_but_under_the_old_rule(protocol: str) -> None:
    """Source: KIP-101, Scenario 2."""
    stage = play(S2, protocol)
    assert ([1] if protocol == "hw" else []) == stage.diverging(1, 2)
    assert stage.ends(1, 2) == [2, 2]


@pytest.mark.parametrize(
    ("n", "end", "diverging", "stopped"),
    [
        pytest.param(15, 16, range(11, 16), True, id="n<20: stuck, and 11 to n diverge"),
        pytest.param(20, 31, range(11, 21), False, id="n=20: 11 to 20 diverge, and nothing shows it"),
        pytest.param(25, 31, range(11, 21), False, id="n>20: a hole at 11 to 20"),
    ],
)
@pytest.mark.parametrize("protocol", V11)
def test_s3_one_answer_leaves_the_three_ends_of_kafka_6361(
    n: int, end: int, diverging: range, stopped: bool, protocol: str
) -> None:
    """Source: KAFKA-6361; its third case is not fine, as Kafka 1.1.1 shows: it removes all of batch 11 to 25."""
    stage = play(kafka_6361(n), protocol)
    assert (stage.replica(2).log.end_offset, stage.is_stopped(2)) == (end, stopped)
    assert list(diverging) == stage.diverging(1, 2)
    assert (n == 25) == (15 not in stage.content(2))


@pytest.mark.parametrize("n", [15, 20, 25])
@pytest.mark.parametrize("protocol", ["kip279", *MENDED])
def test_s3_epoch_walk_ends_where_both_logs_agree(n: int, protocol: str) -> None:
    """Source: KIP-279: the leader answers with epoch 1, which sends the follower back before its epoch 2."""
    stage = play(kafka_6361(n), protocol)
    assert (stage.diverging(1, 2), stage.ends(1, 2), stage.is_stopped(2)) == ([], [31, 31], False)
    assert stage.content(1) == stage.content(2)


@pytest.mark.parametrize("n", [15, 20, 25])
def test_s3_log_that_ends_where_its_last_batch_does_heals_the_third_case_alone(n: int) -> None:
    """Source: KAFKA-6361, its third case, under the rule leo_after_cut=physical."""
    stage = play(kafka_6361(n), rules_of("kip101", "leo_after_cut=physical"))
    assert (n == 25) == (stage.diverging(1, 2) == [])


DIVERGING: list[tuple[str, Scenario, dict[str, list[int]]]] = [
    ("S4", S4, {"kip101": [0], "kip101-text": [0], "kip279": [0]}),
    ("S8", S8, {"hw": [0, 1], "kip101": [0], "kip101-text": [0], "kip279": [0]}),
]


@pytest.mark.parametrize("case", DIVERGING, ids=lambda case: case[0])
@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_first_record_diverges_for_ever_up_to_2_0_0(
    case: tuple[str, Scenario, dict[str, list[int]]], protocol: str
) -> None:
    """Source: KAFKA-7415, its second half (S4; `hw` has a low high watermark there); KIP-101, appendix (S8)."""
    _, scenario, diverging = case
    assert diverging.get(protocol, []) == play(scenario, protocol).diverging(1, 2)


@pytest.mark.parametrize("protocol", MENDED)
def test_s5_is_cut_to_the_high_watermark_while_the_epoch_is_unassigned(protocol: str) -> None:
    """Source: KAFKA-7415, its first half: offset 0 is committed, and a late high watermark truncates it."""
    assert play(S5, rules_of(protocol, "epoch_assigned_on_lead=no")).cuts(2)[-1] == 0


@pytest.mark.parametrize("protocol", ["kip101", "kip279"])
def test_s5_record_in_the_new_epoch_assigns_it_too_late_or_just_in_time(protocol: str) -> None:
    """Source: KAFKA-7415, S5': the leader has appended in epoch 2, so it knows a later epoch and answers 1."""
    s5 = Scenario(leader=[(0, 1, 1), (2, 1, 3)], epoch=2, follower=S5.follower, high_watermark=0)
    assert play(s5, protocol).cuts(2)[-1] == 1


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_s6_follower_that_missed_an_epoch_of_the_same_leader_asks_by_rule(protocol: str) -> None:
    """
    Source:  KAFKA-7164. 1 leads epoch 0 and writes at 0, 3 copies it; 2 leads epoch 1 with an empty log, and 1
             truncates; 1 leads epoch 2 and writes at 0 again. 3 learns of epochs 0 and 2, from the same leader.
    """
    stage = Stage(protocol, (1, 2, 3))
    stage.mute(2, 1)
    stage.elect(1)
    stage.write(1, 100)
    assert stage.ends(1, 2, 3) == [1, 0, 1]
    stage.elect(2, tell=[2, 1])
    assert stage.ends(1) == [0]
    missed = stage.elect(1, tell=[1, 2])
    stage.write(1, 101)
    before = len(stage.cuts(3))
    stage.tell(3, missed)
    assert ([] if protocol not in MENDED else [0]) == stage.cuts(3)[before:]
    assert ([0] if protocol not in MENDED else []) == stage.diverging(1, 3)


def zombie(rules: Rules | str) -> Stage:
    """
    Return S7's stage up to the zombie's fetch, with 1 and 2 holding 0 to 49 of epoch 0, and 3 holding 0 to 39.

    3 leads epoch 1 from 40 to 59; 1 truncates, follows, and leads epoch 2. 2 learns of neither epoch; its fetch at
    50, in epoch 0, then reaches 1.
    """
    old = [(0, 40, 1)]
    stage = Stage(rules, (1, 2, 3), logs={1: old, 2: old, 3: old}, high_watermarks=dict.fromkeys((1, 2, 3), 40))
    stage.elect(1, epoch=0)
    stage.deafen(3, 1)
    stage.write(1, 10, 10)
    assert stage.ends(1, 2, 3) == [50, 50, 40]
    stage.hold(2, 1, FetchRequest)
    stage.elect(3, isr=(1, 3), tell=[3, 1])
    assert stage.ends(1) == [40]
    stage.write(3, 11, 10, acks=-1)
    stage.write(3, 12, 10, acks=-1)
    stage.elect(1, tell=[1, 3])
    stage.pass_ms(1_500)  # the zombie learned that 1 does not lead, and retries
    assert stage.acknowledged() == [11, 12]
    stage.release(2)
    return stage


def is_fenced(protocol: str) -> bool:
    """Return True if a fetch within a session is refused for its epoch."""
    rules = PROTOCOLS[protocol]
    return rules.fence_fetch and rules.fetch_sessions is not FetchSessions.EPOCH_BLIND


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_s7_zombies_fetch_is_refused_by_the_fence_alone(protocol: str) -> None:
    """
    Source:  KAFKA-6880: the fetched records fit its log end, and no later epoch request finds the difference.
             KAFKA-9338: within its session the zombie is not refused, but with a fetch outside of it.
    """
    stage = zombie(protocol)
    fenced = is_fenced(protocol)
    assert (50 if fenced else 60) == stage.replica(2).log.end_offset
    assert fenced == stage.is_stopped(2)
    again = fetched(stage.benches[1].request(fetch(50, replica=2, epoch=0)))
    expected = ErrorCode.FENCED_LEADER_EPOCH if PROTOCOLS[protocol].fence_fetch else ErrorCode.NONE
    assert [expected] == [result.error for result in again]


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_s7_zombie_that_returns_keeps_its_middle_but_where_it_was_fenced(protocol: str) -> None:
    """
    Source:  KAFKA-6880. Up to 2.0.0 the zombie does not truncate, because its leader is the same; 2.0.1 asks, and
             is answered 60, though 40 to 49 differ. Only a zombie that was refused at 50 truncates to 40.
    """
    stage = zombie(protocol)
    before = len(stage.cuts(2))
    stage.elect(1)
    expected = {"kip279-2.0.1": [60], "kip320": [60], "kip380": [40]}
    assert expected.get(protocol, []) == stage.cuts(2)[before:]
    assert ([] if is_fenced(protocol) else list(range(40, 50))) == stage.diverging(1, 2)
    assert stage.ends(1, 2) == [60, 60]


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_s7_questions_find_no_fault_with_a_log_that_differs_in_the_middle(protocol: str) -> None:
    """Source: KAFKA-6880: a zombie that did fetch 50 to 59 asks for its last epoch only, so none truncates."""
    s7 = Scenario(
        leader=[(0, 40, 1), (1, 10, 11), (1, 10, 12)],
        epoch=2,
        follower=[(0, 40, 1), (0, 10, 10), (1, 10, 12)],
        high_watermark=60,
    )
    stage = play(s7, protocol)
    assert (stage.cuts(2)[-1], stage.diverging(1, 2)) == (60, list(range(40, 50)))
