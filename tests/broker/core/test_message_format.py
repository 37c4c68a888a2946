"""
Batches without an epoch: an older message format, logs that mix both formats, upgrade and downgrade.

`message_format` is a switch apart from the protocol: in format 1 a leader writes no epochs and keeps none.
"""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from targets.broker.core.epochs import recovered_cache
from targets.broker.core.messages import ErrorCode
from targets.broker.core.rules import PROTOCOLS
from tests.broker.core.asks import ends_at, epoch_ends, epoch_question, fetch_answer, leading, produce
from tests.broker.core.bench import Bench, MemoryLog, batch, log_of, recovery
from tests.broker.core.stage import Stage

WITH_EPOCHS = tuple(name for name, rules in PROTOCOLS.items() if rules.epochs)
ASKING_ANYWAY = ("kip101", "kip101-text")
OK = ErrorCode.NONE
U = (-1, -1)

Entries = Sequence[tuple[int, int]]


def epochs_of(log: MemoryLog) -> list[int]:
    return [item.leader_epoch for item in log.batches]


# --- the older format alone ------------------------------------------------------------------------------------
@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_leader_stamps_and_keeps_no_epochs_in_the_older_format(protocol: str) -> None:
    """Source: KIP-101, compatibility: a message format before v2 has no place for the epoch."""
    bench = leading(protocol, (-1, 2), epoch=3, message_format=1)
    bench.request(produce(batch(2)))
    log = bench.replica.log
    assert isinstance(log, MemoryLog)
    assert (epochs_of(log), log.epoch_writes, bench.replica.epochs.entries) == ([-1, -1], [], [])


@pytest.mark.parametrize("protocol", WITH_EPOCHS)
def test_leader_without_epochs_answers_as_its_release_does(protocol: str) -> None:
    """Source: KAFKA-6857: up to 1.1.1, its log end if the request has no epoch either; else "undefined"."""
    bench = leading(protocol, (-1, 4), epoch=3, message_format=1)
    assert epoch_ends(bench.request(epoch_question(2))) == [(OK, *U)]
    assert [(OK, -1, 4 if protocol in ASKING_ANYWAY else -1)] == epoch_ends(bench.request(epoch_question(-1)))


@pytest.mark.parametrize("protocol", WITH_EPOCHS)
def test_epochs_that_an_older_format_finds_are_forgotten_and_written_away(protocol: str) -> None:
    """Source: KAFKA-7897: the old epochs would not grow with the log, and would cover records of other epochs."""
    bench = Bench(protocol, message_format=1)
    log = log_of((0, 2), (3, 2))
    bench.start((log, recovery(log)))
    bench.command(leader=2, epoch=5)  # by then a broker has read its topics' settings
    assert (bench.replica.epochs.entries, log.epoch_writes) == ([], [([], True, 4)])


@pytest.mark.parametrize("protocol", WITH_EPOCHS)
def test_follower_in_the_older_format_copies_epochs_and_keeps_none(protocol: str) -> None:
    """Source: KIP-101: batches are appended verbatim, so a later format finds their epochs in the log."""
    bench = Bench(protocol, message_format=1)
    log = log_of((-1, 2))
    bench.start((log, recovery(log, high_watermark=2)))
    bench.command(leader=2, epoch=5)
    if protocol in ASKING_ANYWAY:
        bench.answer(ends_at(-1))
    bench.answer(fetch_answer(batch(2, base=2, epoch=5)))
    assert (epochs_of(log), bench.replica.epochs.entries, log.epoch_writes) == ([-1, 5], [], [])


# --- upgrade -----------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("protocol", WITH_EPOCHS)
def test_leader_of_a_mixed_log_knows_the_epochs_from_where_they_begin(protocol: str) -> None:
    """Source: KIP-101, migration; KAFKA-7415 for records before the first epoch."""
    bench = leading(protocol, (-1, 3), (5, 2), epoch=6)
    bench.request(produce(batch(1)))
    assert bench.replica.epochs.entries == [(5, 3), (6, 5)]
    below = (4, 3) if protocol in ("kip279-2.0.1", "kip320", "kip380") else U
    asked = [epoch_ends(bench.request(epoch_question(query)))[0] for query in (-1, 4, 5, 6)]
    assert [(OK, *U), (OK, *below), (OK, 5, 5), (OK, 6, 6)] == asked


@pytest.mark.parametrize("protocol", WITH_EPOCHS)
def test_follower_whose_log_is_old_falls_back_to_its_high_watermark_and_copies_the_rest(protocol: str) -> None:
    """
    Source:  KIP-101, compatibility. 2 holds three old records, one of them not its leader's, and a high watermark
             of 2; 1 has begun to stamp: 2 truncates to 2, and knows the epoch once it has copied its records.
    """
    stage = Stage(
        protocol,
        logs={1: [(-1, 1, 1), (-1, 1, 2), (-1, 1, 4), (6, 2, 5)], 2: [(-1, 1, 1), (-1, 1, 2), (-1, 1, 3)]},
        high_watermarks={1: 2, 2: 2},
    )
    stage.elect(1, epoch=6)
    assert (stage.cuts(2), stage.diverging(1, 2), stage.ends(1, 2)) == ([2], [], [5, 5])
    assert stage.replica(2).epochs.entries == [(6, 3)]


