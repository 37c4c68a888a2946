"""A replica that forgets the producers of what is left of its log is named; one that knows them is not."""

from __future__ import annotations

from dataclasses import replace

import pytest

from targets.broker.core.messages import ProducePartition
from targets.broker.core.rules import LeoAfterCut
from targets.broker.core.sequences import Sequences
from targets.broker.core.state import State
from targets.simulator.broker.oracles import Rule
from targets.simulator.broker.oracles.numbered import Numbered
from targets.simulator.broker.storage.records import make_batch
from targets.simulator.broker.world import World
from tests.simulator.broker.oracles.planted import log_of, post, produce, replica_of, sentence_of, watched
from tests.simulator.worlds import TP

PRODUCER = 7


def _produce_numbered(world: World, sequence: int) -> None:
    batch = make_batch([f"n{sequence}"], timestamp_ms=1)
    batch = replace(batch, producer_id=PRODUCER, producer_epoch=0, base_sequence=sequence)
    part = ProducePartition(tp=TP, batches=(batch,))
    post(world, "A", replace(produce("n"), partitions=(part,)))
    world.run(0.2)


def _state(world: World) -> State:
    broker = world.nodes["B"].broker
    assert broker is not None
    return broker.state


@pytest.mark.parametrize(("forgets", "says"), [
    (False, ""),
    (True, "B does not know the batch at offset 3 of log-0, the last one of producer 7 in its log"),
])  # fmt: skip
def test_producer_of_what_a_cut_has_left_must_be_known(says: str, *, forgets: bool) -> None:
    world, _ = watched()
    _produce_numbered(world, 0)
    _produce_numbered(world, 1)
    numbered, state, log = Numbered(), _state(world), log_of(world, "B")
    assert numbered.wrong("B", TP, state, log) == ""
    log.truncate_to(4, LeoAfterCut.TARGET)
    replica_of(world, "B").sequences = Sequences() if forgets else Sequences.of(log.batches)
    assert says == numbered.wrong("B", TP, state, log)


@pytest.mark.parametrize("forgets", [False, True])
def test_producer_must_be_known_after_a_start(monkeypatch: pytest.MonkeyPatch, *, forgets: bool) -> None:
    world, oracles = watched()
    _produce_numbered(world, 0)
    if forgets:
        monkeypatch.setattr(Sequences, "of", lambda _: Sequences())
    world.nodes["B"].kill()
    world.nodes["B"].boot()
    world.run(0.5)
    assert forgets is ("B does not know the batch at offset 3 of log-0" in sentence_of(oracles, Rule.DUE))
