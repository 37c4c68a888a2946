"""A round that passes over quiet partitions is, event by event, the round that looks at each of them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest

from harness.search.random_runs import RandomRuns
from harness.search.simulated import sim_player, simulate
from targets import VIRTUAL_HOST as SIM
from targets.broker.core import quiet, round_answers
from targets.broker.core.messages import FetchRequest
from targets.broker.core.state import Core
from targets.broker_target.target import TARGET
from targets.simulator.engine.trace import Detail, Trace
from tests.kept import keep

# Of the last one a produce names two partitions, and the fetch that waits for both is woken by the first of them.
SEEDS = range(26)


def digest_of(seed: int, protocol: str) -> str:
    """Return the hash of all that happens in a random run."""
    trace = Trace(Detail.EVENTS)
    simulate(sim_player(TARGET, trace), RandomRuns(target="broker", variant=protocol, host=SIM).spec(seed))
    return trace.digest


def each_is_looked_at(_core: Core, _request: FetchRequest) -> None:
    """Return no session whose partitions might be quiet."""


def each_has_changed(_core: Core, _fetcher: Any, asks: Iterable[Any], *_: Any) -> Iterable[Any]:
    """Return all asks of a round."""
    return asks


@pytest.mark.parametrize("protocol", ["kip320", "kip380"])
@pytest.mark.parametrize("seed", keep(SEEDS, SEEDS[2], SEEDS[-1]))
def test_a_round_is_the_same_without_quiet_partitions(
    protocol: str, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Source: KIP-227: a session changes how much is said, not what is known."""
    passed_over = digest_of(seed, protocol)
    monkeypatch.setattr(quiet, "session_of", each_is_looked_at)
    monkeypatch.setattr(round_answers, "_but_unchanged", each_has_changed)
    assert digest_of(seed, protocol) == passed_over
