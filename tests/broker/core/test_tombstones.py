"""How long a tombstone stays: the decision that the cleaners of files and of the simulator ask for."""

from __future__ import annotations

import pytest

from targets.broker.core.tombstones import TombstoneDelay

NOW_MS = 1_000


@pytest.mark.parametrize(
    ("horizon_ms", "over"), [(None, False), (NOW_MS - 1, True), (NOW_MS, True), (1_001, False)]
)
def test_batch_says_when_its_tombstones_may_go(horizon_ms: int | None, over: bool) -> None:
    """Source: KIP-534; Kafka, Cleaner.shouldRetainRecord."""
    delay = TombstoneDelay(100, NOW_MS, by_horizon=True)
    assert [over, over] == [delay.is_over(horizon_ms, in_old_file=old) for old in (False, True)]


@pytest.mark.parametrize("old", [False, True])
def test_without_the_rule_files_say_when_tombstones_may_go(old: bool) -> None:
    delay = TombstoneDelay(100, NOW_MS)
    assert [old, old] == [delay.is_over(horizon_ms, in_old_file=old) for horizon_ms in (None, 0)]


def test_delay_begins_once() -> None:
    """Source: KIP-534; KAFKA-8522, tombstones whose delay began again with every cleaning."""
    delay = TombstoneDelay(100, NOW_MS, by_horizon=True)
    assert [1_100, 50, 5_000] == [delay.horizon_of(horizon_ms) for horizon_ms in (None, 50, 5_000)]
    assert [None, 50] == [TombstoneDelay(100, NOW_MS).horizon_of(horizon_ms) for horizon_ms in (None, 50)]
    assert TombstoneDelay(100, by_horizon=True).horizon_of(None) is None


@pytest.mark.parametrize(
    ("latest_ms", "old"), [([], 0), ([5], 0), ([5, 104], 0), ([5, 105], 1), ([5, 5, 105, 204], 2), ([-1, -1], 0)]
)
def test_files_are_old_that_are_so_much_older_than_the_newest_clean_one(latest_ms: list[int], old: int) -> None:
    """Source: Kafka before KIP-534, Cleaner.doClean: deleteHorizonMs."""
    assert old == TombstoneDelay(100).old_files(latest_ms)
