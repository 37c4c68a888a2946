"""Random walks over a stage: the newest protocols hold at every step, and broken ones are found."""

from __future__ import annotations

import pytest

from tests.broker.core.stage import rules_of
from tests.broker.core.walks import Walk

SEEDS = 25


@pytest.mark.parametrize("protocol", ["kip320", "kip380"])
@pytest.mark.parametrize("seed", range(SEEDS))
def test_newest_protocols_keep_what_was_acknowledged_and_do_not_diverge(protocol: str, seed: int) -> None:
    """Source: the TLA+ specification of Kafka's replication: only Kip320 holds StrongIsr."""
    walk = Walk(protocol, seed)
    wrong = walk.run()
    assert not wrong, f"{wrong}; Walk({protocol!r}, {seed}) after {walk.told}"


@pytest.mark.parametrize("broken", ["hw", "kip320 epochs=no", "kip380 fence_truncation_query=no"])
def test_broken_protocol_is_found_by_as_many_walks(broken: str) -> None:
    """
    The same walks find a rule that loses records or lets logs diverge.

    Source: the TLA+ specification of Kafka's replication.
    """
    base, *changes = broken.split()
    assert any(Walk(rules_of(base, *changes), seed).run() for seed in range(SEEDS))


def test_same_seed_walks_the_same_way() -> None:
    one, two = Walk("kip380", 3), Walk("kip380", 3)
    assert (one.run(), one.told) == (two.run(), two.told)
    assert len(one.told) > 30
    assert [repr(bench.effects) for bench in one.stage.benches.values()] == [
        repr(bench.effects) for bench in two.stage.benches.values()
    ]