@pytest.mark.parametrize("protocol", WITH_EPOCHS)
def test_follower_of_a_mixed_log_walks_where_its_leader_has_epochs(protocol: str) -> None:
    """Source: KIP-101, migration: both have stamped since 3; 2's last two records are an older leader's."""
    stage = Stage(
        protocol,
        logs={1: [(-1, 3, 1), (5, 2, 2), (7, 1, 3)], 2: [(-1, 3, 1), (5, 2, 2), (5, 2, 4)]},
        high_watermarks={1: 3, 2: 3},
    )
    stage.elect(1, epoch=7)
    assert (stage.cuts(2), stage.diverging(1, 2), stage.ends(1, 2)) == ([5], [], [6, 6])


@pytest.mark.parametrize("protocol", WITH_EPOCHS)
def test_brokers_that_are_upgraded_one_by_one_lose_nothing(protocol: str) -> None:
    """Source: KIP-101, migration: 2 stamps first, under a leader that does not; then 2 leads; then 1 stamps."""
    stage = Stage(protocol, message_format=1, high_watermark_checkpoint_ms=100)
    stage.elect(1)
    stage.write(1, 100, acks=-1)
    for broker, other in ((2, 1), (1, 2)):
        stage.pass_ms(1_000)
        stage.crash(broker)
        stage.elect(other, isr=(other,))
        stage.write(other, 200 + broker, acks=-1)
        stage.settings["message_format"] = 2
        stage.start(broker)
        stage.pass_ms(2_000)
        assert sorted(stage.zk.state().isr) == [1, 2]
        stage.write(other, 300 + broker, acks=-1)
    assert stage.acknowledged() == [100, 202, 302, 201, 301]
    assert (stage.owing(), stage.diverging(1, 2), stage.ends(1, 2)) == ([], [], [5, 5])
    logs = [stage.replica(broker).log for broker in (1, 2)]
    assert [epochs_of(log) for log in logs if isinstance(log, MemoryLog)] == [[-1, -1, -1, 2, 2]] * 2


# --- downgrade ---------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("protocol", WITH_EPOCHS)
def test_leader_that_was_turned_back_leaves_its_followers_the_high_watermark(protocol: str) -> None:
    """Source: KAFKA-7897, KAFKA-7959: the leader no longer knows any epoch, so it cannot say where one ends."""
    bench = leading(protocol, (0, 2), (3, 2), epoch=4, message_format=1)
    assert epoch_ends(bench.request(epoch_question(3))) == [(OK, *U)]
    bench.request(produce(batch(1)))
    assert epoch_ends(bench.request(epoch_question(3))) == [(OK, *U)]


@pytest.mark.parametrize("protocol", WITH_EPOCHS)
def test_follower_forgets_its_epochs_when_a_batch_without_one_comes(protocol: str) -> None:
    """
    Source:  KAFKA-7897, Kafka's Log.append since 2.1.1: "we clear the epoch cache so that we revert to truncation
             by high watermark after the next leader election". Its last epoch would cover the records that follow.
    """
    bench = Bench(protocol)
    log = log_of((0, 2))
    bench.start((log, recovery(log)))
    bench.command(leader=2, epoch=4)
    bench.answer(ends_at(2, epoch=0))
    bench.answer(fetch_answer(batch(1, base=2, epoch=-1)))
    assert (epochs_of(log), bench.replica.epochs.entries) == ([0, -1], [])
    assert log.epoch_writes[-1] == ([], True, 2)  # before the append
    bench.answer(fetch_answer(batch(1, base=3, epoch=5)))
    assert bench.replica.epochs.entries == [(5, 3)]


@pytest.mark.parametrize("protocol", ["kip279", "kip279-2.0.1", "kip320", "kip380"])
def test_old_records_past_the_last_epoch_do_not_diverge_behind_it(protocol: str) -> None:
    """
    Source:  KAFKA-7897. All stamp except 1 and 4, which lead in turn and write at 1 what 2 and 3 copy, one each.

    3 then leads and stamps; it must not answer 2 that epoch 0 covers those records.
    """
    old, new = [(0, 1, 1), (-1, 1, 2)], [(0, 1, 1), (-1, 1, 3)]
    stage = Stage(protocol, (2, 3), logs={2: old, 3: new}, high_watermarks={2: 1, 3: 1})
    stage.elect(3, epoch=5)
    stage.write(3, 4)
    assert (stage.diverging(2, 3), stage.ends(2, 3)) == ([], [3, 3])


@pytest.mark.parametrize(
    ("file", "batches", "expected"),
    [
        pytest.param([], [(0, 0), (-1, 4)], [], id="the file was lost, and the last batches have none"),
        pytest.param([(0, 0)], [(0, 0), (-1, 4)], [], id="the file is older than the last batches"),
        pytest.param([], [(0, 0), (-1, 4), (5, 6)], [(5, 6)], id="epochs, none, epochs"),
        pytest.param([(5, 6)], [(0, 0), (-1, 4), (5, 6)], [(5, 6)], id="the file is right"),
        pytest.param([(5, 6)], [(-1, 0), (5, 6)], [(5, 6)], id="an upgrade, the file is right"),
        pytest.param([], [(-1, 0), (5, 6)], [(5, 6)], id="an upgrade, the file was lost"),
    ],
)
@pytest.mark.parametrize("protocol", WITH_EPOCHS)
def test_recovery_of_a_mixed_log_gives_what_was_kept_while_it_grew(
    protocol: str, file: Entries, batches: Entries, expected: Entries
) -> None:
    """Source: KAFKA-7897; KIP-101, footnote to step 3."""
    assert list(expected) == recovered_cache(PROTOCOLS[protocol], file, batches, 0, 8).entries
