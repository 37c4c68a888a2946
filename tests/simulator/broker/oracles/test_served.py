"""What a consumer is served is committed, whole and in order, and comes from a leader."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from targets.broker.core import fetches
from targets.broker.core.messages import Batch, ErrorCode
from targets.simulator.broker.oracles import Oracles, Rule
from targets.simulator.broker.storage.records import make_batch, placed
from targets.simulator.broker.world import World
from tests.simulator.broker.oracles.planted import fetch, patch, post, produce, sentence_of, watched
from tests.simulator.worlds import TP


def watched_with_a_tail() -> tuple[World, Oracles]:
    """Return a watched world whose leader has a record that is not committed: nobody fetches it."""
    world, oracles = watched()
    for name in ("B", "C"):
        world.links.cut(name, "A", close=True)
    post(world, "A", produce("tail", acks=1))
    return world, oracles


def test_sound_leader_serves_up_to_its_high_watermark() -> None:
    world, oracles = watched_with_a_tail()
    for offset in range(5):
        post(world, "A", fetch(offset))
    assert {} == oracles.violations


def test_record_above_the_high_watermark_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    world, oracles = watched_with_a_tail()
    patch(monkeypatch, fetches, "_limit", lambda _original, replica, _request: replica.log.end_offset)
    post(world, "A", fetch(0))
    found = oracles.violations[Rule.SERVED, TP]
    assert (("A",), 3) == (found.nodes, found.offset)
    assert "serves offset 3, not below the high watermark that it tells, 3" in found.sentence


def test_high_watermark_that_is_not_the_leaders_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def ends(original: Any, core: Any, request: Any, part: Any, *args: Any, **named: Any) -> Any:
        result = original(core, request, part, *args, **named)
        return replace(result, high_watermark=core.state.replicas[part.tp].log.end_offset)

    world, oracles = watched_with_a_tail()
    patch(monkeypatch, fetches, "_read", ends)
    post(world, "A", fetch(0))
    assert "tells the high watermark 4, and its own is 3" in sentence_of(oracles, Rule.SERVED)


def test_broker_that_serves_and_does_not_lead_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def anyone(_original: Any, core: Any, _request: Any, part: Any) -> Any:
        return core.state.replicas[part.tp], ErrorCode.NONE

    world, oracles = watched()
    patch(monkeypatch, fetches, "_refusal", anyone)
    post(world, "B", fetch(0, replica=2))
    assert {} == oracles.violations, "a follower's fetch is no consumer's"
    post(world, "B", fetch(0))
    assert "B (follower of A in epoch 0), asked by a consumer for offset 0, serves it and does not lead" in (
        sentence_of(oracles, Rule.SERVED)
    )


def other(batch: Batch) -> Batch:
    values = [f"stray{offset}" for offset in range(batch.last_offset - batch.base_offset + 1)]
    return placed(make_batch(values, timestamp_ms=1), batch.base_offset, batch.leader_epoch)


@pytest.mark.parametrize(("offset", "given", "sentence"), [
    (2, lambda log: log.batches, "serves offsets 0 to 1 where 2 was due"),
    (0, lambda log: log.batches[1:], "leaves out m1.0, committed at offset 0"),
    (1, lambda log: log.batches[1:], "leaves out m1.1, committed at offset 1"),
    (0, lambda log: [*log.batches, log.batches[0]], "serves offsets 0 to 1 where 3 was due"),
    (0, lambda log: [log.batches[0], log.batches[0]], "serves offsets 0 to 1 where 2 was due"),
    (0, lambda log: [other(log.batches[0])], "serves stray0 at offset 0, where m1.0 is committed"),
])  # fmt: skip
def test_batches_that_are_not_the_committed_ones_in_order_are_named(
    monkeypatch: pytest.MonkeyPatch, offset: int, given: Any, sentence: str
) -> None:
    world, oracles = watched()
    patch(monkeypatch, fetches, "_batches", lambda _original, _request, replica, *_, **__: given(replica.log))
    post(world, "A", fetch(offset))
    assert sentence in sentence_of(oracles, Rule.SERVED)


def test_fetch_that_begins_inside_a_batch_may_get_that_batch() -> None:
    world, oracles = watched()
    post(world, "A", fetch(1))
    assert {} == oracles.violations
